"""Public names of tf.io."""

from stoker._src.ops.strings import decode_base64 as decode_base64
from stoker._src.ops.strings import encode_base64 as encode_base64
