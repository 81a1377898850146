"""Public names of tf.dtypes."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.dtypes import as_dtype as as_dtype
from stoker._src.base.dtypes import bfloat16 as bfloat16
from stoker._src.base.dtypes import bool_ as bool
from stoker._src.base.dtypes import complex128 as complex128
from stoker._src.base.dtypes import complex64 as complex64
from stoker._src.base.dtypes import double as double
from stoker._src.base.dtypes import DType as DType
from stoker._src.base.dtypes import float16 as float16
from stoker._src.base.dtypes import float32 as float32
from stoker._src.base.dtypes import float64 as float64
from stoker._src.base.dtypes import half as half
from stoker._src.base.dtypes import int16 as int16
from stoker._src.base.dtypes import int32 as int32
from stoker._src.base.dtypes import int64 as int64
from stoker._src.base.dtypes import int8 as int8
from stoker._src.base.dtypes import qint16 as qint16
from stoker._src.base.dtypes import qint32 as qint32
from stoker._src.base.dtypes import qint8 as qint8
from stoker._src.base.dtypes import QUANTIZED_DTYPES as QUANTIZED_DTYPES
from stoker._src.base.dtypes import quint16 as quint16
from stoker._src.base.dtypes import quint8 as quint8
from stoker._src.base.dtypes import resource as resource
from stoker._src.base.dtypes import string as string
from stoker._src.base.dtypes import uint16 as uint16
from stoker._src.base.dtypes import uint32 as uint32
from stoker._src.base.dtypes import uint64 as uint64
from stoker._src.base.dtypes import uint8 as uint8
from stoker._src.base.dtypes import variant as variant
from stoker._src.ops.array.casting import cast as cast
from stoker._src.ops.math.clipping import saturate_cast as saturate_cast
from stoker._src.ops.math.unary_functions import complex as complex
from stoker._src.ops.strings.numbers import as_string as as_string
