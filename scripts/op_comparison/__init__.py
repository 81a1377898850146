"""The parts of scripts/op_table.py: cases, their exchange with TensorFlow, the comparison and its stated exceptions."""

from stoker._src import ops as ops  # defines every op
