"""`tf.function`: traces a Python function once per kind of arguments, and then calls the trace as one op."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker._src.base import forking, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.variables import creators, variables
from stoker._src.runtime.autograph import convert
from stoker._src.runtime.autograph.public import options_for
from stoker._src.runtime.autograph.user_errors import in_user_code
from stoker._src.runtime.functions.arguments import Given, Identity, Parameters, leaf_names
from stoker._src.runtime.functions.concrete_function import ConcreteFunction

_run_eagerly = False


@export("config.run_functions_eagerly", v1="config.experimental_run_functions_eagerly")
def run_functions_eagerly(run_eagerly: bool) -> None:
    """With True, calling a `tf.function` runs the Python function directly."""
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


@export("config.functions_run_eagerly")
def functions_run_eagerly() -> bool:
    """Whether `tf.function`s run as plain Python."""
    return _run_eagerly


class _Traces:
    """The traces of one Python function, or of one method of one object."""

    def __init__(self) -> None:
        self.lock = forking.rlock()
        self.count = 0
        self.created = False  # variables may be created only during the first trace
        self._found: dict[Any, ConcreteFunction] = {}
        self._by_kind: dict[Any, list[tuple[tuple[Shape, ...], ConcreteFunction]]] = {}

    def find(self, kind: Any, shapes: tuple[Shape, ...]) -> ConcreteFunction | None:
        """Returns the most specific trace that accepts tensors of these shapes."""
        found = self._found.get((kind, shapes))
        if found is None:
            fitting = [
                (sum(_open_sizes(shape) for shape in wanted), i, trace)
                for i, (wanted, trace) in enumerate(self._by_kind.get(kind, ()))
                if all(branches_and_loops.holds(a, b) for a, b in zip(wanted, shapes))
            ]
            if fitting:
                found = self._found[kind, shapes] = min(fitting, key=lambda each: each[:2])[2]
        return found

    def keep(self, kind: Any, shapes: tuple[Shape, ...], trace: ConcreteFunction) -> None:
        self._found[kind, shapes] = trace
        self._by_kind.setdefault(kind, []).append((shapes, trace))

    def loosened(self, kind: Any, shapes: tuple[Shape, ...]) -> list[Shape]:
        """Generalizes the shapes: dimensions that differ from those of existing traces become unknown."""
        loose = list(shapes)
        for known, _ in self._by_kind.get(kind, ()):
            loose = [_common(a, b) for a, b in zip(known, loose)]
        return loose

    def all(self) -> list[ConcreteFunction]:
        return [trace for traces in self._by_kind.values() for _, trace in traces]


def _open_sizes(shape: Shape) -> int:
    """Measures how unspecific a shape is. An unknown rank counts more than any number of unknown dimensions."""
    return 1000 if shape.dims is None else sum(size is None for size in shape.dims)


@dataclass(frozen=True)
class _Options:
    """The options of a `tf.function`.

    Attributes:
        input_signature: TensorSpecs of the arguments, or None.
        reduce_retracing: whether dimensions that differ between calls become unknown.
        autograph: how to convert Python control flow; None leaves it unchanged.
        attributes: the attributes of the FunctionDef.
    """

    input_signature: Any
    reduce_retracing: bool
    autograph: convert.Options | None
    attributes: dict[str, Any]


@export(v2=("types.experimental.PolymorphicFunction", "types.experimental.GenericFunction"))
class PolymorphicFunction(Trackable):
    """The result of `tf.function`. It traces on the first call with each kind of arguments and then reuses the trace."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, python_function: Callable[..., Any], options: _Options) -> None:
        self._python_function = python_function
        self._options = options
        self._traces = _Traces()
        self._by_instance: dict[int, tuple[weakref.ref[Any], _Traces]] = {}
        self._method_parameters: Parameters | None = None
        self._parameters = Parameters(python_function, options.input_signature)
        functools.update_wrapper(self, python_function, updated=())

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._python_function

    @property
    def input_signature(self) -> Any:
        return self._parameters.specs

    def concrete_functions(self) -> list[ConcreteFunction]:
        """Returns the traces that can be saved: those of eager mode that capture no tensors of a graph."""
        return [trace for trace in self._traces.all() if trace.captures_values_only()]

    def experimental_get_tracing_count(self) -> int:
        """Returns how often the Python function was traced."""
        return self._traces.count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Returns the signatures of all traces."""
        return "\n\n".join(trace.pretty_printed_signature(verbose) for trace in self._traces.all())

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        method = self._python_function.__get__(instance, owner)
        if self._method_parameters is None:
            self._method_parameters = Parameters(method, self._options.input_signature)
        bound = PolymorphicFunction.__new__(PolymorphicFunction)
        bound.__dict__.update(self.__dict__)
        bound._python_function = bound.__wrapped__ = method
        bound._parameters = self._method_parameters
        bound._traces = self._traces_of(instance)
        return bound

    def _traces_of(self, instance: Any) -> _Traces:
        """Returns the traces of a method for one object. They are dropped when the object is collected."""
        key = id(instance)
        found = self._by_instance.get(key)
        if found is None or found[0]() is not instance:
            try:
                ref = weakref.ref(instance, lambda _: self._by_instance.pop(key, None))
            except TypeError:  # no weak reference is possible, so the end of its life cannot be observed
                return _Traces()
            found = self._by_instance[key] = ref, _Traces()
        return found[1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _run_eagerly:
            return self._python_function(*args, **kwargs)
        given = self._parameters.bind(args, kwargs)
        return self._concrete(given).call_flat(given.values)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Returns the trace for these arguments, which may be TensorSpecs, or for the input signature if there are none."""
        if self._parameters.specs is not None and not args and not kwargs:
            args = self._parameters.specs
        return self._concrete(self._parameters.bind(args, kwargs))

    def _concrete(self, given: Given) -> ConcreteFunction:
        traces = self._traces
        with traces.lock:
            # A body traced inside another graph may capture tensors from it, and is then valid only in that graph.
            # Without captured tensors it is valid everywhere within the same outermost graph, or everywhere in eager mode.
            outermost = context.outermost_context()
            places: list[Any] = [None if outermost is None else Identity(outermost)]
            if not context.executing_eagerly():
                places.append(Identity(context.target()))
            for place in places:
                found = traces.find((place, given.kind), given.shapes)
                if found is not None:
                    return found
            if self._options.reduce_retracing:
                given.with_shapes(traces.loosened((places[0], given.kind), given.shapes))
            made = self._trace_creating(given)
            place = places[0] if made.captures_values_only() else places[-1]
            traces.keep((place, given.kind), given.shapes, made)
            return made

    def _trace_creating(self, given: Given) -> ConcreteFunction:
        """Traces the function. If the first trace creates variables, the function is traced a second time; later traces must not create any."""
        traces = self._traces
        made: list[Any] = []

        def creator(following: Any, **arguments: Any) -> Any:
            if traces.created:
                raise ValueError(
                    "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable "
                    "is only created once or created outside tf.function. See "
                    "https://www.tensorflow.org/guide/function#creating_tfvariables for more information."
                )
            variable = following(**arguments)
            made.append(variable)
            return variable

        with creators.variable_creator_scope(creator):
            concrete = self._trace(given)
            if made:
                traces.created = True
                again = self._trace(given)
                if not any(variable.initialized_by_function for variable in made):
                    concrete = again
        traces.created = True
        return concrete

    def _trace(self, given: Given) -> ConcreteFunction:
        self._traces.count += 1
        name = getattr(self._python_function, "__name__", "function")
        name = "lambda" if name == "<lambda>" else name
        graph = FuncGraph(name, automatic=True)
        names = leaf_names(self._parameters, given)
        arguments: list[Tensor] = []
        leaves = list(given.leaves)
        for i, spec in enumerate(given.specs):
            if spec is not None:
                leaves[i] = graph.add_input(spec.dtype, spec.static_shape, spec.name or names[i])
                arguments.append(leaves[i])

        def body() -> Any:
            args, kwargs = given.packed(leaves)
            with context.converting(self._options.autograph is not None):
                return self._checked(self._run(args, kwargs))

        return ConcreteFunction(
            name,
            graph,
            branches_and_loops.trace(graph, body),
            arguments,
            given.described(names),
            branches_and_loops.control_outputs(graph),
            self._parameters,
            self._options.attributes,
        )

    def _run(self, args: Any, kwargs: Any) -> Any:
        """Runs the Python function, converted by autograph if possible. Errors then point to the user's lines."""
        function = self._python_function
        if self._options.autograph is not None:
            function = convert.converted(function, self._options.autograph)
        if function is self._python_function:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            told = in_user_code(error)
            if told is error:
                raise
            raise told from error.__cause__

    def _checked(self, result: Any) -> Any:
        """Converts the results of a function to tensors. An operation has already run, so the caller gets None for it.

        Raises:
            TypeError: a result cannot be converted to a tensor.
        """

        def convert_leaf(leaf: Any) -> Any:
            if leaf is None or isinstance(leaf, Operation):
                return None
            if nest.flatten(leaf, expand_composites=True) != [leaf] or isinstance(leaf, (Tensor, variables.Variable)):
                return leaf
            try:
                return convert_to_tensor(leaf)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    "To be compatible with tf.function, Python functions must return zero or more Tensors or ExtensionTypes or "
                    f"None values; in compilation of {self._python_function}, found return value of type "
                    f"{type(leaf).__name__}, which is not a Tensor or ExtensionType."
                ) from error

        return nest.map_structure(convert_leaf, result)


def _common(a: Shape, b: Shape) -> Shape:
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Shape(None)
    return Shape(x if x == y else None for x, y in zip(a.dims, b.dims))


# The names that TensorFlow accepts in `experimental_attributes`.
_ATTRIBUTES = frozenset(
    (
        "_implements",
        "_noinline",
        "api_implements",
        "api_preferred_device",
        "disable_summaries_at_runtime",
        "go_backwards",
        "runtime_constant_optimization",
        "time_major",
    )
)


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
    """Turns `func` into a function that is traced once per kind of arguments and then runs as one op.

    Tensors and arrays among the arguments may have any value; other arguments are constants of the trace. Python control flow
    that depends on a tensor's value becomes control flow in the graph (`runtime/autograph`).

    Args:
        func: the function. If it is omitted, a decorator is returned.
        input_signature: TensorSpecs of all arguments. The function then has a single trace.
        autograph: whether to convert Python control flow. With False, a tensor as a Python condition is an error.
        jit_compile, experimental_compile: recorded in the FunctionDef; they do not change how the body runs.
        reduce_retracing, experimental_relax_shapes: dimensions that have varied between calls become unknown.
        experimental_autograph_options: one or several `tf.autograph.experimental.Feature`.
        experimental_implements, experimental_attributes: attributes of the FunctionDef.
        experimental_follow_type_hints: no effect, as in TensorFlow.

    Raises:
        TypeError: the input signature or the arguments of a call do not fit the function.
        ValueError: an attribute is not valid for functions.
    """
    del experimental_follow_type_hints
    attributes = dict(experimental_attributes or {})
    for name in attributes:
        if name not in _ATTRIBUTES:
            raise ValueError(f"`{name} is not supported by tf.function as an attribute.")
    if experimental_implements is not None:
        attributes["_implements"] = experimental_implements
    compiled = experimental_compile if jit_compile is None else jit_compile
    if compiled is not None:
        attributes["_XlaMustCompile"] = bool(compiled)
    options = _Options(
        input_signature,
        reduce_retracing or bool(experimental_relax_shapes),
        options_for(experimental_autograph_options) if autograph else None,
        attributes,
    )

    def decorate(python_function: Callable[..., Any]) -> PolymorphicFunction:
        return PolymorphicFunction(python_function, options)

    return decorate if func is None else decorate(func)


export("function")(function)
