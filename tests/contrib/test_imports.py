"""`stoker run` serves the modules of tf.contrib under the names that programs import."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import framework, layers
from tensorflow.contrib.framework.python.ops import add_arg_scope, arg_scope, variables
from tensorflow.contrib.layers import flatten, xavier_initializer
from tensorflow.contrib.layers.python.layers import batch_norm, initializers, utils
from tensorflow.contrib.layers.python.layers.layers import conv2d
from tensorflow.contrib.slim.python.slim.data import dataset, tfexample_decoder
from tensorflow.contrib.slim.python.slim.learning import train_step
from tensorflow.contrib.training.python.training import hparam

assert slim.conv2d is layers.conv2d is conv2d is tf.contrib.layers.conv2d
assert arg_scope is framework.arg_scope and variables.get_variables is framework.get_variables
assert utils.last_dimension([3, 4]) == 4 and hparam.HParams(a=1).a == 1
assert slim.losses.log_loss is tf.contrib.losses.log_loss and train_step is slim.learning.train_step
assert dataset.Dataset is slim.dataset.Dataset and tfexample_decoder.Image is slim.tfexample_decoder.Image
assert initializers.xavier_initializer is xavier_initializer and batch_norm is slim.batch_norm and flatten is slim.flatten
try:
    import tensorflow.contrib.boosted_trees
except ImportError as error:
    print(error)
"""


def test_modules_of_contrib_are_imported_by_their_full_names(tmp_path):
    """Deep imports find the same functions as the public names, and what is missing says where to look."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "run", str(script)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "docs/contrib.md" in done.stdout
