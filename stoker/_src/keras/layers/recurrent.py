"""Recurrent layers: a cell applied to every time step."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import conversion, scopes
from stoker._src.keras.base import Layer, floatx, takes
from stoker._src.keras.layers import cells
from stoker._src.keras.layers.cells import StackedRNNCells
from stoker._src.keras.rnn_loop import rnn
from stoker._src.keras.serialization import deserialize, plain, serialize
from stoker._src.keras.sessions import batch_set_value
from stoker._src.layers.base import dims
from stoker._src.ops.array import shaping
from stoker._src.ops.variables import variables


@export("keras.layers.RNN")
class RNN(Layer):
    """Applies a cell to sequences [batch, time, ...].

    Args:
        cell: an object with `call(inputs, states)` and `state_size`, or a list of such objects.
        return_sequences: whether to return the outputs at all times, not only the last.
        return_state: whether to return the last states as well.
        go_backwards: whether to go from the end to the beginning.
        stateful: whether the states at the end of a batch are those before the next one.
        unroll: whether to build each step instead of a loop.
        time_major: whether inputs and outputs are [time, batch, ...].
        **kwargs: `zero_output_for_mask`, and the arguments of every layer.
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "call"):
            raise ValueError(f"`cell` should have a `call` method. The RNN was passed: {cell}")
        if not hasattr(cell, "state_size"):
            raise ValueError(
                f"The RNN cell should have an attribute `state_size` (tuple of integers, one integer per RNN state). The cell was: {cell}"
            )
        self.zero_output_for_mask = kwargs.pop("zero_output_for_mask", False)
        if "input_dim" in kwargs and "input_shape" not in kwargs:
            kwargs["input_shape"] = (kwargs.pop("input_length", None), kwargs.pop("input_dim"))
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.stateful, self.unroll, self.time_major = stateful, unroll, time_major
        self.supports_masking = True
        self._states: Any = None
        self._num_constants = 0
        self.constants_spec: Any = None

    @property
    def states(self) -> Any:
        """The kept states of a stateful layer."""
        count = len(nest.flatten(self.cell.state_size))
        return [None] * count if self._states is None else list(self._states)

    @states.setter
    def states(self, value: Any) -> None:
        self._states = value

    # -- calling -------------------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any) -> Any:
        # States that are tensors of the network become inputs, as the configuration of networks lists them.
        extra = [*nest.flatten(initial_state if initial_state is not None else []), *nest.flatten(constants or [])]
        if constants:
            self._num_constants = len(nest.flatten(constants))
        if extra and any(hasattr(each, "_keras_history") for each in extra):
            whole = [*(inputs if isinstance(inputs, (list, tuple)) else [inputs]), *extra]
            return super().__call__(whole, **kwargs)
        if initial_state is not None:
            kwargs["initial_state"] = initial_state
        if constants is not None:
            kwargs["constants"] = constants
        return super().__call__(inputs, **kwargs)

    def _parts(self, inputs: Any, given: Any, constants: Any) -> tuple[Any, list[Any] | None, list[Any]]:
        """Sequences, initial states and constants, which may all come as one list."""
        if isinstance(inputs, (list, tuple)) and not isinstance(inputs, TensorShape):
            rest = list(inputs[1:])
            if self._num_constants and constants is None:
                constants, rest = rest[-self._num_constants :], rest[: -self._num_constants]
            given = rest if given is None and rest else given
            inputs = inputs[0]
        states = None if given is None else nest.flatten(given)
        return inputs, states, nest.flatten(constants) if constants is not None else []

    def build(self, input_shape: Any) -> None:
        shape = (
            input_shape[0]
            if isinstance(input_shape, (list, tuple)) and input_shape and not _plain_shape(input_shape)
            else input_shape
        )
        sizes = dims(shape)
        batch = sizes[1] if self.time_major else sizes[0]
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell._dtype = self.cell._dtype or self._dtype
            with scopes.NameScope(self.cell.name) if isinstance(self.cell, StackedRNNCells) else nullcontext():
                self.cell.build(TensorShape([batch, *sizes[2:]]))
            self.cell.built = True
        if self.stateful and self._states is None:
            self._make_states(batch)
        self.built = True

    def _make_states(self, batch: int | None) -> None:
        if batch is None:
            raise ValueError(
                "If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input tensors: \n"
                "- If using a Sequential model, specify the batch size by passing a `batch_input_shape` argument to your first layer.\n"
                "- If using the functional API, specify the batch size by passing a `batch_shape` argument to your Input layer."
            )
        sizes = nest.flatten(self.cell.state_size)
        kind = self._dtype or floatx()
        with scopes.init_scope():
            self._states = [
                variables.Variable(
                    shaping.zeros([batch, *TensorShape(size).as_list()], kind),
                    trainable=False,
                    use_resource=True,
                    name="Variable",
                )
                for size in sizes
            ]

    def _own_weights(self) -> list[Any]:
        kept = {id(each) for each in self._states or ()}
        return [each for each in super()._own_weights() if id(each) not in kept]

    def call(
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None, constants: Any = None
    ) -> Any:
        x, states, constants = self._parts(inputs, initial_state, constants)
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        batch = shaping.shape(x)[1 if self.time_major else 0]
        if states is None:
            kept = self._states if self.stateful else None
            states = (
                [conversion.convert_to_tensor(each) for each in kept]
                if kept
                else nest.flatten(cells.initial_state(self.cell, None, batch, x.dtype.base_dtype))
            )
        count = len(nest.flatten(self.cell.state_size))
        if len(states) != count:
            raise ValueError(f"Layer has {count} states but was passed {len(states)} initial states.")
        for state, size in zip(states, nest.flatten(self.cell.state_size)):
            state.set_shape([x.static_shape[1 if self.time_major else 0], *TensorShape(size).as_list()])
        arguments: dict[str, Any] = {}
        if takes(self.cell.call, "training"):
            arguments["training"] = training
        if hasattr(self.cell, "make_masks"):
            first = x[0] if self.time_major else x[:, 0]
            self.cell.make_masks(first, states if isinstance(self.cell, StackedRNNCells) else states[0], training)

        def step(now: Any, packed: list[Any]) -> Any:
            more = {"constants": packed[count:]} if constants else {}
            output, following = self.cell.call(now, packed[:count], **arguments, **more)
            return output, nest.flatten(following)

        try:
            last, outputs, following = rnn(
                step,
                x,
                states,
                self.go_backwards,
                mask,
                constants,
                self.unroll,
                time_major=self.time_major,
                zero_output_for_mask=self.zero_output_for_mask,
            )
        finally:
            if hasattr(self.cell, "forget_masks"):
                self.cell.forget_masks()
        if self.stateful and self._states:
            self.add_update([variable.assign(value) for variable, value in zip(self._states, following)])
        result = outputs if self.return_sequences else last
        return [result, *following] if self.return_state else result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        own = mask if self.return_sequences else None
        return [own, *[None for _ in self.states]] if self.return_state else own

    def get_initial_state(self, inputs: Any) -> list[Any]:
        """The states before the first step of these inputs."""
        batch = shaping.shape(inputs)[1 if self.time_major else 0]
        return nest.flatten(cells.initial_state(self.cell, None, batch, inputs.dtype.base_dtype))

    def reset_states(self, states: Any = None) -> None:
        """Sets the kept states: to zero, or to arrays.

        Raises:
            AttributeError: the layer is not stateful.
            ValueError: the layer has no states yet, or the arrays do not match them.
        """
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        if self._states is None:
            raise ValueError("The layer has not been called, so it has no states to reset.")
        values = [np.zeros(each.shape.as_list()) for each in self._states] if states is None else nest.flatten(states)
        if len(values) != len(self._states):
            raise ValueError(
                f"Layer {self.name} expects {len(self._states)} states, but it received {len(values)} state values. Input received: {states}"
            )
        for i, (variable, value) in enumerate(zip(self._states, values)):
            if tuple(variable.shape.as_list()) != np.shape(value):
                raise ValueError(
                    f"State {i} is incompatible with layer {self.name}: expected shape={tuple(variable.shape.as_list())}, found shape={np.shape(value)}"
                )
        batch_set_value(list(zip(self._states, values)))

    # -- configuration -------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        names = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major")
        return {**self._common_config(), **{name: getattr(self, name) for name in names}}

    def get_config(self) -> dict[str, Any]:
        more = {"zero_output_for_mask": True} if self.zero_output_for_mask else {}
        return {**self._options(), **more, "cell": serialize(self.cell)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        cell = deserialize(config.pop("cell"), "layers", custom_objects)
        return cls(cell, **config)


def _plain_shape(value: Any) -> bool:
    return isinstance(value, TensorShape) or all(each is None or isinstance(each, int) for each in value)


class _OneCell(RNN):
    """The base of layers with a cell of Keras, whose arguments are those of the cell and those of the loop."""

    cell_class: type[Any]

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        loop = {name: kwargs.pop(name) for name in _LOOP if name in kwargs}
        activity = kwargs.pop("activity_regularizer", None)
        of_layer = {name: kwargs.pop(name) for name in _LAYER if name in kwargs}
        shared = {name: of_layer[name] for name in ("dtype", "trainable") if name in of_layer}
        # A cell inside a layer does not count among the names of layers.
        cell = self.cell_class(units, *args, name=_cell_name(self.cell_class), **kwargs, **shared)
        super().__init__(cell, **loop, activity_regularizer=activity, **of_layer)
        self.input_spec = None

    def __getattr__(self, name: str) -> Any:
        cell = self.__dict__.get("cell")
        if cell is not None and name in _OF_CELL:
            return getattr(cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        mine = self.cell.get_config()
        for name in ("name", "trainable", "dtype"):
            mine.pop(name, None)
        return {**self._options(), **mine, "activity_regularizer": plain(self.activity_regularizer)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        config = dict(config)
        if config.get("implementation") == 0:
            config["implementation"] = 1
        return cls(**config)


def _cell_name(kind: type[Any]) -> str:
    return {"SimpleRNNCell": "simple_rnn_cell", "GRUCell": "gru_cell", "LSTMCell": "lstm_cell"}.get(
        getattr(kind, "_keras_name", kind.__name__), "cell"
    )


_LOOP = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major", "zero_output_for_mask")
_LAYER = (
    "name",
    "trainable",
    "dtype",
    "dynamic",
    "input_shape",
    "batch_input_shape",
    "batch_size",
    "input_dim",
    "input_length",
    "weights",
)
_OF_CELL = frozenset(
    "units activation recurrent_activation use_bias unit_forget_bias kernel_initializer recurrent_initializer bias_initializer "
    "kernel_regularizer recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout "
    "recurrent_dropout implementation reset_after filters kernel_size strides padding data_format dilation_rate".split()
)


@export("keras.layers.SimpleRNN")
class SimpleRNN(_OneCell):
    """A fully connected recurrent layer: `SimpleRNNCell` over time."""

    cell_class = cells.SimpleRNNCell


@export(v1="keras.layers.LSTM")
class LSTM(_OneCell):
    """Long short-term memory: `LSTMCell` over time."""

    cell_class = cells.LSTMCell


@export(v1="keras.layers.GRU")
class GRU(_OneCell):
    """Gated recurrent units: `GRUCell` over time."""

    cell_class = cells.GRUCell


@export(v2="keras.layers.LSTM")
class LSTMV2(_OneCell):
    """Long short-term memory: the `LSTMCell` of 2.x over time."""

    _keras_name = "LSTM"
    cell_class = cells.LSTMCellV2


@export(v2="keras.layers.GRU")
class GRUV2(_OneCell):
    """Gated recurrent units: the `GRUCell` of 2.x over time."""

    _keras_name = "GRU"
    cell_class = cells.GRUCellV2
