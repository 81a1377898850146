"""Public names of tf.lite.constants."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.lite.options import FLOAT as FLOAT
from stoker._src.lite.options import FLOAT16 as FLOAT16
from stoker._src.lite.options import GRAPHVIZ_DOT as GRAPHVIZ_DOT
from stoker._src.lite.options import INT16 as INT16
from stoker._src.lite.options import INT32 as INT32
from stoker._src.lite.options import INT64 as INT64
from stoker._src.lite.options import INT8 as INT8
from stoker._src.lite.options import QUANTIZED_UINT8 as QUANTIZED_UINT8
from stoker._src.lite.options import STRING as STRING
from stoker._src.lite.options import TFLITE as TFLITE
