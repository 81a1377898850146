"""Optimizers, their slots, loss scales and moving averages."""
