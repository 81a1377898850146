"""`inception`: GoogLeNet with batch normalization (Szegedy et al., 2014) and Inception v3 (Szegedy et al., 2015).

A network is a table of its stages: the name of the end point, and either one layer or branches whose results are joined. A layer is a
line `name [depth] [kernel] [/stride]`: a name that begins with `Conv` is a convolution, and names a pool otherwise. The kernel is the
end of the name unless it is given. With a stride, or with `!`, nothing is padded in v3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.framework.arg_scopes import arg_scope
from stoker._src.contrib.layers import core, normalization
from stoker._src.contrib.layers.convolutions import convolution2d as conv2d
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.nn import activations
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.regularizers import l2_regularizer, variance_scaling_initializer

_PLACE = "contrib.slim.nets.inception"
_Depth = Callable[[int], int]


def _layer(net: Any, line: str, depth: _Depth, padding: str) -> Any:
    """Applies the layer that a line describes; `padding` is that of layers with a stride or an exclamation mark."""
    name, *words = line.split()
    stride = next((int(word[1:]) for word in words if word[0] == "/"), 1)
    sizes = next((word for word in words if "x" in word), name.rpartition("_")[2])
    kernel = [int(size) for size in sizes.split("x")]
    padded = padding if stride > 1 or "!" in words else "SAME"
    if name.startswith("Conv"):
        return conv2d(net, depth(int(words[0])), kernel, stride, padding=padded, scope=name)
    kind = core.max_pool2d if name.startswith("Max") else core.avg_pool2d
    return kind(net, kernel, stride=stride, padding=padded, scope=name)


def _branch(net: Any, steps: Iterable[Any], depth: _Depth, padding: str) -> Any:
    """Applies layers in turn. A tuple of layers is applied side by side and joined."""
    for step in steps:
        if isinstance(step, tuple):
            net = joining.concat([_layer(net, line, depth, padding) for line in step], 3)
        else:
            net = _layer(net, step, depth, padding)
    return net


def _stages(net: Any, table: Any, depth: _Depth, padding: str, final_endpoint: str) -> tuple[Any, dict[str, Any]]:
    """Applies the stages of a table up to an end point.

    Raises:
        ValueError: there is no such end point.
    """
    ends: dict[str, Any] = {}
    for stage in table:
        if isinstance(stage, str):
            name = stage.split()[0]
            net = _layer(net, stage, depth, padding)
        else:
            name, branches = stage
            with variable_scope.variable_scope(name):
                parts = []
                for i, steps in enumerate(branches):
                    with variable_scope.variable_scope(f"Branch_{i}"):
                        parts.append(_branch(net, steps, depth, padding))
                net = joining.concat(parts, 3)
        ends[name] = net
        if name == final_endpoint:
            return net, ends
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def _arg_scope(weight_decay: float, normalizer: dict[str, Any]) -> Any:
    with (
        arg_scope([conv2d, core.fully_connected], weights_regularizer=l2_regularizer(weight_decay)),
        arg_scope(
            [conv2d],
            weights_initializer=variance_scaling_initializer(),
            activation_fn=activations.relu,
            **normalizer,
        ) as result,
    ):
        return result


def _normalizer(collection: str, decay: float, epsilon: float, updates: str, fused: bool = True) -> dict[str, Any]:
    return {
        "normalizer_fn": normalization.batch_norm,
        "normalizer_params": {
            "decay": decay,
            "epsilon": epsilon,
            "updates_collections": updates,
            "fused": fused,
            "variables_collections": {
                "beta": None,
                "gamma": None,
                "moving_mean": [collection],
                "moving_variance": [collection],
            },
        },
    }


# -- v1 ----------------------------------------------------------------------------------------------------------


def _mixed_v1(name: str, *depths: int, second: str = "0b") -> tuple[str, list[list[str]]]:
    one, two, three, four, five, six = depths
    return name, [
        [f"Conv2d_0a_1x1 {one}"],
        [f"Conv2d_0a_1x1 {two}", f"Conv2d_0b_3x3 {three}"],
        [f"Conv2d_0a_1x1 {four}", f"Conv2d_{second}_3x3 {five}"],
        ["MaxPool_0a_3x3", f"Conv2d_0b_1x1 {six}"],
    ]


_V1 = (
    "Conv2d_1a_7x7 64 /2",
    "MaxPool_2a_3x3 /2",
    "Conv2d_2b_1x1 64",
    "Conv2d_2c_3x3 192",
    "MaxPool_3a_3x3 /2",
    _mixed_v1("Mixed_3b", 64, 96, 128, 16, 32, 32),
    _mixed_v1("Mixed_3c", 128, 128, 192, 32, 96, 64),
    "MaxPool_4a_3x3 /2",
    _mixed_v1("Mixed_4b", 192, 96, 208, 16, 48, 64),
    _mixed_v1("Mixed_4c", 160, 112, 224, 24, 64, 64),
    _mixed_v1("Mixed_4d", 128, 128, 256, 24, 64, 64),
    _mixed_v1("Mixed_4e", 112, 144, 288, 32, 64, 64),
    _mixed_v1("Mixed_4f", 256, 160, 320, 32, 128, 128),
    "MaxPool_5a_2x2 /2",
    # The name of the second layer here is that of the published checkpoints.
    _mixed_v1("Mixed_5b", 256, 160, 320, 32, 128, 128, second="0a"),
    _mixed_v1("Mixed_5c", 384, 192, 384, 48, 128, 128),
)


@export(v1=f"{_PLACE}.inception_v1_arg_scope")
def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The arguments of the layers of Inception v1."""
    normalizer = _normalizer(batch_norm_var_collection, 0.9997, 0.001, GraphKeys.UPDATE_OPS)
    return _arg_scope(weight_decay, normalizer if use_batch_norm else {"normalizer_fn": None, "normalizer_params": {}})


@export(v1=f"{_PLACE}.inception_v1_base")
def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The network up to an end point, and a dictionary of the end points up to there.

    Raises:
        ValueError: there is no such end point.
    """
    with (
        variable_scope.variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([conv2d, core.fully_connected], weights_initializer=initializers.TruncatedNormal(0.0, 0.01)),
    ):
        return _stages(inputs, _V1, int, "SAME", final_endpoint)


@export(v1=f"{_PLACE}.inception_v1")
def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Callable[..., Any] = core.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """The network on images of 224 by 224 pixels: scores of classes and a dictionary of its end points."""
    with (
        variable_scope.variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([normalization.batch_norm, core.dropout], is_training=is_training),
    ):
        net, ends = inception_v1_base(inputs, scope=opened)
        with variable_scope.variable_scope("Logits"):
            # The scope calls this a maximum, as the published checkpoints' graphs do.
            net = core.avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = core.dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = _scores(net, num_classes, "Conv2d_0c_1x1", spatial_squeeze)
            ends["Logits"] = logits
            ends["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, ends


def _scores(net: Any, num_classes: int, scope: str, spatial_squeeze: bool, **options: Any) -> Any:
    net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope, **options)
    return shaping.squeeze(net, [1, 2], name="SpatialSqueeze") if spatial_squeeze else net


# -- v3 ----------------------------------------------------------------------------------------------------------


def _mixed_35(name: str, pooled: int, first: str, second: str) -> tuple[str, list[list[str]]]:
    return name, [
        ["Conv2d_0a_1x1 64"],
        [f"{first} 48", f"{second} 64"],
        ["Conv2d_0a_1x1 64", "Conv2d_0b_3x3 96", "Conv2d_0c_3x3 96"],
        ["AvgPool_0a_3x3", f"Conv2d_0b_1x1 {pooled}"],
    ]


def _mixed_17(name: str, inner: int) -> tuple[str, list[list[str]]]:
    chain = [f"Conv2d_0{step} {inner}" for step in ("b_7x1", "c_1x7", "d_7x1")]
    return name, [
        ["Conv2d_0a_1x1 192"],
        [f"Conv2d_0a_1x1 {inner}", f"Conv2d_0b_1x7 {inner}", "Conv2d_0c_7x1 192"],
        [f"Conv2d_0a_1x1 {inner}", *chain, "Conv2d_0e_1x7 192"],
        ["AvgPool_0a_3x3", "Conv2d_0b_1x1 192"],
    ]


def _mixed_8(name: str, upright: str) -> tuple[str, list[list[Any]]]:
    return name, [
        ["Conv2d_0a_1x1 320"],
        ["Conv2d_0a_1x1 384", ("Conv2d_0b_1x3 384", f"{upright} 384")],
        ["Conv2d_0a_1x1 448", "Conv2d_0b_3x3 384", ("Conv2d_0c_1x3 384", "Conv2d_0d_3x1 384")],
        ["AvgPool_0a_3x3", "Conv2d_0b_1x1 192"],
    ]


# Where a name does not follow the pattern, it is that of the published checkpoints.
_V3 = (
    "Conv2d_1a_3x3 32 /2",
    "Conv2d_2a_3x3 32 !",
    "Conv2d_2b_3x3 64",
    "MaxPool_3a_3x3 /2",
    "Conv2d_3b_1x1 80 !",
    "Conv2d_4a_3x3 192 !",
    "MaxPool_5a_3x3 /2",
    _mixed_35("Mixed_5b", 32, "Conv2d_0a_1x1", "Conv2d_0b_5x5"),
    _mixed_35("Mixed_5c", 64, "Conv2d_0b_1x1", "Conv_1_0c_5x5"),
    _mixed_35("Mixed_5d", 64, "Conv2d_0a_1x1", "Conv2d_0b_5x5"),
    (
        "Mixed_6a",
        [
            ["Conv2d_1a_1x1 384 3x3 /2"],
            ["Conv2d_0a_1x1 64", "Conv2d_0b_3x3 96", "Conv2d_1a_1x1 96 3x3 /2"],
            ["MaxPool_1a_3x3 /2"],
        ],
    ),
    _mixed_17("Mixed_6b", 128),
    _mixed_17("Mixed_6c", 160),
    _mixed_17("Mixed_6d", 160),
    _mixed_17("Mixed_6e", 192),
    (
        "Mixed_7a",
        [
            ["Conv2d_0a_1x1 192", "Conv2d_1a_3x3 320 /2"],
            ["Conv2d_0a_1x1 192", "Conv2d_0b_1x7 192", "Conv2d_0c_7x1 192", "Conv2d_1a_3x3 192 /2"],
            ["MaxPool_1a_3x3 /2"],
        ],
    ),
    _mixed_8("Mixed_7b", "Conv2d_0b_3x1"),
    _mixed_8("Mixed_7c", "Conv2d_0c_3x1"),
)


@export(v1=f"{_PLACE}.inception_v3_arg_scope")
def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: str = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """The arguments of the layers of Inception v3."""
    return _arg_scope(
        weight_decay,
        _normalizer(
            batch_norm_var_collection, batch_norm_decay, batch_norm_epsilon, updates_collections, use_fused_batchnorm
        ),
    )


def _depths(multiplier: float, least: int) -> _Depth:
    """The number of channels of a layer, given that of the paper.

    Raises:
        ValueError: the multiplier is not positive.
    """
    if multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda depth: max(int(depth * multiplier), least)


@export(v1=f"{_PLACE}.inception_v3_base")
def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The network up to an end point, and a dictionary of the end points up to there.

    Raises:
        ValueError: there is no such end point, or `depth_multiplier` is not positive.
    """
    depth = _depths(depth_multiplier, min_depth)
    with variable_scope.variable_scope(scope, "InceptionV3", [inputs]):
        return _stages(inputs, _V3, depth, "VALID", final_endpoint)


def _window(net: Any, size: int) -> list[int]:
    """A square window, smaller where the map is smaller."""
    return [size if known is None else min(size, known) for known in net.shape.as_list()[1:3]]


@export(v1=f"{_PLACE}.inception_v3")
def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Callable[..., Any] = core.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """The network on images of 299 by 299 pixels: scores of classes and a dictionary of its end points.

    The end points include `AuxLogits`, the scores of the classifier in the middle that helps in training.
    """
    depth = _depths(depth_multiplier, min_depth)
    with (
        variable_scope.variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([normalization.batch_norm, core.dropout], is_training=is_training),
    ):
        net, ends = inception_v3_base(inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened)
        with variable_scope.variable_scope("AuxLogits"):
            aux = core.avg_pool2d(ends["Mixed_6e"], [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
            aux = conv2d(aux, depth(128), [1, 1], scope="Conv2d_1b_1x1")
            window = _window(aux, 5)
            aux = conv2d(
                aux,
                depth(768),
                window,
                weights_initializer=initializers.TruncatedNormal(0.0, 0.01),
                padding="VALID",
                scope="Conv2d_2a_{}x{}".format(*window),
            )
            small = initializers.TruncatedNormal(0.0, 0.001)
            ends["AuxLogits"] = _scores(aux, num_classes, "Conv2d_2b_1x1", spatial_squeeze, weights_initializer=small)
        with variable_scope.variable_scope("Logits"):
            window = _window(net, 8)
            net = core.avg_pool2d(net, window, padding="VALID", scope="AvgPool_1a_{}x{}".format(*window))
            net = core.dropout(net, dropout_keep_prob, scope="Dropout_1b")
            ends["PreLogits"] = net
            logits = ends["Logits"] = _scores(net, num_classes, "Conv2d_1c_1x1", spatial_squeeze)
        ends["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, ends


inception_v1.default_image_size = 224
inception_v3.default_image_size = 299
