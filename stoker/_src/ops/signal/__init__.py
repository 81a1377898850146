"""Fourier transforms, frames, windows, audio."""
