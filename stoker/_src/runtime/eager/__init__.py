"""Eager mode: ops that run immediately, and the gradient tape."""
