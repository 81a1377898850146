"""`MonitoredTrainingSession`: a monitored session with the usual hooks for training."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.ops.collective import groups
from stoker._src.train.optimizers.replicated import BroadcastHook
from stoker._src.train.sessions.monitored import ChiefSessionCreator, MonitoredSession, WorkerSessionCreator
from stoker._src.train.sessions.progress import default_progress
from stoker._src.train.sessions.saving_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from stoker._src.train.sessions.scaffold import Scaffold

USE_DEFAULT: Any = object()


@export(v1="train.MonitoredTrainingSession")
def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: Any = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """Creates a MonitoredSession for training.

    The chief restores or initializes the model and has hooks that save checkpoints, write summaries and count steps. Other workers wait until
    the model is ready. The argument order of 0.12, with hooks before the scaffold, is accepted as well.

    In processes that `stoker launch` started, each has variables of its own. They start with the values of the first process, which
    alone saves checkpoints and writes summaries, whatever `is_chief` says.

    Args:
        master: the target of the session.
        is_chief: whether this process is the chief.
        checkpoint_dir: The directory of the checkpoints.
        scaffold: The pieces of the graph.
        hooks: SessionRunHooks.
        chief_only_hooks: Hooks that only the chief runs.
        save_checkpoint_secs: Seconds between two checkpoints, by default 600. If this and `save_checkpoint_steps` are None, there are no checkpoints.
        save_summaries_steps: Steps between two summaries, by default 100. If this and `save_summaries_secs` are None, there are no summaries.
        save_summaries_secs: Seconds between two summaries. Not used by default.
        config: a ConfigProto.
        stop_grace_period_secs: How long threads may take to stop.
        log_step_count_steps: Steps between two reports of the step rate; None or 0 for no reports.
        max_wait_secs: how long a worker waits for the chief.
        save_checkpoint_steps: Steps between two checkpoints. Not used by default, or if seconds are given.
        summary_dir: The directory of the summaries. By default `checkpoint_dir`.
        save_graph_def: whether the graph is written with the checkpoints.
    """
    if isinstance(scaffold, (list, tuple)) or isinstance(hooks, Scaffold):
        scaffold, hooks = hooks, scaffold
    if save_summaries_steps is USE_DEFAULT and save_summaries_secs is USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    elif save_summaries_secs is USE_DEFAULT:
        save_summaries_secs = None
    elif save_summaries_steps is USE_DEFAULT:
        save_summaries_steps = None
    if save_checkpoint_steps is USE_DEFAULT and save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_steps, save_checkpoint_secs = None, 600
    elif save_checkpoint_secs is USE_DEFAULT:
        save_checkpoint_secs = None
    elif save_checkpoint_steps is USE_DEFAULT:
        save_checkpoint_steps = None
    scaffold = scaffold or Scaffold()
    if not master and groups.size() > 1:
        # A launched process has variables of its own. All restore or initialize them, and the first one writes checkpoints and summaries.
        hooks = [BroadcastHook(), *(hooks or [])]
        if groups.rank() > 0:
            creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
            return MonitoredSession(creator, hooks, stop_grace_period_secs)
        is_chief = True
    if not is_chief:
        creator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(creator, hooks, stop_grace_period_secs)
    all_hooks = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(StepCounterHook(every_n_steps=log_step_count_steps, output_dir=summary_dir))
        if (save_summaries_steps and save_summaries_steps > 0) or (save_summaries_secs and save_summaries_secs > 0):
            all_hooks.append(
                SummarySaverHook(save_summaries_steps, save_summaries_secs, output_dir=summary_dir, scaffold=scaffold)
            )
    if checkpoint_dir and (
        (save_checkpoint_secs and save_checkpoint_secs > 0) or (save_checkpoint_steps and save_checkpoint_steps > 0)
    ):
        steps = None if save_checkpoint_secs else save_checkpoint_steps
        all_hooks.append(
            CheckpointSaverHook(
                checkpoint_dir, save_checkpoint_secs, steps, scaffold=scaffold, save_graph_def=save_graph_def
            )
        )
    all_hooks.extend(hooks or [])
    if (progress := default_progress(all_hooks)) is not None:
        all_hooks.append(progress)
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)
