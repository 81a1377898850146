"""`Scaffold`: the pieces of a graph that a training session needs, taken from the graph or added to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.constants import constant
from stoker._src.ops.array.joining import concat
from stoker._src.ops.control_flow.grouping import group, no_op
from stoker._src.ops.resources.tables import tables_initializer
from stoker._src.ops.summary.summary_ops import merge_all
from stoker._src.ops.variables.reports import report_uninitialized_variables
from stoker._src.ops.variables.variable_functions import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
)
from stoker._src.train.checkpoints.checkpoint import Checkpoint, CheckpointV1
from stoker._src.train.checkpoints.object_graph import OBJECT_GRAPH_KEY, ObjectGraph
from stoker._src.train.checkpoints.saver import Saver
from stoker._src.train.training_util import get_global_step


def _initialize_resources(key: str) -> Any:
    """Returns an op that initializes the resources of a collection."""
    made = [resource.create for resource in context.get_default_graph().get_collection(key)]
    return group(*made, name="init") if made else no_op(name="init")


def _report_uninitialized_resources() -> Tensor:
    with name_scope("report_uninitialized_resources"):
        return constant([], dtype=dtypes.string)


def default_ready_op() -> Tensor:
    """Returns the names of all uninitialized variables and resources."""
    return concat([report_uninitialized_variables(), _report_uninitialized_resources()], 0)


def default_ready_for_local_init_op() -> Tensor:
    """Returns the names of uninitialized global variables."""
    return concat([report_uninitialized_variables(global_variables()), _report_uninitialized_resources()], 0)


def saver_or_default() -> Any:
    """Returns the saver of the default graph. If there is none, creates and stores it."""
    return Scaffold.get_or_default("saver", GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True))


class _ObjectGraphSaveable(SaveableObject):
    """The description of saved objects, which a checkpoint contains beside their values."""

    def __init__(self, description: bytes) -> None:
        text = constant(description, dtypes.string)
        super().__init__(text, [SaveSpec(text, "", OBJECT_GRAPH_KEY)], OBJECT_GRAPH_KEY)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        """The objects are those of the program, so there is nothing to restore."""
        return no_op()


def _saver_of_objects(checkpoint: Any) -> Saver:
    """Returns a saver of everything that is currently reachable from an object-based checkpoint."""
    graph = ObjectGraph(checkpoint)
    values = graph.values()
    description = graph.message(values).SerializeToString(deterministic=True)
    return Saver([*(value.saveable() for value in values), _ObjectGraphSaveable(description)], sharded=True)


@export(v1="train.Scaffold")
class Scaffold:
    """The pieces of a graph that are needed to initialize and train a model.

    `finalize` takes missing pieces from their collections (`GraphKeys.INIT_OP` and so on), or else creates them and stores them
    there.

    Args:
        init_op: initializes the model.
        init_feed_dict: feeds of `init_op`.
        init_fn: A function that is called as `init_fn(scaffold, session)` after `init_op`.
        ready_op: Returns the names of uninitialized variables. The model is ready if there are none.
        ready_for_local_init_op: Like `ready_op`, but checked before `local_init_op` runs.
        local_init_op: initializes local variables and tables, in every session.
        summary_op: Returns the summaries of the graph.
        saver: A Saver, or an object-based `tf.train.Checkpoint`, whose objects are saved under their keys.
        copy_from_scaffold: A scaffold that provides the missing pieces.
        local_init_feed_dict: feeds of `local_init_op`.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError(f"copy_from_scaffold is not a Scaffold instance: {copy_from_scaffold}")

        def piece(given: Any, name: str) -> Any:
            return getattr(copy_from_scaffold, name) if given is None and copy_from_scaffold is not None else given

        self._init_op = piece(init_op, "init_op")
        self._init_feed_dict = piece(init_feed_dict, "init_feed_dict")
        self._ready_op = piece(ready_op, "ready_op")
        self._ready_for_local_init_op = piece(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = piece(local_init_op, "local_init_op")
        self._local_init_feed_dict = piece(local_init_feed_dict, "local_init_feed_dict")
        self._summary_op = piece(summary_op, "summary_op")
        self._saver = piece(saver, "saver")
        if init_fn is None:
            self._init_fn = None if copy_from_scaffold is None else copy_from_scaffold.init_fn
        else:
            self._init_fn = lambda session: init_fn(self, session)
        self._global_step: Any = None

    def finalize(self) -> Scaffold:
        """Finds or creates the missing pieces and finalizes the graph. It may be called more than once."""
        self._init_op = self._piece(
            "init_op",
            GraphKeys.INIT_OP,
            lambda: group(global_variables_initializer(), _initialize_resources(GraphKeys.RESOURCES)),
        )
        self._ready_op = self._piece("ready_op", GraphKeys.READY_OP, default_ready_op)
        self._ready_for_local_init_op = self._piece(
            "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP, default_ready_for_local_init_op
        )
        self._local_init_op = self._piece("local_init_op", GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op)
        self._summary_op = self._piece("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = saver_or_default()
        elif isinstance(self._saver, (Checkpoint, CheckpointV1)):
            self._saver = _saver_of_objects(self._saver)
        if isinstance(self._saver, Saver):
            self._saver.build()
        self._global_step = get_global_step()
        context.get_default_graph().finalize()
        tf_logging.info("Graph was finalized.")
        return self

    def _piece(self, name: str, key: str, make: Callable[[], Any]) -> Any:
        given = getattr(self, f"_{name}")
        return given if given is not None else Scaffold.get_or_default(name, key, make)

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """Returns the item of a collection. If the collection is empty, calls `default_constructor` and stores its result there.

        Raises:
            RuntimeError: The collection has several items.
        """
        graph = context.get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f"More than one item in the collection {collection_key}. Please indicate which one to use by passing it to "
                f"the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Initializes local variables, tables and local resources."""
        return group(
            local_variables_initializer(), tables_initializer(), _initialize_resources(GraphKeys.LOCAL_RESOURCES)
        )

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def init_fn(self) -> Any:
        return self._init_fn

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def global_step(self) -> Any:
        """The global step of the graph. Available when the graph is final."""
        return self._global_step
