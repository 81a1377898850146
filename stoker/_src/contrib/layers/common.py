"""What the layers of contrib share: names of variables, collections of variables and outputs, normalizer and activation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from stoker._src.base import shapes
from stoker._src.base.export import export
from stoker._src.contrib.framework.variables import model_variable
from stoker._src.graph import context, public
from stoker._src.graph import tensor as graph_tensor
from stoker._src.layers.base import known_flag
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables import variables as variables_variables
from stoker._src.ops.variables.partitioned import PartitionedVariable


def both(*names: str) -> list[str]:
    """The names of a function in `contrib.layers` and in `contrib.slim`."""
    return [f"contrib.{room}.{name}" for name in names for room in ("layers", "slim")]


def utility(name: str) -> list[str]:
    """The names of a function in the `utils` of layers and slim."""
    return [f"contrib.layers.utils.{name}", f"contrib.slim.utils.{name}"]


# The names of variables in tf.layers -> their names here.
_RENAMED = {
    "kernel": "weights",
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}


def model_variable_getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A custom getter that makes the variables of layers model variables with the names of contrib."""
    head, slash, last = name.rpartition("/")
    reuse, constraint = kwargs.pop("reuse", None), kwargs.pop("constraint", None)
    validate_shape = kwargs.pop("validate_shape", True)

    def get(name: str, **given: Any) -> Any:
        given["reuse"] = reuse  # that of the scope in which the layer asked
        return getter(name, **given, constraint=constraint, validate_shape=validate_shape)

    return model_variable(head + slash + _RENAMED.get(last, last), *args, **kwargs, custom_getter=get)


@contextmanager
def layer_scope(scope: Any, default: str, inputs: Any, reuse: Any) -> Iterator[Any]:
    """The variable scope of a layer, whose variables are model variables."""
    with variable_scope.variable_scope(
        scope, default, [inputs], reuse=reuse, custom_getter=model_variable_getter
    ) as opened:
        yield opened


def finished(
    outputs: Any,
    scope: str,
    activation_fn: Any,
    outputs_collections: Any,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
) -> Any:
    """Applies the normalizer and the activation, and adds the result to its collections under the name of the scope."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, scope, outputs)


def add_to_collections(variables: Any, collections: Any, kind: str) -> None:
    """Adds a variable, or its parts, to the collections of its kind ("weights", "biases", ...)."""
    chosen = get_variable_collections(collections, kind)
    for each in variables if isinstance(variables, PartitionedVariable) else [variables]:
        for key in chosen:
            public.add_to_collection(key, each)


def checked_layout(data_format: str, allowed: tuple[str, ...] = ("NCHW", "NHWC")) -> str:
    """`channels_first` or `channels_last` for TensorFlow's name of a layout.

    Raises:
        ValueError: the name is none of those allowed.
    """
    if data_format not in allowed:
        raise ValueError(f"data_format has to be either {' or '.join(allowed)}.")
    return "channels_first" if data_format.startswith("NC") else "channels_last"


# -- contrib.layers.utils ----------------------------------------------------------------------------------------------


@export(v1=utility("NamedOutputs"))
class NamedOutputs(NamedTuple):
    """An output and its name."""

    name: str
    outputs: Any


@export(v1=utility("collect_named_outputs"))
def collect_named_outputs(collections: Any, alias: str | None, outputs: Any) -> Any:
    """Adds an output to collections with `alias` as its name, and returns it."""
    if collections:
        append_tensor_alias(outputs, alias)
        public.add_to_collections(collections, outputs)
    return outputs


@export(v1=utility("append_tensor_alias"))
def append_tensor_alias(tensor: Any, alias: str | None) -> Any:
    """Gives a tensor another name for `convert_collection_to_dict`."""
    if alias is not None:
        alias = alias.removesuffix("/")
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias]
    return tensor


@export(v1=utility("get_tensor_aliases"))
def get_tensor_aliases(tensor: Any) -> list[str]:
    """The names that a tensor was given; by default that of its op."""
    return getattr(tensor, "aliases", None) or [tensor.name.removesuffix(":0")]


@export(v1=utility("gather_tensors_aliases"))
def gather_tensors_aliases(tensors: Any) -> list[str]:
    """The names that tensors were given."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


@export(v1=utility("convert_collection_to_dict"))
def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """The outputs in a collection by their names.

    Args:
        collection: the name of the collection.
        clear_collection: whether to empty it.
    """
    found = OrderedDict(
        (alias, tensor) for tensor in public.get_collection(collection) for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        context.get_default_graph().clear_collection(collection)
    return found


@export(v1=utility("get_variable_collections"))
def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of a kind of variables: those of the dictionary for it, or the same for all kinds."""
    if isinstance(variables_collections, dict):
        variables_collections = variables_collections.get(name, None)
    return [] if variables_collections is None else variables_collections


@export(v1=utility("constant_value"))
def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value of a constant; None if it is not known before the graph runs.

    Raises:
        ValueError: the argument is None, or is of another dtype.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if isinstance(value, (graph_tensor.Tensor, variables_variables.Variable)):
        if dtype and value.dtype != dtype:
            raise ValueError(f"It has the wrong type {value.dtype} instead of {dtype}")
        return None if isinstance(value, variables_variables.Variable) else public.get_static_value(value)
    if dtype and not isinstance(value, dtype):
        raise ValueError(f"It has the wrong type {type(value)} instead of {dtype}")
    return value


@export(v1=utility("static_cond"))
def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """The result of one of two functions by a Python bool.

    Raises:
        TypeError: an argument is not callable.
    """
    if not callable(fn1) or not callable(fn2):
        raise TypeError("fn1 and fn2 must be callable.")
    return fn1() if pred else fn2()


@export(v1=utility("smart_cond"))
def smart_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """The result of one of two functions. Only if the predicate is not known before the graph runs, both are built."""
    known = known_flag(pred)
    return branches_and_loops.cond(pred, fn1, fn2, name=name) if known is None else static_cond(known, fn1, fn2)


@export(v1=utility("channel_dimension"))
def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int | None:
    """The number of channels of a shape.

    Raises:
        ValueError: the rank is too small or unknown.
    """
    return _size(shape, 1 if data_format.startswith("NC") else -1, min_rank)


@export(v1=utility("last_dimension"))
def last_dimension(shape: Any, min_rank: int = 1) -> int | None:
    """The last size of a shape.

    Raises:
        ValueError: the rank is too small or unknown.
    """
    return _size(shape, -1, min_rank)


def _size(shape: Any, axis: int, min_rank: int) -> int | None:
    sizes = shapes.TensorShape(shape)
    if sizes.ndims is None:
        raise ValueError("dims of shape must be known but is None")
    if len(sizes) < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {len(sizes)}")
    return shapes.dimension_value(sizes[axis])


@export(v1=utility("two_element_tuple"))
def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Height and width: one number for both, or two.

    Raises:
        ValueError: the argument is neither.
    """
    return n_positive_integers(2, int_or_tuple)  # type: ignore[return-value]


@export(v1=utility("n_positive_integers"))
def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """`n` positive integers: one number for all, or `n` of them.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: the numbers are not positive, or not `n`.
    """
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError("n must be an integer")
    if n < 1:
        raise ValueError("n must be >= 1")
    given = value.as_list() if hasattr(value, "as_list") else value
    values: tuple[int, ...] = (given,) * n if isinstance(given, int) else tuple(given)
    if len(values) != n or any(not isinstance(each, int) or each < 1 for each in values):
        raise ValueError(f"Must be list of {n} positive integers: {value}")
    return values
