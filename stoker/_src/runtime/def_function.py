"""`tf.function`: a Python function traced into a body for each kind of arguments, then called as one op."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops import control_flow, variables
from stoker._src.runtime.function_calls import DifferentiableFunction

_run_eagerly = False


@export("config.run_functions_eagerly", v1="config.experimental_run_functions_eagerly")
def run_functions_eagerly(run_eagerly: bool) -> None:
    """With True, calling a `tf.function` runs the Python function itself."""
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


@export("config.functions_run_eagerly")
def functions_run_eagerly() -> bool:
    """Whether `tf.function`s run as plain Python."""
    return _run_eagerly


class ConcreteFunction:
    """A traced function for one kind of arguments. Call it with tensors alone."""

    def __init__(
        self,
        name: str,
        graph: FuncGraph,
        traced: control_flow.Traced,
        arguments: list[Tensor],
        structure: Any,
        controls: list[Operation],
    ) -> None:
        self.graph = graph
        self._traced = traced
        self._arguments = arguments
        self.structured_input_signature = structure
        outputs = [tensor for tensor in traced.tensors if tensor is not None]
        captures = graph.captures
        self.captured_inputs = [passed for passed, _ in captures]
        inputs = [*arguments, *[inner for _, inner in captures]]
        self._function = Function(unique_function_name(f"__inference_{name}"), graph, inputs, outputs, controls)
        self._call = DifferentiableFunction(self._function)

    @property
    def name(self) -> str:
        return self._function.name

    @property
    def function_ref(self) -> Any:
        """The function as an attribute of ops that call functions (`tf.raw_ops.If(..., then_branch=this)`)."""
        return self._function.ref

    @property
    def inputs(self) -> list[Tensor]:
        return list(self._function.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        return list(self._function.outputs)

    @property
    def structured_outputs(self) -> Any:
        return nest.map_structure(
            lambda tensor: None if tensor is None else TensorSpec.from_tensor(tensor), self._traced.structure
        )

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls with tensors: by position in order, or by the names of the arguments.

        Raises:
            TypeError: the number of tensors is wrong, or one does not fit.
        """
        flat = [leaf for leaf in nest.flatten((args, kwargs), expand_composites=True) if _is_value(leaf)]
        return self.call_flat(flat)

    def call_flat(self, values: list[Any]) -> Any:
        if len(values) != len(self._arguments):
            raise TypeError(
                f"ConcreteFunction {self.name} takes {len(self._arguments)} tensors but {len(values)} were given."
            )
        tensors = []
        for expected, value in zip(self._arguments, values):
            tensor = convert_to_tensor(value, dtype_hint=expected.dtype)
            if tensor.dtype.base_dtype is not expected.dtype.base_dtype or not expected.static_shape.compatible(
                tensor.static_shape
            ):
                raise TypeError(
                    f"ConcreteFunction {self.name}: the argument {expected.op.name!r} must be {expected.dtype.name}"
                    f"{expected.static_shape}, found {tensor.dtype.name}{tensor.static_shape}."
                )
            tensors.append(tensor)
        results = iter(self._call([*tensors, *self.captured_inputs]))
        leaves = [None if tensor is None else next(results) for tensor in self._traced.tensors]
        return nest.pack_sequence_as(self._traced.structure, leaves, expand_composites=True)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name} at {id(self):#x}>"


def _is_value(leaf: Any) -> bool:
    """Whether an argument is a tensor to the function; other things are part of the function itself."""
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, TensorSpec)) or type(leaf).__module__.startswith("torch")


class PolymorphicFunction:
    """What `tf.function` returns: traces on the first call with each kind of arguments, then reuses the trace."""

    def __init__(self, python_function: Callable[..., Any], input_signature: Any, reduce_retracing: bool) -> None:
        self._python_function = python_function
        self._signature = inspect.signature(python_function)
        self._input_signature = None if input_signature is None else tuple(input_signature)
        if self._input_signature is not None:
            for spec in nest.flatten(self._input_signature):
                if not isinstance(spec, TensorSpec):
                    raise TypeError(
                        f"input_signature must be a possibly nested sequence of TensorSpec objects, got {spec!r}"
                    )
        self._reduce_retracing = reduce_retracing
        self._traces: dict[Any, ConcreteFunction] = {}
        self._relaxed: dict[Any, list[Shape]] = {}
        self._variables: list[weakref.ref[Any]] = []
        self._created = False
        self._lock = threading.RLock()
        self._tracing_count = 0
        self._bound: weakref.WeakKeyDictionary[Any, PolymorphicFunction] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function, updated=())

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._python_function

    @property
    def input_signature(self) -> Any:
        return self._input_signature

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was traced."""
        return self._tracing_count

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        try:
            found = self._bound.get(instance)
        except TypeError:
            found = None
        if found is None:
            method = self._python_function.__get__(instance, owner)
            found = PolymorphicFunction(method, self._input_signature, self._reduce_retracing)
            try:
                self._bound[instance] = found
            except TypeError:  # an instance that cannot be a key keeps its own
                instance.__dict__.setdefault(self._python_function.__name__, found)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _run_eagerly:
            return self._python_function(*args, **kwargs)
        args, kwargs = self._canonical(args, kwargs)
        concrete, values = self._concrete(args, kwargs)
        return concrete.call_flat(values)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, which may be TensorSpecs; for the input signature when there are none."""
        if self._input_signature is not None and not args and not kwargs:
            args = self._input_signature
        args, kwargs = self._canonical(args, kwargs)
        return self._concrete(args, kwargs)[0]

    def _canonical(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by position where the function has a place for them, with its defaults.

        Raises:
            TypeError: they do not fit the function or its input signature.
        """
        bound = self._signature.bind(*args, **kwargs)
        if self._input_signature is not None:
            given = len(bound.args) + len(bound.kwargs)
            if given > len(self._input_signature):
                raise TypeError(
                    f"{self.__name__}() takes {len(self._input_signature)} positional arguments as specified by the "  # type: ignore[attr-defined]
                    f"`input_signature`, but got {given}."
                )
            if given < len(self._input_signature):
                raise TypeError(
                    f"{self._python_function.__name__}() missing arguments of its `input_signature`: got {given} of {len(self._input_signature)}."
                )  # type: ignore[attr-defined]
            return tuple(map(_fitted, self._input_signature, bound.args)), bound.kwargs
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _concrete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ConcreteFunction, list[Any]]:
        leaves = nest.flatten((args, kwargs), expand_composites=True)
        values = [leaf for leaf in leaves if _is_value(leaf)]
        with self._lock:
            specs = self._specs(leaves)
            # A body traced inside of another graph may capture from it, and is good there only.
            target = context.target()
            place = None if context.executing_eagerly() else target
            key = (place, nest.map_structure(lambda _: None, (args, kwargs)).__repr__(), *map(_key, leaves, specs))
            try:
                found = self._traces.get(key)
            except TypeError as error:
                raise TypeError(
                    f"An argument of {self._python_function} is neither a tensor nor hashable: {error}"
                ) from None
            if found is None:
                found = self._traces[key] = self._trace_creating(args, kwargs, specs)
        return found, values

    def _specs(self, leaves: list[Any]) -> list[Any]:
        """For each argument that is a tensor what the trace must accept; None for others."""
        specs: list[Any] = []
        signature = None if self._input_signature is None else nest.flatten(self._input_signature)
        position = 0
        for leaf in leaves:
            if not _is_value(leaf):
                specs.append(None)
                continue
            if signature is not None:
                specs.append(signature[position])
            elif isinstance(leaf, TensorSpec):
                specs.append(leaf)
            elif isinstance(leaf, Tensor):
                specs.append(TensorSpec(leaf.static_shape, leaf.dtype.base_dtype))
            else:
                specs.append(TensorSpec(np.shape(leaf), as_dtype(np.asarray(leaf).dtype)))
            position += 1
        return self._loosened(specs) if self._reduce_retracing else specs

    def _loosened(self, specs: list[Any]) -> list[Any]:
        """With `reduce_retracing`, sizes that have varied before are left open."""
        tensors = [spec for spec in specs if spec is not None]
        key = tuple((spec.dtype, spec.static_shape.rank) for spec in tensors)
        seen = self._relaxed.get(key)
        if seen is None:
            self._relaxed[key] = [spec.static_shape for spec in tensors]
            return specs
        loose = [_common(a, spec.static_shape) for a, spec in zip(seen, tensors)]
        self._relaxed[key] = loose
        shapes = iter(loose)
        return [None if spec is None else TensorSpec(next(shapes), spec.dtype, spec.name) for spec in specs]

    def _trace_creating(self, args: Any, kwargs: Any, specs: list[Any]) -> ConcreteFunction:
        """Traces; variables may be made the first time only, and then the trace is made again without."""
        made: list[Any] = []

        def creator(following: Any, **arguments: Any) -> Any:
            if self._created:
                raise ValueError(
                    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable "
                    "is only created once or created outside tf.function. See "
                    "https://www.tensorflow.org/guide/function#creating_tfvariables for more information."
                )
            variable = following(**arguments)
            made.append(variable)
            return variable

        with variables.variable_creator_scope(creator):
            concrete = self._trace(args, kwargs, specs)
            if made:
                self._created = True
                self._variables.extend(weakref.ref(variable) for variable in made)
                again = self._trace(args, kwargs, specs)
                if not any(variable.initialized_by_function for variable in made):
                    concrete = again
        self._created = True
        return concrete

    def _trace(self, args: Any, kwargs: Any, specs: list[Any]) -> ConcreteFunction:
        self._tracing_count += 1
        name = self._python_function.__name__ if hasattr(self._python_function, "__name__") else "function"
        name = "lambda" if name == "<lambda>" else name
        graph = FuncGraph(name, automatic=True)
        arguments: list[Tensor] = []
        leaves = []
        names = _argument_names(self._signature, args, kwargs)
        for position, (leaf, spec) in enumerate(zip(nest.flatten((args, kwargs), expand_composites=True), specs)):
            if spec is None:
                leaves.append(leaf)
                continue
            tensor = graph.add_input(spec.dtype, spec.static_shape, spec.name or names[position])
            arguments.append(tensor)
            leaves.append(tensor)
        call_args, call_kwargs = nest.pack_sequence_as((args, kwargs), leaves, expand_composites=True)
        traced = control_flow.trace(graph, lambda: _without_ops(self._python_function(*call_args, **call_kwargs)))
        described = nest.pack_sequence_as(
            (args, kwargs),
            [leaf if spec is None else spec for leaf, spec in zip(leaves, specs)],
            expand_composites=True,
        )
        controls = control_flow.control_outputs(graph)
        return ConcreteFunction(name, graph, traced, arguments, described, controls)


def _without_ops(result: Any) -> Any:
    """Operations that a function returns have run when it returns: None to the caller."""
    return nest.map_structure(lambda leaf: None if isinstance(leaf, Operation) else leaf, result)


def _common(a: Shape, b: Shape) -> Shape:
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Shape(None)
    return Shape(x if x == y else None for x, y in zip(a.dims, b.dims))


def _fitted(spec: Any, value: Any) -> Any:
    """An argument as its place in the input signature takes it: plain values become tensors."""
    if isinstance(spec, TensorSpec) and nest.is_nested(value):
        value = convert_to_tensor(value, spec.dtype)
    try:
        nest.assert_same_structure(spec, value, check_types=False)
    except (ValueError, TypeError) as error:
        raise TypeError(f"Structure of Python function inputs does not match input_signature: {error}") from None

    def convert(each: TensorSpec, leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            return leaf
        tensor = leaf if isinstance(leaf, Tensor) else convert_to_tensor(leaf, each.dtype)
        if not each.is_compatible_with(tensor):
            raise TypeError(
                f"Python inputs incompatible with input_signature: expected {each}, found {tensor.dtype.name}{tensor.static_shape}."
            )
        return tensor

    return nest.map_structure(convert, spec, value, check_types=False)


class _Identity:
    """An object as part of a key: equal to itself alone, and forgotten with it."""

    __slots__ = ("_ref", "_target")

    def __init__(self, target: Any) -> None:
        self._target = id(target)
        try:
            self._ref: Any = weakref.ref(target)
        except TypeError:
            self._ref = target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._target == other._target

    def __hash__(self) -> int:
        return self._target


def _key(leaf: Any, spec: Any) -> Any:
    if spec is not None:
        return ("tensor", spec.dtype, spec.static_shape)
    if isinstance(leaf, variables.Variable):
        return ("variable", _Identity(leaf))
    if isinstance(leaf, (bool, int, float, complex, str, bytes, type(None))):
        return (type(leaf).__name__, leaf)
    try:
        hash(leaf)
    except TypeError:
        return ("object", _Identity(leaf))
    return ("object", leaf) if type(leaf).__hash__ is not object.__hash__ else ("object", _Identity(leaf))


def _argument_names(signature: inspect.Signature, args: Any, kwargs: Any) -> list[str]:
    """A name for each leaf of the arguments: that of the parameter it came with."""
    names: list[str] = []
    parameters = list(signature.parameters.values())
    for i, arg in enumerate(args):
        parameter = parameters[min(i, len(parameters) - 1)].name if parameters else "args"
        names.extend([parameter] * len(nest.flatten(arg, expand_composites=True)))
    for key in sorted(kwargs):
        names.extend([key] * len(nest.flatten(kwargs[key], expand_composites=True)))
    return names


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Makes `func` a function that is traced once for each kind of arguments and then runs as one op.

    Tensors (and arrays) among the arguments may have any value; other arguments are part of the trace. Python control flow
    that depends on a tensor's value is not rewritten: use `tf.cond` and `tf.while_loop`.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: TensorSpecs of all arguments; then there is one trace.
        autograph: accepted. Python `if` and `while` on tensors raise an error, whatever it says.
        jit_compile, experimental_compile: accepted; the body runs as it is.
        reduce_retracing, experimental_relax_shapes: leave sizes open that have varied between calls.
        experimental_implements, experimental_autograph_options, experimental_attributes, experimental_follow_type_hints:
            accepted.

    Raises:
        TypeError: the arguments of a call do not fit the signature.
    """
    del autograph, jit_compile, experimental_implements, experimental_autograph_options, experimental_attributes
    del experimental_compile, experimental_follow_type_hints
    relax = reduce_retracing or bool(experimental_relax_shapes)

    def decorate(python_function: Callable[..., Any]) -> PolymorphicFunction:
        return PolymorphicFunction(python_function, input_signature, relax)

    return decorate if func is None else decorate(func)


export("function")(function)
export_constant(__name__, "ConcreteFunction", "types.experimental.ConcreteFunction")
