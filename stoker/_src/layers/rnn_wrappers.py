"""Wrappers of cells: dropout, residual connections, placement."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.scopes import device as placed_on
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.layers.rnn_cells import LSTMStateTuple, RNNCell, check_cell
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn import dropout
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.variables.variables import Variable


class PassingWrapper(RNNCell):
    """A cell that changes the inputs or outputs of another, `cell`. It has no scope of its own."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        if isinstance(cell, Trackable):
            self._track_trackable(cell, "cell")

    @property
    def wrapped_cell(self) -> Any:
        return self.cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        return self.cell.output_size

    @property
    def weights(self) -> list[Any]:
        return self.cell.weights

    @property
    def trainable_weights(self) -> list[Any]:
        return self.cell.trainable_weights

    variables = weights
    trainable_variables = trainable_weights

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(type(self).__name__ + "ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._wrapped(inputs, state, scope)

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        raise NotImplementedError

    def _step(self, inputs: Any, state: Any, scope: Any) -> Any:
        return self.cell(inputs, state, scope=scope)


def _all_but_memory(state: Any) -> Any:
    """Drops every state except an LSTM's c and TensorArrays."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, TensorArray)


def _always(_: Any) -> bool:
    return True


def _probability(name: str, value: Any) -> Any:
    """A probability as a number, or as a tensor if its value is unknown.

    Raises:
        TypeError: the value is not a number.
        ValueError: the number is outside [0, 1].
    """
    if value is None:
        raise ValueError(f"Parameter {name}_keep_prob must be a number, not None")
    known = constant_value(value) if isinstance(value, Tensor) else value
    if known is None or isinstance(known, Variable):
        return value
    if isinstance(known, (str, bytes)) or np.ndim(known):
        raise TypeError(f"Parameter {name}_keep_prob must be a number, not {value!r}")
    if known < 0 or known > 1:
        raise ValueError(f"Parameter {name}_keep_prob must be between 0 and 1: {known}")
    return float(known)


@export(v1="nn.rnn_cell.DropoutWrapper")
class DropoutWrapper(PassingWrapper):
    """Dropout on a cell's inputs, outputs and states.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: probabilities to keep an element.
        variational_recurrent: whether to drop the same elements at every step (Gal and Ghahramani, 2015). It requires `dtype`,
            and `input_size` if inputs are dropped.
        input_size: the size, or structure of sizes, of the inputs.
        dtype: the dtype of the masks.
        seed: the seed of the masks.
        dropout_state_filter_visitor: a function that says whether to drop a state. For a structure it returns a
            boolean or a structure of booleans; it is called again for each part with True.

    Raises:
        TypeError: `cell` is not a cell.
        ValueError: a probability is outside (0, 1], or arguments of the variational form are missing.
    """

    _default_filter = staticmethod(_all_but_memory)

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: Any = None,
        dropout_state_filter_visitor: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        check_cell(cell)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._filter = dropout_state_filter_visitor or self._default_filter
        given = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        self._keep = {name: _probability(name, value) for name, value in given.items()}
        self._seed, self._variational = seed, variational_recurrent
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            self._make_noise(input_size, dtype)

    def _active(self, name: str) -> bool:
        value = self._keep[name]
        return not isinstance(value, (int, float)) or value < 1

    def _mask_seed(self, salt: str) -> int | None:
        """A separate seed for each mask. The hash is TensorFlow's, so the same seed drops the same elements."""
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{salt}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF

    def _make_noise(self, input_size: Any, dtype: Any) -> None:
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        if self._active("input") and input_size is None:
            raise ValueError("When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be provided")  # fmt: skip
        sizes = {"input": input_size, "state": self.cell.state_size, "output": self.cell.output_size}
        for name, size in sizes.items():
            if not self._active(name):
                continue
            flat = nest.flatten(size) if isinstance(size, (list, tuple, dict)) else [size]
            self._noise[name] = [
                uniform_normal.random_uniform([1, *_sizes(each)], dtype=dtype, seed=self._mask_seed(f"{name}_{i}"))
                for i, each in enumerate(flat)
            ]

    def _dropped(self, name: str, values: Any, flags: Any) -> Any:
        """Applies dropout to a structure as `flags`, a structure of booleans of the same or smaller depth, says.

        Each flag counts as one mask, so a subtree that is not dropped consumes one seed.
        """
        noise = nest.pack_sequence_as(values, self._noise[name]) if self._variational else values
        keep = self._keep[name]
        masks = itertools.count()

        def drop(flag: bool, value: Any, noise: Any) -> Any:
            salt = f"{name}_{next(masks)}"
            if not flag:
                return value
            if self._variational:
                return value / keep * unary_functions.floor(keep + noise)
            return dropout.dropout(value, keep_prob=keep, seed=self._mask_seed(salt))

        return nest.map_structure_up_to(flags, drop, flags, values, noise)

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        if self._active("input"):
            inputs = self._dropped("input", inputs, nest.map_structure(_always, inputs))
        output, new_state = self._step(inputs, state, scope)
        if self._active("state"):
            flags = nest.get_traverse_shallow_structure(self._filter, new_state)
            new_state = self._dropped("state", new_state, flags)
        if self._active("output"):
            output = self._dropped("output", output, nest.map_structure(_always, output))
        return output, new_state


def _sizes(size: Any) -> list[Any]:
    return [size] if isinstance(size, int) else list(as_shape(size))


@export(v1="nn.rnn_cell.ResidualWrapper")
class ResidualWrapper(PassingWrapper):
    """Adds a cell's inputs to its outputs, or combines them by `residual_fn(inputs, outputs)`."""

    def __init__(self, cell: Any, residual_fn: Any = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        outputs, new_state = self._step(inputs, state, scope)

        def added(into: Tensor, out: Tensor) -> Any:
            into.shape.assert_is_compatible_with(out.shape)
            return into + out

        if self._residual_fn is not None:
            return self._residual_fn(inputs, outputs), new_state
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(added, inputs, outputs), new_state


@export(v1="nn.rnn_cell.DeviceWrapper")
class DeviceWrapper(PassingWrapper):
    """A cell whose ops are placed on a device."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with placed_on(self._device):
            return super().zero_state(batch_size, dtype)

    def _wrapped(self, inputs: Any, state: Any, scope: Any) -> Any:
        with placed_on(self._device):
            return self._step(inputs, state, scope)


class _NewerWrapper(PassingWrapper):
    """The 2.x form. It takes no scope and passes other arguments to any callable cell."""

    def __init__(self, cell: Any, *args: Any, **kwargs: Any) -> None:
        check_cell(cell)
        super().__init__(cell, *args, **kwargs)

    def __call__(self, inputs: Any, state: Any, **kwargs: Any) -> Any:
        return self._wrapped(inputs, state, kwargs)

    def _step(self, inputs: Any, state: Any, scope: Any) -> Any:
        return self.cell(inputs, state, **scope)


def _not_an_array(state: Any) -> bool:
    return not isinstance(state, TensorArray)


@export(v2="nn.RNNCellDropoutWrapper")
class RNNCellDropoutWrapper(_NewerWrapper, DropoutWrapper):
    """Like `DropoutWrapper`, but by default drops all states, including an LSTM's c."""

    _default_filter = staticmethod(_not_an_array)


@export(v2="nn.RNNCellResidualWrapper")
class RNNCellResidualWrapper(_NewerWrapper, ResidualWrapper):
    """Adds a cell's inputs to its outputs, or combines them by `residual_fn(inputs, outputs)`."""


@export(v2="nn.RNNCellDeviceWrapper")
class RNNCellDeviceWrapper(_NewerWrapper, DeviceWrapper):
    """A cell whose ops are placed on a device."""
