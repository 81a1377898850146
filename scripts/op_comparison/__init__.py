"""The parts of scripts/op_table.py: cases, their exchange with TensorFlow, the comparison and its stated exceptions."""
