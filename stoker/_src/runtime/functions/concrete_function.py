"""A function traced for one kind of arguments. `tf.function` calls it, and `get_concrete_function` returns it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.type_spec import TypeSpec
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.runtime.functions.arguments import Identity, Parameters, argument_names, is_value, type_text
from stoker._src.runtime.functions.call_log import CALLS
from stoker._src.runtime.functions.calls import DifferentiableFunction


@export("types.experimental.ConcreteFunction")
class ConcreteFunction(Trackable):
    """A function traced for one kind of arguments. It is called like the Python function, or with tensors only.

    Attributes:
        graph: the body.
        captured_inputs: the captured values: variables, and tensors of outer graphs.
    """

    def __init__(
        self,
        name: str,
        graph: FuncGraph,
        traced: branches_and_loops.Traced,
        arguments: list[Tensor],
        structure: Any,
        controls: list[Operation],
        parameters: Parameters | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        """Creates a function from a trace.

        Args:
            name: the name of the Python function.
            graph: the body.
            traced: the results of the trace.
            arguments: the inputs that correspond to arguments.
            structure: the arguments (args, kwargs) as TensorSpecs and plain values.
            controls: ops that always run, whatever is returned.
            parameters: the parameters of the Python function. Without them it is called with tensors only.
            attributes: the attributes of the FunctionDef.
        """
        # The trace must not keep the objects that it was made for alive.
        structure = nest.map_structure(_weakly, structure)
        outputs = [tensor for tensor in traced.tensors if tensor is not None]
        captures = graph.captures
        values = graph.captured_values
        # A captured value is passed directly, wherever the function is called.
        captured = [values.get(id(inner), passed) for passed, inner in captures]
        inputs = [*arguments, *[inner for _, inner in captures]]
        function = Function(unique_function_name(f"__inference_{name}"), graph, inputs, outputs, controls)
        function.attributes = dict(attributes or {})
        self._set_up(function, traced, arguments, captured, structure, parameters)

    def _set_up(
        self,
        function: Function,
        traced: branches_and_loops.Traced,
        arguments: list[Tensor],
        captured: list[Any],
        structure: Any,
        parameters: Parameters | None,
    ) -> None:
        self.graph = function.graph
        self.captured_inputs = captured
        self._function, self._traced, self._arguments = function, traced, arguments
        self._structure, self._parameters = structure, parameters
        self._call = DifferentiableFunction(function)

    def captures_values_only(self) -> bool:
        """Whether it captures no tensors of outer graphs. It can then be called anywhere."""
        return not self.graph.control_captures and all(
            getattr(captured, "is_eager", False) for captured in self.captured_inputs
        )

    @property
    def name(self) -> str:
        return self._function.name

    @property
    def function_ref(self) -> Any:
        """Returns the function as an attribute for ops that call functions (`tf.raw_ops.If(..., then_branch=this)`)."""
        return self._function.ref

    @property
    def inputs(self) -> list[Tensor]:
        return list(self._function.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        return list(self._function.outputs)

    @property
    def structured_input_signature(self) -> Any:
        """The arguments (args, kwargs): TensorSpecs for tensors, other values unchanged."""
        return nest.map_structure(lambda leaf: leaf.get() if isinstance(leaf, Identity) else leaf, self._structure)

    @property
    def structured_outputs(self) -> Any:
        """The returned tensors of the body, in the structure that the Python function returned."""
        return self._traced.structure

    @property
    def output_shapes(self) -> Any:
        return nest.map_structure(lambda tensor: None if tensor is None else tensor.shape, self._traced.structure)

    @property
    def output_dtypes(self) -> Any:
        return nest.map_structure(lambda tensor: None if tensor is None else tensor.dtype, self._traced.structure)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables the function uses."""
        found = [getattr(tensor, "variable", None) for tensor in self._function.inputs]
        return tuple(v for v in (None if ref is None else ref() for ref in found) if v is not None)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def function_def(self) -> Any:
        return self._function.to_function_def()

    # -- calls ---------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function like the Python function, or with its tensors only, by position or by name.

        Raises:
            TypeError: the arguments fit neither form.
            InvalidArgumentError: a tensor has the wrong dtype.
        """
        try:
            return self.call_flat(self._structured(args, kwargs))
        except TypeError as error:
            try:
                values = self._flat(args, kwargs)
            except TypeError as other:
                raise TypeError(f"{error}\nFallback to flat signature also failed due to: {other}") from None
        return self.call_flat(values)

    def _structured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns the tensors among arguments that are passed as to the Python function."""
        if self._parameters is None:
            raise TypeError(f"{self.name} takes tensors only.")
        try:
            bound = self._parameters.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given, expected = (bound.args, bound.kwargs), self.structured_input_signature
            nest.assert_same_structure(expected, given)
            values = []
            for wanted, leaf in zip(nest.flatten(expected), nest.flatten(given)):
                if isinstance(wanted, TypeSpec):
                    values.extend(nest.flatten(leaf, expand_composites=True))
                elif wanted is not leaf and wanted != leaf:
                    raise TypeError(f"Can not cast {leaf!r} to Literal[{wanted!r}]")
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{error}`. Received args: {args} and kwargs: {kwargs} for "
                f"signature: {self.pretty_printed_signature(verbose=False)}."
            ) from None
        return values

    def _argument_names(self) -> list[str]:
        """Returns the names by which a call with tensors only may pass them."""
        return [tensor.op.name for tensor in self._arguments]

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = self._argument_names()
        if len(args) > len(names):
            raise TypeError(
                f"{self.name}({', '.join(names)}) takes {len(names)} positional arguments, got {len(args)}."
            )
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key in given or key not in names:
                raise TypeError(f"{self.name}({', '.join(names)}) got an unexpected or repeated argument {key!r}.")
            given[key] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{self.name}({', '.join(names)}) missing required arguments: {', '.join(missing)}.")
        values = [given[name] for name in names]
        for name, value in zip(names, values):
            if not is_value(value) and not isinstance(value, (int, float, complex, str, bytes, list, tuple)):
                raise TypeError(f"{self.name}: the argument {name!r} must be a tensor, found {value!r}.")
        return values

    def call_flat(self, values: list[Any]) -> Any:
        """Returns the results for the flat list of argument tensors."""
        if CALLS.is_on:
            CALLS.note(self.graph)
        if len(values) != len(self._arguments):
            raise TypeError(f"{self.name} takes {len(self._arguments)} tensors but {len(values)} were given.")
        tensors = []
        for i, (expected, value) in enumerate(zip(self._arguments, values)):
            tensor = convert_to_tensor(value, dtype_hint=expected.dtype)
            if tensor.dtype.base_dtype is not expected.dtype.base_dtype:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"cannot compute {self.name} as input #{i}(zero-based) was expected to be a "
                    f"{_c_name(expected.dtype)} tensor but is a {_c_name(tensor.dtype)} tensor",
                )
            if not expected.static_shape.compatible(tensor.static_shape):
                raise TypeError(
                    f"{self.name}: the argument {expected.op.name!r} must have the shape {expected.shape}, found {tensor.shape}."
                )
            tensors.append(tensor)
        return self.packed(self._call([*tensors, *self.captured_inputs]))

    def packed(self, results: Sequence[Any]) -> Any:
        """Returns the results of a call in the structure that the Python function returned."""
        given = iter(results)
        leaves = [None if tensor is None else next(given) for tensor in self._traced.tensors]
        return nest.pack_sequence_as(self._traced.structure, leaves, expand_composites=True)

    # -- as text -------------------------------------------------------------------------------------------------

    def _parts(self) -> list[tuple[str, str, Any]]:
        """Returns (name, kind of parameter, type) of each argument."""
        args, kwargs = self.structured_input_signature
        if self._parameters is None:
            return [
                (tensor.op.name, "POSITIONAL_ONLY", spec) for tensor, spec in zip(self._arguments, nest.flatten(args))
            ]
        names = argument_names(self._parameters, args, kwargs)
        known = self._parameters.signature.parameters
        several = any(name not in known for name in names[: len(args)])
        first = inspect.Parameter.POSITIONAL_ONLY if several else inspect.Parameter.POSITIONAL_OR_KEYWORD
        kinds = [first.name] * len(args) + [inspect.Parameter.KEYWORD_ONLY.name] * len(kwargs)
        return list(zip(names, kinds, [*args, *(kwargs[key] for key in sorted(kwargs))]))

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Describes arguments, results and captures, one per line; in a single line unless `verbose`."""
        returned = type_text(self._traced.structure)
        if not verbose:
            return f"({', '.join(f'{name}: {type_text(kind)}' for name, _, kind in self._parts())}) -> {returned}"
        lines = ["Input Parameters:"]
        lines += [f"  {name} ({kind}): {type_text(wanted)}" for name, kind, wanted in self._parts()] or ["  None"]
        lines += ["Output Type:", f"  {returned}", "Captures:"]
        lines += [f"  {id(tensor)}: {type_text(tensor)}" for tensor in self.captured_inputs] or ["  None"]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at {id(self):#x}>"


def _weakly(leaf: Any) -> Any:
    plain = (TypeSpec, DType, bool, int, float, complex, str, bytes, type(None))
    return leaf if isinstance(leaf, plain) else Identity(leaf)


def _c_name(dtype: DType) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype.base_dtype.name, dtype.base_dtype.name)
