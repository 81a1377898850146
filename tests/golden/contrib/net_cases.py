"""Networks of `tf.contrib.slim.nets`: their end points, variables, convolutions and pools, and values of their first layers.

    python tests/golden/contrib/net_cases.py     # under TensorFlow 1.15: writes nets.json.gz beside this file

The same functions run under stoker in tests/contrib/test_nets.py.
"""

from __future__ import annotations

import gzip
import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# network: (module, size of images, an end point near the input, arguments)
NETS = {
    "alexnet_v2": ("alexnet", 224, None, {}),
    "inception_v1": ("inception", 224, "MaxPool_3a_3x3", {}),
    "inception_v3": ("inception", 299, "MaxPool_3a_3x3", {}),
    "inception_v3_small": ("inception", 150, None, {"depth_multiplier": 0.1, "spatial_squeeze": False}),
}


def _attributes(op):
    return [
        op.name,
        *(list(op.get_attr(key)) for key in ("strides", "ksize") if key in op.node_def.attr),
        op.get_attr("padding").decode(),
    ]


def structure(tf, slim, nets, name):
    """What a network makes of images: shapes of end points and variables, and the attributes of convolutions and pools."""
    module, size, _, options = NETS[name]
    function = name.replace("_small", "")
    place = getattr(nets, module)
    with tf.Graph().as_default() as graph:
        with slim.arg_scope(getattr(place, function + "_arg_scope")()):
            net, ends = getattr(place, function)(tf.placeholder(tf.float32, [2, size, size, 3]), 10, **options)
        return {
            "net": net.name,
            "ends": [
                [key, each.name.split(":")[0], each.shape.as_list()] for key, each in ends.items() if key != "PreLogits"
            ],
            "variables": [[each.op.name, each.shape.as_list()] for each in tf.global_variables()],
            "trainable": len(tf.trainable_variables()),
            "moving": len(tf.get_collection("moving_vars")),
            "updates": len(tf.get_collection("update_ops")),
            "penalties": len(tf.losses.get_regularization_losses()),
            "ops": [_attributes(op) for op in graph.get_operations() if op.type in ("Conv2D", "MaxPool", "AvgPool")],
        }


def values(tf, slim, nets, name):
    """Values of the first layers with given weights, and moving averages after one update."""
    module, _, end, _ = NETS[name]
    if end is None:
        return []
    place, random = getattr(nets, module), np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(random.rand(2, 64, 64, 3).astype("f"))
        with slim.arg_scope(getattr(place, name + "_arg_scope")()):
            net, _ = getattr(place, name + "_base")(images, end)
        session.run(tf.global_variables_initializer())
        for each in tf.trainable_variables():
            each.load(0.1 * random.randn(*each.shape.as_list()).astype("f"), session)
        session.run(tf.get_collection("update_ops"))
        found = [net[0, 0, 0], tf.losses.get_regularization_loss(), *tf.get_collection("moving_vars")[:2]]
        return [np.asarray(each, float).round(6).tolist() for each in session.run(found)]


if __name__ == "__main__":
    import tensorflow.compat.v1 as tensorflow
    from tensorflow.contrib import slim as layers
    from tensorflow.contrib.slim import nets as networks

    tensorflow.disable_v2_behavior()
    made = {
        name: [structure(tensorflow, layers, networks, name), values(tensorflow, layers, networks, name)]
        for name in NETS
    }
    with gzip.GzipFile(os.path.join(HERE, "nets.json.gz"), "wb", mtime=0) as file:
        file.write(json.dumps(made, sort_keys=True).encode())
