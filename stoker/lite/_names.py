"""Public names of tf.lite."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.lite import experimental as experimental
from stoker._src.lite.converter import TFLiteConverterV2 as TFLiteConverter
from stoker._src.lite.interpreter import Interpreter as Interpreter
from stoker._src.lite.options import OpsSet as OpsSet
from stoker._src.lite.options import Optimize as Optimize
from stoker._src.lite.options import RepresentativeDataset as RepresentativeDataset
from stoker._src.lite.options import TargetSpec as TargetSpec
