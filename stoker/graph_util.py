"""Public names of tf.graph_util."""

from stoker._src.graph.importer import import_graph_def as import_graph_def
