"""`SessionManager`: creates a session and prepares its model, from a checkpoint, by initialization, or by waiting for another process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.errors import DeadlineExceededError, FailedPreconditionError
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.runtime.session import Session
from stoker._src.train.checkpoints.state import get_checkpoint_state


@export(v1="train.SessionManager")
class SessionManager:
    """Creates sessions that are ready for training.

    Args:
        local_init_op: An op that is run in every session after the model is restored or initialized.
        ready_op: Returns the names of uninitialized variables as a string vector. The model is ready if it is empty.
        ready_for_local_init_op: Like `ready_op`, but checked before `local_init_op` runs.
        graph: The graph. By default the current one.
        recovery_wait_secs: How long to sleep between two checks for a checkpoint, or for a model that another process initializes.
        local_init_run_options: RunOptions of `local_init_op`.
        local_init_feed_dict: feeds of `local_init_op`.

    Raises:
        ValueError: `ready_for_local_init_op` is given without `local_init_op`.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Any = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op "
                f", ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = context.get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def _session(self, master: str, config: Any) -> Session:
        return Session(master, graph=self._graph, config=config)

    def _restore_checkpoint(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: Any,
        checkpoint_filename_with_path: Any,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, bool]:
        """Returns a session, and whether its variables were restored."""
        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        session = self._session(master, config)
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return session, False
        if checkpoint_filename_with_path:
            saver.restore(session, checkpoint_filename_with_path)
            return session, True
        waited = 0.0
        state = get_checkpoint_state(checkpoint_dir)
        while not (state and state.model_checkpoint_path):
            if not wait_for_checkpoint or waited >= max_wait_secs:
                return session, False
            tf_logging.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = get_checkpoint_state(checkpoint_dir)
        saver.restore(session, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """Returns a session whose model is ready: restored from a checkpoint if there is one, otherwise initialized.

        Args:
            master: the target of the session.
            init_op: initializes the model.
            saver: restores the model.
            checkpoint_dir: The directory from which to restore the newest checkpoint.
            checkpoint_filename_with_path: The checkpoint to restore, instead of `checkpoint_dir`.
            wait_for_checkpoint: Whether to wait until there is a checkpoint.
            max_wait_secs: The longest time to wait.
            config: a ConfigProto.
            init_feed_dict: feeds of `init_op`.
            init_fn: A function that is called with the session after `init_op`.

        Raises:
            RuntimeError: The model cannot be initialized, or it is not ready afterwards.
            ValueError: `checkpoint_dir` and `checkpoint_filename_with_path` are both given.
        """
        session, restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
            if init_op is not None:
                session.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(session)
        described = f"Init op: {_name_of(init_op)}, init fn: {init_fn}"
        is_initialized, why = self._run_local_init_op(session)
        if not is_initialized:
            raise RuntimeError(f"Init operations did not make model ready for local_init.  {described}, error: {why}")
        is_ready, why = self._is_ready(self._ready_op, session, "Model not ready")
        if not is_ready:
            local = _name_of(self._local_init_op)
            raise RuntimeError(
                f"Init operations did not make model ready.  {described}, local_init_op: {local}, error: {why}"
            )
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """Returns a session, restored if possible, and whether its model is ready. Never initializes the model."""
        session, restored = self._restore_checkpoint(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        is_initialized, why = self._run_local_init_op(session)
        if not restored:
            return session, False
        source = checkpoint_dir or checkpoint_filename_with_path
        if not is_initialized:
            tf_logging.info("Restoring model from %s did not make model ready for local init: %s", source, why)
            return session, False
        is_ready, why = self._is_ready(self._ready_op, session, "Model not ready")
        if not is_ready:
            tf_logging.info("Restoring model from %s did not make model ready: %s", source, why)
            return session, False
        tf_logging.info("Restored model from %s", source)
        return session, True

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float | None = float("Inf")) -> Session:
        """Returns a session whose model another process has prepared.

        Raises:
            DeadlineExceededError: The model was not ready within `max_wait_secs`.
        """
        longest = float("inf") if max_wait_secs is None else max_wait_secs
        start = time.monotonic()
        while True:
            session = self._session(master, config)
            why = None
            is_initialized, why_not_local = self._run_local_init_op(session)
            if is_initialized:
                is_ready, why = self._is_ready(self._ready_op, session, "Model not ready")
                if is_ready:
                    return session
            session.close()
            if time.monotonic() - start + self._recovery_wait_secs > longest:
                raise DeadlineExceededError(None, None, f"Session was not ready after waiting {int(longest)} secs.")
            tf_logging.info(
                "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s", why_not_local, why
            )
            time.sleep(self._recovery_wait_secs)

    def _run_local_init_op(self, session: Session) -> tuple[bool, str | None]:
        """Returns whether `local_init_op` has run or is not needed, and if not, the reason."""
        if self._local_init_op is None:
            return True, None
        is_ready, why = self._is_ready(self._ready_for_local_init_op, session, "Model not ready for local init")
        if is_ready:
            tf_logging.info("Running local_init_op.")
            session.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
            tf_logging.info("Done running local_init_op.")
        return is_ready, why

    def _is_ready(self, op: Any, session: Session, complaint: str) -> tuple[bool, str | None]:
        """Returns whether the result of `op` is empty, and the names in it."""
        if op is None:
            return True, None
        try:
            names = session.run(op)
        except FailedPreconditionError as error:
            if "uninitialized" not in str(error):
                tf_logging.warning("%s : error [%s]", complaint, error)
                raise
            return False, str(error)
        # Ops that report a problem by failing, such as assert_variables_initialized, return None or integers.
        if names is None or getattr(names, "size", 1) == 0 or getattr(names, "dtype", None) == "int32":
            return True, None
        return False, "Variables not initialized: " + ", ".join(name.decode() for name in names)


def _name_of(init_op: Any) -> Any:
    """Returns the names of an initialization op or structure for messages."""
    if isinstance(init_op, (list, tuple)):
        return [_name_of(op) for op in init_op]
    if isinstance(init_op, dict):
        return {key: _name_of(op) for key, op in init_op.items()}
    return getattr(init_op, "name", init_op)
