"""Branches, loops, functions as ops, their gradients, tensor arrays and lists, assertions."""
