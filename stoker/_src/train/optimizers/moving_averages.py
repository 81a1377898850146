"""Moving averages of variables and tensors."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, init_scope, name_scope
from stoker._src.ops.array import casting
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import arithmetic
from stoker._src.ops.variables import initializers, variable_functions, variable_scope
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.variables import ResourceVariable, Variable
from stoker._src.train.optimizers import slot_creator

_AVERAGED = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Updates variable -= (1 - decay) * (variable - value). Returns the updated value, or the variable in eager mode.

    With `zero_debias`, the variable holds the average divided by 1 - decay^updates, which corrects for its start at zero (Kingma
    and Ba, 2014, section 3). The uncorrected average and the count are kept in the variables `<variable>/biased` and
    `<variable>/local_step`.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        dtype = variable.dtype.base_dtype
        if isinstance(decay, (int, float)):
            step: Any = convert_to_tensor(1.0 - decay, dtype, name="decay")
        else:
            step = casting.cast(1.0 - convert_to_tensor(decay, name="decay"), dtype)
        if not isinstance(value, Variable) or value.dtype.base_dtype is not dtype:
            value = casting.cast(convert_to_tensor(value), dtype)
        if zero_debias:
            return _debiased(variable, value, step, scope)
        return _assigned(variable_functions.assign_sub, variable, (_read(variable) - value) * step, scope)


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None, name: str | None = None
) -> Any:
    """The moving average of value * weight, divided by that of weight. Both averages are updated when it is computed.

    Args:
        value: a tensor.
        decay: the fraction of the averages that is kept at each update.
        weight: a tensor that broadcasts to `value`.
        truediv: whether to divide integers as floating point numbers.
        collections: the collections of the two variables, `<name>/value_x_weight` and `<name>/weight`.
        name: the name scope ("WeightedMovingAvg").
    """
    collections = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope.variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        products = convert_to_tensor(value) * weight
        averages = []
        for label, tensor in (("value_x_weight", products), ("weight", convert_to_tensor(weight))):
            variable = variable_scope.get_variable(
                label,
                shape=tensor.get_shape(),
                dtype=tensor.dtype.base_dtype,
                initializer=initializers.Zeros(),
                trainable=False,
                collections=collections,
            )
            averages.append(assign_moving_average(variable, tensor, decay, zero_debias=False))
        divide = arithmetic.truediv if truediv else arithmetic.div
        return divide(averages[0], averages[1], name=scope.name.rsplit("/", 1)[-1])


def _read(variable: Any) -> Any:
    return variable.value() if isinstance(variable, Variable) else variable


def _assigned(function: Any, variable: Any, value: Any, scope: str | None = None) -> Any:
    """Calls an assignment, named after its scope if it can be a single op."""
    if isinstance(variable, ResourceVariable):
        return function(variable, value)
    return function(variable, value, name=scope)


def _debiased(variable: Any, value: Any, step: Any, scope: str) -> Any:
    biased, count = _debias_variables(variable)
    dtype = variable.dtype.base_dtype
    total = _assigned(variable_functions.assign_sub, biased, (_read(biased) - value) * step)
    updates = _assigned(variable_functions.assign_add, count, convert_to_tensor(1.0, dtype))
    if context.executing_eagerly():
        total, updates = biased.value(), count.value()
    bias = 1.0 - arithmetic.POW(1.0 - step, updates)
    return _assigned(variable_functions.assign, variable, total / bias, scope)


def _debias_variables(variable: Any) -> tuple[Any, Any]:
    owner = variable._name
    made: dict[str, Any] = {
        "initializer": initializers.Zeros(),
        "dtype": variable.dtype.base_dtype,
        "trainable": False,
        "use_resource": isinstance(variable, ResourceVariable),
    }
    with variable_scope.variable_scope(owner, reuse=variable_scope.AUTO_REUSE), control_dependencies(None):
        biased = variable_scope.get_variable("biased", shape=variable.static_shape, **made)
        count = variable_scope.get_variable("local_step", shape=[], **made)
    return biased, count


@export("train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Maintains shadow variables that are moving averages: shadow -= (1 - decay) * (shadow - variable).

        ema = tf.train.ExponentialMovingAverage(0.999)
        with tf.control_dependencies([train]):
            step = ema.apply()                       # run this to train and to average
        saver = tf.train.Saver(ema.variables_to_restore())   # evaluate with the averages

    The shadow of `w` is the variable `w/ExponentialMovingAverage`.

    Args:
        decay: a number or tensor close to 1.
        num_updates: a counter. The decay is limited to (1 + num_updates) / (10 + num_updates), which lowers it in early updates.
        zero_debias: whether to correct averages of tensors, which start at zero, for that bias.
        name: the name of the ops and of the shadows.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages: dict[Any, Any] = {}
        self._debiased: set[Any] = set()

    @property
    def name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def apply(self, var_list: Any = None) -> Any:
        """Returns an op that updates the shadows of `var_list` (in eager mode, updates them). Shadows are created on first use.

        The shadow of a variable starts at its initial value, and that of a tensor at zero. The variables are added to
        MOVING_AVERAGE_VARIABLES.

        Args:
            var_list: variables and tensors; the trainable variables by default.

        Raises:
            TypeError: an entry is not floating point, or is a tensor in eager mode.
        """
        if var_list is None:
            var_list = variable_functions.trainable_variables()
        averaged: list[Any] = []
        for item in var_list:
            averaged.extend(item) if isinstance(item, PartitionedVariable) else averaged.append(item)
        for var in averaged:
            if context.executing_eagerly() and not isinstance(var, Variable):
                raise TypeError(
                    "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager execution is enabled."
                )
            if var.dtype.base_dtype not in _AVERAGED:
                raise TypeError(f"The variables must be half, float, or double: {getattr(var, 'name', var)}")
            if var.ref() not in self._averages:
                # While a function is traced, shadows belong to the graph around it.
                with init_scope() if isinstance(var, Variable) and slot_creator.is_eager(var) else nullcontext():
                    self._make_shadow(var)
        with name_scope(self._name) as scope:
            decay = self._effective_decay()
            updates = []
            for var in averaged:
                shadow = self._averages[var.ref()]
                updated = assign_moving_average(shadow, var, decay, zero_debias=var.ref() in self._debiased)
                updates.append(updated)
            return grouping.group(*updates, name=scope)

    def _effective_decay(self) -> Any:
        decay = convert_to_tensor(self._decay, name="decay")
        if self._num_updates is None:
            return decay
        count: Any = casting.cast(self._num_updates, dtypes.float32, name="num_updates")
        return arithmetic.MINIMUM(decay, (1.0 + count) / (10.0 + count))

    def _make_shadow(self, var: Any) -> None:
        with control_dependencies(None):
            if isinstance(var, Variable):
                initial = var.value() if context.executing_eagerly() else var.initialized_value()
                shadow = slot_creator.create_slot(var, initial, self._name)
                context.get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            else:
                shadow = slot_creator.create_zeros_slot(var, self._name)
                if self._zero_debias:
                    self._debiased.add(var.ref())
        self._averages[var.ref()] = shadow

    def average(self, var: Any) -> Any:
        """The shadow of `var`, or None."""
        return self._averages.get(var.ref())

    def average_name(self, var: Any) -> str:
        """The name of the shadow of `var`, whether or not it exists yet."""
        shadow = self._averages.get(var.ref())
        if shadow is not None:
            return shadow._name
        owner = var._name if isinstance(var, Variable) else var.op.name
        graph = context.get_default_graph()
        return graph.unique_name(f"{owner}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """A map for a Saver that restores averaged variables from their shadows.

        Args:
            moving_avg_variables: the variables to restore from shadows; by default the averaged and the trainable ones.

        Returns:
            A dict from names in the checkpoint to variables: the shadow's name for those, and its own name for every other global variable.
        """
        if moving_avg_variables is None:
            chosen = variable_functions.trainable_variables() + variable_functions.moving_average_variables()
        else:
            chosen = list(moving_avg_variables)
        restored: dict[str, Any] = {}
        names = set()
        for var in dict.fromkeys(chosen):
            restored[self.average_name(var)] = var
            names.add(var.name)
        for var in dict.fromkeys(variable_functions.global_variables()):
            if var.name not in names and var.op.name not in restored:
                restored[var.op.name] = var
        return restored
