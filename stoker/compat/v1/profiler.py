"""Public names of tf.profiler."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.formats.protos import AdviceProto as AdviceProto
from stoker._src.formats.protos import GraphNodeProto as GraphNodeProto
from stoker._src.formats.protos import MultiGraphNodeProto as MultiGraphNodeProto
from stoker._src.formats.protos import OpLogProto as OpLogProto
from stoker._src.runtime.profiling.options import ProfileOptionBuilder as ProfileOptionBuilder
from stoker._src.runtime.profiling.profiler import advise as advise
from stoker._src.runtime.profiling.profiler import profile as profile
from stoker._src.runtime.profiling.profiler import Profiler as Profiler
from stoker._src.runtime.profiling.profiler import write_op_log as write_op_log
