"""Public names of tf.app."""

from stoker.compat.v1.app import flags as flags
from stoker._src.base.app import run as run
