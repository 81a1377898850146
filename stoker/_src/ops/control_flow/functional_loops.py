"""`map_fn`, `scan`, `foldl` and `foldr`: loops over the first dimension of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import BatchableTypeSpec, TypeSpec, has_rows, rows_of, type_spec_from_value
from stoker._src.ops.array.constants import constant, placeholder
from stoker._src.ops.control_flow import branches_and_loops, tensor_array
from stoker._src.ops.math import comparison, sequences


class Rows:
    """The elements of a structure of tensors, row by row."""

    def __init__(self, elems: Any) -> None:
        self.structure = elems
        self.tensors = [
            leaf if has_rows(leaf) else convert_to_tensor(leaf, name="elem") for leaf in nest.flatten(elems)
        ]
        if not self.tensors:
            raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors. Got an empty structure.")
        rows = Shape((None,))
        for tensor in self.tensors:
            static = rows_of(tensor)._static_rows(tensor)
            if static.rank == 0:
                raise ValueError("elems must be a 1+ dimensional Tensor, not a scalar")
            if static.rank is not None:
                rows = rows.merge(Shape(static.dims[:1]))
        self.static = rows[0]
        self.count: Any = constant(self.static) if self.static is not None else _count(self.tensors[0])
        self.readers = [rows_of(tensor)._row_reader(tensor, self._hold) for tensor in self.tensors]

    def _hold(self, tensor: Any) -> Callable[[Any], Any]:
        held = tensor_array.TensorArray(tensor.dtype.base_dtype, size=self.count, clear_after_read=False)
        return held.unstack(tensor).read

    def __getitem__(self, i: Any) -> Any:
        return nest.pack_sequence_as(self.structure, [read(i) for read in self.readers])


def _count(tensor: Any) -> Any:
    return rows_of(tensor)._row_count(tensor)


class _Stack:
    """Collects the rows of one spec in a TensorArray for each component.

    Raises:
        TypeError: values of the spec cannot be stacked.
    """

    def __init__(self, spec: Any, rows: Any, infer_shape: bool) -> None:
        if not isinstance(spec, BatchableTypeSpec):
            raise TypeError(f"map_fn can not generate {spec} outputs")
        self.spec, self._columns = spec, spec._row_columns()
        self.arrays = [
            tensor_array.TensorArray(
                column.dtype,
                size=rows,
                infer_shape=infer_shape and not column.joined,
                element_shape=column.shape,
            )
            for column in self._columns
        ]

    def write(self, arrays: list[Any], i: Any, row: Any) -> list[Any]:
        return [held.write(i, part) for held, part in zip(arrays, self.spec._to_columns(row))]

    def collected(self, arrays: list[Any], static: int | None) -> Any:
        return self.spec._from_columns(
            [held.concat() if column.joined else _stacked(held, static) for held, column in zip(arrays, self._columns)]
        )


def _stacked(held: Any, static: int | None) -> Tensor:
    """Stacks the elements of a TensorArray into a tensor, whose first size is `static` if known."""
    result = held.stack()
    if result.static_shape.rank is not None or static is not None:
        rest = held._static.dims
        result.set_shape([static, *rest] if rest is not None else result.static_shape)
    return result


def _collected(arrays: list[Any], structure: Any, static: Any) -> Any:
    results = [_stacked(ta, static) for ta in arrays]
    return nest.pack_sequence_as(structure, results, expand_composites=True)


def _check(fn: Any) -> None:
    if not callable(fn):
        raise TypeError("fn must be callable.")


@export("map_fn")
def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Applies `fn` to each row of `elems` and stacks the results.

    Args:
        fn: a function from a row (in the structure of `elems`) to a structure of tensors.
        elems: a tensor or a structure of tensors with equal first dimensions.
        dtype: the dtypes that `fn` returns, in its structure; by default those of `elems`.
        parallel_iterations: recorded in the graph.
        back_prop: if False, gradients stop.
        swap_memory: has no effect.
        infer_shape: whether all results of `fn` have the same shape.
        name: the name scope ("map").
        fn_output_signature: dtypes or specs (of dense, ragged or sparse tensors) of the results of `fn`; the newer form
            of `dtype`.

    Raises:
        TypeError: `fn` is not callable, or its results have another structure or dtype than declared.
        ValueError: `elems` are scalars, or have different first dimensions.
    """
    _check(fn)
    fn = context.converted(fn)
    if dtype is not None and fn_output_signature is None:
        fn_output_signature = dtype
    with name_scope(name, "map", nest.flatten(elems)):
        rows = Rows(elems)
        signature = fn_output_signature
        if signature is None:
            signature = nest.pack_sequence_as(elems, [_same_type(tensor) for tensor in rows.tensors])
        specs = [s if isinstance(s, TypeSpec) else TensorSpec(None, s) for s in nest.flatten(signature)]
        stacks = [_Stack(spec, rows.count, infer_shape) for spec in specs]

        def body(i: Any, arrays: list[Any]) -> Any:
            made = fn(rows[i])
            nest.assert_same_structure(signature, made, check_types=False)
            values = [stack.spec._checked_row(value) for stack, value in zip(stacks, nest.flatten(made))]
            return i + 1, [stack.write(held, i, value) for stack, held, value in zip(stacks, arrays, values)]

        done = branches_and_loops.while_loop_v2(
            lambda i, _: comparison.less(i, rows.count),
            body,
            (constant(0), [stack.arrays for stack in stacks]),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            maximum_iterations=rows.count,
        )[1]
        results = [stack.collected(held, rows.static) for stack, held in zip(stacks, done)]
        return nest.pack_sequence_as(signature, results)


def _same_type(tensor: Any) -> TypeSpec:
    """The default result type of `fn`: the type of its input rows. Tensors may have another shape."""
    return TensorSpec(None, tensor.dtype.base_dtype) if isinstance(tensor, Tensor) else _row_spec(tensor)


def _row_spec(tensor: Any) -> TypeSpec:
    spec: Any = type_spec_from_value(tensor)
    return spec._unbatch()


@export("scan")
def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Like `foldl` (or, with `reverse`, `foldr`), but stacks all intermediate results.

    Args:
        fn: a function from (accumulator, row) to the next accumulator.
        elems: a tensor or a structure of tensors with equal first dimensions.
        initializer: the initial accumulator; by default the first row.
        parallel_iterations: recorded in the graph.
        back_prop: if False, gradients stop.
        swap_memory: has no effect.
        infer_shape: whether all results have the same shape.
        reverse: whether to start with the last row.
        name: the name scope ("scan").
    """
    _check(fn)
    with name_scope(name, "scan", nest.flatten(elems)):
        rows = Rows(elems)
        structure = elems if initializer is None else initializer
        last = rows.count - 1
        if initializer is None:
            start = rows[last if reverse else constant(0)]
            first = last - 1 if reverse else constant(1)
        else:
            start = nest.map_structure(convert_to_tensor, initializer)
            first = last if reverse else constant(0)
        start_flat = nest.flatten(start)
        arrays = [
            tensor_array.TensorArray(
                t.dtype.base_dtype,
                size=rows.count,
                clear_after_read=False,
                infer_shape=infer_shape,
                element_shape=t.static_shape if infer_shape else None,
            )
            for t in start_flat
        ]
        if initializer is None:
            arrays = [ta.write(last if reverse else 0, t) for ta, t in zip(arrays, start_flat)]

        def body(i: Any, accumulated: list[Any], arrays: list[Any]) -> Any:
            made = fn(nest.pack_sequence_as(structure, accumulated), rows[i])
            nest.assert_same_structure(structure, made)
            flat = nest.flatten(made)
            return i - 1 if reverse else i + 1, flat, [ta.write(i, v) for ta, v in zip(arrays, flat)]

        def condition(i: Any, *_: Any) -> Any:
            return comparison.greater_equal(i, 0) if reverse else comparison.less(i, rows.count)

        done = branches_and_loops.while_loop_v2(
            condition,
            body,
            (first, start_flat, arrays),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            maximum_iterations=rows.count,
        )[2]
        return _collected(nest.flatten(done), structure, rows.static)


def _fold(
    fn: Any, elems: Any, initializer: Any, parallel_iterations: int, back_prop: bool, name: str | None, *, right: bool
) -> Any:
    _check(fn)
    with name_scope(name, "foldr" if right else "foldl", nest.flatten(elems)):
        rows = Rows(elems)
        last = rows.count - 1
        if initializer is None:
            start, first = rows[last if right else constant(0)], last - 1 if right else constant(1)
        else:
            start, first = initializer, last if right else constant(0)
            if not context.executing_eagerly():
                start = nest.map_structure(convert_to_tensor, start)

        def body(i: Any, accumulated: Any) -> Any:
            return i - 1 if right else i + 1, fn(accumulated, rows[i])

        def condition(i: Any, _: Any) -> Any:
            return comparison.greater_equal(i, 0) if right else comparison.less(i, rows.count)

        return branches_and_loops.while_loop_v2(
            condition,
            body,
            (first, start),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            maximum_iterations=rows.count,
        )[1]


@export("foldl")
def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Computes `fn(... fn(fn(initializer, elems[0]), elems[1]) ...)`. Without an initializer, it starts with the first row."""
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name, right=False)


@export("foldr")
def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Like `foldl`, from the last row to the first."""
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, name, right=True)


@export("vectorized_map")
def vectorized_map(fn: Callable[..., Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Like `map_fn`, but without a signature: the result types are found by tracing `fn` once.

    TensorFlow rewrites `fn` into batched ops if it can. Here it is always a loop with the same values, so
    `fallback_to_while_loop` and `warn` have no effect.

    Args:
        fn: a function from a row (in the structure of `elems`) to a structure of tensors.
        elems: a tensor or a structure of tensors. Tensors with one row are broadcast.
        fallback_to_while_loop: whether ops that cannot be rewritten may loop.
        warn: whether to warn about such ops.

    Raises:
        ValueError: `elems` are scalars.
        InvalidArgumentError: the numbers of rows differ.
    """
    _check(fn)
    elems = nest.map_structure(lambda leaf: leaf if has_rows(leaf) else convert_to_tensor(leaf), elems)
    leaves = nest.flatten(elems)
    sizes = [rows_of(leaf)._static_rows(leaf) for leaf in leaves]
    if any(size.rank == 0 for size in sizes):
        raise ValueError("elems must be 1+ dimensional tensors, not scalars")
    known = {size[0] for size in sizes if size.rank is not None}
    if len(known - {None, 1}) > 1:
        raise InvalidArgumentError(
            None, None, f"elems of vectorized_map have different numbers of rows: {[size[0] for size in sizes]}"
        )
    if 1 in known and len(known) > 1:
        widest = next((leaf for leaf, size in zip(leaves, sizes) if size.rank is None or size[0] != 1), leaves[0])
        rows = _count(widest)
        leaves = [
            sequences.repeat(leaf, rows, 0) if size.rank is not None and size[0] == 1 else leaf
            for leaf, size in zip(leaves, sizes)
        ]
        elems = nest.pack_sequence_as(elems, leaves)
    graph = FuncGraph("vectorized_map")
    with graph.as_default():
        row = nest.pack_sequence_as(elems, [_row_placeholder(leaf) for leaf in leaves])
    signature = nest.map_structure(type_spec_from_value, branches_and_loops.trace(graph, fn, (row,)).structure)
    return map_fn(fn, elems, fn_output_signature=signature)


def _row_placeholder(leaf: Any) -> Any:
    """A placeholder for a row while the function is traced."""
    spec = _row_spec(leaf)
    parts = [placeholder(part.dtype, part.static_shape) for part in nest.flatten(spec, expand_composites=True)]
    return nest.pack_sequence_as(spec, parts, expand_composites=True)
