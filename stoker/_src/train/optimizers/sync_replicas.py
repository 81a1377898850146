"""Synchronous replicas: gradients of several workers are collected, and applied once for all of them.

`SyncReplicasOptimizerV2` collects in accumulators. `SyncReplicasOptimizer` is the same, and with a `replica_id` collects in queues, as
TensorFlow 0.12 did (`sync_queues.py`). In both, one worker, the chief, runs the op that takes the gradients, updates the variables and
hands out tokens. A worker waits for a token at the end of its step.

    worker   push gradients -> take a token (waits) -> remember its value, the global step
    chief    take enough gradients -> update -> increment the global step -> put one token per worker into the queue

In processes that `stoker launch` started there are no parameter servers: collective ops average the gradients (`replicated.py`).
"""

from __future__ import annotations

from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import colocate_with, control_dependencies, device, name_scope
from stoker._src.ops.array import shaping
from stoker._src.ops.collective import groups
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.resources import accumulators, queues
from stoker._src.ops.variables import reports, variable_functions
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.input.queue_runner import QueueRunner
from stoker._src.train.optimizers.moving_averages import ExponentialMovingAverage
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.optimizers.replicated import broadcast_variables, reduced
from stoker._src.train.optimizers.sync_queues import GradientQueues
from stoker._src.train.sessions.run_hooks import SessionRunHook

_INSTEAD = (
    "The `SyncReplicaOptimizer` class is deprecated. For synchronous training, please use [Distribution "
    "Strategies](https://github.com/tensorflow/tensorflow/tree/master/tensorflow/contrib/distribute)."
)


class _Accumulators:
    """Collects the gradients in one accumulator per variable, which averages them and drops those of an older step."""

    def __init__(self, global_step: Any) -> None:
        # The op is created only for its device, which is the worker's under `replica_device_setter`.
        with colocate_with(grouping.no_op()):
            self._local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        with device(self._local_step.device):
            self.local_step_init_op = variable_functions.assign(self._local_step, global_step)
        self.ready_for_local_init_op = reports.report_uninitialized_variables(variable_functions.global_variables())
        self._global_step = global_step
        self._made: list[tuple[Any, str]] = []

    def push(self, pairs: list[tuple[Any, Any]], required: int) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Returns the ops by which a worker hands in its gradients, and the pairs that the chief applies."""
        pushed, collected = [], []
        for gradient, variable in pairs:
            with device(variable.device):
                if gradient is None:
                    collected.append((None, variable))
                    continue
                shared_name = f"{variable.name}/grad_accum"
                if isinstance(gradient, IndexedSlices):
                    sparse = accumulators.SparseConditionalAccumulator(
                        gradient.dtype, shape=(), shared_name=shared_name
                    )
                    pushed.append(sparse.apply_indexed_slices_grad(gradient, local_step=self._local_step))
                    collected.append((sparse.take_indexed_slices_grad(required), variable))
                    self._made.append((sparse, variable.device))
                else:
                    dense = accumulators.ConditionalAccumulator(
                        gradient.dtype, shape=variable.get_shape(), shared_name=shared_name
                    )
                    pushed.append(dense.apply_grad(gradient, local_step=self._local_step))
                    collected.append((dense.take_grad(required), variable))
                    self._made.append((dense, variable.device))
        return pushed, collected

    def applied(self, update: Any) -> Any:
        """The op after which tokens may be handed out."""
        return update

    def take_token(self, token: Any) -> Any:
        """The worker's training op."""
        return variable_functions.assign(self._local_step, token)

    def chief_init_op(self) -> Any:
        """Sets the steps of the accumulators and of the worker to the global step."""
        steps = []
        for accumulator, place in self._made:
            with device(place):
                steps.append(accumulator.set_global_step(self._global_step, name="SetGlobalStep"))
        return grouping.group(*steps, self.local_step_init_op)


@export(v1="train.SyncReplicasOptimizerV2")
class SyncReplicasOptimizerV2(Optimizer):
    """Wraps an optimizer: collects the gradients of `replicas_to_aggregate` workers, and applies their mean in one step.

        opt = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), replicas_to_aggregate=4)
        train = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())
        hook = opt.make_session_run_hook(is_chief)
        with tf.train.MonitoredTrainingSession(target, is_chief, hooks=[hook]) as session:
            while not session.should_stop():
                session.run(train)

    Gradients that were computed with older values than the current ones are dropped.

    Args:
        opt: the optimizer that computes and applies the gradients.
        replicas_to_aggregate: the number of gradients for one update.
        total_num_replicas: the number of workers; `replicas_to_aggregate` by default. If there are more, the slowest ones of each
            step are not waited for. If there are fewer, each computes several batches per update.
        variable_averages: an `ExponentialMovingAverage` to update after the variables.
        variables_to_average: the variables it averages.
        use_locking: passed on to the base class; updates are always locked here.
        name: the name of the scope of the accumulators.
    """

    @deprecated(None, _INSTEAD)
    def __init__(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        self._build(
            opt,
            replicas_to_aggregate,
            total_num_replicas,
            variable_averages,
            variables_to_average,
            use_locking,
            name,
        )

    def _build(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None,
        variable_averages: Any,
        variables_to_average: Any,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        # Workers may be fewer than the gradients of an update: each token lets one batch be computed.
        self._tokens_per_step = max(self._total_num_replicas, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._global_step: Any = None
        self._token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._init_ops: dict[str, Any] = {}
        tf_logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate,
            self._total_num_replicas,
        )

    _averages = True

    def _collector(self, global_step: Any) -> Any:
        """What collects the gradients."""
        return _Accumulators(global_step)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The gradients of this worker, from the wrapped optimizer. They can be clipped before they are collected."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Returns the worker's training op: it hands in the gradients, and waits until the chief has applied enough of them.

        Args:
            grads_and_vars: pairs from `compute_gradients`.
            global_step: the variable that counts updates; required.
            name: the name of the op that updates the variables; the wrapped optimizer's by default.

        Raises:
            ValueError: there are no pairs, or no global step.
        """
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        if groups.size() > 1:
            return self._apply_together(grads_and_vars, name)
        collector = self._collector(global_step)
        with name_scope(None, self._name):
            pushed, collected = collector.push(list(grads_and_vars), self._replicas_to_aggregate)
            with device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(collected, global_step, name)
                dtype = global_step.dtype.base_dtype
                self._token_queue = queues.FIFOQueue(
                    -1, dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q"
                )
                # A queue runner closes its queue when it stops. The workers may still need the tokens, so it closes another one.
                dummy = queues.FIFOQueue(1, dtype, shapes=(), name="dummy_queue", shared_name="dummy_queue")
                with control_dependencies(pushed):
                    token = self._token_queue.dequeue()
                train_op = collector.take_token(token)
                with control_dependencies([collector.applied(update)]):
                    sync_op = self._put_tokens(self._tokens_per_step)
                if self._variable_averages is not None:
                    with control_dependencies([sync_op]), name_scope(""):
                        sync_op = self._variable_averages.apply(self._variables_to_average)
                self._chief_queue_runner = QueueRunner(dummy, [sync_op])
            self._init_ops = {
                "chief_init_op": collector.chief_init_op(),
                "local_step_init_op": collector.local_step_init_op,
                "ready_for_local_init_op": collector.ready_for_local_init_op,
            }
        return train_op

    def _apply_together(self, grads_and_vars: Any, name: str | None) -> Any:
        """The training op of a launched process: gradients are averaged by collective ops, and nobody needs tokens.

        Raises:
            ValueError: the number of processes is another one than that of the replicas.
        """
        if (self._replicas_to_aggregate, self._total_num_replicas) != (groups.size(), groups.size()):
            raise ValueError(
                f"SyncReplicasOptimizer for {self._replicas_to_aggregate} of {self._total_num_replicas} replicas, in one of "
                f"{groups.size()} launched processes: these numbers must be equal. Backup replicas need parameter servers."
            )
        train_op = self._opt.apply_gradients(reduced(grads_and_vars, self._averages), self._global_step, name)
        if self._variable_averages is not None:
            with control_dependencies([train_op]), name_scope(""):
                train_op = self._variable_averages.apply(self._variables_to_average)
        # What the chief starts has nothing to do: its queue is full after one element.
        dummy = queues.FIFOQueue(1, self._global_step.dtype.base_dtype, shapes=(), name="dummy_queue")
        self._chief_queue_runner = QueueRunner(dummy, [dummy.enqueue(self._global_step.value())])
        init = broadcast_variables()
        self._init_ops = {
            "chief_init_op": init,
            "local_step_init_op": init,
            "ready_for_local_init_op": reports.report_uninitialized_variables(variable_functions.global_variables()),
        }
        return train_op

    def _put_tokens(self, count: int) -> Any:
        return self._token_queue.enqueue_many((shaping.fill([count], self._global_step),))

    def _init_op(self, name: str) -> Any:
        if name not in self._init_ops:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r} before apply_gradients().")
        return self._init_ops[name]

    @property
    def chief_init_op(self) -> Any:
        """The op that the chief runs before its first step, after the variables are initialized (`local_init_op` of a Supervisor)."""
        return self._init_op("chief_init_op")

    @property
    def local_step_init_op(self) -> Any:
        """The op that other workers run before their first step."""
        return self._init_op("local_step_init_op")

    @property
    def ready_for_local_init_op(self) -> Any:
        """The names of the global variables that are not initialized. The two ops above need them all."""
        return self._init_op("ready_for_local_init_op")

    def get_chief_queue_runner(self) -> QueueRunner:
        """Returns the queue runner that updates the variables and hands out tokens. The chief starts it.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        """Returns the op that puts the first tokens into the queue. The chief runs it once, after it has started the queue runner.

        Args:
            num_tokens: how many; `replicas_to_aggregate` if -1.

        Raises:
            ValueError: `apply_gradients` has not been called, or there are too few tokens for the first update.
        """
        if self._chief_queue_runner is None:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)",
            )
        if num_tokens <= 0 or self._token_queue is None:
            return grouping.no_op(name="no_init_tokens")
        with device(self._global_step.device), name_scope(""):
            return self._put_tokens(num_tokens)

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """Returns a hook for a monitored session: it initializes the steps, and on the chief starts the queue runner and puts the
        first tokens into the queue.

        Args:
            is_chief: whether this worker is the chief.
            num_tokens: as for `get_init_tokens_op`.
        """
        return _SyncReplicasHook(self, is_chief, num_tokens)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The slot of the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The slot names of the wrapped optimizer."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """The variables of the wrapped optimizer, without the local step."""
        return self._opt.variables()


@export(v1="train.SyncReplicasOptimizer")
class SyncReplicasOptimizer(SyncReplicasOptimizerV2):
    """`SyncReplicasOptimizerV2`, and with a `replica_id` the class of this name of TensorFlow 0.12.

    That one sums the gradients instead of averaging them, collects them in queues, and has one local step per replica among the
    global variables. Its arguments had another order, which is recognized by an `ExponentialMovingAverage` in the third place or a number in the fifth:
    `(opt, replicas_to_aggregate, variable_averages, variables_to_average, replica_id, total_num_replicas, use_locking, name)`.

    Args:
        replica_id: the number of this worker, in [0, total_num_replicas).
        The others as for `SyncReplicasOptimizerV2`.

    Raises:
        ValueError: `replica_id` is not a number of a replica.
    """

    @deprecated(None, _INSTEAD)
    def __init__(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: Any = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: Any = False,
        name: Any = "sync_replicas",
        replica_id: Any = None,
    ) -> None:
        if isinstance(total_num_replicas, ExponentialMovingAverage) or isinstance(variables_to_average, int):
            old = (total_num_replicas, variable_averages, variables_to_average, use_locking, name, replica_id)
            variable_averages, variables_to_average = old[:2]
            replica_id = replica_id if old[2] is None else old[2]
            total_num_replicas = int(old[3]) or None
            use_locking = isinstance(name, bool) and name
            name = next((each for each in old[:3:-1] if isinstance(each, str)), "sync_replicas")
        if replica_id is not None:
            total_num_replicas = total_num_replicas or replicas_to_aggregate
            if not 0 <= replica_id < total_num_replicas:
                raise ValueError(
                    f"replica_id must be in [0, total_num_replicas={total_num_replicas}), not {replica_id}."
                )
        self._replica_id = replica_id
        self._averages = replica_id is None
        self._build(
            opt,
            replicas_to_aggregate,
            total_num_replicas,
            variable_averages,
            variables_to_average,
            use_locking,
            name,
        )

    def _collector(self, global_step: Any) -> Any:
        if self._replica_id is None:
            return super()._collector(global_step)
        return GradientQueues(global_step, self._replica_id, self._total_num_replicas)

    def get_clean_up_op(self) -> Any:
        """Returns the op by which a chief ends the runs of the other workers before it exits, so that they start again with it.

        Raises:
            ValueError: `apply_gradients` has not been called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("get_clean_up_op() should be called after apply_gradients().")
        with device(self._global_step.device):
            return grouping.ABORT(error_msg="From sync_replicas")


class _SyncReplicasHook(SessionRunHook):
    """Does the work of `SyncReplicasOptimizer` that is not part of a step."""

    def __init__(self, optimizer: SyncReplicasOptimizerV2, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        optimizer = self._optimizer
        if optimizer._chief_queue_runner is None:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._local_init_op = optimizer.chief_init_op if self._is_chief else optimizer.local_step_init_op
        self._ready_op = optimizer.ready_for_local_init_op
        if self._is_chief:
            self._queue_runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        missing = session.run(self._ready_op)
        if len(missing):
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(
                f"Init operations did not make model ready for local_init. Variables not initialized: {names}"
            )
        session.run(self._local_init_op)
        if self._is_chief:
            session.run(self._init_tokens_op)
            threads = self._queue_runner.create_threads(session, coord=coord, daemon=True, start=True)
            # At the end the chief waits for gradients that nobody sends, until the session is closed. Nobody should wait for it.
            coord._forget_threads(threads)
