"""`tf.keras.optimizers`: hyperparameters are variables, and the number of steps is one, too."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from stoker._src.base import dtypes, settings
from stoker._src.base.export import export
from stoker._src.graph import context, scopes
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.trackable import Trackable
from stoker._src.keras import together
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.keras.sessions import batch_get_value, batch_set_value, remember_variable
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.collective import replicas
from stoker._src.ops.control_flow import gradients as control_flow_gradients
from stoker._src.ops.math import clipping
from stoker._src.ops.variables import variables as variables_variables
from stoker._src.runtime.eager import tape
from stoker._src.train.optimizers import optimizer as train_optimizer
from stoker._src.train.optimizers.replicated import reduced

_OLD_NAMES = {"lr": "learning_rate"}
_BOUNDS = ("clipnorm", "clipvalue", "global_clipnorm")


@export("keras.optimizers.Optimizer")
class Optimizer(Trackable):
    """The base of optimizers.

    A subclass lists its numbers with `_set_hyper`, creates slots in `_create_slots`, and updates a variable in
    `_resource_apply_dense` and `_resource_apply_sparse`.

    Args:
        name: the name of its variables' scope.
        **kwargs: `clipnorm`, `clipvalue`: bounds of gradients, each on its own; `global_clipnorm`: a bound of the norm of all
            gradients together; `lr`, `decay`: the learning rate and how fast it falls.

    The bounds hold for the gradients that the optimizer computes itself, and with the behaviour of 2.x for all that
    `apply_gradients` gets.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        for key, value in kwargs.items():
            if key not in (*_BOUNDS, "lr", "decay"):
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {key}")
            if value is not None and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        self._name = name
        self._hyper: dict[str, Any] = {}
        self._slots: dict[int, dict[str, Any]] = {}
        self._slot_names: list[str] = []
        self._weights: list[Any] = []
        self._owners: list[Any] = []
        self._iterations: Any = None
        self._made_hypers = False
        self._pending_slots: dict[tuple[int, str], list[Any]] = {}
        decay = kwargs.pop("decay", 0.0)
        self._initial_decay = decay
        self.clipnorm, self.clipvalue, self.global_clipnorm = (kwargs.get(each) for each in _BOUNDS)

    # -- hyperparameters -----------------------------------------------------------------------------------------

    def _set_hyper(self, name: str, value: Any) -> None:
        held = self._hyper.get(name)
        if held is None or not hasattr(held, "assign"):
            if hasattr(value, "get_config") and isinstance(value, Trackable):
                self._track_trackable(value, name, overwrite=True)
            self._hyper[name] = value
        elif context.executing_eagerly():
            held.assign(value)
        else:
            batch_set_value([(held, value)])

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        self._create_hypers()
        value = self._hyper[name]
        value = (
            value() if callable(value) and not hasattr(value, "assign") and not hasattr(value, "get_config") else value
        )
        return value if dtype is None or hasattr(value, "get_config") else casting.cast(value, dtype)

    def __getattribute__(self, name: str) -> Any:
        try:
            return super().__getattribute__(name)
        except AttributeError:
            hyper = self.__dict__.get("_hyper", {})
            key = _OLD_NAMES.get(name, name)
            if key in hyper:
                return self._get_hyper(key)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        key = _OLD_NAMES.get(name, name)
        if key in self.__dict__.get("_hyper", {}):
            self._set_hyper(key, value)
        else:
            super().__setattr__(name, value)

    def _create_hypers(self) -> None:
        if self._made_hypers:
            return
        self._made_hypers = True
        for name, value in sorted(self._hyper.items()):
            if callable(value) or hasattr(value, "static_shape"):
                continue
            # The numbers of an update are computed on the host; with a GPU, reading them there would wait for the step before.
            with scopes.device("/device:CPU:0"):
                self._hyper[name] = self.add_weight(name, [], initializer=value, trainable=False)

    def add_weight(
        self, name: str, shape: Any, dtype: Any = None, initializer: Any = "zeros", trainable: bool = False, **_: Any
    ) -> Any:
        """Creates a variable of the optimizer."""
        kind = dtype or dtypes.float32
        with scopes.init_scope():
            value = initializer if isinstance(initializer, (int, float)) else shaping.zeros(shape, kind)
            made = variables_variables.Variable(
                lambda: constants.constant(value, kind, shape) if isinstance(value, (int, float)) else value,
                name=name,
                trainable=trainable,
                dtype=kind,
                use_resource=True,
            )
        remember_variable(made)
        self._track_trackable(made, name, overwrite=True)
        return made

    @property
    def iterations(self) -> Any:
        """How often `apply_gradients` has run."""
        if self._iterations is None:
            self._iterations = self.add_weight("iter", [], dtypes.int64, 0)
            self._weights.insert(0, self._iterations)
        return self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights have been created"
            )
        self._iterations = variable
        self._weights.insert(0, variable)
        self._track_trackable(variable, "iter", overwrite=True)

    def _decayed_lr(self, dtype: Any) -> Any:
        rate = self._get_hyper("learning_rate", dtype)
        if hasattr(rate, "get_config"):
            rate = casting.cast(rate(casting.cast(self.iterations, dtype)), dtype)
        if self._initial_decay > 0.0:
            steps = casting.cast(self.iterations, dtype)
            rate = rate / (1.0 + casting.cast(self._get_hyper("decay"), dtype) * steps)
        return rate

    # -- slots ---------------------------------------------------------------------------------------------------

    def _key(self, variable: Any) -> int:
        return id(variable)

    def add_slot(self, var: Any, slot_name: str, initializer: Any = 0.0) -> Any:
        """The slot of a variable, created on the first call: a variable of its shape."""
        if slot_name not in self._slot_names:
            self._slot_names.append(slot_name)
        mine = self._slots.setdefault(self._key(var), {})
        if slot_name in mine:
            return mine[slot_name]
        kind = var.dtype.base_dtype
        shape = var.shape.as_list()
        name = f"{var.name.split(':')[0]}/{slot_name}"
        with scopes.init_scope():
            made = variables_variables.Variable(
                lambda: (
                    shaping.fill(shape, constants.constant(float(initializer), kind))
                    if initializer
                    else shaping.zeros(shape, kind)
                ),
                name=name,
                trainable=False,
                dtype=kind,
                use_resource=True,
            )
        mine[slot_name] = made
        remember_variable(made)
        self._owners.append(var)
        self._weights.append(made)
        for pending in self._pending_slots.pop((self._key(var), slot_name), ()):
            pending.restore(made)
        return made

    def get_slot(self, var: Any, slot_name: str) -> Any:
        return self._slots.get(self._key(var), {}).get(slot_name)

    def get_slot_names(self) -> list[str]:
        return list(self._slot_names)

    def _restore_slot(self, slot_name: str, variable: Any, pending: Any, value: Any) -> None:
        """Restores a slot from a checkpoint: now, or when it is created."""
        slot = self.get_slot(variable, slot_name)
        if slot is None and value is not None:
            slot = self.add_slot(variable, slot_name)
        if slot is not None:
            pending.restore(slot)
        else:
            self._pending_slots.setdefault((self._key(variable), slot_name), []).append(pending)

    def _create_slots(self, var_list: list[Any]) -> None:
        """Creates the slots of all variables."""

    # -- training ------------------------------------------------------------------------------------------------

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients of a loss in a graph, within the bounds.

        Raises:
            ValueError: a parameter has no gradient.
        """
        found = control_flow_gradients.gradients(loss, list(params))
        for gradient, parameter in zip(found, params):
            if gradient is None:
                raise ValueError(
                    f"Variable {parameter} has `None` for gradient. Please make sure that all of your ops have a gradient defined (i.e. are differentiable)."
                )
        return self._bounded(found)

    _averages = False  # over the processes that train a model together

    def _bounded(self, gradients: list[Any]) -> list[Any]:
        """The gradients that the optimizer computed: averaged over processes and, unless `apply_gradients` does that, clipped."""
        if self._averages:
            gradients = together.averaged(gradients)
        return gradients if settings.tensor_equality else self._clipped(gradients)

    def _clipped(self, gradients: list[Any]) -> list[Any]:
        if self.clipnorm:
            gradients = [each if each is None else clipping.clip_by_norm(each, self.clipnorm) for each in gradients]
        if self.clipvalue:
            gradients = [
                each if each is None else clipping.clip_by_value(each, -self.clipvalue, self.clipvalue)
                for each in gradients
            ]
        if self.global_clipnorm:
            gradients = clipping.clip_by_global_norm(gradients, self.global_clipnorm)[0]
        return gradients

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """The op of one training step, in a list."""
        return [self.apply_gradients(list(zip(self.get_gradients(loss, params), params)))]

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None) -> list[Any]:
        if callable(loss):
            with tape.GradientTape() as recorded:
                if not callable(var_list):
                    recorded.watch(var_list)
                value = loss()
            chosen: Any = var_list() if callable(var_list) else var_list
            found = recorded.gradient(value, list(chosen), grad_loss)
        else:
            chosen = var_list() if callable(var_list) else var_list
            found = control_flow_gradients.gradients(loss, list(chosen), grad_loss)
        return list(zip(self._bounded(found), chosen))

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """One training step: a loss, or a function that computes it, and the variables to change."""
        return self.apply_gradients(self._compute_gradients(loss, var_list, grad_loss), name)

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """Updates variables by (gradient, variable) pairs.

        Raises:
            ValueError: no variable has a gradient.
        """
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        variables = [variable for _, variable in pairs]
        strategy, replica = replicas.current()
        if replica is not None and strategy.num_replicas_in_sync > 1:
            pairs = reduced(pairs, mean=False)
        if settings.tensor_equality:
            pairs = list(zip(self._clipped([gradient for gradient, _ in pairs]), variables))
        with scopes.NameScope(self._name):
            with scopes.init_scope():
                self.iterations  # noqa: B018
                self._create_hypers()
                self._create_slots(variables)
            self._prepare(variables[0].dtype.base_dtype)
            with scopes.NameScope(name or "update"):
                updates = []
                with train_optimizer.updates_together():
                    for gradient, variable in pairs:
                        op = self._update(gradient, variable)
                        if variable.constraint is not None:
                            with scopes.control_dependencies([op] if op is not None else []):
                                op = variable.assign(variable.constraint(variable))
                        updates.append(op)
                if context.executing_eagerly():
                    return self.iterations.assign_add(1)
                with scopes.control_dependencies([getattr(each, "op", each) for each in updates]):
                    return self.iterations.assign_add(1, read_value=False)

    def _prepare(self, dtype: Any) -> None:
        """Computes what all variables need: the learning rate and so on."""
        self._rate = self._decayed_lr(dtype)

    def _number(self, name: str, variable: Any) -> Any:
        return casting.cast(self._get_hyper(name), variable.dtype.base_dtype)

    def _update(self, gradient: Any, variable: Any) -> Any:
        if not isinstance(gradient, IndexedSlices):
            return self._resource_apply_dense(gradient, variable)
        values, rows = train_optimizer.sum_duplicates(gradient.values, gradient.indices)
        return self._resource_apply_sparse(values, variable, rows)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        raise NotImplementedError

    # -- values --------------------------------------------------------------------------------------------------

    @property
    def weights(self) -> list[Any]:
        return list(self._weights)

    def variables(self) -> list[Any]:
        return list(self._weights)

    def get_weights(self) -> list[Any]:
        """The values of its weights."""
        return batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Assigns arrays to its weights.

        Raises:
            ValueError: their number or a shape differs.
        """
        mine = self.weights
        if len(mine) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on optimizer {self._name} with a  weight list of length {len(weights)}, but the optimizer was expecting {len(mine)} weights. Provided weights: {str(weights)[:50]}..."
            )
        for variable, value in zip(mine, weights):
            if tuple(variable.shape.as_list()) != np.shape(value):
                raise ValueError(
                    f"Optimizer weight shape {tuple(variable.shape.as_list())} not compatible with provided weight shape {np.shape(value)}"
                )
        batch_set_value(list(zip(mine, weights)))

    def _serialized(self, name: str) -> Any:
        value = self._hyper[name]
        if hasattr(value, "get_config"):
            return _serialize(value)
        if hasattr(value, "assign"):
            return float(batch_get_value([value])[0])
        return value() if callable(value) else value

    def get_config(self) -> dict[str, Any]:
        """The arguments that create an equal optimizer."""
        config: dict[str, Any] = {"name": self._name}
        for name in _BOUNDS:
            if getattr(self, name) is not None:
                config[name] = getattr(self, name)
        config.update((name, self._serialized(name)) for name in self._hyper)
        config["decay"] = config.get("decay", self._initial_decay)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        if "lr" in config:
            config["learning_rate"] = config.pop("lr")
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = _deserialize(config["learning_rate"], "optimizers.schedules", custom_objects)
        return cls(**config)


class TFOptimizer(Optimizer):
    """An optimizer of `tf.train` inside a model."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__("TFOptimizer")
        self.optimizer = optimizer
        self._track_trackable(optimizer, "optimizer", overwrite=True)

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        with together.apart() if self._averages else nullcontext():
            if context.executing_eagerly():
                self.optimizer.apply_gradients(grads_and_vars)
                return self.iterations.assign_add(1)
            return self.optimizer.apply_gradients(grads_and_vars, global_step=self.iterations)

    @property
    def weights(self) -> list[Any]:
        raise NotImplementedError("Weights of an optimizer of tf.train: use its variables().")

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("Configurations of optimizers of tf.train.")


@export("keras.optimizers.serialize")
def serialize(optimizer: Any) -> Any:
    """The configuration of an optimizer."""
    return _serialize(optimizer)


@export("keras.optimizers.deserialize")
def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The optimizer that a configuration describes."""
    names = {
        each.lower(): each for each in ("SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl")
    }
    if isinstance(config, dict):
        config = {**config, "class_name": names.get(config["class_name"].lower(), config["class_name"])}
    return _deserialize(config, "optimizers", custom_objects)


@export("keras.optimizers.get")
def get(identifier: Any) -> Any:
    """An optimizer from an object, a name or a configuration.

    Raises:
        ValueError: it cannot be interpreted.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, train_optimizer.Optimizer):
        return TFOptimizer(identifier)
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    raise ValueError(f"Could not interpret optimizer identifier: {identifier}")
