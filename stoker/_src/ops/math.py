"""Element-wise arithmetic and comparison, and the operators of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INEXACT, NUMERIC, REAL, SIGNED_INTS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, VIEW, OpDefinition, all_merged, broadcasting, define, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops import array
from stoker._src.ops.broadcasting import reduce_to_inputs
from stoker._src.ops.values import torch_dtype

Gradients = tuple[Tensor | None, Tensor | None]


def _binary(signature_name: str, kernel: Callable[..., Any], allowed: tuple[DType, ...]) -> OpDefinition:
    definition = define(f"{signature_name}(x: T, y: T) -> (z: T)", T=allowed)
    definition.kernel(kernel)
    definition.shape(broadcasting)
    return definition


def _unary(name: str, kernel: Callable[..., Any], allowed: tuple[DType, ...]) -> OpDefinition:
    definition = define(f"{name}(x: T) -> (y: T)", T=allowed)
    definition.kernel(kernel)
    definition.shape(unchanged)
    return definition


# ---- Add, Sub, Mul, Div -----------------------------------------------------------------------------------------

ADD_V2 = _binary("AddV2", torch.add, NUMERIC)
SUB = _binary("Sub", torch.sub, NUMERIC)
MUL = _binary("Mul", torch.mul, NUMERIC)
REAL_DIV = _binary("RealDiv", torch.true_divide, INEXACT)


@ADD_V2.grad
def add_grad(op: Operation, g: Tensor) -> Gradients:
    return reduce_to_inputs(op.inputs[0], op.inputs[1], g, g)


@SUB.grad
def sub_grad(op: Operation, g: Tensor) -> Gradients:
    return reduce_to_inputs(op.inputs[0], op.inputs[1], g, negative(g))


@MUL.grad
def mul_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    return reduce_to_inputs(x, y, multiply(g, conj(y)), multiply(conj(x), g))


@REAL_DIV.grad
def real_div_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = conj(op.inputs[0]), conj(op.inputs[1])
    return reduce_to_inputs(op.inputs[0], op.inputs[1], realdiv(g, y), multiply(g, realdiv(realdiv(negative(x), y), y)))


@export("add", "math.add")
def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y, element by element."""
    return ADD_V2(x, y, name=name or "Add")


@export("subtract", "math.subtract", v1="sub")
def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - y, element by element."""
    return SUB(x, y, name=name)


@export("multiply", "math.multiply", v1="mul")
def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, element by element."""
    return MUL(x, y, name=name)


@export("realdiv", v1="RealDiv")
def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y for floating point and complex numbers."""
    return REAL_DIV(x, y, name=name)


_TRUEDIV_DTYPES: dict[DType, DType | None] = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.uint32: dtypes.float64,
    dtypes.int32: dtypes.float64,
    dtypes.uint64: dtypes.float64,
    dtypes.int64: dtypes.float64,
}


@export("truediv", "math.truediv")
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3: integers are divided as floating point numbers."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        if x.dtype.base_dtype is not y.dtype.base_dtype:
            raise TypeError(f"`x` and `y` must have the same dtype, got {x.dtype.name} != {y.dtype.name}.")
        wider = _TRUEDIV_DTYPES.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = cast(x, wider), cast(y, wider)
        return REAL_DIV(x, y, name=scope)


FLOOR_DIV = _binary("FloorDiv", torch.floor_divide, REAL).not_differentiable()


@FLOOR_DIV.kernel
def floor_div_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point and not bool(torch.all(y)):
        raise InvalidArgumentError(None, None, "Integer division by zero")
    return torch.div(x, y, rounding_mode="floor")


@export("math.floordiv", v1="floordiv")
def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded towards minus infinity."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return FLOOR_DIV(x, y, name=scope)


# ---- Maximum, Pow and the unary functions -----------------------------------------------------------------------

MAXIMUM = _binary("Maximum", torch.maximum, REAL)
POW = _binary("Pow", torch.pow, (*NUMERIC,))
NEG = _unary("Neg", torch.neg, NUMERIC)
EXP = _unary("Exp", torch.exp, INEXACT)
LOG = _unary("Log", torch.log, INEXACT)
SQRT = _unary("Sqrt", torch.sqrt, INEXACT)
SQUARE = _unary("Square", torch.square, NUMERIC)
TANH = _unary("Tanh", torch.tanh, INEXACT)
CONJ = _unary("Conj", lambda x: torch.conj_physical(x), dtypes.COMPLEX)
ABS = _unary("Abs", torch.abs, (*FLOATS, *SIGNED_INTS))

NEG.grad(lambda op, g: negative(g))
EXP.grad(lambda op, g: multiply(g, conj(op.outputs[0])))
LOG.grad(lambda op, g: realdiv(g, conj(op.inputs[0])))
SQRT.grad(lambda op, g: realdiv(multiply(g, _half(op.outputs[0])), conj(op.outputs[0])))
SQUARE.grad(lambda op, g: multiply(g, multiply(_number(2, op.inputs[0]), conj(op.inputs[0]))))
CONJ.grad(lambda op, g: conj(g))

TANH_GRAD = define("TanhGrad(y: T, dy: T) -> (z: T)", T=INEXACT)
TANH_GRAD.shape(unchanged)


@TANH_GRAD.kernel
def tanh_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.tanh_backward(dy, y)


@TANH_GRAD.grad
def tanh_grad_grad(op: Operation, g: Tensor) -> Gradients:
    y, dy = conj(op.inputs[0]), conj(op.inputs[1])
    return multiply(multiply(multiply(g, dy), y), _number(-2, y)), TANH_GRAD(y, g)


TANH.grad(lambda op, g: TANH_GRAD(conj(op.outputs[0]), g))


def _number(value: float, like: Tensor) -> Tensor:
    return convert_to_tensor(value, like.dtype.base_dtype)


def _half(like: Tensor) -> Tensor:
    return _number(0.5, like)


@export("negative", "math.negative", v1="neg")
def negative(x: Any, name: str | None = None) -> Tensor:
    """-x."""
    return NEG(x, name=name)


@export("exp", "math.exp")
def exp(x: Any, name: str | None = None) -> Tensor:
    """e to the power x."""
    return EXP(x, name=name)


@export("math.log", v1="log")
def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm."""
    return LOG(x, name=name)


@export("sqrt", "math.sqrt")
def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root."""
    return SQRT(x, name=name)


@export("square", "math.square")
def square(x: Any, name: str | None = None) -> Tensor:
    """x * x."""
    return SQUARE(x, name=name)


@export("tanh", "math.tanh", "nn.tanh")
def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent."""
    return TANH(x, name=name)


@export("maximum", "math.maximum")
def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of x and y, element by element."""
    return MAXIMUM(x, y, name=name)


@export("math.conj", v1="conj")
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real tensors are returned as they are."""
    if isinstance(x, Tensor) and not x.dtype.is_complex:
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return CONJ(x, name=scope) if x.dtype.is_complex else x


@MAXIMUM.grad
def maximum_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    wins = cast(GREATER_EQUAL(x, y), g.dtype.base_dtype)
    return reduce_to_inputs(x, y, multiply(g, wins), multiply(g, subtract(_number(1, g), wins)))


# ---- comparison -------------------------------------------------------------------------------------------------


def _comparison(name: str, kernel: Callable[..., Any], allowed: tuple[DType, ...]) -> OpDefinition:
    definition = define(f"{name}(x: T, y: T) -> (z: bool)", T=allowed).not_differentiable()
    definition.kernel(kernel)
    definition.shape(broadcasting)
    return definition


LESS = _comparison("Less", torch.lt, REAL)
LESS_EQUAL = _comparison("LessEqual", torch.le, REAL)
GREATER = _comparison("Greater", torch.gt, REAL)
GREATER_EQUAL = _comparison("GreaterEqual", torch.ge, REAL)

# ---- Cast -------------------------------------------------------------------------------------------------------

CAST = define("Cast(x: SrcT) -> (y: DstT)", VIEW, SrcT=ANY, DstT=ANY, Truncate=False)
CAST.shape(unchanged)


@CAST.kernel
def cast_kernel(x: torch.Tensor, *, DstT: DType) -> torch.Tensor:
    wanted = torch_dtype(DstT)
    if x.is_complex() and not wanted.is_complex:
        x = x.real
    return x.to(wanted)


@CAST.grad
def cast_grad(op: Operation, g: Tensor) -> Tensor | None:
    source, result = op.attr("SrcT"), op.attr("DstT")
    flows = (*FLOATS, *dtypes.COMPLEX)
    return cast(g, source) if source in flows and result in flows else None


@export("cast", "dtypes.cast")
def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """The values converted to `dtype`: fractions are cut off, imaginary parts dropped."""
    wanted = as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype.base_dtype is wanted:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base_dtype is wanted else CAST(x, DstT=wanted, name=scope)


# ---- AddN -------------------------------------------------------------------------------------------------------

ADD_N = define("AddN(inputs: N * T) -> (sum: T)", T=(*NUMERIC, dtypes.variant))
ADD_N.shape(all_merged)


@ADD_N.kernel
def add_n_kernel(inputs: list[torch.Tensor]) -> torch.Tensor:
    if len(inputs) == 1:
        return inputs[0].clone()
    total = torch.add(inputs[0], inputs[1])
    for each in inputs[2:]:
        total.add_(each)
    return total


@ADD_N.grad
def add_n_grad(op: Operation, g: Tensor) -> list[Tensor]:
    return [g] * len(op.inputs)


# ---- operators of Tensor ----------------------------------------------------------------------------------------


def _operator(name: str, function: Callable[..., Tensor]) -> None:
    """Makes `x OP y` and, for a plain value on the left, `y OP x` the op `function`, in a scope named `name`."""

    def forward(self: Any, other: Any) -> Any:
        with name_scope(None, name, [self, other]) as scope:
            self = convert_to_tensor(self)
            try:
                other = convert_to_tensor(other, dtype_hint=self.dtype.base_dtype, name="y")
                if other.dtype.base_dtype is not self.dtype.base_dtype:
                    other = convert_to_tensor(other, self.dtype.base_dtype)
            except (TypeError, ValueError):
                # The other operand may know how to deal with a tensor on its left.
                if hasattr(type(other), f"__r{name}__"):
                    return NotImplemented
                raise
            return function(self, other, name=scope)

    def reflected(self: Any, other: Any) -> Any:
        with name_scope(None, name, [other, self]) as scope:
            self = convert_to_tensor(self)
            other = convert_to_tensor(other, self.dtype.base_dtype, name="x")
            return function(other, self, name=scope)

    setattr(Tensor, f"__{name}__", forward)
    setattr(Tensor, f"__r{name}__", reflected)


for _name, _function in (
    ("add", ADD_V2),
    ("sub", SUB),
    ("mul", MUL),
    ("truediv", truediv),
    ("floordiv", FLOOR_DIV),
    ("pow", POW),
):
    _operator(_name, _function)


def _comparison_operator(dunder: str, definition: OpDefinition) -> None:
    def compare(self: Any, other: Any) -> Any:
        return definition(self, other)

    setattr(Tensor, dunder, compare)


for _dunder, _definition in (("__lt__", LESS), ("__le__", LESS_EQUAL), ("__gt__", GREATER), ("__ge__", GREATER_EQUAL)):
    _comparison_operator(_dunder, _definition)

Tensor.__neg__ = negative  # type: ignore[attr-defined]


@export("add_n", "math.add_n")
def add_n(inputs: Any, name: str | None = None) -> Any:
    """The sum of tensors of one shape and dtype.

    Raises:
        ValueError: no inputs, or inputs that do not agree.
    """
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    if not inputs:
        raise ValueError(
            "inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape"
        )
    tensors = [convert_to_tensor(item) for item in inputs]
    if len(tensors) == 1:
        return array.identity(tensors[0], name=name) if name else tensors[0]
    return ADD_N(tensors, name=name)
