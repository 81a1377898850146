"""Writes graphs.json, what TensorFlow makes of cases.py: PYTHON make.py, under TensorFlow 1.15.5 and again under 2.21.

The second run checks that the two agree.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tensorflow.compat.v1 as tf  # noqa: E402
from cases import cases, described  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
found = {name: described(tf, make) for name, make in cases(tf).items()}
path = os.path.join(HERE, "graphs.json")
if tf.__version__.startswith("1."):
    with open(path, "w") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
else:
    with open(path) as file:
        recorded = json.load(file)
    assert recorded == found, [name for name in found if recorded.get(name) != found[name]]
