"""Helpers for kernels and op definitions: values, moving elements, unsigned integers, waiting."""
