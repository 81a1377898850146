"""`tf.contrib.training`: training ops with clipped and scaled gradients, loops for training and evaluation, buckets."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export, export_constant
from stoker._src.estimator import evaluation as estimator_evaluation
from stoker._src.graph import conversion, indexed_slices, keys, public, scopes
from stoker._src.ops.array import casting, shaping, value_checks
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import clipping
from stoker._src.ops.summary import summary_ops
from stoker._src.ops.variables import variable_functions
from stoker._src.summary import file_writer
from stoker._src.train import training_util
from stoker._src.train.checkpoints import state
from stoker._src.train.optimizers import optimizer as optimizers_optimizer
from stoker._src.train.sessions import monitored_training, run_hooks

_USE_GLOBAL_STEP = 0  # 0 is no variable: the default means the global step of the graph, and None none

for _name in ("StopAfterNEvalsHook", "get_or_create_eval_step"):
    export_constant(estimator_evaluation.__name__, _name, v1=f"contrib.training.{_name}")


@export(v1=("contrib.training.add_gradients_summaries", "contrib.slim.learning.add_gradients_summaries"))
def add_gradients_summaries(grads_and_vars: Any) -> list[Any]:
    """A histogram and the norm of each gradient."""
    made = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            tf_logging.info("Var %s has no gradient", variable.op.name)
            continue
        values = gradient.values if isinstance(gradient, indexed_slices.IndexedSlices) else gradient
        made.append(summary_ops.histogram_summary(f"{variable.op.name}_gradient", values))
        made.append(summary_ops.scalar_summary(f"{variable.op.name}_gradient_norm", clipping.global_norm([values])))
    return made


@export(v1=("contrib.training.clip_gradient_norms", "contrib.slim.learning.clip_gradient_norms"))
def clip_gradient_norms(gradients_to_variables: Any, max_norm: float) -> list[Any]:
    """Clips each gradient by its own norm."""
    clipped = []
    for gradient, variable in gradients_to_variables:
        if gradient is not None:
            if isinstance(gradient, indexed_slices.IndexedSlices):
                rows = clipping.clip_by_norm(gradient.values, max_norm)
                gradient = indexed_slices.IndexedSlices(rows, gradient.indices, gradient.dense_shape)
            else:
                gradient = clipping.clip_by_norm(gradient, max_norm)
        clipped.append((gradient, variable))
    return clipped


@export(v1="contrib.training.clip_gradient_norms_fn")
def clip_gradient_norms_fn(max_norm: float) -> Callable[[Any], list[Any]]:
    """Returns `clip_gradient_norms` as a function of pairs of gradients and variables."""
    return lambda gradients: clip_gradient_norms(gradients, max_norm)


@export(v1=("contrib.training.multiply_gradients", "contrib.slim.learning.multiply_gradients"))
def multiply_gradients(grads_and_vars: Any, gradient_multipliers: dict[Any, Any]) -> list[Any]:
    """Multiplies gradients by factors, which are given by variable or by the name of its op.

    Raises:
        ValueError: arguments are not a list and a dictionary, or a variable with a factor has no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    scaled = []
    for gradient, variable in grads_and_vars:
        if variable in gradient_multipliers or variable.op.name in gradient_multipliers:
            key = variable if variable in gradient_multipliers else variable.op.name
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            values = gradient.values if isinstance(gradient, indexed_slices.IndexedSlices) else gradient
            values = values * casting.cast(conversion.convert_to_tensor(gradient_multipliers[key]), values.dtype)
            if isinstance(gradient, indexed_slices.IndexedSlices):
                gradient = indexed_slices.IndexedSlices(values, gradient.indices, gradient.dense_shape)
            else:
                gradient = values
        scaled.append((gradient, variable))
    return scaled


@export(v1="contrib.training.create_train_op")
def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Any = None,
    summarize_gradients: bool = False,
    gate_gradients: int = optimizers_optimizer.Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """Returns a tensor with the loss, whose value is computed after the updates and a step of the optimizer.

    Args:
        total_loss: a scalar.
        optimizer: an optimizer.
        global_step: the variable that counts the steps; by default that of the graph; None for none.
        update_ops: what runs before the loss; by default UPDATE_OPS.
        variables_to_train: by default TRAINABLE_VARIABLES.
        transform_grads_fn: a function from pairs of gradients and variables to such pairs.
        summarize_gradients: whether to summarize the gradients.
        gate_gradients, aggregation_method, colocate_gradients_with_ops: as in `Optimizer.compute_gradients`.
        check_numerics: whether a loss that is NaN or infinite is an error.

    Raises:
        ValueError: a variable to train is not trainable.
    """
    if global_step is _USE_GLOBAL_STEP:
        global_step = training_util.get_or_create_global_step()
    collected = set(public.get_collection(keys.GraphKeys.UPDATE_OPS))
    updates = collected if update_ops is None else set(update_ops)
    if not collected <= updates:
        tf_logging.warning("update_ops in create_train_op does not contain all the update_ops in GraphKeys.UPDATE_OPS")
    if updates:
        with scopes.control_dependencies(list(updates)):
            barrier = grouping.no_op(name="update_barrier")
        with scopes.control_dependencies([barrier]):
            total_loss = shaping.identity(total_loss)
    trainable = variable_functions.trainable_variables()
    if variables_to_train is None:
        variables_to_train = trainable
    else:
        for each in variables_to_train:
            if not any(each is one for one in trainable):
                raise ValueError(f"{each.op.name} is not in variable_functions.trainable_variables()")
    gradients = optimizer.compute_gradients(
        total_loss,
        variables_to_train,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if transform_grads_fn:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with scopes.NameScope("summarize_grads"):
            add_gradients_summaries(gradients)
    step = optimizer.apply_gradients(gradients, global_step=global_step)
    with scopes.NameScope("train_op"):
        if check_numerics:
            total_loss = value_checks.check_numerics(total_loss, "LossTensor is inf or nan")
        with scopes.control_dependencies([step]):
            train_op = shaping.identity(total_loss)
    public.add_to_collection(keys.GraphKeys.TRAIN_OP, train_op)
    return train_op


@export(v1="contrib.training.train")
def train(
    train_op: Any,
    logdir: str | None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = 600,
    save_summaries_steps: Any = 100,
    config: Any = None,
    max_wait_secs: int = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs a training op in a MonitoredTrainingSession until a hook stops it. Returns its last value; None without a run.

    The arguments are those of `tf.train.MonitoredTrainingSession`.

    Raises:
        ValueError: there is no `logdir`, but something to be saved to it.
    """
    if logdir is None and is_chief:
        if save_summaries_steps:
            raise ValueError("logdir cannot be None when save_summaries_steps is not None")
        if save_checkpoint_secs:
            raise ValueError("logdir cannot be None when save_checkpoint_secs is not None")
    with monitored_training.MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        loss = None
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


# -- evaluation ------------------------------------------------------------------------------------------------------


@export(v1="contrib.training.SummaryAtEndHook")
class SummaryAtEndHook(run_hooks.SessionRunHook):
    """Writes summaries at the end of a session.

    Args:
        log_dir: the folder of the events; or
        summary_writer: a writer.
        summary_op: the summaries; by default all of the graph, merged.
        feed_dict: its feeds.
    """

    def __init__(
        self, log_dir: str | None = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None
    ) -> None:
        self._summary_op, self._feed_dict = summary_op, feed_dict
        self._log_dir, self._writer = log_dir, summary_writer
        self._own = summary_writer is None
        self._step: Any = None

    def begin(self) -> None:
        if self._writer is None and self._log_dir:
            self._writer = file_writer.FileWriterCache.get(self._log_dir)
        if self._summary_op is None:
            self._summary_op = summary_ops.merge_all()
        self._step = training_util.get_or_create_global_step()

    def end(self, session: Any) -> None:
        if self._summary_op is not None:
            step, summary = session.run([self._step, self._summary_op], self._feed_dict)
            if self._writer:
                self._writer.add_summary(summary, step)
        if self._writer:
            self._writer.flush()


@export(v1="contrib.training.evaluate_once")
def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Any = None,
    config: Any = None,
) -> Any:
    """Evaluates a checkpoint once: runs `eval_ops` until a hook or the end of the input stops it, then `final_ops`.

    Args:
        checkpoint_path: the checkpoint; None to initialize variables.
        master: the target of the session.
        scaffold: the pieces of the graph.
        eval_ops: what each batch runs.
        feed_dict: its feeds.
        final_ops: what is fetched at the end.
        final_ops_feed_dict: its feeds.
        hooks: hooks of the session, such as `StopAfterNEvalsHook`.
        config: a ConfigProto.
    """
    parts = dict(locals())
    return evaluate_checkpoints([parts.pop("checkpoint_path")], **parts)


def evaluate_checkpoints(checkpoints: Any, most: int | None = None, **parts: Any) -> Any:
    """Evaluates checkpoints, at most `most` of them, and returns the values of the last one."""
    every = itertools.islice(estimator_evaluation.evaluate_each(checkpoints, **parts), most)
    last = collections.deque(every, maxlen=1)
    return last[0] if last else None


@export(v1="contrib.training.evaluate_repeatedly")
def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Any = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Any = None,
) -> Any:
    """Evaluates each new checkpoint in a folder. Returns the values of `final_ops` for the last one.

    Args:
        checkpoint_dir: the folder.
        eval_interval_secs: the least time between the starts of evaluations.
        max_number_of_evaluations: how many there are; None for no end.
        timeout: how long to wait for a checkpoint; None for ever.
        timeout_fn: asked after a timeout whether to end.
        others: those of `evaluate_once`.
    """
    checkpoints = state.checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    return evaluate_checkpoints(
        checkpoints,
        max_number_of_evaluations,
        master=master,
        scaffold=scaffold,
        eval_ops=eval_ops,
        feed_dict=feed_dict,
        final_ops=final_ops,
        final_ops_feed_dict=final_ops_feed_dict,
        hooks=hooks,
        config=config,
    )
