"""Turns fetches and feeds into a compiled step: planning, fusing, and emitting code. `gpu` records CUDA graphs."""
