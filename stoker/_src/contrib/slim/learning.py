"""`tf.contrib.slim.learning`: the training op and the training loop of slim."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from stoker._src.base import errors, tf_logging
from stoker._src.base.export import export
from stoker._src.contrib import training_loops
from stoker._src.contrib.training_loops import _USE_GLOBAL_STEP, clip_gradient_norms, multiply_gradients
from stoker._src.formats import gfile, protos
from stoker._src.graph import context, scopes
from stoker._src.ops.array import joining
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.resources import tables
from stoker._src.ops.summary import summary_ops
from stoker._src.ops.variables import reports, variable_functions
from stoker._src.runtime import trace as timeline
from stoker._src.summary import file_writer
from stoker._src.train import training_util
from stoker._src.train.checkpoints import saver as checkpoints_saver
from stoker._src.train.optimizers import optimizer as optimizers_optimizer
from stoker._src.train.optimizers import sync_replicas
from stoker._src.train.sessions import supervisor as sessions_supervisor

_USE_DEFAULT = 0


@export(v1="contrib.slim.learning.create_train_op")
def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = optimizers_optimizer.Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: dict[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Any:
    """Returns a tensor with the loss, whose value is computed after the updates and a step of the optimizer.

    Args:
        clip_gradient_norm: the largest norm of each gradient; 0 for no bound.
        gradient_multipliers: factors of gradients by variable or by the name of its op.
        others: those of `tf.contrib.training.create_train_op`.
    """

    def transform(gradients: list[Any]) -> list[Any]:
        if gradient_multipliers:
            gradients = multiply_gradients(gradients, gradient_multipliers)
        if clip_gradient_norm > 0:
            with scopes.NameScope("clip_grads"):
                gradients = clip_gradient_norms(gradients, clip_gradient_norm)
        return gradients

    return training_loops.create_train_op(
        total_loss,
        optimizer,
        global_step,
        update_ops,
        variables_to_train,
        transform,
        summarize_gradients,
        gate_gradients,
        aggregation_method,
        colocate_gradients_with_ops,
        check_numerics,
    )


@export(v1="contrib.slim.learning.train_step")
def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """Runs one step, and returns the loss and whether to stop.

    Args:
        sess: a session.
        train_op: the training op.
        global_step: the global step.
        train_step_kwargs: "should_stop" and "should_log" (tensors), "logdir" and "should_trace" (a tensor), each of them optional.
    """
    started = time.time()
    options = metadata = None
    if "should_trace" in train_step_kwargs:
        if "logdir" not in train_step_kwargs:
            raise ValueError("logdir must be present in train_step_kwargs when should_trace is present")
        if sess.run(train_step_kwargs["should_trace"]):
            options, metadata = protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE), protos.RunMetadata()
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    elapsed = time.time() - started
    if metadata is not None:
        _write_trace(metadata, train_step_kwargs, step)
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        tf_logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, elapsed)
    stop = "should_stop" in train_step_kwargs and sess.run(train_step_kwargs["should_stop"])
    return loss, bool(stop)


def _write_trace(metadata: Any, train_step_kwargs: dict[str, Any], step: int) -> None:
    text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
    path = os.path.join(train_step_kwargs["logdir"], f"tf_trace-{step}.json")
    tf_logging.info("Writing trace to %s", path)
    with gfile.GFile(path, "w") as file:
        file.write(text)
    if "summary_writer" in train_step_kwargs:
        train_step_kwargs["summary_writer"].add_run_metadata(metadata, f"run_metadata-{step}")


@export(v1="contrib.slim.learning.train")
def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Any = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Any = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Any = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Trains until `number_of_steps`, with checkpoints and summaries in `logdir`. Returns the last loss.

    Args:
        train_op: a tensor with the loss, from `create_train_op`.
        logdir: the folder of checkpoints and events; None for neither.
        train_step_fn: a function of the session, `train_op`, the global step and `train_step_kwargs`, like `train_step`.
        train_step_kwargs: its last argument; by default made from the arguments here.
        log_every_n_steps: how often the loss is logged; 0 or None for never.
        graph: the graph; by default the default graph.
        master: the target of the session.
        is_chief: whether this task initializes and saves.
        global_step: the global step; by default that of the graph.
        number_of_steps: where to stop; None for no end.
        init_op, init_feed_dict, local_init_op, init_fn, ready_op, summary_op, summary_writer, saver: as in `tf.train.Supervisor`.
        save_summaries_secs, save_interval_secs: how often summaries and checkpoints are written.
        startup_delay_steps: the step at which this task starts, unless it is the chief.
        sync_optimizer: a SyncReplicasOptimizer, or several.
        session_config: a ConfigProto.
        session_wrapper: a function from the session to the one that is used.
        trace_every_n_steps: how often a timeline is written to `logdir`.
        ignore_live_threads: whether threads that do not end are left alone.

    Raises:
        ValueError: arguments contradict each other.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None:
        if not isinstance(summary_op, int) and summary_op is not None:
            raise ValueError("Cannot provide summary_op because logdir=None")
        if saver is not None:
            raise ValueError("Cannot provide saver because logdir=None")
        if trace_every_n_steps is not None:
            raise ValueError("Cannot provide trace_every_n_steps because logdir=None")
        summary_op = None
    optimizers = (
        list(sync_optimizer)
        if isinstance(sync_optimizer, (list, tuple))
        else [sync_optimizer]
        if sync_optimizer
        else []
    )
    if optimizers and startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")
    graph = graph or context.get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = training_util.get_or_create_global_step()
        saver = saver or checkpoints_saver.Saver()
        for each in optimizers:
            if not isinstance(each, sync_replicas.SyncReplicasOptimizer):
                raise ValueError("`sync_optimizer` must be a tf.compat.v1.train.SyncReplicasOptimizer.")
        with scopes.NameScope("init_ops"):
            if _is_default(init_op):
                init_op = variable_functions.global_variables_initializer()
            if _is_default(ready_op):
                ready_op = reports.report_uninitialized_variables()
            if _is_default(local_init_op):
                local_init_op = grouping.group(
                    variable_functions.local_variables_initializer(), tables.tables_initializer()
                )
            ready_for_local_init_op = _USE_DEFAULT
            chief_queue_runners = []
            if optimizers:
                firsts = [each.chief_init_op if is_chief else each.local_step_init_op for each in optimizers]
                local_init_op = grouping.group(local_init_op, *firsts)
                ready_for_local_init_op = joining.concat([each.ready_for_local_init_op for each in optimizers], 0)
                chief_queue_runners = [each.get_chief_queue_runner() for each in optimizers]
        tokens = [each.get_init_tokens_op() for each in optimizers] if is_chief else []
        if _is_default(summary_op):
            summary_op = summary_ops.merge_all()
        if _is_default(summary_writer):
            summary_writer = file_writer.FileWriter(logdir) if logdir and is_chief else None
        if _is_default(train_step_kwargs):
            train_step_kwargs = _step_arguments(
                global_step, number_of_steps, log_every_n_steps, trace_every_n_steps, logdir, summary_writer
            )
    supervisor = sessions_supervisor.Supervisor(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_op=init_op,
        init_feed_dict=init_feed_dict,
        local_init_op=local_init_op,
        ready_for_local_init_op=ready_for_local_init_op,
        ready_op=ready_op,
        summary_op=summary_op,
        summary_writer=summary_writer,
        global_step=global_step,
        saver=saver,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        init_fn=init_fn,
    )
    if summary_writer is not None:
        train_step_kwargs["summary_writer"] = supervisor.summary_writer
    return _run(
        supervisor,
        train_op,
        global_step,
        train_step_fn,
        train_step_kwargs,
        tokens,
        chief_queue_runners if is_chief else [],
        {"master": master, "config": session_config, "wrapper": session_wrapper},
        (0 if is_chief else startup_delay_steps, number_of_steps),
        ignore_live_threads,
    )


def _is_default(argument: Any) -> bool:
    return isinstance(argument, int) and argument == _USE_DEFAULT


def _step_arguments(
    global_step: Any, number_of_steps: Any, log_every: Any, trace_every: Any, logdir: Any, writer: Any
) -> dict[str, Any]:
    """What `train_step` needs to know when to stop, log and trace."""
    with scopes.NameScope("train_step"):
        made: dict[str, Any] = {}
        if number_of_steps:
            made["should_stop"] = comparison.greater_equal(global_step, number_of_steps)
        if log_every:
            made["should_log"] = comparison.equal(arithmetic.floormod(global_step, log_every), 0)
        if trace_every is not None:
            made["should_trace"] = comparison.equal(arithmetic.floormod(global_step, trace_every), 0)
            made["logdir"] = logdir
        if writer is not None:
            made["summary_writer"] = writer
        return made


def _run(
    supervisor: Any,
    train_op: Any,
    global_step: Any,
    step_fn: Any,
    step_arguments: Any,
    tokens: list[Any],
    queue_runners: list[Any],
    opened: dict[str, Any],
    bounds: tuple[int, int | None],
    ignore_live_threads: bool,
) -> Any:
    """The loop itself, in the session of a supervisor. A session that is lost to a restart of its master is opened again."""
    loss = None
    while True:
        try:
            with supervisor.managed_session(
                opened["master"], start_standard_services=False, config=opened["config"]
            ) as session:
                tf_logging.info("Starting Session.")
                used = opened["wrapper"](session) if opened["wrapper"] is not None else session
                if supervisor.is_chief:
                    if supervisor.save_path:
                        tf_logging.info("Saving checkpoint to path %s", supervisor.save_path)
                    supervisor.start_standard_services(used)
                elif bounds[0] > 0:
                    _wait_for_step(used, global_step, min(bounds[0], bounds[1] or sys.maxsize))
                threads = supervisor.start_queue_runners(used)
                tf_logging.info("Starting Queues.")
                if queue_runners:
                    # At the end the chief waits for gradients that nobody sends, until the session is closed.
                    supervisor._coord._forget_threads(supervisor.start_queue_runners(used, queue_runners))
                for token in tokens:
                    used.run(token)
                try:
                    while not supervisor.should_stop():
                        loss, stop = step_fn(used, train_op, global_step, step_arguments)
                        if stop:
                            tf_logging.info("Stopping Training.")
                            supervisor.request_stop()
                            break
                except errors.OutOfRangeError as error:
                    # The end of the input is the end of the training.
                    tf_logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
                if supervisor.save_path and supervisor.is_chief:
                    tf_logging.info("Finished training! Saving model to disk.")
                    supervisor.saver.save(used, supervisor.save_path, global_step=supervisor.global_step)
                supervisor.stop(threads, close_summary_writer=False, ignore_live_threads=ignore_live_threads)
            return loss
        except errors.AbortedError as error:
            tf_logging.info("Retrying training! %s", error)


def _wait_for_step(session: Any, global_step: Any, step: int) -> None:
    """Waits until the others have reached a step."""
    while True:
        reached = session.run(global_step)
        if reached >= step:
            return
        tf_logging.info("Waiting for step %d before starting training. Current step: %d", step, reached)
        time.sleep(1)
