"""Iterators over datasets, in graphs and in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import OutOfRangeError
from stoker._src.base.export import export
from stoker._src.data import structure
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import STATEFUL
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow.optionals import OPTIONAL_GET_VALUE, Optional
from stoker._src.ops.dataset import iterators


class ElementOptional(Optional):
    """An element of a dataset, or nothing."""

    def of(self, variant: Tensor) -> ElementOptional:
        """Returns another optional of the same type."""
        return ElementOptional(variant, self._element_spec)

    def get_value(self, name: str | None = None) -> Any:
        """The element. InvalidArgumentError at run time if there is none."""
        parts = OPTIONAL_GET_VALUE(self._variant_tensor, **structure.types_and_shapes(self._element_spec), name=name)
        return structure.from_tensors(self._element_spec, parts)


def next_as_optional(resource: Any, spec: Any) -> ElementOptional:
    flat = structure.types_and_shapes(spec)
    return ElementOptional(iterators.ITERATOR_GET_NEXT_AS_OPTIONAL(resource, **flat), spec)


def started(dataset: Any) -> Any:
    """Returns the resource of an iterator that has started a pass over `dataset`."""
    resource = iterators.ANONYMOUS_ITERATOR_V3(**structure.types_and_shapes(dataset.element_spec))
    made = iterators.MAKE_ITERATOR(dataset._variant_tensor, resource)
    with control_dependencies([made] if isinstance(made, Operation) else []):
        return shaping.identity(resource) if isinstance(made, Operation) else resource


class IteratorSaveable(SaveableObject):
    """Saves how many elements an iterator has given. Restoring starts the pass again and skips as many."""

    def __init__(self, resource: Any, name: str) -> None:
        self._resource = resource
        position: Any = (
            (lambda: iterators.ITERATOR_POSITION(resource))
            if context.executing_eagerly()
            else iterators.ITERATOR_POSITION(resource)
        )
        place = "" if context.executing_eagerly() else None
        super().__init__(resource, [SaveSpec(position, "", name, dtypes.int64, place)], name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """Returns the op that moves the iterator."""
        return iterators.MOVE_ITERATOR(self._resource, restored_tensors[0])


class _Saved(Trackable):
    """An iterator that checkpoints hold."""

    _iterator_resource: Any

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        return {"ITERATOR": lambda name="ITERATOR": IteratorSaveable(self._iterator_resource, name)}


@export("data.experimental.make_saveable_from_iterator")
def make_saveable_from_iterator(iterator: Any, external_state_policy: Any = None) -> SaveableObject:
    """Returns what a `Saver` needs to save an iterator: the number of elements it has given.

    A program that is restored skips as many. Random orders are the same only if seeds are set.
    """
    return IteratorSaveable(iterator._iterator_resource, iterator._iterator_resource.op.name)


@export(v1="data.Iterator")
class Iterator(structure.LegacyDescription, _Saved):
    """An iterator of a graph: `get_next()` returns the tensors of the next element."""

    def __init__(
        self,
        iterator_resource: Any,
        element_spec: Any,
        initializer: Operation | None = None,
    ) -> None:
        self._iterator_resource, self._spec, self._initializer = iterator_resource, element_spec, initializer
        self._string_handle: Tensor | None = None

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """Returns an iterator for datasets of this type. `make_initializer` connects it with one.

        Raises:
            ValueError: the structures differ.
        """
        spec = structure.from_legacy(output_types, output_shapes, output_classes)
        handle = iterators.ITERATOR_V2(
            shared_name=shared_name or "", **structure.types_and_shapes(spec), name="Iterator"
        )
        return Iterator(handle, spec)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """Returns the iterator that a `string_handle()` names, which may be fed: the program chooses the input of each run."""
        spec = structure.from_legacy(output_types, output_shapes, output_classes)
        text = convert_to_tensor(string_handle, dtypes.string)
        handle = iterators.ITERATOR_FROM_STRING_HANDLE_V2(text, **structure.types_and_shapes(spec))
        return Iterator(handle, spec)

    @property
    def initializer(self) -> Operation:
        """The operation that starts a pass.

        Raises:
            ValueError: the iterator has none.
        """
        if self._initializer is None:
            raise ValueError("The iterator does not have an initializer. Use `make_initializer(dataset)` instead.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """Returns an operation that starts a pass over `dataset`.

        Raises:
            TypeError: the dataset has elements of another type.
        """
        try:
            same = nest.map_structure(lambda a, b: a.is_compatible_with(b), self._spec, dataset.element_spec)
        except (TypeError, ValueError):
            same = False
        if not all(nest.flatten(same)):
            raise TypeError(
                f"Expected structure {self._spec}, got a dataset with elements of type {dataset.element_spec}."
            )
        return iterators.MAKE_ITERATOR(dataset._variant_tensor, self._iterator_resource, name=name)

    def get_next(self, name: str | None = None) -> Any:
        """Returns the tensors of the next element. Each run that uses them takes one element.

        OutOfRangeError at run time when there are no more elements.
        """
        parts = iterators.ITERATOR_GET_NEXT(
            self._iterator_resource, **structure.types_and_shapes(self._spec), name=name
        )
        return structure.from_tensors(self._spec, parts)

    def get_next_as_optional(self) -> Any:
        """Returns the next element as an Optional, which is empty when there are no more."""
        return next_as_optional(self._iterator_resource, self._spec)

    def _optionals_in_graph(self) -> Callable[[], Any]:
        return self.get_next_as_optional

    def string_handle(self, name: str | None = None) -> Tensor:
        """Returns a string tensor that names this iterator. See `from_string_handle`."""
        if name is not None:
            return iterators.ITERATOR_TO_STRING_HANDLE(self._iterator_resource, name=name)
        if self._string_handle is None:
            self._string_handle = self.string_handle("string_handle")
        return self._string_handle

    @property
    def element_spec(self) -> Any:
        return self._spec


class OwnedIterator(_Saved):
    """An iterator of eager mode: a Python iterator over one pass."""

    def __init__(self, dataset: Any) -> None:
        self._spec = dataset.element_spec
        self._flat = structure.types_and_shapes(self._spec)
        self._iterator_resource = started(dataset)

    def __iter__(self) -> OwnedIterator:
        return self

    def __next__(self) -> Any:
        try:
            return self.get_next()
        except OutOfRangeError:
            raise StopIteration from None

    def next(self) -> Any:
        return self.__next__()

    def get_next(self, name: str | None = None) -> Any:
        """Returns the next element.

        Raises:
            OutOfRangeError: there are no more elements.
        """
        parts = iterators.ITERATOR_GET_NEXT(self._iterator_resource, **self._flat, name=name)
        return structure.from_tensors(self._spec, parts)

    def get_next_as_optional(self) -> Any:
        """Returns the next element as an Optional, which is empty when there are no more."""
        return next_as_optional(self._iterator_resource, self._spec)

    def _optionals_in_graph(self) -> Callable[[], Any]:
        return self.get_next_as_optional

    @property
    def element_spec(self) -> Any:
        return self._spec


class _ByValue(FuncGraph):
    """A body that copies what it captures, with all that is needed to compute it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._copies: dict[int, Tensor] = {}  # id of an outer tensor, which the outer graph keeps alive -> the copy

    def capture(self, tensor: Any) -> Tensor:
        if tensor.op.graph is self:
            return tensor
        if id(tensor) in self._copies:
            return self._copies[id(tensor)]
        op = tensor.op
        if op.type == "Placeholder":
            raise ValueError(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
        if op.definition.traits & STATEFUL and not op.type.endswith(("Dataset", "DatasetV2", "DatasetV3")):
            raise ValueError(f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value.")
        inputs = [self.capture(each) for each in op._inputs]
        with self._plain_scope():
            copied = self.add(op.definition, inputs, dict(op.attrs), self.op_name(None, op.type))
        for outer, inner in zip(op.outputs, copied.outputs):
            self._copies[id(outer)] = inner
        return copied.outputs[tensor.value_index]


def one_shot_iterator(dataset: Any) -> Any:
    """Returns an iterator over one pass. In a graph, a function makes the dataset when the iterator is first used.

    Raises:
        ValueError: the dataset depends on placeholders or state.
    """
    if context.executing_eagerly():
        return OwnedIterator(dataset)
    graph = _ByValue("_make_dataset")
    try:
        made = graph.capture(dataset._variant_tensor)
    except ValueError as error:
        if "Cannot capture a stateful node" not in str(error):
            raise
        raise ValueError(
            f"{error} Failed to create a one-shot iterator for a dataset. `tf.data.Dataset.make_one_shot_iterator()` does not "
            "support datasets that capture stateful objects, such as a `Variable` or `LookupTable`. In these cases, "
            "use `tf.data.Dataset.make_initializable_iterator()`."
        ) from None
    factory = Function(unique_function_name("_make_dataset"), graph, [], [made])
    spec = dataset.element_spec
    handle = iterators.ONE_SHOT_ITERATOR(dataset_factory=factory.ref, **structure.types_and_shapes(spec))
    return Iterator(handle, spec)
