"""What an input function returns, as tensors of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.data.dataset import Dataset, make_initializable_iterator
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.train.sessions.run_hooks import SessionRunHook


class DatasetInitializerHook(SessionRunHook):
    """Starts the pass over a dataset when a session is created."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names of the arguments that can be given by name, without bound ones. `*args` and `**kwargs` do not count.

    A `functools.partial` hides the arguments it gives.
    """
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    target = function
    given: set[str] = set()
    while hasattr(target, "func") and hasattr(target, "keywords"):  # functools.partial
        given.update(target.keywords or ())
        target = target.func
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind in kinds and each.name not in given)


def takes_any_name(function: Callable[..., Any]) -> bool:
    """Whether a function takes `**kwargs`."""
    kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def tensors_of(result: Any) -> tuple[Any, Any, list[Any]]:
    """Returns (features, labels, hooks) for what an input function returned: a dataset, a pair, or features alone.

    Raises:
        ValueError: a tuple that is not a pair.
    """
    hooks: list[Any] = []
    if isinstance(result, Dataset):
        iterator = make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1], hooks
    return result, None, hooks


def features_of(result: Any) -> tuple[Any, list[Any]]:
    """Returns (features, hooks) for what the input function of a prediction returned. Labels are left out."""
    hooks: list[Any] = []
    if isinstance(result, Dataset):
        iterator = make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    elif not context.get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS):
        tf_logging.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict yields forever. "
            "This is probably a mistake."
        )
    if isinstance(result, (list, tuple)):
        result = result[0]
    return result, hooks
