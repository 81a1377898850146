"""Elements of datasets: structures of tensors and composites, as flat tensors and back.

A list is a tensor here, unlike elsewhere in the library. A SparseTensor travels as variants [3] (or [N, 3] for a batch), a
RaggedTensor and a dataset as one variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape, TensorShape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorSpec, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import composite_spec, type_spec_from_value
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.ragged.ragged_features import RAGGED_TENSOR_FROM_VARIANT, RAGGED_TENSOR_TO_VARIANT
from stoker._src.ops.ragged.ragged_spec import RaggedTensorSpec
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.sparse.sparse_messages import DESERIALIZE_SPARSE, serialize_many_sparse, serialize_sparse
from stoker._src.runtime.autograph import convert


def prepared(value: Any) -> Any:
    """Returns the structure with tensors and composites as leaves. Lists, arrays and numbers become tensors."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if isinstance(value, dict):
        return type(value)((key, prepared(item)) for key, item in value.items())
    if isinstance(value, tuple):
        items = [prepared(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value if composite_spec(value) is not None else convert_to_tensor(value)


def spec_of(value: Any) -> Any:
    """Returns the structure of specs of a prepared structure."""
    return nest.map_structure(type_spec_from_value, value)


# ---- flat tensors --------------------------------------------------------------------------------------------------


def _flat_type(spec: Any) -> tuple[DType, Shape]:
    return (spec.dtype, spec.static_shape) if isinstance(spec, TensorSpec) else (dtypes.variant, UNKNOWN_SHAPE)


def types_and_shapes(spec: Any) -> dict[str, Any]:
    """Returns the attributes `output_types` and `output_shapes` of ops on elements of this type."""
    flat = [_flat_type(leaf) for leaf in nest.flatten(spec)]
    return {"output_types": [dtype for dtype, _ in flat], "output_shapes": [shape for _, shape in flat]}


def _to_tensor(spec: Any, value: Any) -> Tensor:
    if isinstance(spec, TensorSpec):
        return convert_to_tensor(value, spec.dtype)
    if isinstance(spec, SparseTensorSpec):
        return serialize_sparse(value, out_type=dtypes.variant)
    if isinstance(spec, RaggedTensorSpec):
        return RAGGED_TENSOR_TO_VARIANT(value.nested_row_splits, value.flat_values, batched_input=False)
    (part,) = nest.flatten(spec._to_components(value))
    return part


def to_tensors(spec: Any, value: Any) -> list[Tensor]:
    """Returns the flat tensors of an element."""
    return [_to_tensor(leaf, item) for leaf, item in zip(nest.flatten(spec), nest.flatten_up_to(spec, value))]


def _to_rows(spec: Any, value: Any) -> Tensor:
    if isinstance(spec, SparseTensorSpec):
        return serialize_many_sparse(value, out_type=dtypes.variant)
    if isinstance(spec, RaggedTensorSpec):
        return RAGGED_TENSOR_TO_VARIANT(value.nested_row_splits, value.flat_values, batched_input=True)
    return value


def to_rows(spec: Any, value: Any) -> list[Tensor]:
    """Returns flat tensors whose rows are the flat tensors of the rows of `value`."""
    return [_to_rows(leaf, item) for leaf, item in zip(nest.flatten(spec), nest.flatten(value))]


def _from_tensor(spec: Any, tensor: Tensor) -> Any:
    if isinstance(spec, TensorSpec):
        return tensor
    if isinstance(spec, SparseTensorSpec):
        sparse = SparseTensor(*DESERIALIZE_SPARSE(tensor, dtype=spec.dtype))
        if not getattr(tensor, "is_eager", False):
            sparse.indices.set_shape([None, spec.static_shape.rank])
            sparse.dense_shape.set_shape([spec.static_shape.rank])
        return sparse
    if isinstance(spec, RaggedTensorSpec):
        parts = RAGGED_TENSOR_FROM_VARIANT(
            tensor,
            input_ragged_rank=-1,
            output_ragged_rank=spec.ragged_rank,
            Tvalues=spec.dtype,
            Tsplits=spec.row_splits_dtype,
        )
        splits, values = parts
        if spec.ragged_rank == 0:
            return values
        return RaggedTensor.from_nested_row_splits(values, list(splits), validate=False)
    return spec._packed([tensor])


def from_tensors(spec: Any, tensors: Sequence[Tensor]) -> Any:
    """Builds an element from its flat tensors."""
    return nest.pack_sequence_as(spec, [_from_tensor(*pair) for pair in zip(nest.flatten(spec), tensors)])


def batched(spec: Any, size: int | None) -> Any:
    """Returns the spec of batches of elements."""
    return nest.map_structure(lambda leaf: leaf._batch(size), spec)


def unbatched(spec: Any) -> Any:
    """Returns the spec of the rows of elements."""
    return nest.map_structure(lambda leaf: leaf._unbatch(), spec)


# ---- types, shapes and classes, as 1.x describes elements ----------------------------------------------------------


def legacy_types(spec: Any) -> Any:
    return nest.map_structure(lambda leaf: getattr(leaf, "dtype", dtypes.variant), spec)


def legacy_shapes(spec: Any) -> Any:
    return nest.map_structure(lambda leaf: getattr(leaf, "shape", TensorShape([])), spec)


def legacy_classes(spec: Any) -> Any:
    return nest.map_structure(lambda leaf: leaf.value_type, spec)


class LegacyDescription:
    """The three properties by which 1.x describes the elements of a dataset or iterator."""

    _spec: Any

    @property
    def output_types(self) -> Any:
        return legacy_types(self._spec)

    @property
    def output_shapes(self) -> Any:
        return legacy_shapes(self._spec)

    @property
    def output_classes(self) -> Any:
        return legacy_classes(self._spec)


def from_legacy(types: Any, shapes: Any, classes: Any = None) -> Any:
    """Returns the specs for structures of dtypes, shapes and classes (dense tensors by default).

    A structure may stop early: one None instead of a structure of shapes leaves all shapes unknown.
    """
    flat = [dtypes.as_dtype(dtype) for dtype in nest.flatten(types)]
    known = [None] * len(flat) if shapes is None else nest.flatten_up_to(types, shapes)
    kinds = [Tensor] * len(flat) if classes is None else nest.flatten(classes)
    specs = []
    for dtype, shape, kind in zip(flat, known, kinds):
        specs.append((SparseTensorSpec if kind is SparseTensor else TensorSpec)(shape, dtype))
    return nest.pack_sequence_as(types, specs)


# ---- functions -----------------------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A function on elements: the attribute for ops, the captured values, and the spec of the results."""

    ref: Any
    captured: list[Any]
    spec: Any


def traced(function: Callable[..., Any], name: str, *specs: Any, unpacks: bool = True) -> Traced:
    """Traces `function` for elements of the types `specs`.

    A single element that is a tuple is passed as several arguments, if `unpacks`.
    """
    graph = FuncGraph(f"Dataset_{name}_{getattr(function, '__name__', 'function').strip('<>')}", automatic=True)
    inputs = [[graph.add_input(*_flat_type(leaf)) for leaf in nest.flatten(spec)] for spec in specs]
    found: list[Any] = []
    called = convert.converted(function)

    def body() -> list[Tensor]:
        arguments = [from_tensors(spec, tensors) for spec, tensors in zip(specs, inputs)]
        if unpacks and len(specs) == 1 and isinstance(specs[0], tuple):
            arguments = list(arguments[0])
        result = prepared(called(*arguments))
        found.append(spec_of(result))
        return to_tensors(found[0], result)

    results = branches_and_loops.trace(graph, body)
    outputs = [tensor for tensor in results.tensors if tensor is not None]
    captures, values = graph.captures, graph.captured_values
    taken = [*(tensor for group in inputs for tensor in group), *(inner for _, inner in captures)]
    made = Function(unique_function_name(graph.name), graph, taken, outputs, branches_and_loops.control_outputs(graph))
    return Traced(made.ref, [values.get(id(inner), passed) for passed, inner in captures], found[0])


def checked_scalar(spec: Any, dtype: DType, what: str) -> None:
    """Checks that a function returns one scalar of a dtype.

    Raises:
        ValueError: it returns something else.
    """
    if not (isinstance(spec, TensorSpec) and spec.dtype == dtype and spec.static_shape.merge(SCALAR) == SCALAR):
        raise ValueError(
            f"Invalid `{what}`. `{what}` must return a `tf.{dtype.name}` scalar tensor, but its return type is {spec}."
        )
