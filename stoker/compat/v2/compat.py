"""Public names of tf.compat."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.shapes import dimension_at_index as dimension_at_index
from stoker._src.base.shapes import dimension_value as dimension_value
from stoker._src.base.text import as_bytes as as_bytes
from stoker._src.base.text import as_str as as_str
from stoker._src.base.text import as_str_any as as_str_any
from stoker._src.base.text import as_text as as_text
from stoker._src.base.text import bytes_or_text_types as bytes_or_text_types
from stoker._src.base.text import complex_types as complex_types
from stoker._src.base.text import forward_compatibility_horizon as forward_compatibility_horizon
from stoker._src.base.text import forward_compatible as forward_compatible
from stoker._src.base.text import integral_types as integral_types
from stoker._src.base.text import path_to_str as path_to_str
from stoker._src.base.text import real_types as real_types
from stoker._src.graph.behavior import lazy_namespace as __getattr__
