"""`vgg`: the networks of Simonyan and Zisserman (2014)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export, named
from stoker._src.contrib.framework.arg_scopes import arg_scope
from stoker._src.contrib.layers import common, core
from stoker._src.contrib.layers.convolutions import convolution2d as conv2d
from stoker._src.ops.array import shaping
from stoker._src.ops.nn import activations
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.regularizers import l2_regularizer

_PLACE = "contrib.slim.nets.vgg"
# The letters of the paper's table: how often each of the five convolutions is repeated.
_REPEATS = {"a": (1, 1, 2, 2, 2), "16": (2, 2, 3, 3, 3), "19": (2, 2, 4, 4, 4)}
_DEPTHS = (64, 128, 256, 512, 512)


@export(v1=f"{_PLACE}.vgg_arg_scope")
def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of the layers of these networks."""
    with (
        arg_scope(
            [conv2d, core.fully_connected],
            activation_fn=activations.relu,
            weights_regularizer=l2_regularizer(weight_decay),
            biases_initializer=initializers.Zeros(),
        ),
        arg_scope([conv2d], padding="SAME") as result,
    ):
        return result


def _network(kind: str, *names: str) -> Callable[..., Any]:
    label = f"vgg_{kind}"

    @export(v1=[f"{_PLACE}.{name}" for name in (label, *names)])
    @named(label, "The network on images of 224 by 224 pixels: scores of classes and a dictionary of its end points.")
    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: str = label,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope.variable_scope(scope, label, [inputs]) as opened:
            collection = opened.original_name_scope + "_end_points"
            with arg_scope([conv2d, core.fully_connected, core.max_pool2d], outputs_collections=collection):
                net = inputs
                for i, (times, depth) in enumerate(zip(_REPEATS[kind], _DEPTHS), start=1):
                    net = core.repeat(net, times, conv2d, depth, [3, 3], scope=f"conv{i}")
                    net = core.max_pool2d(net, [2, 2], scope=f"pool{i}")
                # Convolutions stand for the fully connected layers, so that larger images give maps of scores.
                net = conv2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
                net = core.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = conv2d(net, 4096, [1, 1], scope="fc7")
                net = core.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
            ends = common.convert_collection_to_dict(collection)
            if spatial_squeeze:
                net = shaping.squeeze(net, [1, 2], name="fc8/squeezed")
                ends[opened.name + "/fc8"] = net
            return net, ends

    return network


vgg_a = _network("a")
vgg_16 = _network("16", "vgg_d")
vgg_19 = _network("19", "vgg_e")
