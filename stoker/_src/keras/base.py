"""`tf.keras.layers.Layer`: a function with variables that knows the layers inside it, its losses, masks and configuration.

The layers of `tf.layers` and of Keras compute the same. A class here inherits from both: `Dense(core.Dense, Layer)` builds and calls as
`tf.layers.Dense` does, and is named, called, tracked and described as Keras layers are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.scopes import init_scope, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tracked_structures import (
    AutoTrackable,
    DictWrapper,
    ListWrapper,
    OrderedDictWrapper,
    TupleWrapper,
    no_automatic_dependency_tracking,
)
from stoker._src.keras import activations, constraints, initializers
from stoker._src.keras.learning_phase import calls_deep, in_call, outer_training
from stoker._src.keras.serialization import find, instance_of, plain
from stoker._src.keras.sessions import batch_get_value, batch_set_value, remember_variable
from stoker._src.layers import base as layers
from stoker._src.ops.variables.creators import VariableAggregation, VariableSynchronization
from stoker._src.ops.variables.module import Module
from stoker._src.ops.variables.variables import Variable

_floatx = "float32"
_GIVEN_BY_EVERY_LAYER = ("input_shape", "batch_input_shape", "batch_size", "input_dim", "weights", "autocast")


def floatx() -> str:
    return _floatx


def set_default_float(name: str) -> None:
    global _floatx
    _floatx = name


_data_format = "channels_last"


def default_data_format() -> str:
    return _data_format


def set_default_data_format(name: str) -> None:
    global _data_format
    _data_format = name


class _Hooks:
    """What a later module of this room supplies."""

    wrap_plain_ops: Callable[[Any], None]
    """Makes layers of the ops between Keras tensors and these tensors."""


hooks = _Hooks()


class Node:
    """One call of a layer on Keras tensors: what went in and came out. Networks are made of these."""

    def __init__(self, layer: Layer, arguments: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        self.layer, self.arguments, self.kwargs, self.outputs = layer, arguments, kwargs, outputs
        given = [each for each in nest.flatten((arguments, kwargs)) if isinstance(each, Tensor)]
        self.inputs: list[Any] = [each for each in given if hasattr(each, "_keras_history")]
        for index, tensor in enumerate(nest.flatten(outputs)):
            tensor._keras_history = (layer, len(layer._inbound_nodes), index)
            tensor._keras_node = self
        layer._inbound_nodes.append(self)

    @property
    def input_tensors(self) -> Any:
        return self.arguments[0] if self.arguments else None

    @property
    def output_tensors(self) -> Any:
        return self.outputs


@functools.lru_cache(maxsize=4096)
def _parameters(function: Any) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def takes(function: Any, name: str) -> bool:
    """Whether a method has a parameter of that name."""
    return name in _parameters(getattr(function, "__func__", function))


_private_graph: FuncGraph | None = None


def private_graph() -> FuncGraph:
    """The graph in which networks are described in eager mode. It is never run: its tensors tell shapes and histories."""
    global _private_graph
    if _private_graph is None:
        with context.enter_eager():
            _private_graph = FuncGraph("keras_graph")
        _private_graph.adopts_eager_ops = True
    return _private_graph


def forget_private_graph() -> None:
    global _private_graph
    _private_graph = None


def is_symbolic(value: Any) -> bool:
    return isinstance(value, Tensor) and not getattr(value, "is_eager", False)


@contextmanager
def graph_of_inputs(values: Iterable[Any]) -> Iterator[None]:
    """In eager mode, enters the private graph if a value belongs to it."""
    inside = context.executing_eagerly() and any(is_symbolic(each) for each in values)
    with context.enter_graph(private_graph()) if inside else nullcontext():
        yield


def layer_name(base: str, *, zero_based: bool = False) -> str:
    """`dense`, `dense_1`, ...: a name that no other layer of the graph has. Models start with `model`, inputs with `input_1`."""
    if context.executing_eagerly() or context.get_default_graph() is _private_graph:
        graph: Any = private_graph()
    else:
        graph = layers.variable_scope.program_graph()
    counts = getattr(graph, "keras_names", None)
    if counts is None:
        counts = graph.keras_names = {}
    counts[base] = count = counts.get(base, 0) + 1
    if zero_based:
        return base if count == 1 else f"{base}_{count - 1}"
    return f"{base}_{count}"


def _leaves(value: Any, seen: set[int]) -> Iterator[Any]:
    """The variables and layers in a tracked attribute: itself, or the contents of lists, dictionaries, tuples and modules."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (Variable, layers.Layer)):
        yield value
    elif isinstance(value, (ListWrapper, DictWrapper, OrderedDictWrapper, TupleWrapper, Module)):
        for child in value._trackable_children().values():
            yield from _leaves(child, seen)


@export("keras.layers.Layer", v2="keras.Layer")
class Layer(AutoTrackable, layers.Layer):
    """A function with variables. Subclasses create variables in `build`, with `add_weight`, and compute in `call`.

    Variables, layers and metrics that are assigned to attributes, also inside lists and dictionaries, belong to the layer.

    Args:
        trainable: whether its variables are trained.
        name: its name; by default made from the class name.
        dtype: the dtype of its variables; by default that of the first input.
        dynamic: whether it can only run eagerly.
        **kwargs: `input_shape`, `batch_input_shape`, `batch_size`, `input_dim`: the shape of the input, for the first layer of a
            `Sequential`; `weights`: initial values; `activity_regularizer`: a penalty of the outputs.
    """

    _lists_updates = False

    @no_automatic_dependency_tracking
    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, dynamic: bool = False, **kwargs: Any
    ) -> None:
        unknown = set(kwargs) - {*_GIVEN_BY_EVERY_LAYER, "activity_regularizer", "implementation"}
        if unknown:
            raise TypeError(f"Keyword argument not understood: {', '.join(sorted(unknown))}")
        snake = layers.snake_case(type(self).__name__)
        super().__init__(trainable, name or layer_name(snake, zero_based=True), dtype, activity_regularizer=None)
        self._activity_regularizer = instance_of(kwargs.get("activity_regularizer"), "regularizers")
        self.stateful = False
        self.supports_masking = False
        self._dynamic = dynamic
        self._inbound_nodes: list[Node] = []
        self._regularizations: list[Callable[[], Any]] = []
        self._metrics: list[Any] = []
        self._initial_weights = kwargs.get("weights")
        if "input_dim" in kwargs and "input_shape" not in kwargs:
            kwargs["input_shape"] = (kwargs["input_dim"],)
        if "batch_input_shape" in kwargs:
            self._batch_input_shape: Any = tuple(kwargs["batch_input_shape"])
        elif "input_shape" in kwargs:
            self._batch_input_shape = (kwargs.get("batch_size"), *tuple(kwargs["input_shape"]))

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def dynamic(self) -> bool:
        return self._dynamic

    @property
    def dtype(self) -> Any:
        return None if self._dtype is None else self._dtype.name

    @property
    def activity_regularizer(self) -> Any:
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, value: Any) -> None:
        self._activity_regularizer = value

    def _contents(self) -> list[Any]:
        """The variables and layers among its attributes."""
        seen: set[int] = {id(self)}
        return [leaf for child in self._trackable_children().values() for leaf in _leaves(child, seen)]

    def _sublayers(self) -> list[Any]:
        return [each for each in self._contents() if isinstance(each, layers.Layer)]

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All layers inside it, at any depth."""
        found: dict[int, Any] = {}
        for layer in self._sublayers():
            found.setdefault(id(layer), layer)
            found.update((id(each), each) for each in getattr(layer, "submodules", ()))
        return tuple(found.values())

    def _own_weights(self) -> list[Any]:
        mine = {id(each): each for each in self._weights}
        mine.update((id(each), each) for each in self._contents() if isinstance(each, Variable))
        return list(mine.values())

    def _is_trained(self, weight: Any) -> bool:
        added = any(each is weight for each in self._weights)
        return id(weight) in self._marked_trainable if added else bool(weight.trainable)

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value
        for layer in self._sublayers():
            layer.trainable = value

    @property
    def trainable_weights(self) -> list[Any]:
        if not self._trainable:
            return []
        mine = [each for each in self._own_weights() if self._is_trained(each)]
        return once([*mine, *(each for layer in self._sublayers() for each in layer.trainable_weights)])

    @property
    def non_trainable_weights(self) -> list[Any]:
        mine, inner = self._own_weights(), self._sublayers()
        if self._trainable:
            fixed = [each for each in mine if not self._is_trained(each)]
            return once([*fixed, *(each for layer in inner for each in layer.non_trainable_weights)])
        trained = [each for each in mine if self._is_trained(each)]
        fixed = [each for each in mine if not self._is_trained(each)]
        return once([*trained, *fixed, *(each for layer in inner for each in layer.weights)])

    @property
    def weights(self) -> list[Any]:
        return once([*self.trainable_weights, *self.non_trainable_weights])

    @property
    def variables(self) -> list[Any]:
        return self.weights

    @property
    def trainable_variables(self) -> list[Any]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        return self.non_trainable_weights

    @property
    def losses(self) -> list[Any]:
        """The penalties of its weights and outputs, and those of the layers inside it."""
        mine = _computed([*self._losses, *self._regularizations])
        return [*mine, *(each for layer in self._sublayers() for each in layer.losses)]

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The penalties that depend on `inputs`; for None, those that were not added for inputs. Also those of the layers inside it."""
        mine = super().get_losses_for(inputs)
        if inputs is None:
            mine = [*mine, *self._regularizations]
        return [*_computed(mine), *(each for layer in self._sublayers() for each in layer.get_losses_for(inputs))]

    @property
    def updates(self) -> list[Any]:
        """The ops to run with every training step, also those of the layers inside it."""
        if not self._trainable and not self.stateful:
            return []
        return once([*self._updates, *(each for layer in self._sublayers() for each in layer.updates)])

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on `inputs`; for None, those that depend on no input. Also those of the layers inside it."""
        if not self._trainable and not self.stateful:
            return []
        inner = (each for layer in self._sublayers() for each in layer.get_updates_for(inputs))
        return once([*super().get_updates_for(inputs), *inner])

    @property
    def metrics(self) -> list[Any]:
        return once([*self._metrics, *(each for layer in self._sublayers() for each in getattr(layer, "metrics", ()))])

    def count_params(self) -> int:
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't built. You can build it manually via: "
                f"`{self.name}.build(batch_input_shape)`."
            )
        return sum(weight.static_shape.size or 0 for weight in self.weights)

    def get_weights(self) -> list[Any]:
        """The values of its weights as arrays."""
        return batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Assigns arrays to its weights, in the order of `weights`.

        Raises:
            ValueError: the number of arrays or a shape does not match.
        """
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a  weight list of length {len(weights)}, but the '
                f"layer was expecting {len(mine)} weights. Provided weights: {str(weights)[:50]}..."
            )
        for weight, value in zip(mine, weights):
            if tuple(weight.static_shape) != np.shape(value):
                raise ValueError(
                    f"Layer weight shape {tuple(weight.static_shape)} not compatible with provided weight shape {np.shape(value)}"
                )
        batch_set_value(list(zip(mine, weights)))

    # -- for subclasses ------------------------------------------------------------------------------------------

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        **kwargs: Any,
    ) -> Any:
        """Creates a variable of the layer in the current name scope.

        Raises:
            ValueError: it is trainable and has ON_READ synchronization, or its dtype has no default initializer.
            TypeError: a keyword argument is unknown.
        """
        unknown = set(kwargs) - {"getter", "collections", "experimental_autocast", "autocast"}
        if unknown:
            raise TypeError(f"Unknown keyword argument: {', '.join(sorted(unknown))}")
        if synchronization == VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables. You have specified trainable=True and synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        trainable = True if trainable is None else trainable
        kind = as_dtype(dtype or self._dtype or floatx()).base_dtype
        initializer = initializers.get(initializer)
        if initializer is None:
            if kind.is_floating:
                initializer = initializers.get("glorot_uniform")
            elif kind.is_integer or kind.is_bool:
                initializer = initializers.get("zeros")
            else:
                raise ValueError(f"An initializer for variable {name} of type {kind} is required for layer {self.name}")
        sizes = TensorShape(() if shape is None else shape)
        name = name or "Variable"
        with init_scope():
            weight = Variable(
                initial_value=functools.partial(initializer, sizes.as_list(), dtype=kind),
                name=name,
                trainable=trainable,
                dtype=kind,
                constraint=constraints.get(constraint),
                collections=kwargs.get("collections"),
                use_resource=True,
                shape=sizes,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        remember_variable(weight)
        penalty = instance_of(regularizer, "regularizers")
        if penalty is not None:
            self._regularizations.append(functools.partial(_penalty, penalty, weight, name))
        self._weights.append(weight)
        self._track_trackable(weight, name, overwrite=True)
        if trainable:
            self._marked_trainable.add(id(weight))
        return weight

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds penalties: tensors, or functions without arguments that compute them from variables."""
        for each in nest.flatten(losses):
            if each is None:
                continue
            self._losses.append(
                each
                if callable(each) and not isinstance(each, Variable)
                else convert_to_tensor(each, dtype_hint=dtypes.float32)
            )
            if inputs is not None:
                self._conditional.add(id(self._losses[-1]))

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds ops, or functions that create them, to run with every training step."""
        for each in updates if isinstance(updates, (list, tuple)) else [updates]:
            made = each() if callable(each) and not hasattr(each, "op") else each
            if context.executing_eagerly() or context.get_default_graph().building_function:
                continue  # they have run, or run with the function
            self._updates.append(getattr(made, "op", made))

    def add_metric(self, value: Any, aggregation: str | None = None, name: str | None = None) -> None:
        """Reports a tensor as a metric: the mean over batches, or the result of a metric object that made it.

        Raises:
            ValueError: the aggregation is unknown, or neither a name nor a metric is given.
        """
        if aggregation not in (None, "mean"):
            raise ValueError(
                "We currently support only `mean` sample-wise metric aggregation. You provided aggregation=`%s`"
                % aggregation
            )
        made_by = getattr(value, "_metric_obj", None)
        if made_by is not None:
            if not any(each is made_by for each in self._metrics):
                self._metrics.append(made_by)
            return
        if name is None:
            raise ValueError(
                "Please provide a name for your metric like `self.add_metric(tf.reduce_sum(inputs), name='mean_activation', aggregation='mean')`"
            )
        metric = next((each for each in self._metrics if each.name == name), None)
        if metric is None:
            metric = find("metrics", "Mean")(name=name)
            self._metrics.append(metric)
        metric(value)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output shape, found by calling the layer on placeholders of that shape."""
        with context.enter_graph(FuncGraph("shapes")):
            shapes = (
                nest.map_structure(TensorShape, input_shape) if not is_shape(input_shape) else TensorShape(input_shape)
            )
            graph = context.get_default_graph()
            kind = as_dtype(self._dtype or floatx())
            inputs = nest.map_structure(lambda shape: graph.add_input(kind, layers.as_shape(shape)), shapes)
            return nest.map_structure(
                lambda tensor: tensor.shape,
                self(inputs, training=False) if takes(self.call, "training") else self(inputs),
            )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs, if the layer supports masks.

        Raises:
            TypeError: there is a mask, and the layer does not support masks.
        """
        if not self.supports_masking:
            if any(each is not None for each in nest.flatten(mask)):
                raise TypeError(f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}")
            return None
        return mask

    # -- configuration -------------------------------------------------------------------------------------------

    def _common_config(self) -> dict[str, Any]:
        """The arguments of every layer."""
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if hasattr(self, "_batch_input_shape"):
            config["batch_input_shape"] = self._batch_input_shape
        config["dtype"] = self.dtype
        return config

    def get_config(self) -> dict[str, Any]:
        """The arguments that create an equal layer. Layers with arguments of their own must override it.

        Raises:
            NotImplementedError: the constructor has arguments, and the class does not describe them.
        """
        config = self._common_config()
        own = _own_arguments(type(self))
        if not own:
            return config
        if not type(self).__module__.startswith("stoker._src."):
            if type(self).get_config is Layer.get_config:
                raise NotImplementedError(
                    f"Layers with arguments in `__init__` must override `get_config`: {type(self).__name__}."
                )
            return config
        for name in own:
            value = getattr(self, name)
            config[name] = activations.serialize(value) if name.endswith("activation") else plain(value)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)

    # -- in a network --------------------------------------------------------------------------------------------

    @property
    def inbound_nodes(self) -> list[Node]:
        return self._inbound_nodes

    def _only_node(self, what: str) -> Node:
        if not self._inbound_nodes:
            raise AttributeError(f"The layer {self.name} has never been called and thus has no defined {what}.")
        return self._inbound_nodes[0]

    @property
    def input(self) -> Any:
        """The input of the layer in the network.

        Raises:
            AttributeError: it was not called, or more than once.
        """
        node = self._only_node("input")
        if len(self._inbound_nodes) > 1 and any(
            each.input_tensors is not node.input_tensors for each in self._inbound_nodes
        ):
            raise AttributeError(
                f'Layer {self.name} has multiple inbound nodes, hence the notion of "layer input" is ill-defined. Use `get_input_at(node_index)` instead.'
            )
        return node.input_tensors

    @property
    def output(self) -> Any:
        """The output of the layer in the network.

        Raises:
            AttributeError: it was not called, or more than once.
        """
        node = self._only_node("output")
        if len(self._inbound_nodes) > 1:
            raise AttributeError(
                f'Layer {self.name} has multiple inbound nodes, hence the notion of "layer output" is ill-defined. Use `get_output_at(node_index)` instead.'
            )
        return node.outputs

    @property
    def input_shape(self) -> Any:
        return nest.map_structure(
            lambda tensor: tuple(tensor.shape.as_list()), self._only_node("input shape").input_tensors
        )

    @property
    def output_shape(self) -> Any:
        return nest.map_structure(lambda tensor: tuple(tensor.shape.as_list()), self._only_node("output shape").outputs)

    def get_input_at(self, node_index: int) -> Any:
        return self._inbound_nodes[node_index].input_tensors

    def get_output_at(self, node_index: int) -> Any:
        return self._inbound_nodes[node_index].outputs

    def get_input_shape_at(self, node_index: int) -> Any:
        return nest.map_structure(lambda tensor: tuple(tensor.shape.as_list()), self.get_input_at(node_index))

    def get_output_shape_at(self, node_index: int) -> Any:
        return nest.map_structure(lambda tensor: tuple(tensor.shape.as_list()), self.get_output_at(node_index))

    @property
    def input_mask(self) -> Any:
        return nest.map_structure(lambda tensor: getattr(tensor, "_keras_mask", None), self.input)

    @property
    def output_mask(self) -> Any:
        return nest.map_structure(lambda tensor: getattr(tensor, "_keras_mask", None), self.output)

    # -- calling -------------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = nest.map_structure(_as_tensor, inputs)
        values = nest.flatten((inputs, args, kwargs))
        with graph_of_inputs(values):
            if getattr(context.target(), "keras_inputs", False):
                hooks.wrap_plain_ops(values)
            in_network = any(hasattr(each, "_keras_history") for each in values)
            return self._called(inputs, args, kwargs, in_network)

    apply = __call__

    def _called(self, inputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any], in_network: bool) -> Any:
        if not calls_deep() and (context.executing_eagerly() or context.get_default_graph().building_function):
            self._forget_losses()
        given = dict(kwargs)
        training = kwargs.get("training")
        wants_training = takes(self.call, "training")
        if training is None and wants_training and not self._given_by_position("training", args):
            training = outer_training()
            if training is not None:
                kwargs = {**kwargs, "training": training}
        elif not wants_training:
            kwargs = {key: value for key, value in kwargs.items() if key != "training"}
        masks = nest.map_structure(lambda each: getattr(each, "_keras_mask", None), inputs)
        masked = any(each is not None for each in nest.flatten(masks))
        if (
            masked
            and takes(self.call, "mask")
            and kwargs.get("mask") is None
            and not self._given_by_position("mask", args)
        ):
            kwargs = {**kwargs, "mask": masks}
        with in_call(training), self._scope_of_call():
            self._buildonce(inputs)
            flat = nest.flatten(inputs)
            self._check(flat)
            if not context.executing_eagerly() and not context.get_default_graph().building_function:
                self._seen.extend(flat)
            outputs = self.call(inputs, *args, **kwargs)
            if self._activity_regularizer is not None:
                self._regularize_outputs(inputs, outputs)
            self._set_masks(inputs, outputs, kwargs.get("mask", masks if masked else None))
        if in_network:
            entered = {id(each) for each in nest.flatten(inputs)}
            outputs = nest.map_structure(lambda out: _copied(out) if id(out) in entered else out, outputs)
            Node(self, (inputs, *args), given, outputs)
        return outputs

    def _given_by_position(self, name: str, args: tuple[Any, ...]) -> bool:
        return bool(args) and name in list(inspect.signature(self.call).parameters)[1 : len(args) + 1]

    def _scope_of_call(self) -> Any:
        return name_scope(self.name)

    def _buildonce(self, inputs: Any) -> None:
        if self.built:
            return
        flat = nest.flatten(inputs)
        self._check(flat)
        if self._dtype is None:
            kind = getattr(flat[0], "dtype", None) if flat else None
            self._dtype = as_dtype(floatx()) if kind is None else kind.base_dtype
        if getattr(self.build, "__func__", None) is not Layer.build:
            shapes = nest.map_structure(lambda x: getattr(x, "shape", None), inputs)
            with init_scope() if context.executing_eagerly() else nullcontext():
                self.build(shapes)
        self.built = True
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)
            self._initial_weights = None

    def build(self, input_shape: Any) -> None:
        self.built = True

    def _set_masks(self, inputs: Any, outputs: Any, mask: Any) -> None:
        flat = nest.flatten(outputs)
        if all(hasattr(each, "_keras_mask") for each in flat) and flat and not isinstance(self, MasksInside):
            return
        if mask is None and type(self).compute_mask is Layer.compute_mask:
            return
        computed = self.compute_mask(inputs, mask)
        found = nest.flatten(computed) if computed is not None else [None] * len(flat)
        for output, each in zip(flat, found):
            if each is not None or hasattr(output, "_keras_mask"):
                try:
                    output._keras_mask = each
                except AttributeError:  # a value that is not a tensor
                    return

    def _forget_losses(self) -> None:
        self._losses = [each for each in self._losses if callable(each)]
        for layer in self._sublayers():
            if isinstance(layer, Layer):
                layer._forget_losses()


class MasksInside:
    """Layers whose outputs get their masks during the call, because inner layers made them."""


def once(values: Iterable[Any]) -> list[Any]:
    return list({id(each): each for each in values}.values())


def _computed(losses: Iterable[Any]) -> list[Any]:
    """The losses, with the results of those that are functions; None is none."""
    return [found for each in losses if (found := each() if callable(each) else each) is not None]


def _penalty(regularizer: Any, weight: Any, name: str) -> Any:
    with name_scope(f"{name}/Regularizer"):
        return regularizer(weight)


def is_shape(value: Any) -> bool:
    return isinstance(value, TensorShape) or (
        isinstance(value, (list, tuple)) and all(each is None or isinstance(each, int) for each in value)
    )


def _as_tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        value = value.astype(floatx())
    if isinstance(value, (np.ndarray, np.generic, int, float)) and not isinstance(value, bool):
        return convert_to_tensor(value)
    return value


def _copied(tensor: Any) -> Any:
    return layers.shaping.identity(tensor)


@functools.lru_cache(maxsize=1024)
def _own_arguments(kind: type) -> tuple[str, ...]:
    """The arguments of a class's constructor besides those of every layer."""
    found: dict[str, None] = {}
    for each in kind.__mro__:
        if each is Layer:
            break
        if "__init__" not in vars(each):
            continue
        parameters = inspect.signature(each.__init__).parameters.values()
        found.update((p.name, None) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
        if each.__module__.startswith("stoker._src.keras"):
            break
    return tuple(name for name in found if name not in ("self", "name", "trainable", "dtype", "dynamic"))
