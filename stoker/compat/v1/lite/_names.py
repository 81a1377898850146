"""Public names of tf.lite."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.lite import constants as constants
from stoker.compat.v1.lite import experimental as experimental
from stoker._src.lite.converter import TFLiteConverter as TFLiteConverter
from stoker._src.lite.interpreter import Interpreter as Interpreter
from stoker._src.lite.op_hints import OpHint as OpHint
from stoker._src.lite.options import OpsSet as OpsSet
from stoker._src.lite.options import Optimize as Optimize
from stoker._src.lite.options import RepresentativeDataset as RepresentativeDataset
from stoker._src.lite.options import TargetSpec as TargetSpec
from stoker._src.lite.toco import toco_convert as toco_convert
from stoker._src.lite.toco import TocoConverter as TocoConverter
