"""Eager mode: ops that run at once, and the gradient tape."""
