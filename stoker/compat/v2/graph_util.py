"""Public names of tf.graph_util."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.graph.interchange.importer import import_graph_def as import_graph_def
