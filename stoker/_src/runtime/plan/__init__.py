"""Turns fetches and feeds into a compiled step: planning, fusing, emitting code, and recording CUDA graphs."""
