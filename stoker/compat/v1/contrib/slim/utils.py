"""Public names of tf.contrib.slim.utils."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.layers.common import append_tensor_alias as append_tensor_alias
from stoker._src.contrib.layers.common import channel_dimension as channel_dimension
from stoker._src.contrib.layers.common import collect_named_outputs as collect_named_outputs
from stoker._src.contrib.layers.common import constant_value as constant_value
from stoker._src.contrib.layers.common import convert_collection_to_dict as convert_collection_to_dict
from stoker._src.contrib.layers.common import gather_tensors_aliases as gather_tensors_aliases
from stoker._src.contrib.layers.common import get_tensor_aliases as get_tensor_aliases
from stoker._src.contrib.layers.common import get_variable_collections as get_variable_collections
from stoker._src.contrib.layers.common import last_dimension as last_dimension
from stoker._src.contrib.layers.common import n_positive_integers as n_positive_integers
from stoker._src.contrib.layers.common import NamedOutputs as NamedOutputs
from stoker._src.contrib.layers.common import smart_cond as smart_cond
from stoker._src.contrib.layers.common import static_cond as static_cond
from stoker._src.contrib.layers.common import two_element_tuple as two_element_tuple
