"""The functions of a loaded SavedModel: traces without the Python functions that they were traced from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.base.errors import DataLossError
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec, type_spec_from_value
from stoker._src.ops.control_flow.branches_and_loops import Traced
from stoker._src.ops.variables.variables import Variable
from stoker._src.runtime.functions.arguments import Parameters
from stoker._src.runtime.functions.concrete_function import ConcreteFunction
from stoker._src.runtime.functions.def_function import PolymorphicFunction


class RestoredConcreteFunction(ConcreteFunction):
    """One trace of a loaded SavedModel.

    Args:
        function: its body. The last inputs are the captures.
        captures: returns the captured values. They are looked up on first use, when all objects exist.
        signature: the arguments (args, kwargs) as specs and plain values.
        returned: the structure of the results, with specs as leaves.

    Raises:
        DataLossError: the body does not have the inputs or outputs that the specs describe.
    """

    def __init__(
        self, function: Function, count: int, captures: Callable[[], list[Any]], signature: Any, returned: Any
    ) -> None:
        specs = [each for each in nest.flatten(signature, expand_composites=True) if isinstance(each, TensorSpec)]
        leaves = nest.flatten(returned, expand_composites=True)
        wanted = [leaf for leaf in leaves if leaf is not None]
        if len(specs) + count != len(function.inputs) or len(wanted) != len(function.outputs):
            raise DataLossError(
                None,
                None,
                f"Function '{function.name}' has {len(function.inputs)} inputs and {len(function.outputs)} outputs, but the "
                f"SavedModel describes {len(specs)} arguments, {count} captures and {len(wanted)} results.",
            )
        arguments = function.inputs[: len(specs)]
        for kind, described, found in (("argument", specs, arguments), ("result", wanted, function.outputs)):
            for spec, tensor in zip(described, found):
                if not isinstance(spec, TensorSpec) or spec.dtype is not tensor.dtype.base_dtype:
                    raise DataLossError(
                        None,
                        None,
                        f"Function '{function.name}' has a {kind} of {tensor.dtype.name}, described as {spec}.",
                    )
        outputs = iter(function.outputs)
        tensors = [None if leaf is None else next(outputs) for leaf in leaves]
        structure = nest.pack_sequence_as(returned, tensors, expand_composites=True)
        self._names = [spec.name or tensor.op.name for spec, tensor in zip(specs, arguments)]
        self._returned = returned
        self._captures = captures
        self._allowed_by_position: int | None = None
        self._set_up(function, Traced(function.graph, structure, tensors), arguments, [], signature, None)

    @property
    def captured_inputs(self) -> list[Any]:
        if self._captured is None:
            self._captured = self._captures()
        return self._captured

    @captured_inputs.setter
    def captured_inputs(self, value: list[Any]) -> None:
        self._captured = value or None

    @property
    def structured_outputs(self) -> Any:
        """Specs of the results, in their structure."""
        return self._returned

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables the function uses."""
        found = [getattr(tensor, "variable", None) for tensor in self.captured_inputs]
        return tuple(v for v in (None if ref is None else ref() for ref in found) if v is not None)

    def _argument_names(self) -> list[str]:
        return self._names

    def take_form(self, parameters: Parameters | None, keywords: list[str], by_position: int) -> None:
        """Settles how the function is called by itself: with the parameters of the Python function, or with tensors by name.

        Args:
            parameters: the parameters, if the SavedModel describes them.
            keywords: a name for each tensor.
            by_position: how many of the tensors may be passed without a name.
        """
        self._parameters = parameters
        if len(keywords) == len(self._arguments):
            self._names = keywords
        self._allowed_by_position = by_position

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        allowed = self._allowed_by_position
        if allowed is not None and len(args) > allowed:
            names = ", ".join(self._names)
            raise TypeError(
                f"{self.name}({names}) takes {allowed} positional arguments, got {len(args)}: pass the others by name."
            )
        return super()._flat(args, kwargs)


class RestoredFunction(PolymorphicFunction):
    """A `tf.function` of a loaded SavedModel. It has the traces that were saved, and cannot be traced again."""

    def __init__(self, name: str, parameters: Parameters, traces: list[RestoredConcreteFunction]) -> None:
        self.__name__ = name
        self._parameters = parameters
        self._saved_traces = traces

    @property
    def python_function(self) -> Any:
        raise AttributeError(f"{self.__name__} was loaded from a SavedModel, which holds no Python functions.")

    def concrete_functions(self) -> list[ConcreteFunction]:
        return list(self._saved_traces)

    def experimental_get_tracing_count(self) -> int:
        return len(self._saved_traces)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        return "\n\n".join(trace.pretty_printed_signature(verbose) for trace in self._saved_traces)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the first trace that accepts the arguments. Plain values become tensors where no trace accepts them as they are.

        Raises:
            ValueError: no trace accepts them.
        """
        trace, values = self._match(args, kwargs)
        return trace.call_flat(values)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Returns the trace for these arguments, which may be TensorSpecs.

        Raises:
            ValueError: there is none.
        """
        if not args and not kwargs and len(self._saved_traces) == 1:
            return self._saved_traces[0]
        return self._match(args, kwargs)[0]

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[RestoredConcreteFunction, list[Any]]:
        if not self._saved_traces:
            raise ValueError(
                "Found zero restored functions for caller function: the function was never called before the SavedModel was written."
            )
        bound = self._parameters.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.args, bound.kwargs
        for converts in (False, True):
            for trace in self._saved_traces:
                values = _accepted(trace.structured_input_signature, given, converts)
                if values is not None:
                    return trace, values
        options = [
            f"Option {i}:\n{_described(*trace.structured_input_signature)}"
            for i, trace in enumerate(self._saved_traces, 1)
        ]
        raise ValueError(
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"{_described(*given)}\n\n Expected these arguments to match one of the following {len(options)} option(s):\n\n"
            + "\n\n".join(options)
        )


def _described(args: Any, kwargs: Any) -> str:
    listed = "".join(f"\n    * {each}" for each in args)
    return f"  Positional arguments ({len(args)} total):{listed}\n  Keyword arguments: {kwargs}"


def _accepted(expected: Any, given: Any, converts: bool) -> list[Any] | None:
    """Returns the tensors among the arguments if a trace accepts them, else None."""
    try:
        leaves = nest.flatten_up_to(expected, given, check_types=False)
    except (TypeError, ValueError):
        return None
    values: list[Any] = []
    for wanted, leaf in zip(nest.flatten(expected), leaves):
        if isinstance(wanted, TypeSpec):
            taken = _taken(wanted, leaf, converts)
            if taken is None:
                return None
            values += taken
        elif isinstance(leaf, (Tensor, TypeSpec, Variable)) or not _equal(wanted, leaf):
            return None
    return values


def _taken(spec: TypeSpec, leaf: Any, converts: bool) -> list[Any] | None:
    """Returns the tensors of one argument if it fits the spec, else None."""
    if isinstance(leaf, TypeSpec):
        return nest.flatten(leaf, expand_composites=True) if spec.is_compatible_with(leaf) else None
    if not isinstance(spec, TensorSpec):
        try:
            fits = spec.is_compatible_with(type_spec_from_value(leaf))
        except (TypeError, ValueError):
            return None
        return nest.flatten(leaf, expand_composites=True) if fits else None
    if isinstance(leaf, Variable):
        leaf = convert_to_tensor(leaf)
    if not isinstance(leaf, Tensor):
        if not converts and not isinstance(leaf, (np.ndarray, np.generic)):
            return None
        try:
            leaf = convert_to_tensor(leaf, spec.dtype)
        except (TypeError, ValueError):
            return None
    return [leaf] if spec.is_compatible_with(leaf) else None


def _equal(wanted: Any, leaf: Any) -> bool:
    if wanted is leaf:
        return True
    if isinstance(wanted, np.ndarray):
        return isinstance(leaf, np.ndarray) and bool(np.array_equal(wanted, leaf))
    return type(wanted) is type(leaf) and bool(wanted == leaf)
