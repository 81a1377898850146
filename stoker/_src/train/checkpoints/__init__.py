"""Savers, checkpoint state files, readers."""
