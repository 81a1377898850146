"""Public names of tf.audio."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.signal.audio import decode_wav_file as decode_wav
from stoker._src.ops.signal.audio import encode_wav_file as encode_wav
