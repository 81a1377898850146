"""Estimators whose models are ready: heads, linear models, networks, and both together."""
