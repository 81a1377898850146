"""Recurrent cells: one step from an input and states to an output and new states."""

from __future__ import annotations

from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import conversion, scopes
from stoker._src.keras.base import Layer, floatx
from stoker._src.keras.layers.arguments import resolved
from stoker._src.keras.learning_phase import resolved as training_flag
from stoker._src.keras.serialization import deserialize, serialize
from stoker._src.layers.base import dims, smart_cond
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import dropout as nn_dropout


def initial_state(cell: Any, inputs: Any, batch_size: Any, dtype: Any) -> list[Any]:
    """The states before the first step: what the cell says, or zeros."""
    if inputs is not None:
        batch_size, dtype = shaping.shape(nest.flatten(inputs)[0])[0], nest.flatten(inputs)[0].dtype.base_dtype
    made = getattr(cell, "get_initial_state", None)
    if made is not None:
        return made(inputs=None, batch_size=batch_size, dtype=dtype)
    return zero_states(cell.state_size, batch_size, dtype)


def zero_states(sizes: Any, batch_size: Any, dtype: Any) -> Any:
    def zeros(size: Any) -> Any:
        return shaping.zeros([batch_size, *TensorShape(size).as_list()], dtype)

    if isinstance(sizes, (list, tuple)) and not isinstance(sizes, TensorShape):
        return [zeros(each) for each in nest.flatten(list(sizes))]
    return zeros(sizes)


@export("keras.layers.AbstractRNNCell")
class AbstractRNNCell(Layer):
    """The base of cells that programs define: `call(inputs, states)` returns (output, new states)."""

    def call(self, inputs: Any, states: Any) -> Any:
        """One step."""
        raise NotImplementedError("Abstract method")

    @property
    def state_size(self) -> Any:
        """The sizes of the states."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        if inputs is not None:
            batch_size, dtype = shaping.shape(inputs)[0], inputs.dtype.base_dtype
        return zero_states(self.state_size, batch_size, dtype)


class _Cell(Layer):
    """The base of the cells of Keras: their weights, and masks of dropout that stay the same over all time steps."""

    gates: int
    """How many blocks of `units` columns the kernels have."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        given = resolved(arguments)
        super().__init__(**arguments["kwargs"])
        self.units = given["units"]
        for name in (
            "activation",
            "use_bias",
            "recurrent_activation",
            "unit_forget_bias",
            "implementation",
            "reset_after",
        ):
            if name in given:
                setattr(self, name, given[name])
        for name in ("kernel", "recurrent", "bias"):
            for kind in ("initializer", "regularizer", "constraint"):
                setattr(self, f"{name}_{kind}", given[f"{name}_{kind}"])
        self.dropout = min(1.0, max(0.0, given["dropout"]))
        self.recurrent_dropout = min(1.0, max(0.0, given["recurrent_dropout"]))
        self.state_size: Any = self.units
        self.output_size = self.units
        self._masks: Any = None
        self.kernel: Any = None
        self.recurrent_kernel: Any = None
        self.bias: Any = None

    def _bias_shape(self) -> tuple[int, ...]:
        return (self.gates * self.units,)

    def _bias_initializer(self) -> Any:
        return self.bias_initializer  # type: ignore[attr-defined]

    def build(self, input_shape: Any) -> None:
        columns = self.gates * self.units
        self._add_weights((dims(input_shape)[-1], columns), (self.units, columns))

    def _add_weights(self, kernel: tuple[int, ...], recurrent: tuple[int, ...]) -> None:
        own: Any = self
        self.kernel = self.add_weight(
            "kernel",
            kernel,
            None,
            own.kernel_initializer,
            own.kernel_regularizer,
            constraint=own.kernel_constraint,
        )
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel",
            recurrent,
            None,
            own.recurrent_initializer,
            own.recurrent_regularizer,
            constraint=own.recurrent_constraint,
        )
        if own.use_bias:
            self.bias = self.add_weight(
                "bias",
                self._bias_shape(),
                None,
                self._bias_initializer(),
                own.bias_regularizer,
                constraint=own.bias_constraint,
            )
        self.built = True

    # -- dropout -------------------------------------------------------------------------------------------------

    def make_masks(self, inputs: Any, state: Any, training: Any) -> None:
        """Draws the masks of dropout, one for each gate, to be used at every time step."""

        def drawn(like: Any, rate: float) -> list[Any] | None:
            if not rate:
                return None
            ones = shaping.ones_like(like)
            flag = training_flag(training)
            return [
                smart_cond(flag, lambda: nn_dropout.dropout(ones, rate=rate), lambda: shaping.identity(ones))
                for _ in range(self.gates)
            ]

        self._masks = drawn(inputs, self.dropout), drawn(state, self.recurrent_dropout)

    def forget_masks(self) -> None:
        self._masks = None

    def _current_masks(self, inputs: Any, state: Any, training: Any) -> tuple[Any, Any]:
        if self._masks is not None:
            return self._masks
        if not self.dropout and not self.recurrent_dropout:
            return None, None
        self.make_masks(inputs, state, training)
        masks: Any = self._masks
        self._masks = None
        return masks

    def _products(self, x: Any, weights: Any, bias: Any, masks: Any) -> list[Any]:
        """x @ weights + bias for each gate. With dropout, each gate has a mask of its own."""
        if masks is None or getattr(self, "implementation", 1) == 2:
            y = matrix_products.matmul(x if masks is None else x * masks[0], weights)
            return (
                joining.split(y if bias is None else nn_bias.bias_add(y, bias), self.gates, axis=1)
                if self.gates > 1
                else [y if bias is None else nn_bias.bias_add(y, bias)]
            )
        parts = joining.split(conversion.convert_to_tensor(weights), self.gates, axis=1)
        offsets = [None] * self.gates if bias is None else joining.split(conversion.convert_to_tensor(bias), self.gates)
        products = [matrix_products.matmul(x * mask, part) for mask, part in zip(masks, parts)]
        return [y if offset is None else nn_bias.bias_add(y, offset) for y, offset in zip(products, offsets)]

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        if inputs is not None:
            batch_size, dtype = shaping.shape(inputs)[0], inputs.dtype.base_dtype
        return zero_states(self.state_size, batch_size, dtype or floatx())


@export("keras.layers.SimpleRNNCell")
class SimpleRNNCell(_Cell):
    """activation(x @ kernel + h @ recurrent_kernel + bias)."""

    gates = 1

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        before = states[0] if nest.is_sequence(states) else states
        of_inputs, of_states = self._current_masks(inputs, before, training)
        (x,) = self._products(inputs, self.kernel, self.bias, of_inputs)
        (h,) = self._products(before, self.recurrent_kernel, None, of_states)
        output = self.activation(x + h)  # type: ignore[attr-defined]
        return output, [output] if nest.is_sequence(states) else output


@export(v1="keras.layers.LSTMCell")
class LSTMCell(_Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997). Gates in the kernels: input, forget, candidate, output."""

    gates = 4

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())
        self.state_size = [self.units, self.units]

    def _bias_initializer(self) -> Any:
        own: Any = self
        if not own.unit_forget_bias:
            return own.bias_initializer

        def with_open_gates(shape: Any, dtype: Any = None, **_: Any) -> Any:
            first = own.bias_initializer((self.units,), dtype=dtype)
            return joining.concat(
                [first, shaping.ones((self.units,), dtype), own.bias_initializer((self.units * 2,), dtype=dtype)], 0
            )

        return with_open_gates

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        h, c = states[0], states[1]
        of_inputs, of_states = self._current_masks(inputs, h, training)
        if of_inputs is None and of_states is None:
            y = matrix_products.matmul(inputs, self.kernel) + matrix_products.matmul(h, self.recurrent_kernel)
            gates = joining.split(nn_bias.bias_add(y, self.bias) if self.bias is not None else y, 4, axis=1)
        else:
            x = self._products(inputs, self.kernel, self.bias, of_inputs)
            gates = [a + b for a, b in zip(x, self._products(h, self.recurrent_kernel, None, of_states))]
        return self._step(gates, c)

    def _step(self, gates: list[Any], c: Any) -> Any:
        """The output and the states after a step, from the inputs of the gates."""
        own: Any = self
        i, f, candidate, o = gates
        c = own.recurrent_activation(f) * c + own.recurrent_activation(i) * own.activation(candidate)
        h = own.recurrent_activation(o) * own.activation(c)
        return h, [h, c]


@export(v1="keras.layers.GRUCell")
class GRUCell(_Cell):
    """Gated recurrent unit (Cho et al., 2014). Gates in the kernels: update, reset, candidate.

    With `reset_after` the reset gate applies after the product with the recurrent kernel, and there are two biases.
    """

    gates = 3

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        implementation: int = 1,
        reset_after: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def _bias_shape(self) -> tuple[int, ...]:
        columns = 3 * self.units
        return (2, columns) if self.reset_after else (columns,)  # type: ignore[attr-defined]

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        own: Any = self
        h = states[0] if nest.is_sequence(states) else states
        of_inputs, of_states = self._current_masks(inputs, h, training)
        bias, recurrent_bias = self.bias, None
        if own.reset_after and bias is not None:
            bias, recurrent_bias = joining.unstack(conversion.convert_to_tensor(bias))
        z, r, candidate = self._products(inputs, self.kernel, bias, of_inputs)
        if own.reset_after:
            of_z, of_r, of_candidate = self._products(h, self.recurrent_kernel, recurrent_bias, of_states)
            z, r = own.recurrent_activation(z + of_z), own.recurrent_activation(r + of_r)
            candidate = own.activation(candidate + r * of_candidate)
        else:
            masked = [h] * 3 if of_states is None else [h * mask for mask in of_states]
            weights = conversion.convert_to_tensor(self.recurrent_kernel)
            u = self.units
            if of_states is None:
                of_z, of_r = joining.split(matrix_products.matmul(h, weights[:, : 2 * u]), 2, axis=1)
            else:
                of_z, of_r = (
                    matrix_products.matmul(masked[0], weights[:, :u]),
                    matrix_products.matmul(masked[1], weights[:, u : 2 * u]),
                )
            z, r = own.recurrent_activation(z + of_z), own.recurrent_activation(r + of_r)
            candidate = own.activation(candidate + matrix_products.matmul(r * masked[2], weights[:, 2 * u :]))
        output = z * h + (1 - z) * candidate
        return output, [output] if nest.is_sequence(states) else output


@export("keras.layers.StackedRNNCells")
class StackedRNNCells(Layer):
    """Several cells one above the other, as one cell."""

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
                raise ValueError(
                    f"All cells must have a `call` method and a `state_size` attribute. received cells: {cells}"
                )
        self.cells = list(cells)

    @property
    def state_size(self) -> Any:
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        last = self.cells[-1]
        size = getattr(last, "output_size", None)
        return size if size is not None else nest.flatten(last.state_size)[0]

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        return [initial_state(cell, inputs, batch_size, dtype) for cell in self.cells]

    def build(self, input_shape: Any) -> None:
        sizes = TensorShape(input_shape)
        cells: Any = self.cells
        for cell in cells:
            if isinstance(cell, Layer) and not cell.built:
                with scopes.NameScope(cell.name):
                    cell._dtype = cell._dtype or self._dtype
                    cell.build(sizes)
                    cell.built = True
            output = getattr(cell, "output_size", None)
            if output is None:
                output = nest.flatten(getattr(cell, "state_size"))[0]  # noqa: B009
            sizes = TensorShape([dims(sizes)[0], *TensorShape(output).as_list()])
        self.built = True

    def call(self, inputs: Any, states: Any, training: Any = None, **kwargs: Any) -> Any:
        packed = nest.pack_sequence_as(
            [nest.map_structure(lambda _: 0, cell.state_size) for cell in self.cells], nest.flatten(states)
        )
        following = []
        for cell, state in zip(self.cells, packed):
            single = not nest.is_sequence(state)
            inputs, new = cell.call(inputs, [state] if single else state, **_training(cell, training))
            following.append(new[0] if single and nest.is_sequence(new) else new)
        return inputs, nest.flatten(following)

    def make_masks(self, inputs: Any, states: Any, training: Any) -> None:
        """Draws the masks of all cells, which hold for every time step."""
        packed = nest.pack_sequence_as(
            [nest.map_structure(lambda _: 0, cell.state_size) for cell in self.cells], nest.flatten(states)
        )
        for cell, state in zip(self.cells, packed):
            first = nest.flatten(state)[0]
            if hasattr(cell, "make_masks"):
                cell.make_masks(inputs, state if isinstance(cell, StackedRNNCells) else first, training)
            inputs = first  # the next cell's input has the shape of this cell's output

    def forget_masks(self) -> None:
        for cell in self.cells:
            if hasattr(cell, "forget_masks"):
                cell.forget_masks()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "trainable": self.trainable, "cells": [serialize(cell) for cell in self.cells]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        cells = [deserialize(each, "layers", custom_objects) for each in config.pop("cells")]
        return cls(cells, **config)


def _training(cell: Any, training: Any) -> dict[str, Any]:
    return {"training": training} if isinstance(cell, (_Cell, StackedRNNCells)) else {}


@export(v2="keras.layers.LSTMCell")
class LSTMCellV2(LSTMCell):
    """The cell of 2.x: its gates use the sigmoid by default."""

    _keras_name = "LSTMCell"

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", **kwargs: Any
    ) -> None:
        super().__init__(units, activation, recurrent_activation, **kwargs)


@export(v2="keras.layers.GRUCell")
class GRUCellV2(GRUCell):
    """The cell of 2.x: its gates use the sigmoid by default, and the reset gate applies after the product."""

    _keras_name = "GRUCell"

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        reset_after: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, activation, recurrent_activation, reset_after=reset_after, **kwargs)
