"""`resnet_utils`, `resnet_v1` and `resnet_v2`: residual networks (He, Zhang, Ren and Sun, 2015 and 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stoker._src.base.export import export, named
from stoker._src.contrib.framework.arg_scopes import add_arg_scope, arg_scope
from stoker._src.contrib.layers import common, core, normalization
from stoker._src.contrib.layers.convolutions import convolution2d as conv2d
from stoker._src.ops.array import pads
from stoker._src.ops.math import reductions
from stoker._src.ops.nn import activations
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables.regularizers import l2_regularizer, variance_scaling_initializer

_NETS = "contrib.slim.nets"
_UTILS = f"{_NETS}.resnet_utils"


@export(v1=f"{_UTILS}.Block")
class Block(NamedTuple):
    """Units that follow each other: the scope, the function of a unit, and a dictionary of its arguments for each."""

    scope: str
    unit_fn: Callable[..., Any]
    args: list[dict[str, Any]]


@export(v1=f"{_UTILS}.subsample")
def subsample(inputs: Any, factor: int, scope: str | None = None) -> Any:
    """Takes every `factor`-th row and column."""
    return inputs if factor == 1 else core.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


@export(v1=f"{_UTILS}.conv2d_same")
def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Any:
    """A convolution whose padding does not depend on the size of the image, also with strides."""
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = (kernel_size - 1) * rate
    around = [total // 2, total - total // 2]
    inputs = pads.pad(inputs, [[0, 0], around, around, [0, 0]])
    return conv2d(inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@export(v1=f"{_UTILS}.stack_blocks_dense")
@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: list[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Any:
    """Applies blocks; once the image is smaller by `output_stride`, strides become rates of dilation.

    Raises:
        ValueError: the strides of the blocks do not make `output_stride`.
    """
    stride_so_far, rate = 1, 1
    for block in blocks:
        with variable_scope.variable_scope(block.scope, "block", [net]) as opened:
            for i, unit in enumerate(block.args):
                if output_stride is not None and stride_so_far > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with variable_scope.variable_scope(f"unit_{i + 1}", values=[net]):
                    if output_stride is not None and stride_so_far == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride_so_far *= unit.get("stride", 1)
            net = common.collect_named_outputs(outputs_collections, opened.name, net)
    if output_stride is not None and stride_so_far != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


@export(v1=[f"{_NETS}.{each}.resnet_arg_scope" for each in ("resnet_utils", "resnet_v1", "resnet_v2")])
def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The arguments of the layers of residual networks."""
    settings = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": "update_ops",
    }
    with (
        arg_scope(
            [conv2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=activations.relu,
            normalizer_fn=normalization.batch_norm,
            normalizer_params=settings,
        ),
        arg_scope([normalization.batch_norm], **settings),
        arg_scope([core.max_pool2d], padding="SAME") as result,
    ):
        return result


def _channels(inputs: Any) -> int | None:
    return common.last_dimension(inputs.get_shape(), min_rank=4)


@export(v1=f"{_NETS}.resnet_v1.bottleneck")
@add_arg_scope
def bottleneck_v1(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """A unit with batch normalization after convolutions."""
    with variable_scope.variable_scope(scope, "bottleneck_v1", [inputs]) as opened:
        if depth == _channels(inputs):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut")
        residual = conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv2d(residual, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        return common.collect_named_outputs(outputs_collections, opened.name, activations.relu(shortcut + residual))


@export(v1=f"{_NETS}.resnet_v2.bottleneck")
@add_arg_scope
def bottleneck_v2(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """A unit with batch normalization before convolutions."""
    with variable_scope.variable_scope(scope, "bottleneck_v2", [inputs]) as opened:
        before = normalization.batch_norm(inputs, activation_fn=activations.relu, scope="preact")
        plain = {"normalizer_fn": None, "activation_fn": None}
        if depth == _channels(inputs):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(before, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        residual = conv2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = conv2d(residual, depth, [1, 1], stride=1, scope="conv3", **plain)
        return common.collect_named_outputs(outputs_collections, opened.name, shortcut + residual)


def _network(version: int) -> Callable[..., Any]:
    """`resnet_v1` or `resnet_v2`."""
    name = f"resnet_v{version}"
    bottleneck = (bottleneck_v1, bottleneck_v2)[version - 1]

    @export(v1=f"{_NETS}.{name}.{name}")
    @named(
        name, f"A residual network, version {version}, of given blocks: the outputs and a dictionary of its end points."
    )
    def network(
        inputs: Any,
        blocks: list[Block],
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        include_root_block: bool = True,
        reuse: Any = None,
        scope: str | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope.variable_scope(scope, name, [inputs], reuse=reuse) as opened:
            collection = opened.original_name_scope + "_end_points"
            with (
                arg_scope([conv2d, bottleneck, stack_blocks_dense], outputs_collections=collection),
                arg_scope([normalization.batch_norm], is_training=is_training),
            ):
                net = inputs
                if include_root_block:
                    if output_stride is not None:
                        if output_stride % 4 != 0:
                            raise ValueError("The output_stride needs to be a multiple of 4.")
                        output_stride //= 4
                    # Version 2 normalizes at the start of its units.
                    with arg_scope(
                        [conv2d], **({"activation_fn": None, "normalizer_fn": None} if version == 2 else {})
                    ):
                        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                    net = core.max_pool2d(net, [3, 3], stride=2, scope="pool1")
                net = stack_blocks_dense(net, blocks, output_stride)
                if version == 2:
                    net = normalization.batch_norm(net, activation_fn=activations.relu, scope="postnorm")
                if global_pool:
                    net = reductions.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                if num_classes is not None:
                    net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
                ends = common.convert_collection_to_dict(collection)
                if num_classes is not None:
                    ends["predictions"] = core.softmax(net, scope="predictions")
                return net, ends

    return network


def _block(version: int) -> Callable[..., Block]:
    name = f"resnet_v{version}_block"

    @export(v1=f"{_NETS}.resnet_v{version}.{name}")
    @named(name, "Units of one depth; the last has the stride.")
    def block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
        unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
        steps = [1] * (num_units - 1) + [stride]
        return Block(scope, (bottleneck_v1, bottleneck_v2)[version - 1], [{**unit, "stride": step} for step in steps])

    return block


_UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


def _of_depth(version: int, depth: int, network: Callable[..., Any], block: Callable[..., Block]) -> Callable[..., Any]:
    name = f"resnet_v{version}_{depth}"

    @export(v1=f"{_NETS}.resnet_v{version}.{name}")
    @named(name, f"The residual network of {depth} layers, version {version}; arguments as in `resnet_v{version}`.")
    def made(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: str = name,
    ) -> tuple[Any, dict[str, Any]]:
        blocks = [block(f"block{i + 1}", 64 << i, units, 2 if i < 3 else 1) for i, units in enumerate(_UNITS[depth])]
        return network(inputs, blocks, num_classes, is_training, global_pool, output_stride, reuse=reuse, scope=scope)

    return made


for _version in (1, 2):
    _made, _blocks = _network(_version), _block(_version)
    globals().update({f"resnet_v{_version}": _made, f"resnet_v{_version}_block": _blocks})
    globals().update({f"resnet_v{_version}_{depth}": _of_depth(_version, depth, _made, _blocks) for depth in _UNITS})
