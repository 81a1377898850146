"""`tf.contrib.slim.evaluation`: evaluates checkpoints once or as they appear, with summaries of the metrics."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.training_loops import SummaryAtEndHook, evaluate_checkpoints
from stoker._src.estimator.evaluation import StopAfterNEvalsHook
from stoker._src.ops.summary import summary_ops
from stoker._src.train.checkpoints import saver as checkpoints_saver
from stoker._src.train.checkpoints.state import checkpoints_iterator
from stoker._src.train.sessions import scaffold as sessions_scaffold

_USE_DEFAULT = 0


def _session_parts(
    logdir: str | None,
    num_evals: int,
    initial: tuple[Any, Any],
    init_fn: Any,
    summary: tuple[Any, Any],
    variables_to_restore: Any,
    hooks: Any,
) -> tuple[Any, list[Any]]:
    """The scaffold and the hooks of an evaluation."""
    if isinstance(summary[0], int) and summary[0] == _USE_DEFAULT:
        summary = (summary_ops.merge_all(), summary[1])
    every: list[Any] = [StopAfterNEvalsHook(num_evals)]
    if summary[0] is not None:
        every.append(SummaryAtEndHook(log_dir=logdir, summary_op=summary[0], feed_dict=summary[1]))
    saver = None if variables_to_restore is None else checkpoints_saver.Saver(variables_to_restore)
    scaffold = sessions_scaffold.Scaffold(
        init_op=initial[0],
        init_feed_dict=initial[1],
        init_fn=None if init_fn is None else lambda scaffold, session: init_fn(session),
        saver=saver,
    )
    return scaffold, [*every, *(hooks or [])]


@export(v1="contrib.slim.evaluation.evaluate_once")
def evaluate_once(
    master: str,
    checkpoint_path: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Any = None,
) -> Any:
    """Evaluates a checkpoint: runs `eval_op` `num_evals` times, writes summaries, and returns the value of `final_op`.

    Args:
        master: the target of the session.
        checkpoint_path: the checkpoint.
        logdir: the folder of the summaries.
        num_evals: the number of batches.
        initial_op, initial_op_feed_dict: what initializes the graph, and its feeds.
        eval_op, eval_op_feed_dict: what each batch runs, and its feeds.
        final_op, final_op_feed_dict: what is fetched at the end, and its feeds.
        summary_op, summary_op_feed_dict: the summaries, by default all of the graph, and their feeds.
        variables_to_restore: what is restored; by default all global variables.
        session_config: a ConfigProto.
        hooks: more hooks.
    """
    scaffold, every = _session_parts(
        logdir, num_evals, (initial_op, initial_op_feed_dict), None, (summary_op, summary_op_feed_dict), variables_to_restore, hooks
    )  # fmt: skip
    return evaluate_checkpoints(
        [checkpoint_path],
        master=master,
        scaffold=scaffold,
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        hooks=every,
        config=session_config,
    )


@export(v1="contrib.slim.evaluation.evaluation_loop")
def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    init_fn: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Any = None,
    hooks: Any = None,
) -> Any:
    """Evaluates each new checkpoint of a folder, as `evaluate_once` does. Returns the last value of `final_op`.

    Args:
        checkpoint_dir: the folder.
        init_fn: a function of the session, called after the initialization.
        eval_interval_secs: the least time between the starts of evaluations.
        max_number_of_evaluations: how many there are; None for no end.
        timeout: how long to wait for a checkpoint; None for ever.
        timeout_fn: asked after a timeout whether to end.
        others: those of `evaluate_once`.
    """
    scaffold, every = _session_parts(
        logdir, num_evals, (initial_op, initial_op_feed_dict), init_fn, (summary_op, summary_op_feed_dict), variables_to_restore, hooks
    )  # fmt: skip
    return evaluate_checkpoints(
        checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn),
        max_number_of_evaluations,
        master=master,
        scaffold=scaffold,
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        hooks=every,
        config=session_config,
    )
