"""One evaluation of a checkpoint: batches update metrics, whose values are read at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

from stoker._src.base import dtypes, tf_logging
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.train.sessions.basic_hooks import FinalOpsHook
from stoker._src.train.sessions.monitored import ChiefSessionCreator, MonitoredSession
from stoker._src.train.sessions.run_hooks import SessionRunArgs, SessionRunHook
from stoker._src.train.sessions.scaffold import Scaffold

_EVAL_STEP = GraphKeys.EVAL_STEP


def get_or_create_eval_step() -> Any:
    """Returns the variable that counts the batches of an evaluation.

    Raises:
        ValueError: there are several.
    """
    graph = context.get_default_graph()
    found = graph.get_collection(_EVAL_STEP)
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    return variable_scope.get_variable(
        _EVAL_STEP,
        shape=[],
        dtype=dtypes.int64,
        initializer=initializers.Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, _EVAL_STEP],
    )


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after a number of batches, and logs how far it is.

    Args:
        num_evals: the number of batches; None ends with the input.
        log_progress: whether to log.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals, self._log_progress = num_evals, log_progress
        self._evals_completed: Any = None
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else math.floor(num_evals / 10.0)

    def set_evals_completed_tensor(self, tensor: Any) -> None:
        """Tells the hook the tensor that counts batches."""
        self._evals_completed = tensor

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        done = int(run_values.results["evals_completed"])
        if self._log_progress:
            if self._num_evals is None:
                tf_logging.info("Evaluation [%d]", done)
            elif done % self._log_frequency == 0 or done == self._num_evals:
                tf_logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def evaluate_each(
    checkpoints: Iterable[str | None],
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    final_ops: Any = None,
    hooks: Any = None,
    config: Any = None,
    feed_dict: Any = None,
    final_ops_feed_dict: Any = None,
) -> Iterator[Any]:
    """For each checkpoint, runs `eval_ops` until the input ends or a hook stops it, and yields the values of `final_ops`.

    Args:
        checkpoints: the checkpoints to restore; None to initialize variables.
        master: the target of the sessions.
        scaffold: the pieces of the graph.
        eval_ops: what each batch runs.
        final_ops: what is fetched at the end, in any structure.
        hooks: hooks of the sessions. A StopAfterNEvalsHook is told the number of batches.
        config: a ConfigProto.
        feed_dict, final_ops_feed_dict: the feeds of `eval_ops` and of `final_ops`.
    """
    eval_step = get_or_create_eval_step()
    hooks, scaffold = list(hooks or []), scaffold or Scaffold()
    counted = None
    if eval_ops is not None:
        # The step counts batches that have been evaluated, so it waits for their updates.
        with control_dependencies(_flat(eval_ops)):
            counted = eval_step.assign_add(1, use_locking=True)
        for hook in hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook.set_evals_completed_tensor(counted)
    for checkpoint in checkpoints:
        tf_logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.localtime()))
        creator = ChiefSessionCreator(
            scaffold=scaffold, checkpoint_filename_with_path=checkpoint, master=master, config=config
        )
        final_ops_hook = FinalOpsHook(final_ops, final_ops_feed_dict)
        with MonitoredSession(session_creator=creator, hooks=[*hooks, final_ops_hook]) as session:
            if eval_ops is not None:
                while not session.should_stop():
                    session.run((eval_ops, counted), feed_dict)
        tf_logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
        yield final_ops_hook.final_ops_values


def evaluate_once(checkpoint_path: str | None, *args: Any, **kwargs: Any) -> Any:
    """Evaluates one checkpoint. The other arguments are those of `evaluate_each`."""
    return next(evaluate_each([checkpoint_path], *args, **kwargs))


def _flat(ops: Any) -> list[Any]:
    if isinstance(ops, dict):
        return list(ops.values())
    return list(ops) if isinstance(ops, (list, tuple)) else [ops]
