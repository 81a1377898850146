"""How convolutions, pooling, normalization, random numbers and variables are written."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.tensor import Operation
from stoker._src.interop.values import VARIABLE, Value, dtype_code
from stoker._src.interop.writer import Writer, form


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _is_last(op: Operation, default: str = "NHWC") -> bool:
    return not _text(op.attrs.get("data_format", default)).startswith("NC")


def _spatial(op: Operation, name: str) -> list[int]:
    values: list[int] = list(op.attrs.get(name) or ())
    return values[1:-1] if _is_last(op) else values[2:]


def _padding(op: Operation) -> str:
    padding = _text(op.attrs["padding"])
    if padding != "EXPLICIT":
        return f'"{padding}"'
    flat = list(op.attrs["explicit_paddings"])
    pairs = [(flat[2 * i], flat[2 * i + 1]) for i in range(len(flat) // 2)]
    return repr(pairs[1:-1] if _is_last(op) else pairs[2:])


def _options(op: Operation) -> str:
    code = f"strides={_spatial(op, 'strides')}, padding={_padding(op)}"
    dilations = _spatial(op, "dilations")
    if any(rate != 1 for rate in dilations):
        code += f", dilations={dilations}"
    return code if _is_last(op) else code + ", channels_last=False"


@form("Conv2D", "Conv3D")
def _conv(w: Writer, op: Operation, x: Value, weights: Value) -> str | None:
    if not op.outputs[0].dtype.is_floating:
        return None
    return f"ops.conv({w.tensor(x)}, {w.tensor(weights)}, {_options(op)})"


@form("DepthwiseConv2dNative")
def _depthwise(w: Writer, op: Operation, x: Value, weights: Value) -> str:
    return f"ops.depthwise_conv({w.tensor(x)}, {w.tensor(weights)}, {_options(op)})"


@form("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _conv_transpose(w: Writer, op: Operation, sizes: Value, weights: Value, x: Value) -> str | None:
    if not op.outputs[0].dtype.is_floating:
        return None
    static = op.inputs[0].static_shape.dims
    if static is not None and static[0] == 2:  # only the spatial sizes
        return None
    return f"ops.conv_transpose({sizes.host()}, {w.tensor(weights)}, {w.tensor(x)}, {_options(op)})"


@form("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
def _pool(w: Writer, op: Operation, x: Value) -> str | None:
    data_format = _text(op.attrs["data_format"])
    last = _is_last(op)
    window, strides = list(op.attrs["ksize"]), list(op.attrs["strides"])
    channel = len(window) - 1 if last else 1
    outside = [window[0], window[channel], strides[0], strides[channel]]
    if any(size != 1 for size in outside) or len(data_format) != len(window) or not x.dtype.base_dtype.is_floating:
        return None
    function = "max_pool" if op.type.startswith("Max") else "avg_pool"
    rest = f"strides={_spatial(op, 'strides')}, padding={_padding(op)}, channels_last={last}"
    return f"ops.{function}({w.tensor(x)}, window={_spatial(op, 'ksize')}, {rest})"


@form("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(w: Writer, op: Operation, x: Value, scale: Value, offset: Value, mean: Value, variance: Value) -> Any:
    given = ", ".join(map(w.tensor, (x, scale, offset)))
    rest = f"epsilon={w.attribute('epsilon', op.attrs['epsilon'])}, channels_last={_is_last(op)}"
    kinds = [tensor.dtype for tensor in op.outputs]
    if op.attrs["is_training"]:
        if op.attrs.get("exponential_avg_factor", 1.0) != 1.0:
            return None
        names = [w.local(op.name + part) for part in ("", "_mean", "_variance", "_biased")]
        w.line(f"{', '.join(names)} = ops.batch_norm_training({given}, {rest})", op.name)
        codes = [names[0], names[1], names[2], names[1], names[3]]
    else:
        name = w.local(op.name)
        w.line(f"{name} = ops.batch_norm({given}, {w.tensor(mean)}, {w.tensor(variance)}, {rest})", op.name)
        codes = [name, w.tensor(mean), w.tensor(variance), w.tensor(mean), w.tensor(variance)]
    codes.append("torch.zeros([0])")
    return [Value("tensor", kind, code) for kind, code in zip(kinds, codes)]


@form("ResizeBilinear", "ResizeNearestNeighbor")
def _resize(w: Writer, op: Operation, images: Value, size: Value) -> str:
    options = ", ".join(f"{name}={bool(op.attrs[name])}" for name in ("align_corners", "half_pixel_centers"))
    return f"ops.resize({w.tensor(images)}, {size.host()}, {options}, nearest={op.type != 'ResizeBilinear'})"


@form("LRN")
def _lrn(w: Writer, op: Operation, x: Value) -> str:
    numbers = ", ".join(w.attribute(name, op.attrs[name]) for name in ("depth_radius", "bias", "alpha", "beta"))
    return f"ops.local_response_norm({w.tensor(x)}, {numbers})"


# ---- random numbers: from torch's generator ----------------------------------------------------------------------


def _kind(op: Operation) -> str:
    return f"dtype={dtype_code(op.outputs[0].dtype)}, device=self.device"


@form("RandomUniform")
def _uniform(w: Writer, op: Operation, shape: Value) -> str:
    return f"torch.rand({shape.host()}, {_kind(op)})"


@form("RandomStandardNormal")
def _normal(w: Writer, op: Operation, shape: Value) -> str:
    return f"torch.randn({shape.host()}, {_kind(op)})"


@form("TruncatedNormal")
def _truncated_normal(w: Writer, op: Operation, shape: Value) -> str:
    return f"ops.truncated_normal({shape.host()}, {_kind(op)})"


@form("RandomUniformInt")
def _integers(w: Writer, op: Operation, shape: Value, low: Value, high: Value) -> str:
    return f"ops.random_integers({shape.host()}, {low.host()}, {high.host()}, {_kind(op)})"


@form("RandomShuffle")
def _shuffle(w: Writer, op: Operation, x: Value) -> str:
    return f"ops.shuffle({w.tensor(x)})"


@form("Multinomial")
def _multinomial(w: Writer, op: Operation, logits: Value, samples: Value) -> str:
    return f"ops.multinomial({w.tensor(logits)}, {samples.host()}, {dtype_code(op.outputs[0].dtype)})"


@form("LogUniformCandidateSampler", "UniformCandidateSampler")
def _candidates(w: Writer, op: Operation, classes: Value) -> list[Value]:
    samples, size = op.attrs["num_sampled"], op.attrs["range_max"]
    name, log = w.local(op.name), op.type.startswith("Log")
    function = "log_uniform_candidates" if log else "uniform_candidates"
    w.line(f"{name} = ops.{function}({samples}, {bool(op.attrs['unique'])}, {size}, self.device)", op.name)
    codes = [name, *(f"ops.expected_counts({each}, {samples}, {size}, {log})" for each in (w.tensor(classes), name))]
    return [Value("tensor", tensor.dtype, code) for tensor, code in zip(op.outputs, codes)]


# ---- variables --------------------------------------------------------------------------------------------------


@form("ReadVariableOp")
def _read(w: Writer, op: Operation, variable: Value) -> Any:
    if variable.kind != VARIABLE:
        return None
    if w.writes_variables:
        return f"{variable.code}.clone()"
    return Value("tensor", op.outputs[0].dtype, variable.code)


def _set(w: Writer, op: Operation, variable: Value, code: str) -> Any:
    w.line(f"ops.assign({variable.code}, {code})", op.name)
    return [Value(VARIABLE, tensor.dtype, variable.code) for tensor in op.outputs]


@form("Assign", "AssignVariableOp")
def _assign(w: Writer, op: Operation, variable: Value, value: Value) -> Any:
    if variable.kind != VARIABLE:
        return None
    return _set(w, op, variable, w.tensor(value))


@form("AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp")
def _assign_add(w: Writer, op: Operation, variable: Value, value: Value) -> Any:
    if variable.kind != VARIABLE:
        return None
    return _set(w, op, variable, f"{variable.code} {'+' if 'Add' in op.type else '-'} {w.operand(value)}")


@form("NoOp", "ControlTrigger")
def _nothing(w: Writer, op: Operation) -> list[Value]:
    return []
