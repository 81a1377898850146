"""`tf.contrib.eager`: gradients of Python functions, metrics and checkpoints of eager programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.ops.variables.variable_scope import VariableStore, variable_store_as
from stoker._src.ops.variables.variables import ResourceVariable
from stoker._src.runtime.device_config import list_logical_devices
from stoker._src.runtime.eager.tape import GradientTape
from stoker._src.runtime.functions import def_function
from stoker._src.train.checkpoints.saver import Saver as _Saver


def _parameters(args: tuple[Any, ...], params: Any, f: Callable[..., Any]) -> list[int]:
    """The positions of the arguments to differentiate by.

    Raises:
        ValueError: a name is none of the function's arguments, or a position is beyond them.
    """
    if params is None:
        return list(range(len(args)))
    names = f.__code__.co_varnames[: f.__code__.co_argcount] if hasattr(f, "__code__") else ()
    places = []
    for each in params:
        if isinstance(each, str):
            if each not in names:
                raise ValueError(
                    f"params must be indices or names of arguments of the function; {each!r} is none of {names}"
                )
            places.append(names.index(each))
        elif not 0 <= each < len(args):
            raise ValueError(f"params has the position {each}, but there are {len(args)} arguments")
        else:
            places.append(each)
    return places


def _returned(f: Callable[..., Any], result: Any) -> Any:
    if result is None:
        raise ValueError(f"Cannot differentiate a function that returns None; did you forget to return from {f}?")
    return result


@export(v1="contrib.eager.value_and_gradients_function")
def value_and_gradients_function(f: Callable[..., Any], params: Any = None) -> Callable[..., Any]:
    """A function that returns what `f` returns and its gradients by arguments.

    Args:
        f: a function of tensors.
        params: positions or names of the arguments to differentiate by; None for all.
    """

    def decorated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, list[Any]]:
        values = [convert_to_tensor(each) for each in args]
        sources = [values[i] for i in _parameters(args, params, f)]
        with GradientTape() as tape:
            tape.watch(sources)
            result = _returned(f, f(*values, **kwargs))
        return result, tape.gradient(result, sources, dy)

    return decorated


@export(v1="contrib.eager.gradients_function")
def gradients_function(f: Callable[..., Any], params: Any = None) -> Callable[..., Any]:
    """A function that returns the gradients of `f`; arguments as in `value_and_gradients_function`."""
    both = value_and_gradients_function(f, params)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


@export(v1="contrib.eager.implicit_value_and_gradients")
def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns what `f` returns, and (gradient, variable) for each trainable variable that `f` used."""

    def decorated(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        with GradientTape() as tape:
            result = _returned(f, f(*args, **kwargs))
        used = tape.watched_variables()
        if not used:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        return result, list(zip(tape.gradient(result, used), used))

    return decorated


@export(v1="contrib.eager.implicit_gradients")
def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns (gradient, variable) for each trainable variable that `f` used."""
    both = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


@export(v1="contrib.eager.Variable")
class Variable(ResourceVariable):
    """`tf.Variable` as a resource, which eager programs need."""


@export(v1="contrib.eager.EagerVariableStore")
class EagerVariableStore:
    """Keeps the variables that eager code creates by name (as layers given as functions do), for the next call to find.

    store = EagerVariableStore()
    for batch in dataset:
        with store.as_default():
            x = tf.layers.dense(batch, 10, name="first")
    """

    def __init__(self) -> None:
        if not context.executing_eagerly():
            raise RuntimeError(
                "EagerVariableStore can only be used when eager execution is enabled; graphs keep variables."
            )
        self._store = VariableStore(eager=True)

    def as_default(self) -> Any:
        """A block in which `get_variable` finds and keeps variables here."""
        return variable_store_as(self._store)

    def variables(self) -> list[Any]:
        """All variables, sorted by name."""
        return sorted(self._store.variables.values(), key=lambda each: each.name)

    def trainable_variables(self) -> list[Any]:
        return [each for each in self.variables() if each.trainable]

    def non_trainable_variables(self) -> list[Any]:
        return [each for each in self.variables() if not each.trainable]


@export(v1="contrib.eager.get_optimizer_variables")
def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """`optimizer.variables()`."""
    return optimizer.variables()


@export(v1="contrib.eager.list_devices")
def list_devices() -> list[str]:
    """The names of the devices that `tf.device` takes."""
    return [f"/job:localhost/replica:0/task:0{each.name}" for each in list_logical_devices()]


@export(v1="contrib.eager.num_gpus")
def num_gpus() -> int:
    """The number of GPUs that programs may use."""
    return len(list_logical_devices("GPU"))


@export(v1="contrib.eager.Saver")
class Saver:
    """Saves and restores variables by their names, in eager programs."""

    def __init__(self, var_list: Any) -> None:
        if context.executing_eagerly() is False:
            raise RuntimeError(
                "tf.contrib.eager.Saver may only be used when eager execution is enabled; use tf.train.Saver."
            )
        self._saver = _Saver(var_list=var_list)

    def save(self, file_prefix: Any, global_step: Any = None) -> str | None:
        """Writes the variables and returns the prefix of the files."""
        return self._saver.save(None, file_prefix, write_meta_graph=False, global_step=global_step)

    def restore(self, file_prefix: Any) -> None:
        """Reads the variables."""
        self._saver.restore(None, file_prefix)


@export(v1="contrib.eager.Iterator")
class Iterator:
    """The elements of a dataset, one after another, in eager programs."""

    def __init__(self, dataset: Any) -> None:
        if not context.executing_eagerly():
            raise RuntimeError(
                "tf.contrib.eager.Iterator objects can only be used when eager execution is enabled; use "
                "tf.data.Dataset.make_initializable_iterator or tf.data.Dataset.make_one_shot_iterator for graph construction"
            )
        self._elements = iter(dataset)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    next = __next__


@export(v1="contrib.eager.defun")
def defun(func: Any = None, input_signature: Any = None, autograph: bool = True, **hints: Any) -> Any:
    """`tf.function` under its older name. The hints of experimental_autograph_options change nothing that a program sees."""
    return def_function.function(func, input_signature=input_signature, autograph=autograph)
