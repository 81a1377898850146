"""Public names of tf.profiler."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.runtime.profiler import GraphNodeProto as GraphNodeProto
from stoker._src.runtime.profiler import profile as profile
from stoker._src.runtime.profiler import ProfileOptionBuilder as ProfileOptionBuilder
from stoker._src.runtime.profiler import Profiler as Profiler
