"""Calls of functions that are not layers: operators and `keras.ops` in Keras 3, TensorFlow functions and single ops in Keras 2.

A file only names such a function. What is not in the tables here, or among the functions that compute without side effects, is refused.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf import json_format

from stoker._src.base import dtypes
from stoker._src.base.errors import OpError
from stoker._src.base.export import EXPORTS
from stoker._src.formats.protos import GraphDef, NodeDef
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.tensor import Tensor
from stoker._src.keras import newer_activations
from stoker._src.lite.keras.layers import Layer, UnsupportedLayer
from stoker._src.ops.array import casting, constants, gathering, joining, pads, ranges, selection, shaping
from stoker._src.ops.linalg import einsum, matrix_products
from stoker._src.ops.math import arithmetic, clipping, comparison, reductions, scans, unary_functions
from stoker._src.ops.nn import activations, batch_norm, conv_api, moments, pool_api, softmax

_FUNCTIONS = ("TFOpLambda", "SlicingOpLambda", "ClassMethod")
_NODE = "TensorFlowOpLayer"
_KERAS_OPS = ("keras.src.ops.", "keras.ops")


def is_operation(layer: dict[str, Any]) -> bool:
    """Whether an entry of a configuration is a call of a function, not a layer."""
    module = str(layer.get("module") or "")
    return layer["class_name"] in (*_FUNCTIONS, _NODE) or module.startswith(_KERAS_OPS) or _is_bare(layer)


def _is_bare(layer: dict[str, Any]) -> bool:
    """HDF5 files do not name modules. An operation has no settings of a layer."""
    config = layer.get("config")
    return (
        "module" not in layer
        and isinstance(config, dict)
        and "trainable" not in config
        and layer["class_name"] in OPERATIONS
        and bool(layer.get("inbound_nodes"))
    )


def knows_operation(layer: dict[str, Any]) -> bool:
    kind, config = layer["class_name"], layer["config"]
    if kind in _FUNCTIONS:
        return _function(str(config.get("function", ""))) is not None
    return kind == _NODE or kind in OPERATIONS


def apply_operation(layer: Layer) -> Any:
    """The result of a call.

    Raises:
      UnsupportedLayer: The function does not accept its arguments.
    """
    try:
        if layer.class_name == _NODE:
            return _node(layer)
        if layer.class_name in _FUNCTIONS:
            found = _function(str(layer.config["function"]))
            assert found is not None
            kwargs = {key: value for key, value in layer.call.kwargs.items() if key != "name"}
            made = found(*layer.call.args, **kwargs)
        else:
            settings = {key: value for key, value in layer.config.items() if key not in ("name", "trainable")}
            made = OPERATIONS[layer.class_name](*layer.call.args, **{**settings, **layer.call.kwargs})
    except (TypeError, ValueError, KeyError, IndexError, OpError) as error:
        raise UnsupportedLayer(f"the call fails: {error}") from error
    return list(made) if isinstance(made, (list, tuple)) else made


# ---- Keras 3 ----------------------------------------------------------------------------------------------------------


def _indexed(x: Tensor, key: Any) -> Tensor:
    return x[tuple(key) if isinstance(key, list) else key]


def _binary(function: Callable[[Any, Any], Tensor]) -> Callable[..., Tensor]:
    def call(x1: Any, x2: Any, **_: Any) -> Tensor:
        kinds = [each.dtype for each in (x1, x2) if isinstance(each, Tensor)]
        return function(*(_like(each, kinds[0]) if kinds else each for each in (x1, x2)))

    return call


def _like(value: Any, dtype: Any) -> Any:
    return value if isinstance(value, Tensor) else constants.constant(np.asarray(value), dtype)


def _unary(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    return lambda x, **_: function(x)


def _reduced(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, axis=None, keepdims=False, **_: function(x, axis=axis, keepdims=keepdims)


def _reshaped(x: Tensor, newshape: Any = None, shape: Any = None, **_: Any) -> Tensor:
    sizes = newshape if newshape is not None else shape
    return shaping.reshape(x, [-1 if each is None else each for each in sizes])


def _split(x: Tensor, indices_or_sections: Any = 2, axis: int = 0, **_: Any) -> list[Tensor]:
    if isinstance(indices_or_sections, int):
        return list(joining.split(x, indices_or_sections, axis=axis))
    size = x.static_shape[axis]
    if size is None:
        raise ValueError(f"the size of dimension {axis} of {x.shape} is not known")
    edges = [0, *(int(each) for each in indices_or_sections), size]
    return list(joining.split(x, [b - a for a, b in itertools.pairwise(edges)], axis=axis))


def _cast(x: Tensor, dtype: Any = "float32", **_: Any) -> Tensor:
    return casting.cast(x, dtypes.as_dtype(str(dtype)))


def _gelu(x: Tensor, approximate: bool = True, **_: Any) -> Tensor:
    return activations.gelu(x, approximate=approximate)


def _leaky(x: Tensor, negative_slope: float = 0.2, **_: Any) -> Tensor:
    return activations.leaky_relu(x, negative_slope)


def _clip(x: Tensor, x_min: Any = None, x_max: Any = None, **_: Any) -> Tensor:
    return clipping.clip_by_value(x, x_min, x_max)


def _variance(x: Tensor, axis: Any = None, keepdims: bool = False, **_: Any) -> Tensor:
    return reductions.reduce_variance(x, axis=axis, keepdims=keepdims)


def _squeezed(x: Tensor, axis: Any = None, **_: Any) -> Tensor:
    return shaping.squeeze(x, [axis] if isinstance(axis, int) else axis)


def _repeated(x: Tensor, repeats: Any = None, axis: int | None = None, **_: Any) -> Tensor:
    if not isinstance(repeats, int) or axis is None:
        raise ValueError("repeat needs a number and an axis")
    x = shaping.expand_dims(x, axis + 1 if axis >= 0 else axis)
    rank = x.static_shape.rank or 0
    place = (axis + 1 if axis >= 0 else axis) % rank
    tiled = joining.tile(x, [repeats if each == place else 1 for each in range(rank)])
    shape = [-1 if size is None else size for size in tiled.static_shape]
    merged = -1 if -1 in shape[place - 1 : place + 1] else shape[place - 1] * shape[place]
    return shaping.reshape(tiled, [*shape[: place - 1], merged, *shape[place + 1 :]])


def _newer(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    settings = list(inspect.signature(function).parameters)[1:]
    return lambda x, **given: function(x, **{name: given[name] for name in settings if name in given})


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": _binary(arithmetic.add),
    "Subtract": _binary(arithmetic.subtract),
    "Multiply": _binary(arithmetic.multiply),
    "TrueDivide": _binary(lambda a, b: a / b),
    "Divide": _binary(lambda a, b: a / b),
    "FloorDivide": _binary(lambda a, b: a // b),
    "Mod": _binary(arithmetic.floormod),
    "Power": _binary(arithmetic.power),
    "Maximum": _binary(arithmetic.maximum),
    "Minimum": _binary(arithmetic.minimum),
    "SquaredDifference": _binary(arithmetic.squared_difference),
    "Equal": _binary(comparison.equal),
    "NotEqual": _binary(comparison.not_equal),
    "Less": _binary(comparison.less),
    "LessEqual": _binary(comparison.less_equal),
    "Greater": _binary(comparison.greater),
    "GreaterEqual": _binary(comparison.greater_equal),
    "LogicalAnd": _binary(comparison.logical_and),
    "LogicalOr": _binary(comparison.logical_or),
    "LogicalNot": _unary(comparison.logical_not),
    "Negative": _unary(lambda x: -x),
    "Absolute": _unary(unary_functions.abs),
    "Exp": _unary(unary_functions.exp),
    "Log": _unary(unary_functions.log),
    "Sqrt": _unary(unary_functions.sqrt),
    "Rsqrt": _unary(unary_functions.rsqrt),
    "Square": _unary(unary_functions.square),
    "Sin": _unary(unary_functions.sin),
    "Cos": _unary(unary_functions.cos),
    "Tanh": _unary(unary_functions.tanh),
    "Floor": _unary(unary_functions.floor),
    "Round": _unary(unary_functions.round),
    "Sign": _unary(unary_functions.sign),
    "Relu": _unary(activations.relu),
    "Relu6": _unary(activations.relu6),
    "Sigmoid": _unary(unary_functions.sigmoid),
    "Softplus": _unary(activations.softplus),
    "Softsign": _unary(activations.softsign),
    "Silu": _unary(activations.swish),
    "Elu": _unary(activations.elu),
    "Selu": _unary(activations.selu),
    "LeakyRelu": _leaky,
    "Gelu": _gelu,
    "HardSigmoid": _newer(newer_activations.hard_sigmoid),
    **{
        name.title().replace("_", ""): _newer(newer_activations.NEWER[name])
        for name in (
            "celu glu hard_shrink hard_silu hard_tanh log_sigmoid soft_shrink sparse_plus sparse_sigmoid squareplus tanh_shrink"
        ).split()
    },
    "Softmax": lambda x, axis=-1, **_: softmax.softmax(x, axis=axis),
    "LogSoftmax": lambda x, axis=-1, **_: softmax.log_softmax(x, axis=axis),
    "Mean": _reduced(reductions.reduce_mean),
    "Sum": _reduced(reductions.reduce_sum),
    "Max": _reduced(reductions.reduce_max),
    "Min": _reduced(reductions.reduce_min),
    "Prod": _reduced(reductions.reduce_prod),
    "Any": _reduced(reductions.reduce_any),
    "All": _reduced(reductions.reduce_all),
    "Var": _variance,
    "Argmax": lambda x, axis=None, **_: casting.cast(scans.argmax(x, axis=axis), dtypes.int32),
    "Argmin": lambda x, axis=None, **_: casting.cast(scans.argmin(x, axis=axis), dtypes.int32),
    "Concatenate": lambda xs, axis=0, **_: joining.concat(xs, axis),
    "Stack": lambda xs, axis=0, **_: joining.stack(xs, axis=axis),
    "Split": _split,
    "Reshape": _reshaped,
    "Transpose": lambda x, axes=None, **_: shaping.transpose(x, axes),
    "ExpandDims": lambda x, axis=0, **_: shaping.expand_dims(x, axis),
    "Squeeze": _squeezed,
    "Tile": lambda x, repeats=None, **_: joining.tile(x, repeats),
    "Repeat": _repeated,
    "Flip": lambda x, axis=None, **_: selection.reverse(x, [axis] if isinstance(axis, int) else axis),
    "BroadcastTo": lambda x, shape=None, **_: ranges.broadcast_to(x, shape),
    "Pad": lambda x, pad_width=None, mode="constant", **_: pads.pad(x, pad_width, mode),
    "Cast": _cast,
    "Clip": _clip,
    "Matmul": lambda x1, x2, **_: matrix_products.matmul(x1, x2),
    "Einsum": lambda *xs, subscripts="", **_: einsum.einsum(subscripts, *xs),
    "Take": lambda x, indices, axis=0, **_: gathering.gather(x, indices, axis=axis),
    "Where": lambda condition, x1=None, x2=None, **_: selection.where_v2(condition, x1, x2),
    "OnesLike": lambda x, dtype=None, **_: shaping.ones_like(x, dtype),
    "ZerosLike": lambda x, dtype=None, **_: shaping.zeros_like(x, dtype),
    "ConvertToTensor": lambda x, dtype=None, **_: x if dtype is None else _cast(x, dtype),
    "OneHot": lambda x, num_classes=0, axis=-1, **_: selection.one_hot(x, num_classes, axis=axis),
    "GetItem": _indexed,
    "Arange": lambda start=0, stop=None, step=1, **_: ranges.range(start, stop, step),
    "Identity": _unary(shaping.identity),
}


# ---- Keras 2: functions of TensorFlow -----------------------------------------------------------------------------------

# Modules whose functions only compute.
_MODULES = ("math.", "nn.", "linalg.", "image.", "signal.")
_PLAIN = frozenset(
    "abs add argmax argmin argsort broadcast_to cast clip_by_value concat cos cumsum equal exp expand_dims eye fill floor gather gather_nd greater "
    "greater_equal identity less less_equal logical_and logical_not logical_or matmul maximum minimum multiply negative not_equal one_hot "
    "ones_like pad pow range reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum repeat reshape "
    "reverse roll round shape sigmoid sign sin slice sort split sqrt square squeeze stack strided_slice subtract tanh tensordot tile transpose truediv "
    "einsum norm stop_gradient unstack where zeros_like".split()
)
_OPERATORS: dict[str, Callable[..., Any]] = {
    "__operators__.add": lambda x, y: x + y,
    "__operators__.getitem": lambda tensor, slice_spec: _indexed(tensor, slice_spec),
}


@functools.cache
def _function(name: str) -> Callable[..., Any] | None:
    """A function by its name in TensorFlow, if it only computes."""
    if name in _OPERATORS:
        return _OPERATORS[name]
    namespace, plain = ("v1", name.removeprefix("compat.v1.")) if name.startswith("compat.v1.") else ("v2", name)
    if not (plain in _PLAIN or (plain.startswith(_MODULES) and plain.count(".") == 1)):
        return None
    found = EXPORTS[namespace].get(plain)
    return None if found is None else getattr(sys.modules[found[0]], found[1], None)


# Importing them registers functions of tf.nn.
assert all((batch_norm, conv_api, moments, pool_api))


# ---- Keras 2.2: nodes of a graph ----------------------------------------------------------------------------------------


def _node(layer: Layer) -> Any:
    """A single op, which the configuration holds as a NodeDef with its constant inputs by position."""
    node = json_format.ParseDict(layer.config["node_def"], NodeDef())
    fixed = {int(place): value for place, value in (layer.config.get("constants") or {}).items()}
    given = list(layer.call.args[0]) if isinstance(layer.call.args[0], list) else list(layer.call.args)
    tensors = []
    for place in range(len(node.input)):
        tensors.append(constants.constant(fixed[place]) if place in fixed else given.pop(0))
    graph_def = GraphDef()
    names = [f"input_{place}" for place in range(len(tensors))]
    for name, tensor in zip(names, tensors, strict=True):
        made = graph_def.node.add(name=name, op="Placeholder")
        made.attr["dtype"].type = tensor.dtype.as_datatype_enum
    own = graph_def.node.add()
    own.CopyFrom(node)
    own.name = "op"
    del own.input[:]
    own.input.extend(names)
    found: Any = import_graph_def(
        graph_def, input_map=dict(zip(names, tensors, strict=True)), return_elements=["op"], name="node"
    )
    op = found[0]
    return op.outputs[0] if len(op.outputs) == 1 else list(op.outputs)
