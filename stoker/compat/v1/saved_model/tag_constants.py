"""Public names of tf.saved_model.tag_constants."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.saved_model.constants import GPU as GPU
from stoker._src.saved_model.constants import SERVING as SERVING
from stoker._src.saved_model.constants import TPU as TPU
from stoker._src.saved_model.constants import TRAINING as TRAINING
