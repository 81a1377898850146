"""Transformations of TFLite models."""
