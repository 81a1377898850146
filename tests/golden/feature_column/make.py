"""Records what TensorFlow's feature columns give: losses of fifty steps, checkpoints, variable names.

    python make.py OUT_FOLDER        # with TensorFlow 2 (TF_USE_LEGACY_KERAS=1) or 1.15; writes losses.json and a checkpoint

The models are in `models.py`, which the tests run too.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import models
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
folder = sys.argv[1]
losses = {}
for name, model in sorted(models.MODELS.items()):
    prefix = os.path.join(folder, "after", name) if name == "wide_and_deep" else None
    losses[name] = models.train(tf, model, prefix)
with open(os.path.join(folder, "losses.json"), "w") as stream:
    json.dump(losses, stream, indent=1, sort_keys=True)
