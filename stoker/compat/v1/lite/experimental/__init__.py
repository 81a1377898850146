"""Public names of tf.lite.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.lite.experimental import nn as nn
from stoker._src.lite.interpreter import load_delegate as load_delegate
from stoker._src.lite.interpreter import OpResolverType as OpResolverType
from stoker._src.lite.op_hint_stubs import convert_op_hints_to_stubs as convert_op_hints_to_stubs
from stoker._src.lite.toco import get_potentially_supported_ops as get_potentially_supported_ops
