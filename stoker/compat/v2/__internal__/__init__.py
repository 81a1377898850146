"""Public names of tf.__internal__."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v2.__internal__ import feature_column as feature_column
