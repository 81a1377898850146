"""Distributed sessions: servers, and sessions on them, over TensorFlow's wire protocol."""
