"""`tf.keras.backend`: what models and losses of programs use beside layers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export, named
from stoker._src.graph import context, scopes, sparse_tensor
from stoker._src.keras import base, learning_phase, sessions
from stoker._src.layers.base import smart_cond
from stoker._src.ops.array import casting, constants, ranges, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops, functional_loops
from stoker._src.ops.control_flow import gradients as control_flow_gradients
from stoker._src.ops.linalg import diagonals
from stoker._src.ops.math import (
    comparison,
)
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.strings import printing
from stoker._src.ops.variables import variable_functions
from stoker._src.ops.variables import variables as variables_variables

_epsilon = 1e-7

# ---- settings -------------------------------------------------------------------------------------------------------


@export("keras.backend.epsilon")
def epsilon() -> float:
    """A small number that keeps divisions and logarithms finite."""
    return _epsilon


@export("keras.backend.set_epsilon")
def set_epsilon(value: float) -> None:
    """Sets what `epsilon` returns."""
    global _epsilon
    _epsilon = value


@export("keras.backend.floatx")
def floatx() -> str:
    """The dtype of weights by default."""
    return base.floatx()


@export("keras.backend.set_floatx")
def set_floatx(value: str) -> None:
    """Sets the dtype of weights: "float16", "float32" or "float64".

    Raises:
        ValueError: it is something else.
    """
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}")
    base.set_default_float(value)


@export("keras.backend.image_data_format")
def image_data_format() -> str:
    """ "channels_last" or "channels_first"."""
    return base.default_data_format()


@export("keras.backend.set_image_data_format")
def set_image_data_format(data_format: str) -> None:
    """Sets the default of layers.

    Raises:
        ValueError: it is not a data format.
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}")
    base.set_default_data_format(data_format)


@export("keras.backend.backend")
def backend() -> str:
    """The name programs ask for: "tensorflow"."""
    return "tensorflow"


@export("keras.backend.clear_session")
def clear_session() -> None:
    """Forgets the graph, the session and the counters of layer names."""
    sessions.close_session()
    base.forget_private_graph()
    if not context.executing_eagerly():
        context.reset_default_graph()


@export("keras.backend.get_uid")
def get_uid(prefix: str = "") -> int:
    """The next number of a name: 1, 2, ..."""
    made = base.layer_name(f"{prefix}")
    return int(made.rsplit("_", 1)[1])


@export("keras.backend.reset_uids")
def reset_uids() -> None:
    """Starts the numbers of names again."""
    graph: Any = base.private_graph() if context.executing_eagerly() else context.get_default_graph()
    graph.keras_names = {}


@export("keras.backend.name_scope")
def name_scope(name: str, default_name: str | None = None, values: Any = None) -> Any:
    """Prefixes the names of ops."""
    return scopes.NameScope(name, default_name, values)


# ---- tensors and variables ------------------------------------------------------------------------------------------


@export("keras.backend.variable")
def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable with an initial value."""
    if hasattr(value, "tocoo"):
        raise NotImplementedError("Sparse variables.")
    made = variables_variables.Variable(
        value,
        dtype=dtypes.as_dtype(dtype or floatx()) if not hasattr(value, "static_shape") or dtype else None,
        name=name,
        constraint=constraint,
        use_resource=True,
    )
    made._uses_learning_phase = False
    return made


@export("keras.backend.constant")
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant."""
    return constants.constant(value, dtype=dtype or floatx(), shape=shape, name=name)


@export("keras.backend.placeholder")
def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A placeholder."""
    if ragged:
        raise NotImplementedError("Ragged placeholders of Keras.")
    shape = (None,) * ndim if shape is None and ndim else shape
    make = sparse_functions.sparse_placeholder if sparse else constants.placeholder
    if context.executing_eagerly():
        with context.enter_graph(base.private_graph()):
            return make(dtype or floatx(), shape=shape, name=name)
    return make(dtype or floatx(), shape=shape, name=name)


@export("keras.backend.is_keras_tensor")
def is_keras_tensor(x: Any) -> bool:
    """Whether a tensor is an input or output of a layer in a network.

    Raises:
        ValueError: it is not a tensor.
    """
    if not hasattr(x, "static_shape"):
        raise ValueError(f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor instance.")
    return hasattr(x, "_keras_history")


@export("keras.backend.is_sparse")
def is_sparse(tensor: Any) -> bool:
    """Whether it is a sparse tensor."""
    return isinstance(tensor, sparse_tensor.SparseTensor)


@export("keras.backend.to_dense")
def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one."""
    return sparse_functions.to_dense(tensor) if is_sparse(tensor) else tensor


@export("keras.backend.shape")
def shape(x: Any) -> Any:
    """The shape as a tensor."""
    return shaping.shape(x)


@export("keras.backend.int_shape")
def int_shape(x: Any) -> Any:
    """The static shape as a tuple, with None for unknown sizes; None if the rank is unknown."""
    return None if x.shape.ndims is None else tuple(x.shape.as_list())


@export("keras.backend.ndim")
def ndim(x: Any) -> int | None:
    """The number of dimensions."""
    return x.shape.ndims


@export("keras.backend.dtype")
def dtype(x: Any) -> str:
    """The name of the dtype."""
    return x.dtype.base_dtype.name


@export("keras.backend.count_params")
def count_params(x: Any) -> int:
    """The number of elements."""
    return int(np.prod(x.shape.as_list()))


@export("keras.backend.eval")
def evaluate(x: Any) -> Any:
    """The value of a tensor or variable."""
    return sessions.get_value(to_dense(x))


@export("keras.backend.cast")
def cast(x: Any, dtype: Any) -> Any:
    """Another dtype."""
    return casting.cast(x, dtype)


@export("keras.backend.cast_to_floatx")
def cast_to_floatx(x: Any) -> Any:
    """The default dtype of weights."""
    return casting.cast(x, floatx()) if hasattr(x, "static_shape") else np.asarray(x, dtype=floatx())


def _filled(name: str, make: Callable[..., Any], doc: str) -> Callable[..., Any]:
    @named(name, doc)
    def filled(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
        value = make(shape, dtype or floatx())
        return value if None in tuple(shape) else variables_variables.Variable(value, name=name, use_resource=True)

    return export(f"keras.backend.{name}")(filled)


zeros = _filled("zeros", shaping.zeros, "A variable of zeros.")
ones = _filled("ones", shaping.ones, "A variable of ones.")


@export("keras.backend.eye")
def eye(size: int, dtype: Any = None, name: str | None = None) -> Any:
    """A variable with the identity matrix."""
    return variable(diagonals.eye(size, dtype=dtype or floatx()), dtype, name)


@export("keras.backend.zeros_like")
def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros of the same shape."""
    return shaping.zeros_like(x, dtype=dtype, name=name)


@export("keras.backend.ones_like")
def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones of the same shape."""
    return shaping.ones_like(x, dtype=dtype, name=name)


@export("keras.backend.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "int32") -> Any:
    """Numbers from start to stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    return casting.cast(ranges.range(start, stop, step), dtype)


def _random(
    name: str, draw: Callable[..., Any], first: str, second: str, defaults: tuple[float, float], doc: str
) -> Any:
    @named(name, doc)
    def drawn(shape: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip((first, second, "dtype", "seed"), args))
        given.update(kwargs)
        seed = given.get("seed")
        seed = np.random.randint(10_000_000) if seed is None else seed
        return draw(
            shape,
            given.get(first, defaults[0]),
            given.get(second, defaults[1]),
            dtype=given.get("dtype") or floatx(),
            seed=seed,
        )

    return export(f"keras.backend.{name}")(drawn)


random_normal = _random("random_normal", uniform_normal.random_normal, "mean", "stddev", (0.0, 1.0), "Normal numbers.")
random_uniform = _random(
    "random_uniform", uniform_normal.random_uniform, "minval", "maxval", (0.0, 1.0), "Uniform numbers."
)
truncated_normal = _random(
    "truncated_normal",
    uniform_normal.truncated_normal,
    "mean",
    "stddev",
    (0.0, 1.0),
    "Normal numbers within two standard deviations.",
)


@export("keras.backend.random_binomial")
def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> Any:
    """Ones with probability p."""
    seed = np.random.randint(10_000_000) if seed is None else seed
    kind = dtype or floatx()
    return selection.where(
        uniform_normal.random_uniform(shape, dtype=kind, seed=seed) <= p,
        shaping.ones(shape, kind),
        shaping.zeros(shape, kind),
    )


@export("keras.backend.update")
def update(x: Any, new_x: Any) -> Any:
    """Assigns a value."""
    return variable_functions.assign(x, new_x)


@export("keras.backend.update_add")
def update_add(x: Any, increment: Any) -> Any:
    """Adds to a variable."""
    return variable_functions.assign_add(x, increment)


@export("keras.backend.update_sub")
def update_sub(x: Any, decrement: Any) -> Any:
    """Subtracts from a variable."""
    return variable_functions.assign_sub(x, decrement)


@export("keras.backend.moving_average_update")
def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """Moves a variable towards a value: x = x * momentum + value * (1 - momentum)."""
    return variable_functions.assign_sub(x, (x - casting.cast(value, x.dtype.base_dtype)) * (1 - momentum))


# ---- control --------------------------------------------------------------------------------------------------------


@export("keras.backend.gradients")
def gradients(loss: Any, variables: Any) -> Any:
    """The gradients of a loss in a graph."""
    return control_flow_gradients.gradients(loss, variables)


@export("keras.backend.stop_gradient")
def stop_gradient(variables: Any) -> Any:
    """A value that counts as a constant."""
    if isinstance(variables, (list, tuple)):
        return [shaping.stop_gradient(each) for each in variables]
    return shaping.stop_gradient(variables)


@export("keras.backend.switch")
def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, by a condition for all or for each example."""
    if condition.static_shape.rank == 0:
        branches = [
            each if callable(each) else (lambda value=each: value) for each in (then_expression, else_expression)
        ]
        return branches_and_loops.cond(casting.cast(condition, dtypes.bool_), branches[0], branches[1])
    then: Any = then_expression() if callable(then_expression) else then_expression
    otherwise: Any = else_expression() if callable(else_expression) else else_expression
    wider = (then.static_shape.rank or 0) - (condition.static_shape.rank or 0)
    for _ in range(wider):
        condition = shaping.expand_dims(condition, -1)
    condition = (
        comparison.logical_and(casting.cast(condition, dtypes.bool_), shaping.ones_like(then, dtype=dtypes.bool_))
        if wider
        else casting.cast(condition, dtypes.bool_)
    )
    return selection.where(condition, then, otherwise)


@export("keras.backend.in_train_phase")
def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x in training, and `alt` otherwise."""
    flag = learning_phase.resolved(training)
    made = (each if callable(each) else (lambda value=each: value) for each in (x, alt))
    return smart_cond(flag, *made)


@export("keras.backend.in_test_phase")
def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`alt` in training, and x otherwise."""
    return in_train_phase(alt, x, training)


@export("keras.backend.map_fn")
def map_fn(fn: Any, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """A function of each element."""
    return functional_loops.map_fn(fn, elems, name=name, dtype=dtype)


@export("keras.backend.foldl")
def foldl(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Reduces elements from the left."""
    return functional_loops.foldl(fn, elems, initializer=initializer, name=name)


@export("keras.backend.foldr")
def foldr(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Reduces elements from the right."""
    return functional_loops.foldr(fn, elems, initializer=initializer, name=name)


@export("keras.backend.print_tensor")
def print_tensor(x: Any, message: str = "") -> Any:
    """Prints a value when it is computed."""
    if context.executing_eagerly():
        printing.print_v2(message, x)
        return x
    with scopes.control_dependencies([printing.print_v2(message, x)]):
        return shaping.identity(x)


@export("keras.backend.manual_variable_initialization")
def manual_variable_initialization(value: bool) -> None:
    """Whether the program initializes variables itself."""
    sessions.set_manual_initialization(value)


class Function:
    """A function of tensors in a graph: arrays in, arrays out."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any) -> None:
        self.inputs, self.outputs = list(inputs), outputs
        self._updates = [
            getattr(each, "op", each)
            for each in (
                variable_functions.assign(*each) if isinstance(each, tuple) else each for each in updates or ()
            )
        ]

    def __call__(self, inputs: Any) -> Any:
        values = nest.flatten(inputs)
        if len(values) != len(self.inputs):
            raise ValueError(f"The function takes {len(self.inputs)} values, but {len(values)} were given.")
        feeds = dict(zip(self.inputs, values))
        feeds = {key: value for key, value in feeds.items() if base.is_symbolic(key)}
        flat = nest.flatten(self.outputs)
        found = sessions.get_session().run([*flat, *self._updates], feeds)[: len(flat)]
        return nest.pack_sequence_as(self.outputs, found)


@export("keras.backend.function")
def function(inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any) -> Any:
    """A function from arrays to arrays, by the tensors of a graph or of a network."""
    if kwargs:
        raise ValueError(f"Unknown arguments of a function: {sorted(kwargs)}")
    if not context.executing_eagerly():
        return Function(nest.flatten(inputs), outputs, updates)
    if updates:
        raise ValueError("`updates` argument is not supported during eager execution.")
    model = base.find("models", "Model")(inputs=inputs, outputs=outputs)

    @functools.wraps(function)
    def call(values: Any) -> Any:
        return nest.map_structure(
            lambda each: each.numpy(), model(values if len(nest.flatten(values)) > 1 else nest.flatten(values)[0])
        )

    return call
