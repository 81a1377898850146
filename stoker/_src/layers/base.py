"""`Layer`: a function with variables, scoped and named as in TensorFlow 1.x."""

from __future__ import annotations

import copy
import operator
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import EXPORTS, export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables.creators import VariableAggregation, VariableSynchronization
from stoker._src.ops.variables.variables import Variable


@export(v1=("layers.InputSpec", "keras.layers.InputSpec"), v2="keras.layers.InputSpec")
class InputSpec:
    """The requirements of a layer on its input: dtype, shape, rank, and sizes of axes."""

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = None if shape is None else tuple(as_shape(shape))
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = {} if axes is None else {int(axis): size for axis, size in axes.items()}
        self.allow_last_axis_squeeze, self.name, self.optional = allow_last_axis_squeeze, name, optional

    def check(self, tensor: Any, position: int, layer: str) -> None:
        """Raises ValueError if an input does not match. Unknown sizes always match."""
        start = f'Input {position} of layer "{layer}" is incompatible with the layer: '
        shape: Shape = tensor.static_shape
        rank = shape.rank
        if rank is None:
            return
        whole = f"Full shape received: {tuple(shape)}"
        if self.ndim is not None and self.shape is None and rank != self.ndim:
            raise ValueError(f"{start}expected ndim={self.ndim}, found ndim={rank}. {whole}")
        if self.max_ndim is not None and rank > self.max_ndim:
            raise ValueError(f"{start}expected max_ndim={self.max_ndim}, found ndim={rank}")
        if self.min_ndim is not None and rank < self.min_ndim:
            raise ValueError(f"{start}expected min_ndim={self.min_ndim}, found ndim={rank}. {whole}")
        if self.dtype is not None and tensor.dtype.base_dtype.name != self.dtype:
            raise ValueError(f"{start}expected dtype={self.dtype}, found dtype={tensor.dtype.base_dtype!r}")
        for axis, size in self.axes.items():
            found = shape.dims[axis]  # type: ignore[index]
            if size is not None and found not in (size, None):
                raise ValueError(
                    f"{start}expected axis {axis} of input shape to have value {size}, but received input with shape {tuple(shape)}"
                )
        if self.shape is not None and not Shape(self.shape).compatible(shape):
            raise ValueError(f"{start}expected shape={self.shape}, found shape={tuple(shape)}")


def snake_case(name: str) -> str:
    """`BatchNormalization` -> `batch_normalization`, `Conv2DTranspose` -> `conv2d_transpose`."""
    parts = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    plain = re.sub(r"([a-z])([A-Z])", r"\1_\2", parts).lower()
    return plain if plain[0] != "_" else "private" + plain


def known_flag(flag: Any) -> bool | None:
    """The flag as a Python bool if its value is statically known, else None."""
    if isinstance(flag, Variable):
        return None
    if isinstance(flag, Tensor):
        value = constant_value(flag)
        return None if value is None else bool(value)
    if flag is not None and not (isinstance(flag, (int, float, np.generic)) and flag in (0, 1)):
        raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Received: {type(flag)}")
    return bool(flag)


def smart_cond(flag: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """The result of one of two functions. Both are built only if the flag is not statically known."""
    known = known_flag(flag)
    if known is not None:
        return true_fn() if known else false_fn()
    return branches_and_loops.cond(flag, true_fn, false_fn)


@export(v1="layers.Layer")
class Layer(Trackable):
    """A function with variables. It is created once and called any number of times.

    Subclasses create variables in `build` (with `add_weight`) and compute in `call`.

    Args:
        trainable: whether its variables are added to TRAINABLE_VARIABLES.
        name: the name of its scope; by default derived from the class, and made unique on the first call.
        dtype: the dtype of its variables; by default that of the first input.
        activity_regularizer: a function of the output. Its mean over the batch is a regularization loss.
    """

    _lists_updates = True  # whether a call creates the collection UPDATE_OPS, as in `tf.layers` but not in Keras

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        *,
        activity_regularizer: Any = None,
        _scope: Any = None,
        _reuse: Any = None,
    ) -> None:
        self._trainable = trainable
        self._dtype: Any = None if dtype is None else as_dtype(dtype).base_dtype
        self._activity_regularizer = as_regularizer(activity_regularizer)
        self._reuse = _reuse
        self.built = False
        self.input_spec: Any = None  # an InputSpec, or a list with one for each input
        self._weights: list[Any] = []
        self._marked_trainable: set[int] = set()
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._conditional: set[int] = set()  # losses that depend on inputs
        self._seen: list[Any] = []  # the inputs of all calls
        self._graph: Any = None
        self._current_scope: Any = None
        self._base_name = name or snake_case(type(self).__name__)
        self._name = name or _unique_layer_name(self._base_name)
        self._scope: Any = None
        if _scope is not None:
            with variable_scope.variable_scope(_scope) as captured:
                self._scope = captured

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> str | None:
        """The name of the dtype of its variables, if it is known."""
        return None if self._dtype is None else self._dtype.name

    @property
    def graph(self) -> Any:
        return self._graph

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            ValueError: the layer has not been called yet.
        """
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been used yet. The scope '
                "name is determined the first time the layer instance is called."
            )
        return self._scope.name

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value

    @property
    def trainable_weights(self) -> list[Any]:
        return [w for w in self._weights if id(w) in self._marked_trainable] if self._trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        chosen = {id(w) for w in self.trainable_weights}
        return [w for w in self._weights if id(w) not in chosen]

    @property
    def weights(self) -> list[Any]:
        return self.trainable_weights + self.non_trainable_weights

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    @property
    def losses(self) -> list[Any]:
        """The regularization losses of its variables and outputs."""
        return list(self._losses)

    @property
    def updates(self) -> list[Any]:
        """The ops to run with every training step."""
        return list(self._updates)

    @property
    def activity_regularizer(self) -> Any:
        return self._activity_regularizer

    def count_params(self) -> int:
        """The number of elements in its variables.

        Raises:
            ValueError: the layer is not built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self._name}, but the layer isn't built. You can build it manually via: "
                f"`{self._name}.build(batch_input_shape)`."
            )
        return sum(weight.static_shape.size or 0 for weight in self._weights)

    def get_weights(self) -> list[Any]:
        """The values of its variables as arrays. In a graph, they are read in the default session."""
        return [self._weight_value(weight) for weight in self.weights]

    def _weight_value(self, weight: Any) -> Any:
        return weight.numpy() if context.executing_eagerly() else weight.eval()

    def set_weights(self, weights: Any) -> None:
        """Assigns arrays to its variables, in the order of `weights`.

        Raises:
            ValueError: the number of arrays or a shape does not match.
        """
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self._name}" with a weight list of length {len(weights)}, but the '
                f"layer was expecting {len(mine)} weights. Provided weights: {str(weights)[:50]}..."
            )
        for weight, value in zip(mine, weights):
            if not weight.static_shape.compatible(Shape(np.shape(value))):
                raise ValueError(
                    f"Layer weight shape {tuple(weight.static_shape)} not compatible with provided weight shape {np.shape(value)}"
                )
        for weight, value in zip(mine, weights):
            weight.load(value) if not context.executing_eagerly() else weight.assign(value)

    @property
    def _variable_dtype(self) -> Any:
        return dtypes.float32 if self._dtype is None else self._dtype

    # -- for subclasses ------------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Creates the variables. It is called once, with the shape of the first input."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output shape for an input of `input_shape`."""
        raise NotImplementedError(f"{type(self).__name__} does not compute its output shape.")

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        partitioner: Any = None,
    ) -> Any:
        """Creates a variable of the layer like `tf.get_variable` in the layer's scope.

        Raises:
            ValueError: the variable is trainable and has ON_READ synchronization.
        """
        if synchronization == VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError("Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables.")  # fmt: skip
            trainable = False
        elif trainable is None:
            trainable = True
        penalties: list[Any] = []
        regularizer = as_regularizer(regularizer)

        def penalty(variable: Any) -> Any:
            penalties.append(regularizer(variable))
            return penalties[-1]

        if any(isinstance(size, bool) for size in (shape if isinstance(shape, (list, tuple)) else ())):
            raise TypeError(f"The sizes of a variable are integers, not bools. Received: shape={shape}")
        if self._current_scope is None:  # `build` was called directly
            self._find_scope(None)
        opened = nullcontext() if self._current_scope is not None else self._opened()
        with opened:
            weight = variable_scope.get_variable(
                name,
                shape,
                dtype=self._variable_dtype if dtype is None else dtype,
                initializer=as_initializer(initializer),
                regularizer=None if regularizer is None else penalty,
                trainable=trainable and self._trainable,
                constraint=constraint,
                use_resource=use_resource,
                synchronization=synchronization,
                aggregation=aggregation,
                partitioner=partitioner,
            )
        self._losses.extend(each for each in penalties if each is not None)
        self._weights.append(weight)
        if isinstance(weight, Trackable):
            self._track_trackable(weight, name, overwrite=True)
        if trainable:
            self._marked_trainable.add(id(weight))
        return weight

    add_variable = add_weight

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds regularization losses of this layer. They depend on `inputs`, if given."""
        added = [
            each if callable(each) or isinstance(each, Variable) else convert_to_tensor(each, dtype_hint=dtypes.float32)
            for each in nest.flatten(losses)
            if each is not None
        ]
        for each in added:
            if getattr(each, "dtype", None) is dtypes.string:
                raise TypeError(f"A loss is a number, not {each}.")
        self._losses.extend(added)
        if inputs is not None:
            self._conditional.update(map(id, added))
        if context.executing_eagerly():
            return  # collections belong to graphs
        for each in added:
            context.get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, each)

    def add_update(self, updates: Any) -> None:
        """Adds ops to run with every training step to UPDATE_OPS. Does nothing if the layer is not trainable."""
        if context.executing_eagerly() or not self._trainable:
            return
        for each in nest.flatten(updates):
            op = each.op if not hasattr(each, "_control_inputs") else each
            self._updates.append(op)
            context.get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, op)

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The losses that depend on `inputs`; for None, those that depend only on variables."""
        if inputs is None:
            return [each for each in self._losses if id(each) not in self._conditional]
        return [each for each in self._losses if id(each) in self._conditional and follows(each, inputs)]

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on `inputs`; for None, those that depend on no input of the layer."""
        if inputs is None:
            return [each for each in self._updates if not follows(each, self._seen)]
        return [each for each in self._updates if follows(each, inputs)]

    # -- calling -------------------------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """The layer's variable scope, without a name scope."""
        reuse = True if self.built and not context.executing_eagerly() else self._reuse
        with variable_scope.variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            before, self._current_scope = self._current_scope, scope
            try:
                yield
            finally:
                self._current_scope = before

    def _find_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            opened = variable_scope.variable_scope(self._base_name if scope is None else scope)
        else:
            opened = variable_scope.variable_scope(scope, default_name=self._base_name)
        with opened as captured:
            self._scope = captured

    def __call__(self, inputs: Any, *args: Any, scope: Any = None, **kwargs: Any) -> Any:
        inputs = nest.map_structure(_as_tensor, inputs)
        self._find_scope(scope)
        if not context.executing_eagerly():
            graph = variable_scope.program_graph()
            if self._graph is not None and self._graph is not graph and not graph.building_function:
                raise ValueError("Input graph and Layer graph are not the same.")
            self._graph = self._graph or graph
        with self._opened(), name_scope(self._scope.original_name_scope or None):
            flat = nest.flatten(inputs)
            if not self.built:
                if self._dtype is None:
                    first = getattr(flat[0], "dtype", None) if flat else None
                    self._dtype = dtypes.float32 if first is None else first.base_dtype
                self._check(flat)
                shapes = nest.map_structure(lambda x: getattr(x, "shape", None), inputs)
                self.build(shapes)
                self.built = True
            self._check(flat)
            if not context.executing_eagerly():
                self._seen.extend(flat)
            outputs = self.call(inputs, *args, **kwargs)
            if self._lists_updates and not context.executing_eagerly():
                variable_scope.program_graph().get_collection_ref(
                    GraphKeys.UPDATE_OPS
                )  # creates the collection, even if it stays empty
            if self._activity_regularizer is not None:
                self._regularize_outputs(inputs, outputs)
            return outputs

    apply = __call__

    def _check(self, inputs: list[Any]) -> None:
        if self.input_spec is None:
            return
        specs = self.input_spec if isinstance(self.input_spec, (list, tuple)) else [self.input_spec]
        for each in inputs:
            if not hasattr(each, "static_shape"):
                raise TypeError(
                    f"Inputs to a layer should be tensors. Got {str(each)!r} (of type {type(each)}) as input for layer {self._name!r}."
                )
        if len(specs) != len(inputs):
            raise ValueError(
                f'Layer "{self._name}" expects {len(specs)} input(s), but it received {len(inputs)} input tensors. Inputs '
                f"received: {inputs}"
            )
        for position, (spec, tensor) in enumerate(zip(specs, inputs)):
            spec.check(tensor, position, self._name)

    def _regularize_outputs(self, inputs: Any, outputs: Any) -> None:
        for output in nest.flatten(outputs):
            with name_scope("ActivityRegularizer"):
                loss = self._activity_regularizer(output)
                batch = casting.cast(shaping.shape(output)[0], loss.dtype.base_dtype)
                self.add_loss(loss / batch, inputs=inputs)

    def __deepcopy__(self, memo: Any) -> Layer:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            setattr(made, key, _with_layers_copied(value, memo))
        return made


def _with_layers_copied(value: Any, memo: Any) -> Any:
    """A copy of lists, tuples and dictionaries, and of the layers in them. Variables and everything else are shared."""
    if isinstance(value, Layer):
        return copy.deepcopy(value, memo)
    if type(value) in (list, tuple):
        return type(value)(_with_layers_copied(each, memo) for each in value)
    if type(value) is dict:
        return {key: _with_layers_copied(each, memo) for key, each in value.items()}
    return value


def called_once(layer: type[Layer], arguments: dict[str, Any]) -> Any:
    """Creates a layer and calls it on `inputs`. This implements the functions of `tf.layers`.

    Args:
        layer: the layer class.
        arguments: the `locals()` of the function: the layer's arguments and `inputs`. They may include `training` (passed to
            the call), `reuse` (of the variable scope `name`) and the class itself.
    """
    given = {name: value for name, value in arguments.items() if value is not layer}
    inputs = given.pop("inputs")
    chosen = {"training": given.pop("training")} if "training" in given else {}
    if "reuse" in given:
        given.update(_scope=given["name"], _reuse=given.pop("reuse"))
    return layer(**given).apply(inputs, **chosen)


def follows(target: Any, sources: Any) -> bool:
    """Whether a tensor or op depends on one of the tensors `sources`."""
    wanted = {id(each) for each in nest.flatten(sources)}
    waiting, met = [getattr(target, "op", target)], set()
    while waiting:
        op = waiting.pop()
        if id(op) in met or not hasattr(op, "_inputs"):
            continue
        met.add(id(op))
        if any(id(tensor) in wanted for tensor in op._inputs):
            return True
        waiting.extend(tensor.op for tensor in op._inputs)
    return False


def _as_tensor(value: Any) -> Any:
    """Converts arrays and numbers to tensors. Other inputs are returned unchanged."""
    return convert_to_tensor(value) if isinstance(value, (np.ndarray, np.generic, int, float)) else value


def _unique_layer_name(base: str) -> str:
    """`dense_1`, `dense_2`, ...: a name for the layer object that is unique in its graph."""
    graph = context.get_default_graph()
    counts = getattr(graph, "layer_names", None)
    if counts is None:
        counts = graph.layer_names = {}
    counts[base] = count = counts.get(base, 0) + 1
    return f"{base}_{count}"


def as_initializer(initializer: Any) -> Any:
    """Resolves an initializer: an instance, a class, or a name in `tf.initializers` ("glorot_uniform", "GlorotUniform")."""
    if isinstance(initializer, str):
        return _named("initializer", f"initializers.{snake_case(initializer)}", initializer)()
    return initializer() if isinstance(initializer, type) else initializer


def as_regularizer(regularizer: Any) -> Any:
    """Resolves a regularizer: an instance or a name ("l2")."""
    if isinstance(regularizer, str):
        return _named("regularizer", f"keras.regularizers.{regularizer.lower()}", regularizer)()
    if regularizer is not None and not callable(regularizer):
        raise ValueError(f"Could not interpret regularizer identifier: {regularizer}")
    return regularizer


_NOT_IN_NN = {"exponential": "math.exp", "mish": None, "crelu": None}


def linear(x: Any) -> Any:
    """The identity activation."""
    return x


def as_activation(activation: Any) -> Any:
    """Resolves an activation: a function, or a name in `tf.nn` ("relu"); `linear` for None.

    Raises:
        TypeError: the argument is not an activation.
        ValueError: the name is unknown.
    """
    if callable(activation):
        return activation
    if activation is None or activation == "linear":
        return linear
    if not isinstance(activation, str):
        raise TypeError(f"Could not interpret activation function identifier: {activation}")
    return _named("activation function", _NOT_IN_NN.get(activation, f"nn.{activation}"), activation)


def _named(kind: str, name: str | None, given: str) -> Any:
    found = EXPORTS["v1"].get(name or "")
    if found is None:
        raise ValueError(f"Unknown {kind}: {given!r}.")
    return getattr(sys.modules[found[0]], found[1])


def spatial_tuple(value: Any, count: int, name: str, *, allow_zero: bool = False) -> tuple[int, ...]:
    """One number per spatial dimension. A single number is repeated.

    Raises:
        ValueError: the count is wrong, or a number is not a positive integer.
    """
    least = 0 if allow_zero else 1
    many = hasattr(value, "__iter__") and (
        not isinstance(value, Tensor) or (context.executing_eagerly() and value.ndim)
    )
    values = (value,) * count if isinstance(value, int) else tuple(value) if many else ()
    if len(values) != count or any(not isinstance(v, int) or v < least for v in map(_plain_int, values)):
        raise ValueError(f"The `{name}` argument must be a tuple of {count} integers. Received: {value}")
    return tuple(_plain_int(v) for v in values)


def _plain_int(value: Any) -> Any:
    """The integer in an array or tensor of integers; other values unchanged."""
    kind = getattr(value, "dtype", None)
    return operator.index(value) if kind is not None and as_dtype(kind).is_integer and not value.ndim else value


def checked_count(value: Any, name: str) -> int | None:
    """Checks a number of filters. None is reported later, when the variable is created.

    Raises:
        TypeError: the value is not an integer.
        ValueError: the value is not positive.
    """
    if value is None:
        return None
    if not isinstance(value, float) and not hasattr(value, "__index__"):
        raise TypeError(f"The `{name}` argument must be an integer. Received: {value!r}")
    count = value if isinstance(value, int) else int(value) if isinstance(value, float) else operator.index(value)
    if count <= 0:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected a strictly positive value. Received {name}={count}."
        )
    return count


def checked_format(data_format: str | None) -> str:
    """`channels_last` (the default) or `channels_first`.

    Raises:
        ValueError: the data format is unknown.
    """
    plain = "channels_last" if data_format is None else str(data_format).lower()
    if plain not in ("channels_last", "channels_first"):
        raise ValueError(
            f"The `data_format` argument must be one of 'channels_first', 'channels_last'. Received: {data_format}"
        )
    return plain


def channels_axis(data_format: str, rank: int) -> int:
    """The axis of the channels."""
    return 1 if data_format == "channels_first" else rank - 1


def checked_padding(padding: str, allowed: tuple[str, ...] = ("valid", "same")) -> str:
    """The padding in lower case.

    Raises:
        ValueError: the padding is unknown.
    """
    plain = padding.lower() if isinstance(padding, str) else ""
    if plain not in allowed:
        raise ValueError(f"The `padding` argument must be one of {', '.join(map(repr, allowed))}. Received: {padding}")
    return plain


def output_length(size: Any, window: int, padding: str, stride: int, dilation: int = 1) -> Any:
    """The output size of a window that moves along a dimension; None if the size is unknown."""
    if size is None:
        return None
    reach = window + (window - 1) * (dilation - 1)
    length = size if padding in ("same", "causal") else size - reach + 1
    return (length + stride - 1) // stride


def dims(shape: Any) -> list[Any]:
    """The sizes of a shape with known rank."""
    return list(as_shape(shape))


def as_public(shape: list[Any]) -> TensorShape:
    return TensorShape(shape)
