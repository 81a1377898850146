"""The `assert_*` family: checks of values, ranks and types.

A check with statically known values is made at once. Otherwise a graph gets an Assert op (use it as a control
dependency). Eager mode checks at once and returns None. Pairs are compared element by element with broadcasting.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph import context, placement_log
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.type_spec import has_rows
from stoker._src.ops.array import ranges, shaping, value_checks
from stoker._src.ops.control_flow import assertions, grouping
from stoker._src.ops.math import comparison, reductions, unary_functions


def tensor_label(tensor: Any) -> str:
    """How error messages refer to a tensor: by its name, or in eager mode by its value."""
    if context.executing_eagerly():
        return f"shape={tuple(tensor.static_shape)} dtype={tensor.dtype.name}"
    return tensor.name


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _static_text(data: list[Any]) -> str:
    """Formats the data of a check that fails statically: text unchanged, tensors as NumPy prints them."""
    lines = []
    for item in data:
        if isinstance(item, str):
            lines.append(item)
        elif getattr(item, "is_eager", False):
            lines.append(str([str(each) for each in np.asarray(item.numpy()).reshape(-1)]))
        else:
            value = constant_value(item) if isinstance(item, Tensor) else item
            lines.append(str(item if value is None else value))
    return "\n".join(lines)


# ---- pairs ------------------------------------------------------------------------------------------------------


def _eager_text(
    symbol: str, holds: np.ndarray, x: np.ndarray, y: np.ndarray, summarize: int | None, message: str | None
) -> str:
    limit = 3 if summarize is None else (max(x.size, y.size) if summarize < 0 else summarize)
    lines = [] if not message else [message]
    lines.append(f"Condition x {symbol} y did not hold.")
    if x.shape == y.shape and x.ndim:
        wrong = np.argwhere(~np.broadcast_to(holds, x.shape))[:limit]
        places = tuple(wrong.T)
        lines += [f"Indices of first {len(wrong)} different values:", str(wrong)]
        lines += ["Corresponding x values:", str(x[places]), "Corresponding y values:", str(y[places])]
    for name, values in (("x", x), ("y", y)):
        first = values.reshape(-1)[:limit]
        lines += [f"First {len(first)} elements of {name}:", str(first)]
    return "\n".join(lines)


def _pairwise(
    symbol: str,
    compare: Callable[[Any, Any], Any],
    statically: Callable[[Any, Any], Any],
    default_name: str,
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Any:
    with name_scope(name, default_name, [x, y]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y")
        if context.executing_eagerly():
            holds = compare(x, y).numpy()
            if np.all(holds):
                return None
            text = _eager_text(symbol, holds, np.asarray(x.numpy()), np.asarray(y.numpy()), summarize, message)
            raise InvalidArgumentError(None, None, text if data is None else _static_text(data))
        if data is None:
            data = [] if message is None else [message]
            data += [
                f"Condition x {symbol} y did not hold element-wise:",
                f"x ({x.name}) = ",
                x,
                f"y ({y.name}) = ",
                y,
            ]
        condition = reductions.reduce_all(
            compare(x, y)
        )  # evaluated first, because it refuses dtypes that cannot be compared
        x_known, y_known = constant_value(x), constant_value(y)
        if x_known is not None and y_known is not None and not np.all(statically(x_known, y_known)):
            raise InvalidArgumentError(None, None, _static_text(data))
        return assertions.assert_op(condition, data, summarize=summarize)


def _define_pair(
    suffix: str, symbol: str, compare: Any, statically: Any, meaning: str, v2_names: tuple[str, ...]
) -> Any:
    """Makes the 1.x and 2.x forms of one comparison."""
    default = f"assert_{suffix}"

    def v1(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        if suffix == "equal" and not context.executing_eagerly():
            with name_scope(name, default, None):  # TensorFlow uses this name as well, so the check gets the next one
                if x is y:
                    return grouping.no_op(name="NoOp")
        return _pairwise(symbol, compare, statically, default, x, y, data, summarize, message, name)

    def v2(x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> Any:
        return v1(x, y, summarize=summarize, message=message, name=name)

    def v2_none_equal(
        x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
    ) -> Any:
        return v1(x, y, summarize=summarize, message=message, name=name)

    second = v2_none_equal if suffix == "none_equal" else v2
    for function, spelled in ((v1, default), (second, f"{default}_v2")):
        function.__name__ = function.__qualname__ = spelled
        function.__doc__ = f"""{meaning}, element by element.

        Returns an op that checks this when it runs (None in eager mode).

        Raises:
            InvalidArgumentError: the check fails. If the values are statically known, this is raised immediately.
        """
    export(v1=(default, f"debugging.{default}"))(v1)
    export(v2=v2_names)(second)
    return v1, second


def _names(suffix: str, *, top: bool = False) -> tuple[str, ...]:
    return (f"debugging.assert_{suffix}", f"assert_{suffix}") if top else (f"debugging.assert_{suffix}",)


assert_equal, assert_equal_v2 = _define_pair(
    "equal", "==", comparison.equal, np.equal, "Asserts that x == y", _names("equal", top=True)
)
assert_none_equal, assert_none_equal_v2 = _define_pair(
    "none_equal", "!=", comparison.not_equal, np.not_equal, "Asserts that x != y", _names("none_equal")
)
assert_less, assert_less_v2 = _define_pair(
    "less", "<", comparison.less, np.less, "Asserts that x < y", _names("less", top=True)
)
assert_less_equal, assert_less_equal_v2 = _define_pair(
    "less_equal", "<=", comparison.less_equal, np.less_equal, "Asserts that x <= y", _names("less_equal")
)
assert_greater, assert_greater_v2 = _define_pair(
    "greater", ">", comparison.greater, np.greater, "Asserts that x > y", _names("greater", top=True)
)
assert_greater_equal, assert_greater_equal_v2 = _define_pair(
    "greater_equal", ">=", comparison.greater_equal, np.greater_equal, "Asserts that x >= y", _names("greater_equal")
)


@export(v1=("assert_near", "debugging.assert_near"))
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Asserts that |x - y| <= atol + rtol * |y|, element by element.

    Args:
        x: floating point or complex.
        y: a tensor of the same dtype.
        rtol: relative tolerance; by default ten times the dtype's epsilon.
        atol: absolute tolerance; by default ten times the dtype's epsilon.
        data: tensors to show instead of x and y.
        summarize: how many elements of each tensor to show.
        message: a prefix for the error message.
        name: a prefix for the names of the ops.
    """
    with name_scope(name, "assert_near", [x, y]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype, name="y")
        epsilon = np.finfo(x.dtype.base_dtype.as_numpy_dtype).eps * 10 if not x.dtype.is_floating else _epsilon(x.dtype)
        real = x.dtype.real_dtype
        rtol = convert_to_tensor(epsilon if rtol is None else rtol, real, name="rtol")
        atol = convert_to_tensor(epsilon if atol is None else atol, real, name="atol")
        if data is None:
            described = [
                str(each) if context.executing_eagerly() else f'Tensor("{each.name}", shape=(), dtype={real.name})'
                for each in (rtol, atol)
            ]
            data = [
                _prefix(message),
                f"x and y not equal to tolerance rtol = {described[0]}, atol = {described[1]}",
                f"x ({tensor_label(x)}) = ",
                x,
                f"y ({tensor_label(y)}) = ",
                y,
            ]
        tolerance = atol + rtol * unary_functions.abs(y)
        near = comparison.less_equal(unary_functions.abs(x - y), tolerance)
        return assertions.assert_op(reductions.reduce_all(near), data, summarize=summarize)


def _epsilon(dtype: DType) -> float:
    return float(ml_dtypes.finfo(dtype.base_dtype.as_numpy_dtype).eps) * 10


@export(v2="debugging.assert_near")
def assert_near_v2(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Asserts that |x - y| <= atol + rtol * |y|, element by element."""
    return assert_near(x, y, rtol, atol, summarize=summarize, message=message, name=name)


# ---- against zero -----------------------------------------------------------------------------------------------


def _define_sign(suffix: str, symbol: str, check: Callable[..., Any], zero_first: bool) -> Any:
    default = f"assert_{suffix}"

    def v1(
        x: Any, data: Any = None, summarize: int | None = None, message: str | None = None, name: str | None = None
    ) -> Any:
        with name_scope(name, default, [x]):
            x = convert_to_tensor(x, name="x")
            if data is None:
                condition, label = f"Condition x {symbol} 0 did not hold element-wise:", f"x ({tensor_label(x)}) = "
                # TensorFlow's message for this one runs the two together.
                shown = [condition + label] if suffix == "non_positive" else [condition, label]
                data = [_prefix(message), *shown, x]
            zero = convert_to_tensor(0, x.dtype)
            pair = (zero, x) if zero_first else (x, zero)
            return check(*pair, data=data, summarize=summarize)

    def v2(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> Any:
        return v1(x, summarize=summarize, message=message, name=name)

    for function, spelled in ((v1, default), (v2, f"{default}_v2")):
        function.__name__ = function.__qualname__ = spelled
        function.__doc__ = f"""Asserts that x {symbol} 0, element by element.

        Returns an op that checks this when it runs (None in eager mode).

        Raises:
            InvalidArgumentError: the check fails. If the values are statically known, this is raised immediately.
        """
    export(v1=(default, f"debugging.{default}"))(v1)
    export(v2=f"debugging.{default}")(v2)
    return v1, v2


assert_positive, assert_positive_v2 = _define_sign("positive", ">", assert_less, zero_first=True)
assert_negative, assert_negative_v2 = _define_sign("negative", "<", assert_less, zero_first=False)
assert_non_negative, assert_non_negative_v2 = _define_sign("non_negative", ">=", assert_less_equal, zero_first=True)
assert_non_positive, assert_non_positive_v2 = _define_sign("non_positive", "<=", assert_less_equal, zero_first=False)


# ---- rank -------------------------------------------------------------------------------------------------------


def _as_rank(rank: Any) -> Tensor:
    tensor = convert_to_tensor(rank, name="rank")
    if tensor.dtype.base_dtype is not dtypes.int32:
        name = "tensor" if context.executing_eagerly() else tensor.name
        raise TypeError(f"{name} must be of type {dtypes.int32!r}; got {tensor.dtype.base_dtype!r}")
    if tensor.static_shape.rank not in (None, 0):
        raise ValueError("Rank must be a scalar.")
    return tensor


def _rank_check(
    default_name: str,
    words: str,
    fits: Callable[[int, list[int]], bool],
    condition: Callable[[Tensor, list[Tensor]], Tensor],
    x: Any,
    ranks: list[Any],
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Any:
    """`words` precede the expected ranks in messages. A single rank is shown plainly, several as a tuple."""
    with name_scope(name, default_name, [x, *ranks]):
        if not isinstance(x, SparseTensor):
            x = convert_to_tensor(x, name="x")
        wanted = [_as_rank(rank) for rank in ranks]
        known = [constant_value(rank) for rank in wanted]
        found = x.static_shape.rank
        label = "" if context.executing_eagerly() else x.name
        if found is not None and all(rank is not None for rank in known):
            plain = [int(rank) for rank in known]
            if not fits(found, plain):
                shown = (
                    f"({', '.join(map(str, plain))}{',' if len(plain) == 1 else ''})"
                    if words.endswith("in")
                    else plain[0]
                )
                raise ValueError(
                    f"{_prefix(message)}Tensor {label} must have {words} {shown}.  Received rank {found}, shape {x.shape}"
                )
            if context.executing_eagerly():
                return None
            return grouping.no_op(name="static_checks_determined_all_ok")
        if data is None:
            sizes = x.dense_shape if isinstance(x, SparseTensor) else shaping.shape(x)
            data = [_prefix(message), f"Tensor {label} must have {words}", *wanted, "Received shape: ", sizes]
        checks = [
            assert_rank(rank, 0, message="Rank must be a scalar.") for rank in wanted if rank.static_shape.rank is None
        ]
        with control_dependencies(checks):
            return assertions.assert_op(condition(ranges.rank(x), wanted), data, summarize=summarize)


def _any_equal(found: Tensor, wanted: list[Tensor]) -> Tensor:
    return functools.reduce(
        comparison.logical_or, [comparison.equal(found, rank) for rank in wanted] or [convert_to_tensor(False)]
    )


@export(v1=("assert_rank", "debugging.assert_rank"))
def assert_rank(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Asserts that x has `rank` dimensions.

    Raises:
        ValueError: the static rank differs.
    """
    return _rank_check(
        "assert_rank", "rank", lambda found, ranks: found == ranks[0],
        lambda found, ranks: comparison.equal(found, ranks[0]), x, [rank], data, summarize, message, name,
    )  # fmt: skip


@export(v2=("debugging.assert_rank", "assert_rank"))
def assert_rank_v2(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> Any:
    """Asserts that x has `rank` dimensions."""
    return assert_rank(x, rank, message=message, name=name)


@export(v1=("assert_rank_at_least", "debugging.assert_rank_at_least"))
def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Asserts that x has `rank` dimensions or more.

    Raises:
        ValueError: the static rank is smaller.
    """
    return _rank_check(
        "assert_rank_at_least", "rank at least", lambda found, ranks: found >= ranks[0],
        lambda found, ranks: comparison.greater_equal(found, ranks[0]), x, [rank], data, summarize, message, name,
    )  # fmt: skip


@export(v2="debugging.assert_rank_at_least")
def assert_rank_at_least_v2(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> Any:
    """Asserts that x has `rank` dimensions or more."""
    return assert_rank_at_least(x, rank, message=message, name=name)


@export(v1=("assert_rank_in", "debugging.assert_rank_in"))
def assert_rank_in(
    x: Any,
    ranks: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Asserts that the number of dimensions of x is among `ranks`.

    Raises:
        ValueError: the static rank is not among them.
    """
    return _rank_check(
        "assert_rank_in", "rank in", lambda found, ranks: found in ranks, _any_equal,
        x, list(ranks), data, summarize, message, name,
    )  # fmt: skip


@export(v2="debugging.assert_rank_in")
def assert_rank_in_v2(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> Any:
    """Asserts that the number of dimensions of x is among `ranks`."""
    return assert_rank_in(x, ranks, message=message, name=name)


@export(v1=("assert_scalar", "debugging.assert_scalar"))
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """Returns the tensor if it is statically known to be a scalar.

    Raises:
        ValueError: it is not a scalar.
    """
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name=scope or None)
        if tensor.static_shape.rank != 0:
            of = "" if context.executing_eagerly() else f" for {tensor.name}"
            raise ValueError(f"{_prefix(message)}Expected scalar shape{of}, saw shape: {tensor.shape}.")
        return tensor


@export(v2="debugging.assert_scalar")
def assert_scalar_v2(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor is statically known to be a scalar."""
    assert_scalar(tensor, name, message)


# ---- dtype ------------------------------------------------------------------------------------------------------


def _statically_fine(name: str) -> Any:
    return None if context.executing_eagerly() else grouping.no_op(name=name)


@export(v1=("assert_integer", "debugging.assert_integer"))
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Any:
    """Asserts that x has an integer dtype.

    Raises:
        TypeError: x has another dtype.
    """
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            label = "tensor" if context.executing_eagerly() else x.name
            raise TypeError(
                f"{_prefix(message)}Expected \"x\" to be integer type.  Found: {label} of dtype <dtype: '{x.dtype.name}'>"
            )
        return _statically_fine("statically_determined_was_integer")


@export(v2="debugging.assert_integer")
def assert_integer_v2(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless x has an integer dtype."""
    assert_integer(x, message, name)


@export(v1=("assert_type", "debugging.assert_type"))
def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Any:
    """Asserts that the tensor has the dtype `tf_type`.

    Raises:
        TypeError: the tensor has another dtype, or `tf_type` is not a dtype.
    """
    wanted = as_dtype(tf_type)
    with name_scope(name, "assert_type", [tensor]):
        if not has_rows(tensor):
            tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype is not wanted:
            label = "tensor" if context.executing_eagerly() else tensor.name
            raise TypeError(f"{_prefix(message)}{label} must be of type {wanted!r}; got {tensor.dtype.base_dtype!r}")
        return _statically_fine("statically_determined_correct_type")


@export(v2="debugging.assert_type")
def assert_type_v2(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the tensor has the dtype."""
    assert_type(tensor, tf_type, message, name)


def _quoted(dtype: DType) -> str:
    return f"<dtype: '{dtype.name}'>"


def _shown(tensor: Any) -> str:
    return str(tensor) if context.executing_eagerly() else tensor.name


@export("debugging.assert_same_float_dtype", v1="assert_same_float_dtype")
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """The common floating point dtype of all tensors (and `dtype`, if given); float32 if there are none.

    Raises:
        ValueError: the dtypes differ or are not floating point.
    """
    first = None
    common = None if dtype is None else as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        if tensor is None:
            continue
        found = tensor.dtype.base_dtype
        if common is None:
            common, first = found, tensor
        elif found is not common:
            against = "." if first is None else f" as {_shown(first)}."
            raise ValueError(
                f"{_shown(tensor)}, type={_quoted(found)}, must be of the same type ({_quoted(common)}){against}"
            )
    if common is None:
        return dtypes.float32
    if not common.is_floating:
        raise ValueError(f"Expected floating point type, got {_quoted(common)}.")
    return common


@export("debugging.is_numeric_tensor", v1="is_numeric_tensor")
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether the argument is a tensor with a numeric dtype."""
    if not isinstance(tensor, (Tensor, SparseTensor)) and not hasattr(tensor, "static_shape"):
        return False
    dtype = tensor.dtype.base_dtype
    return dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype.is_quantized


@export("debugging.assert_proper_iterable", v1="assert_proper_iterable")
def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError unless `values` is an iterable other than a tensor, an array or a string."""
    improper = (Tensor, SparseTensor, np.ndarray, str, bytes)
    if isinstance(values, improper):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# ---- finite values ----------------------------------------------------------------------------------------------


@export(v2="debugging.assert_all_finite")
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Returns `x`, and asserts that all of its elements are finite.

    Raises:
        InvalidArgumentError: (when it runs) an element is NaN or infinite. The text begins with `message`.
    """
    with name_scope(name, "VerifyFinite", [x]):
        x = convert_to_tensor(x, name="x")
        if not isinstance(message, str):
            raise TypeError(f"Expected string for argument 'message' not {message!r}.")
        checked = value_checks.check_numerics(x, message)
        with control_dependencies([checked]):
            return shaping.identity(x, name="control_dependency")


@export(v1=("verify_tensor_all_finite", "debugging.assert_all_finite"))
def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """Returns `x` (`t` in 1.x), and asserts that all of its elements are finite.

    Raises:
        ValueError: an argument is given under both of its names.
    """
    if t is not None and x is not None:
        raise ValueError("Cannot specify both 't' and 'x'.")
    if msg is not None and message is not None:
        raise ValueError("Cannot specify both 'msg' and 'message'.")
    return assert_all_finite(t if x is None else x, msg if message is None else message, name)  # type: ignore[arg-type]


@export(v1="add_check_numerics_ops")
def add_check_numerics_ops() -> Any:
    """Returns an op that checks all half, float and double tensors in the graph for NaN and infinity.

    Raises:
        RuntimeError: in eager mode, or if the graph has control flow.
    """
    if context.executing_eagerly():
        raise RuntimeError("add_check_numerics_ops() is not compatible with eager execution.")
    checks: list[Any] = []
    kinds = (dtypes.float16, dtypes.float32, dtypes.float64)
    for op in context.get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype in kinds:
                with control_dependencies(checks):
                    checks = [value_checks.check_numerics(output, f"{op.name}:{output.value_index}")]
    return grouping.group(*checks)


@export("debugging.get_log_device_placement")
def get_log_device_placement() -> bool:
    """Whether the devices of ops are logged."""
    return placement_log.enabled


@export("debugging.set_log_device_placement")
def set_log_device_placement(enabled: bool) -> None:
    """Sets whether the devices of ops are logged to standard error: when a session or function first plans them, and when
    they run in eager mode. `ConfigProto.log_device_placement` does the same for one session."""
    placement_log.enabled = bool(enabled)
