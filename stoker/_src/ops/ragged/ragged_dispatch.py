"""Public functions that also accept ragged tensors, and the operators of RaggedTensor.

These forms are registered with dispatched functions (see `support/dispatching.py`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, masking, reductions, segment_reductions
from stoker._src.ops.ragged import ragged_functions
from stoker._src.ops.ragged.ragged_functions import map_flat_values
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor, _places, checked
from stoker._src.ops.strings import string_ops
from stoker._src.ops.support.dispatching import elementwise

# ---- element-wise functions -------------------------------------------------------------------------------------


def _mapped(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Applies the function to the flat values. Other tensors are broadcast to the rows first."""
    ragged = [value for value in arguments.values() if isinstance(value, RaggedTensor)]
    shared = ragged_functions.same_rows(ragged)
    flat = {
        name: value.flat_values if isinstance(value, RaggedTensor) else _spread(value, shared)
        for name, value in arguments.items()
    }
    return shared.with_flat_values(original(**flat))


def _spread(value: Any, like: RaggedTensor) -> Any:
    """Broadcasts a tensor so that it has one value for each flat value of `like`. Other values are returned unchanged."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, dtypes.DType)):
        return value
    tensor = convert_to_tensor(value, dtype_hint=like.dtype)
    rank, whole = tensor.static_shape.rank, like.static_shape.rank
    if rank == 0:
        return tensor
    if rank is None or whole is None:
        raise ValueError("A tensor beside a RaggedTensor must have a known rank.")
    outer = like.ragged_rank + 1
    if rank <= whole - outer:
        return tensor
    if rank > whole:
        raise NotImplementedError(f"A tensor of rank {rank} cannot be combined with a RaggedTensor of rank {whole}.")
    for _ in range(whole - rank):
        tensor = shaping.expand_dims(tensor, 0)
    places = [None] * outer
    sizes = shaping.shape(tensor, out_type=like.row_splits.dtype.base_dtype)
    at = _coordinates(like)
    level: Any = like
    checks: list[tuple[Any, Any]] = [(like.nrows(), 0)]
    while isinstance(level, RaggedTensor):
        checks.append((level.row_lengths(), len(checks)))
        level = level.values
    for axis, (lengths, _) in enumerate(checks):
        size = tensor.static_shape[axis]
        if size == 1:
            places[axis] = at[axis] * 0
            continue
        fits = reductions.reduce_all(comparison.equal(lengths, sizes[axis]) | comparison.equal(sizes[axis], 1))
        tensor = checked(tensor, fits, f"Incompatible sizes at dimension {axis}:", lengths, sizes[axis])
        wide = casting.cast(comparison.not_equal(sizes[axis], 1), sizes.dtype.base_dtype)
        places[axis] = at[axis] * wide
    return gathering.GATHER_ND(tensor, joining.stack(places, 1))


elementwise.also_takes(RaggedTensor, _mapped)


def _where(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Selects elements by a condition, or returns the coordinates of true elements."""
    if arguments.get("x") is not None or arguments.get("y") is not None:
        return _mapped(original, arguments)
    with name_scope(arguments.get("name"), "RaggedWhere"):
        found = selection.WHERE(arguments["condition"].flat_values)
        at = [casting.cast(each, dtypes.int64) for each in _coordinates(arguments["condition"])]
        outer = [gathering.GATHER_V2(each, found[:, 0], 0) for each in at]
        return joining.concat([joining.stack(outer, 1), found[:, 1:]], 1)


def _coordinates(ragged: RaggedTensor) -> list[Tensor]:
    """The coordinates of each flat value in the ragged dimensions: its row, its position in the row, and so on."""
    at, level = [ranges.range(ragged.nrows())], ragged
    while isinstance(level, RaggedTensor):
        rows = level.value_rowids()
        at = [gathering.GATHER_V2(each, rows, 0) for each in at] + [_places(level)]
        level = level.values
    return at


def _joined_text(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Joins the strings of ragged tensors element by element."""
    shared = ragged_functions.same_rows([each for each in arguments["inputs"] if isinstance(each, RaggedTensor)])
    flat = [
        each.flat_values if isinstance(each, RaggedTensor) else _spread(each, shared) for each in arguments["inputs"]
    ]
    return shared.with_flat_values(original(**{**arguments, "inputs": flat}))


for _function in (selection.where, selection.where_v2):
    _function.also_takes(RaggedTensor, _where)
string_ops.string_join.also_takes(RaggedTensor, _joined_text, lists=True)


# ---- reductions -------------------------------------------------------------------------------------------------

_AXES = ("axis", "reduction_indices")


def _reduction(combine: Any, prepare: Any = None, finish: Any = None) -> Callable[..., Any]:
    def form(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        value = next(iter(arguments.values()))
        axis = next((arguments[key] for key in _AXES if arguments.get(key) is not None), None)
        keepdims = bool(arguments.get("keepdims") or arguments.get("keep_dims"))
        value = value if prepare is None else value.with_flat_values(prepare(value.flat_values))
        result = ragged_functions.reduce(
            lambda x, at, keep: original(x if prepare is None else _held(x), at, keep), combine, value, axis, keepdims
        )
        return result if finish is None else _over_values(finish, result)

    return form


def _held(x: Tensor) -> Tensor:
    return casting.cast(x, dtypes.bool_)


def _over_values(function: Any, value: Any) -> Any:
    return map_flat_values(function, value) if isinstance(value, RaggedTensor) else function(value)


def _logical(combine: Any) -> Callable[..., Any]:
    """Reduces booleans as the integers 1 and 0, by sums or products of segments."""

    def form(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        name, value = next(iter(arguments.items()))
        counted = value.with_flat_values(casting.cast(value.flat_values, dtypes.int32))
        total = reductions.reduce_sum if combine is segment_reductions.UNSORTED_SEGMENT_SUM else reductions.reduce_prod
        shaped = _reduction(combine)(total, {**arguments, name: counted})
        return _over_values(lambda x: x > 0, shaped)

    return form


def _mean(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    name, value = next(iter(arguments.items()))
    ones = value.with_flat_values(shaping.ones_like(value.flat_values))
    form = _reduction(segment_reductions.UNSORTED_SEGMENT_SUM)
    total = form(reductions.reduce_sum, arguments)
    count = form(reductions.reduce_sum, {**arguments, name: ones})
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(arithmetic.truediv(total.flat_values, count.flat_values))
    return arithmetic.truediv(total, count)


reductions.reduce_sum.also_takes(RaggedTensor, _reduction(segment_reductions.UNSORTED_SEGMENT_SUM))
reductions.reduce_prod.also_takes(RaggedTensor, _reduction(segment_reductions.UNSORTED_SEGMENT_PROD))
reductions.reduce_max.also_takes(RaggedTensor, _reduction(segment_reductions.UNSORTED_SEGMENT_MAX))
reductions.reduce_min.also_takes(RaggedTensor, _reduction(segment_reductions.UNSORTED_SEGMENT_MIN))
reductions.reduce_mean.also_takes(RaggedTensor, _mean)
reductions.reduce_any.also_takes(RaggedTensor, _logical(segment_reductions.UNSORTED_SEGMENT_SUM))
reductions.reduce_all.also_takes(RaggedTensor, _logical(segment_reductions.UNSORTED_SEGMENT_PROD))


# ---- shapes and rows --------------------------------------------------------------------------------------------


def _calling(function: Callable[..., Any], *wanted: str, **renamed: str) -> Callable[..., Any]:
    """A form that calls `function` with the `wanted` arguments, and with those in `renamed` under their new names."""

    def form(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        given = {name: arguments[name] for name in wanted if name in arguments}
        given.update({own: arguments[name] for name, own in renamed.items() if arguments.get(name) is not None})
        return function(**given)

    return form


def _size(input: RaggedTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    return ranges.size(input.flat_values, name, out_type)


def _rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    known = input.static_shape.rank
    if known is not None:
        return constants.constant(known, dtypes.int32, name=name or "Rank")
    return arithmetic.add(ranges.rank(input.flat_values), input.ragged_rank, name=name)


def _reversed(tensor: RaggedTensor, axis: Any, name: str | None = None) -> Any:
    result: Any = tensor
    for each in axis if isinstance(axis, (list, tuple)) else [axis]:
        at = each + (tensor.static_shape.rank or 0) if each < 0 else each
        result = result[(*[slice(None)] * at, slice(None, None, -1))]
    return result


joining.concat.also_takes(RaggedTensor, _calling(ragged_functions.concat, "values", "axis", "name"), lists=True)
joining.stack.also_takes(RaggedTensor, _calling(ragged_functions.stack, "values", "axis", "name"), lists=True)
joining.tile.also_takes(RaggedTensor, _calling(ragged_functions.tile, "input", "multiples", "name"))
for _functions, _form in (
    (
        (gathering.gather, gathering.gather_v2),
        _calling(ragged_functions.gather, "params", "indices", "axis", "batch_dims", "name"),
    ),
    (
        (shaping.expand_dims, shaping.expand_dims_v2),
        _calling(ragged_functions.expand_dims, "input", "axis", "name", dim="axis"),
    ),
    (
        (masking.boolean_mask, masking.boolean_mask_v2),
        _calling(ragged_functions.boolean_mask, "mask", "name", tensor="data"),
    ),
    ((ranges.size, ranges.size_v2), _calling(_size, "input", "out_type", "name")),
    ((ranges.rank,), _calling(_rank, "input", "name")),
    ((selection.reverse,), _calling(_reversed, "tensor", "axis", "name")),
):
    for _function in _functions:
        _function.also_takes(RaggedTensor, _form)


def _reduce_join(original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Joins padded rows: without a separator, the padding "" does not change the result."""
    value = arguments["inputs"]
    axis = next((arguments[key] for key in _AXES if arguments.get(key) is not None), None)
    if arguments.get("separator", ""):
        raise NotImplementedError("reduce_join of a RaggedTensor with a separator is not supported.")
    if value.static_shape.rank != 2:
        raise NotImplementedError(f"reduce_join takes ragged matrices, not rank {value.static_shape.rank}.")
    return original(**{**arguments, "inputs": value.to_tensor(), **({} if axis is None else {"axis": axis})})


for _function in (string_ops.reduce_join, string_ops.reduce_join_v2):
    _function.also_takes(RaggedTensor, _reduce_join)


# ---- operators --------------------------------------------------------------------------------------------------


def _operator(symbol: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def apply(x: Any, y: Any) -> Any:
        return _mapped(lambda x, y: symbol(x, y), {"x": x, "y": y})

    return apply, lambda self, other: apply(other, self)


for _symbol in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"):
    _plain, _reflected = _operator(getattr(operator, _symbol))
    setattr(RaggedTensor, f"__{_symbol.rstrip('_')}__", _plain)
    setattr(RaggedTensor, f"__r{_symbol.rstrip('_')}__", _reflected)
for _symbol in ("lt", "le", "gt", "ge"):
    setattr(RaggedTensor, f"__{_symbol}__", _operator(getattr(operator, _symbol))[0])
for _symbol in ("neg", "abs", "invert"):
    setattr(
        RaggedTensor,
        f"__{_symbol}__",
        functools.partialmethod(lambda self, f: map_flat_values(f, self), getattr(operator, _symbol)),
    )


def _compared(definition: Any, identical: bool) -> Callable[..., Any]:
    def compare(self: RaggedTensor, other: Any) -> Any:
        if other is None or not getattr(self.row_splits, "is_eager", False):
            return (self is other) if identical else (self is not other)
        return _mapped(lambda x, y: definition(x, y), {"x": self, "y": other})

    return compare


RaggedTensor.__eq__ = _compared(comparison.EQUAL, True)
RaggedTensor.__ne__ = _compared(comparison.NOT_EQUAL, False)
