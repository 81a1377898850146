"""`alexnet`: the network for one device of Krizhevsky (2014)."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.framework.arg_scopes import arg_scope
from stoker._src.contrib.layers import common, core
from stoker._src.contrib.layers.convolutions import convolution2d as conv2d
from stoker._src.ops.array import shaping
from stoker._src.ops.nn import activations
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.regularizers import l2_regularizer

_PLACE = "contrib.slim.nets.alexnet"


@export(v1=f"{_PLACE}.alexnet_v2_arg_scope")
def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of the layers of this network."""
    with (
        arg_scope(
            [conv2d, core.fully_connected],
            activation_fn=activations.relu,
            biases_initializer=initializers.Constant(0.1),
            weights_regularizer=l2_regularizer(weight_decay),
        ),
        arg_scope([conv2d], padding="SAME"),
        arg_scope([core.max_pool2d], padding="VALID") as result,
    ):
        return result


@export(v1=f"{_PLACE}.alexnet_v2")
def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """The network on images of 224 by 224 pixels: scores of classes and a dictionary of its end points."""
    with variable_scope.variable_scope(scope, "alexnet_v2", [inputs]) as opened:
        collection = opened.original_name_scope + "_end_points"
        with arg_scope([conv2d, core.fully_connected, core.max_pool2d], outputs_collections=[collection]):
            net = conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = core.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = conv2d(net, 192, [5, 5], scope="conv2")
            net = core.max_pool2d(net, [3, 3], 2, scope="pool2")
            for i, depth in enumerate((384, 384, 256), start=3):
                net = conv2d(net, depth, [3, 3], scope=f"conv{i}")
            net = core.max_pool2d(net, [3, 3], 2, scope="pool5")
            # Convolutions stand for the fully connected layers, so that larger images give maps of scores.
            with arg_scope([conv2d], weights_initializer=initializers.TruncatedNormal(0.0, 0.005)):
                net = conv2d(net, 4096, [5, 5], padding="VALID", scope="fc6")
                net = core.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = conv2d(net, 4096, [1, 1], scope="fc7")
                net = core.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = conv2d(
                    net,
                    num_classes,
                    [1, 1],
                    activation_fn=None,
                    normalizer_fn=None,
                    biases_initializer=initializers.Zeros(),
                    scope="fc8",
                )
        ends = common.convert_collection_to_dict(collection)
        if spatial_squeeze:
            net = shaping.squeeze(net, [1, 2], name="fc8/squeezed")
            ends[opened.name + "/fc8"] = net
        return net, ends


alexnet_v2.default_image_size = 224
