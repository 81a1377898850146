"""How elementwise ops, reductions and matrix products are written."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Operation
from stoker._src.interop.values import CONSTANT, HOST, Value, dtype_code, is_countable, is_simple
from stoker._src.interop.writer import Writer, form

_UNARY = {
    "Abs": "torch.abs({})", "ComplexAbs": "torch.abs({})", "Acos": "torch.acos({})", "Acosh": "torch.acosh({})", "Asin": "torch.asin({})",
    "Asinh": "torch.asinh({})", "Atan": "torch.atan({})", "Atanh": "torch.atanh({})", "Ceil": "torch.ceil({})", "Cos": "torch.cos({})",
    "Cosh": "torch.cosh({})", "Digamma": "torch.digamma({})", "Erf": "torch.erf({})", "Erfc": "torch.erfc({})", "Exp": "torch.exp({})",
    "Expm1": "torch.expm1({})", "Floor": "torch.floor({})", "Inv": "torch.reciprocal({})", "IsFinite": "torch.isfinite({})",
    "IsInf": "torch.isinf({})", "IsNan": "torch.isnan({})", "Lgamma": "torch.lgamma({})", "Log": "torch.log({})", "Log1p": "torch.log1p({})",
    "Neg": "-{}", "Reciprocal": "torch.reciprocal({})", "Rint": "torch.round({})", "Round": "torch.round({})", "Rsqrt": "torch.rsqrt({})",
    "Sigmoid": "torch.sigmoid({})", "Sign": "ops.sign({})", "Sin": "torch.sin({})", "Sinh": "torch.sinh({})", "Sqrt": "torch.sqrt({})",
    "Square": "torch.square({})", "Tan": "torch.tan({})", "Tanh": "torch.tanh({})", "LogicalNot": "torch.logical_not({})",
    "Relu": "torch.relu({})", "Relu6": "F.relu6({})", "Elu": "F.elu({})", "Selu": "F.selu({})", "Softplus": "ops.softplus({})",
    "Softsign": "F.softsign({})", "Softmax": "torch.softmax({}, -1)", "LogSoftmax": "torch.log_softmax({}, -1)",
    "ZerosLike": "torch.zeros_like({})", "OnesLike": "torch.ones_like({})", "StopGradient": "{}.detach()", "L2Loss": "torch.sum(torch.square({})) / 2",
    "Conj": "torch.conj({}).resolve_conj()", "Erfinv": "torch.erfinv({})",
}  # fmt: skip
_BINARY = {
    "Add": "{} + {}", "AddV2": "{} + {}", "Sub": "{} - {}", "Mul": "{} * {}", "RealDiv": "{} / {}", "Pow": "{} ** {}",
    "Less": "{} < {}", "LessEqual": "{} <= {}", "Greater": "{} > {}", "GreaterEqual": "{} >= {}", "Equal": "{} == {}", "NotEqual": "{} != {}",
    "SquaredDifference": "torch.square({} - {})", "Maximum": "ops.maximum({}, {})", "Minimum": "ops.minimum({}, {})",
    "FloorMod": "torch.remainder({}, {})", "FloorDiv": "ops.floor_divide({}, {})",
    "TruncateDiv": 'torch.div({}, {}, rounding_mode="trunc")',
}  # fmt: skip
_BOTH_TENSORS = {
    "LogicalAnd": "torch.logical_and({}, {})", "LogicalOr": "torch.logical_or({}, {})", "Atan2": "torch.atan2({}, {})",
    "DivNoNan": "ops.divide_no_nan({}, {})", "Xlogy": "torch.xlogy({}, {})",
}  # fmt: skip
# The same on plain numbers, which have no rounding to reproduce.
_HOST = {
    "Add": "{} + {}", "AddV2": "{} + {}", "Sub": "{} - {}", "Mul": "{} * {}", "FloorDiv": "{} // {}", "FloorMod": "{} % {}",
    "Maximum": "max({}, {})", "Minimum": "min({}, {})", "Less": "{} < {}", "LessEqual": "{} <= {}", "Greater": "{} > {}",
    "GreaterEqual": "{} >= {}", "Equal": "{} == {}", "NotEqual": "{} != {}", "LogicalAnd": "{} and {}", "LogicalOr": "{} or {}",
}  # fmt: skip


def _wrapped(code: str) -> str:
    return code if is_simple(code) or (code.endswith(")") and code.startswith(("max(", "min("))) else f"({code})"


def _host_binary(w: Writer, op: Operation, x: Value, y: Value) -> Value | None:
    template = _HOST.get(op.type)
    if template is None or not (x.is_host and y.is_host):
        return None
    if x.is_scalar and y.is_scalar:
        return w.named_host(op, template.format(_wrapped(x.host()), _wrapped(y.host())))
    if not all(each.is_scalar or each.is_vector for each in (x, y)):
        return None
    vectors = [each.elements for each in (x, y) if each.is_vector]
    size = max(len(each) for each in vectors)
    if any(len(each) not in (1, size) for each in vectors):
        return None

    def item(value: Value, i: int) -> str:
        if value.is_scalar:
            return _wrapped(value.host())
        return _wrapped(value.elements[i if len(value.elements) > 1 else 0])

    codes = [template.format(item(x, i), item(y, i)) for i in range(size)]
    return Value(HOST, op.outputs[0].dtype, items=codes)


_FLOATING = ("Reciprocal", "Inv", "Relu", "Relu6", "Sign", "L2Loss")


def _unary(w: Writer, op: Operation, x: Value) -> Any:
    if op.type in _FLOATING and not x.dtype.base_dtype.is_floating:
        return None
    if op.type == "LogicalNot" and x.kind == HOST and x.is_scalar:
        return w.named_host(op, f"not {_wrapped(x.code)}")
    if op.type == "Neg" and x.kind == HOST and x.is_scalar:
        return w.named_host(op, f"-{_wrapped(x.code)}")
    return _UNARY[op.type].format(w.tensor(x))


def _binary(w: Writer, op: Operation, x: Value, y: Value) -> Any:
    host = _host_binary(w, op, x, y)
    if host is not None:
        return host
    if x.dtype.base_dtype is dtypes.string or not op.attrs.get("incompatible_shape_error", True):
        return None
    if x.dtype.base_dtype.is_complex and op.type in ("SquaredDifference", "Pow"):
        return None
    if op.type == "Pow" and y.kind != CONSTANT and y.dtype.base_dtype.is_floating:
        return f"ops.power({w.tensor(x)}, {w.tensor(y)})"
    table = _BINARY if op.type in _BINARY else _BOTH_TENSORS
    plain = {"Equal": "==", "NotEqual": "!="}
    if op.type in plain and x.dtype.base_dtype is dtypes.bool_:
        return f"{w.tensor(x)} {plain[op.type]} {w.tensor(y)}"
    if table is _BOTH_TENSORS:
        return table[op.type].format(w.tensor(x), w.tensor(y))
    first, second = w.operand(x), w.operand(y)
    if all(each.kind in (CONSTANT, HOST) for each in (x, y)):
        first = w.tensor(x)
    elif op.type == "Sub" and second.startswith("-"):
        second = f"({second})"
    return table[op.type].format(first, second)


for _name in _UNARY:
    form(_name)(_unary)
for _name in (*_BINARY, *_BOTH_TENSORS):
    form(_name)(_binary)


@form("Div")
def _div(w: Writer, op: Operation, x: Value, y: Value) -> Any:
    if x.dtype.base_dtype.is_floating:
        return f"{w.tensor(x)} / {w.operand(y)}"
    return f'torch.div({w.tensor(x)}, {w.operand(y)}, rounding_mode="trunc")'


@form("LeakyRelu")
def _leaky_relu(w: Writer, op: Operation, x: Value) -> str:
    return f"ops.leaky_relu({w.tensor(x)}, {w.attribute('alpha', op.attrs['alpha'])})"


@form("AddN", "AccumulateNV2")
def _add_n(w: Writer, op: Operation, inputs: list[Value]) -> str:
    return " + ".join(map(w.tensor, inputs))


@form("ClipByValue")
def _clip(w: Writer, op: Operation, x: Value, low: Value, high: Value) -> str:
    return f"ops.clip({w.tensor(x)}, {w.operand(low)}, {w.operand(high)})"


@form("Cast")
def _cast(w: Writer, op: Operation, x: Value) -> Any:
    to = op.attrs["DstT"]
    if dtypes.string in (to, x.dtype.base_dtype):
        return None
    if x.kind == HOST and is_countable(to):
        if (to is dtypes.bool_) == (x.dtype.base_dtype is dtypes.bool_) and x.items is None:
            return Value(HOST, to, x.code)
        if x.items is not None and to is not dtypes.bool_:
            return Value(HOST, to, items=x.items)
        return w.named_host(op, f"{'bool' if to is dtypes.bool_ else 'int'}({x.code})")
    if x.kind == HOST:
        return f"ops.tensor({x.host()}, {dtype_code(to)}, self.device)"
    if x.dtype.base_dtype is to:
        return Value(x.kind, to, x.code, x.items, x.array)
    if x.dtype.base_dtype.is_complex and not to.is_complex:
        return f"torch.real({w.tensor(x)}).to({dtype_code(to)})"
    return f"{w.tensor(x)}.to({dtype_code(to)})"


@form("Select", "SelectV2")
def _select(w: Writer, op: Operation, condition: Value, x: Value, y: Value) -> Any:
    if all(each.is_host and each.is_scalar for each in (condition, x, y)):
        return w.named_host(op, f"{_wrapped(x.host())} if {condition.host()} else {_wrapped(y.host())}")
    function = "torch.where"
    first, second = w.operand(x), w.operand(y)
    if op.type == "Select" and condition.kind != CONSTANT:
        known = op.inputs[0].static_shape.rank, op.inputs[1].static_shape.rank
        function = "torch.where" if known[0] is not None and known[0] == known[1] else "ops.select"
        first, second = w.tensor(x), w.tensor(y)
    if all(each.kind in (CONSTANT, HOST) for each in (x, y)):
        first, second = w.tensor(x), w.tensor(y)
    return f"{function}({w.tensor(condition)}, {first}, {second})"


@form("Real", "Imag")
def _part(w: Writer, op: Operation, x: Value) -> str:
    return f"torch.{op.type.lower()}({w.tensor(x)}).clone()"


# ---- reductions -------------------------------------------------------------------------------------------------

_REDUCTIONS = {
    "Sum": "sum", "Mean": "mean", "Prod": "prod", "Max": "amax", "Min": "amin", "All": "all", "Any": "any",
}  # fmt: skip


@form(*_REDUCTIONS)
def _reduction(w: Writer, op: Operation, x: Value, axes: Value) -> Any:
    if x.kind == HOST and x.is_vector and not op.attrs["keep_dims"] and op.type in ("Prod", "Sum", "Max", "Min"):
        sign = {"Prod": " * ", "Sum": " + "}.get(op.type)
        parts = [_wrapped(each) for each in x.elements] or [{"Prod": "1"}.get(op.type, "0")]
        code = sign.join(parts) if sign else f"{op.type.lower()}({', '.join(parts)})" if len(parts) > 1 else parts[0]
        return w.named_host(op, code)
    if op.type == "Mean" and not x.dtype.base_dtype.is_floating:
        return None
    if op.inputs[0].static_shape.size == 0 and op.type in ("Max", "Min"):
        return None
    keep = bool(op.attrs["keep_dims"])
    return f'ops.reduce("{_REDUCTIONS[op.type]}", {w.tensor(x)}, {axes.host()}, {keep})'


@form("EuclideanNorm")
def _euclidean_norm(w: Writer, op: Operation, x: Value, axes: Value) -> str | None:
    if not x.dtype.base_dtype.is_floating:
        return None
    squares = f"torch.square({w.tensor(x)})"
    return f'torch.sqrt(ops.reduce("sum", {squares}, {axes.host()}, {bool(op.attrs["keep_dims"])}))'


@form("ArgMax", "ArgMin")
def _arg(w: Writer, op: Operation, x: Value, axis: Value) -> str | None:
    if x.dtype.base_dtype is dtypes.bool_ or x.dtype.base_dtype.is_complex:
        return None
    return f"torch.{op.type.lower()}({w.tensor(x)}, {axis.host()}).to({dtype_code(op.attrs['output_type'])})"


@form("Cumsum", "Cumprod")
def _cumulative(w: Writer, op: Operation, x: Value, axis: Value) -> str:
    rest = f"{axis.host()}, {bool(op.attrs['exclusive'])}, {bool(op.attrs['reverse'])}"
    return f'ops.cumulative("{op.type.lower()}", {w.tensor(x)}, {rest})'


@form("TopKV2")
def _top_k(w: Writer, op: Operation, x: Value, k: Value) -> Any:
    values, places = (w.local(f"{op.name}_{part}") for part in ("values", "indices"))
    w.line(f"{values}, {places} = ops.top_k({w.tensor(x)}, {k.host()})", op.name)
    index = op.outputs[1].dtype
    return [Value("tensor", op.outputs[0].dtype, values), Value("tensor", index, f"{places}.to({dtype_code(index)})")]


@form("InTopK", "InTopKV2")
def _in_top_k(w: Writer, op: Operation, predictions: Value, targets: Value, *k: Value) -> str:
    count = k[0].host() if k else repr(op.attrs["k"])
    return f"ops.in_top_k({w.tensor(predictions)}, {w.tensor(targets)}, {count})"


@form("UnsortedSegmentSum")
def _unsorted_segment_sum(w: Writer, op: Operation, data: Value, ids: Value, count: Value) -> str:
    return f"ops.segment_sum({w.tensor(data)}, {w.tensor(ids)}, {count.host()})"


_SEGMENTS = {"Sum": "sum", "Mean": "mean", "SqrtN": "sqrtn"}


@form(*(f"SparseSegment{kind}WithNumSegments" for kind in _SEGMENTS))
def _sparse_segment(w: Writer, op: Operation, data: Value, indices: Value, ids: Value, count: Value) -> str | None:
    if not data.dtype.base_dtype.is_floating:
        return None
    kind = _SEGMENTS[op.type.removeprefix("SparseSegment").removesuffix("WithNumSegments")]
    return f'ops.sparse_segments("{kind}", {w.tensor(data)}, {w.tensor(indices)}, {w.tensor(ids)}, {count.host()})'


@form("Unique", "UniqueWithCounts")
def _unique(w: Writer, op: Operation, x: Value) -> Any:
    names = [w.local(op.name + part) for part in ("", "_places", "_counts")]
    w.line(f"{', '.join(names)} = ops.unique({w.tensor(x)}, {dtype_code(op.outputs[1].dtype)})", op.name)
    return [Value("tensor", tensor.dtype, name) for tensor, name in zip(op.outputs, names)]


@form("Bucketize")
def _bucketize(w: Writer, op: Operation, x: Value) -> str | None:
    if x.dtype.base_dtype is dtypes.float64:
        return None
    return f"ops.bucketize({w.tensor(x)}, {list(map(float, op.attrs['boundaries']))})"


# ---- matrix products --------------------------------------------------------------------------------------------


@form("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _matmul(w: Writer, op: Operation, a: Value, b: Value) -> Any:
    plain = op.type == "MatMul"
    first, second = w.tensor(a), w.tensor(b)
    if op.attrs["transpose_a" if plain else "adj_x"]:
        first = f"{first}.mT"
    if op.attrs["transpose_b" if plain else "adj_y"]:
        second = f"{second}.mT"
    if not plain and a.dtype.base_dtype.is_complex:
        return None
    if not a.dtype.base_dtype.is_floating and not a.dtype.base_dtype.is_complex:
        return None
    return f"torch.matmul({first}, {second})"


@form("Cholesky")
def _cholesky(w: Writer, op: Operation, x: Value) -> str:
    return f"ops.cholesky({w.tensor(x)})"


@form("MatrixInverse")
def _inverse(w: Writer, op: Operation, x: Value) -> str:
    return f"torch.linalg.inv({w.tensor(x)}{'.mH' if op.attrs['adjoint'] else ''})"


@form("MatrixSolve")
def _solve(w: Writer, op: Operation, matrix: Value, right: Value) -> str:
    return f"torch.linalg.solve({w.tensor(matrix)}{'.mH' if op.attrs['adjoint'] else ''}, {w.tensor(right)})"


@form("SparseTensorDenseMatMul")
def _sparse_matmul(w: Writer, op: Operation, indices: Value, values: Value, shape: Value, dense: Value) -> str | None:
    if op.attrs["adjoint_a"] or op.attrs["adjoint_b"]:
        return None
    return f"ops.sparse_matmul({w.tensor(indices)}, {w.tensor(values)}, {shape.host()}, {w.tensor(dense)})"


@form("Einsum")
def _einsum(w: Writer, op: Operation, inputs: list[Value]) -> str | None:
    equation = op.attrs["equation"]
    equation = equation.decode() if isinstance(equation, bytes) else equation
    if not all(each.isascii() and (each.isalpha() or each in ",.->") for each in equation) or len(equation) > 64:
        return None
    return f'torch.einsum("{equation}", {", ".join(map(w.tensor, inputs))})'


@form("BiasAdd", "BiasAddV1")
def _bias_add(w: Writer, op: Operation, value: Value, bias: Value) -> str:
    form_ = op.attrs.get("data_format", "NHWC")
    form_ = form_.decode() if isinstance(form_, bytes) else form_
    rank = op.inputs[0].static_shape.rank
    if form_ == "NCHW" and (rank is None or rank > 2):
        tail = "[:, None, None]" if rank in (None, 4) else "[:" + ", None" * (rank - 2) + "]"
        return f"{w.tensor(value)} + {w.tensor(bias)}{tail}"
    return f"{w.tensor(value)} + {w.tensor(bias)}"


@form("MatrixBandPart")
def _band(w: Writer, op: Operation, x: Value, below: Value, above: Value) -> str | None:
    limits = below.host(), above.host()
    if not all(value.kind == CONSTANT for value in (below, above)):
        return None
    code = w.tensor(x)
    if int(limits[0]) >= 0:
        code = f"torch.triu({code}, {-int(limits[0])})"
    if int(limits[1]) >= 0:
        code = f"torch.tril({code}, {int(limits[1])})"
    return code


@form("SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy(w: Writer, op: Operation, logits: Value, labels: Value) -> Any:
    name = w.local(op.name)
    w.line(f"{name} = ops.softmax_cross_entropy({w.tensor(logits)}, {w.tensor(labels)})", op.name)
    gradient = f"(torch.softmax({w.tensor(logits)}, -1) - {w.tensor(labels)})"
    return [Value("tensor", op.outputs[0].dtype, name), Value("tensor", op.outputs[1].dtype, gradient)]


@form("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_softmax_cross_entropy(w: Writer, op: Operation, logits: Value, labels: Value) -> Any:
    name = w.local(op.name)
    w.line(f"{name} = ops.sparse_softmax_cross_entropy({w.tensor(logits)}, {w.tensor(labels)})", op.name)
    gradient = (
        f"(torch.softmax({w.tensor(logits)}, -1) - F.one_hot({w.tensor(labels)}.long(), {w.tensor(logits)}.shape[-1]))"
    )
    return [Value("tensor", op.outputs[0].dtype, name), Value("tensor", op.outputs[1].dtype, gradient)]
