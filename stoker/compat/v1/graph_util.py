"""Public names of tf.graph_util."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.graph.graph_util import extract_sub_graph as extract_sub_graph
from stoker._src.graph.graph_util import must_run_on_cpu as must_run_on_cpu
from stoker._src.graph.graph_util import remove_training_nodes as remove_training_nodes
from stoker._src.graph.graph_util import tensor_shape_from_node_def_name as tensor_shape_from_node_def_name
from stoker._src.graph.interchange.freezing import convert_variables_to_constants as convert_variables_to_constants
from stoker._src.graph.interchange.importer import import_graph_def as import_graph_def
