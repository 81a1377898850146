"""Ops in which all processes of a group take part: all-reduce, all-gather, broadcast."""
