"""The two namespaces, `v1` (1.x names) and `v2` (2.x names), and helpers common to both."""

from stoker._src.base.shapes import dimension_value as dimension_value
from stoker._src.runtime.behavior import lazy_namespace as __getattr__
