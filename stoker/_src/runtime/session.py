"""`Session`: runs parts of a graph. A run is planned and compiled once for its fetches and feeds, and then called."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import forking, settings
from stoker._src.base.errors import CancelledError, InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.formats.protos import ConfigProto
from stoker._src.graph import context, placement_log
from stoker._src.graph.definition import Trait
from stoker._src.graph.graph import Graph, current_session, enter_session
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.values import to_numpy
from stoker._src.runtime.devices import DeviceAttributes
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.feeds import expand_feeds
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.memory import keep_freed_memory
from stoker._src.runtime.plan import threads
from stoker._src.runtime.plan.compiled import Plan
from stoker._src.runtime.plan.pruning import prune
from stoker._src.runtime.targets import LocalRunner, PartialRunner, Runner, RunPlan, open_target, reset_target


def _shapes_of(feed_dict: Any) -> list[Shape] | None:
    """Returns the shapes of values to feed if they are arrays or numbers. Other shapes are known only after conversion."""
    values = list(feed_dict.values()) if feed_dict else []
    if all(isinstance(value, (np.ndarray, np.generic, int, float, torch.Tensor)) for value in values):
        return [Shape(np.shape(value)) for value in values]
    return None


def _frozen(fetches: Any) -> Any:
    """Returns a structure of fetches as a hashable value, which is equal for equal structures of the same fetches."""
    kind = type(fetches)
    if isinstance(fetches, (list, tuple)):
        return kind, tuple([_frozen(item) for item in fetches])
    if isinstance(fetches, dict):
        return kind, tuple([(key, _frozen(item)) for key, item in fetches.items()])
    return fetches


def _fetched_from_device(value: torch.Tensor) -> torch.Tensor:
    """Copies a value to the host. This is where a program meets a shortage of host memory, and failures of kernels that still ran."""
    try:
        return value.cpu()
    except RuntimeError as error:
        raise explain_failure(error, None, [value]) from error


def public(value: Any) -> Any:
    """Converts a value for the caller: arrays, NumPy scalars for 0-d tensors, bytes for single strings."""
    if isinstance(value, torch.Tensor):
        array = to_numpy(value if value.is_cpu else _fetched_from_device(value))
        return array if array.ndim else array[()]
    if hasattr(value, "ndim"):
        return value if value.ndim else value[()]
    return value


# Plans of a session in use, so that a program that keeps creating fetches does not fill the memory. As many older ones are kept: a plan that
# is found among those counts as in use again, so the plans that are dropped are those that have not run for longest.
_MOST_PLANS = 256
_partial_run_numbers = itertools.count()
_live_sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()


def _text(target: str | bytes | None) -> str:
    return target.decode() if isinstance(target, bytes) else target or ""


class BaseSession:
    """The common base of Session and InteractiveSession."""

    def __init__(self, target: str | bytes | None = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"Argument `graph` must be a tf.Graph, but got {type(graph)!r}.")
        if target is not None and not isinstance(target, (str, bytes)):
            raise TypeError(f"Argument `target` must be a string, but got {type(target)!r}.")
        if config is not None and not isinstance(config, ConfigProto):
            if not hasattr(config, "SerializeToString"):
                raise TypeError(f"Argument `config` must be a tf.ConfigProto, but got {type(config)!r}.")
            config = ConfigProto.FromString(config.SerializeToString())
        self._graph = context.get_default_graph() if graph is None else graph
        self._target = _text(target)
        self._config = ConfigProto() if config is None else config
        self._runner = open_target(self._target, self._config)
        if self._config.intra_op_parallelism_threads > 0:
            threads.allow(self._config.intra_op_parallelism_threads)
        keep_freed_memory()
        self._logged: weakref.WeakSet[Operation] = weakref.WeakSet()  # ops whose device has been logged
        settings.sessions_without_rewrite |= not settings.mixed_precision_rewrite
        self._closed = False
        self._plans: dict[Any, RunPlan] = {}
        self._older_plans: dict[Any, RunPlan] = {}
        self._planning = forking.lock()
        self._partial_runs: dict[str, PartialRun] = {}
        _live_sessions.add(self)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> bytes:
        return self._target.encode()

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs the ops that `fetches` need and returns the fetched values in the same structure.

        Args:
            fetches: a tensor, operation, variable, name, or a structure (list, tuple, namedtuple, dict) of them.
            feed_dict: values for tensors, by tensor or name. They replace the values that the graph would compute.
            options: a RunOptions message.
            run_metadata: a RunMetadata message to fill.

        Raises:
            RuntimeError: the session is closed.
            TypeError, ValueError: the fetches or feeds are invalid.
            tf.errors.OpError: an operation failed.
        """
        try:
            kind = type(fetches)
            key = (tuple(fetches) if kind is list else fetches, tuple(feed_dict) if feed_dict else (), kind)
            plan = self._plans.get(key)
        except TypeError:
            plan = None
        if plan is None:
            key, plan = self._structured_key(fetches, feed_dict)
        if feed_dict and not hasattr(feed_dict, "keys"):
            raise TypeError(
                f"The feed_dict must be a dictionary from tensors to values, got {type(feed_dict).__name__}."
            )
        if plan is None or self._closed or plan.graph_changes != self._graph.changes:
            expanded = expand_feeds(self._graph, feed_dict)
            plan = self._plan(fetches, expanded, key)
            plan.expands_feeds = expanded is not feed_dict
            feed_dict = expanded
        elif plan.expands_feeds:
            feed_dict = expand_feeds(self._graph, feed_dict)
        values = [convert(value) for convert, value in zip(plan.converters, feed_dict.values())] if feed_dict else ()
        results = plan.execute(values, options, run_metadata)  # type: ignore[arg-type]
        fetched = [public(value) for value in results]
        for position in plan.fed:  # a fed value is returned as the array it was converted to, even a single number
            value = fetched[position]
            fetched[position] = np.asarray(value, dtype=object if isinstance(value, bytes) else None)
        return plan.fetch.build(fetched)

    def _structured_key(self, fetches: Any, feed_dict: Any) -> tuple[Any, RunPlan | None]:
        """Returns the key of a plan that the direct lookup did not find, and the plan if it exists.

        Dictionaries and nested lists are not hashable, and a named tuple equals a plain tuple. The key of a nested structure therefore
        includes its type.
        """
        kind = type(fetches)
        flat = fetches if isinstance(fetches, (list, tuple)) else (fetches,)
        try:
            feeds = tuple(feed_dict) if feed_dict else ()
            if not any(isinstance(fetch, (list, tuple, dict)) for fetch in flat):
                key = (tuple(fetches) if kind is list else fetches, feeds, kind)
            else:
                key = (_frozen(fetches), feeds)
            return key, self._plans.get(key) or self._found_again(key)
        except TypeError:
            return None, None

    def _found_again(self, key: Any) -> RunPlan | None:
        """Returns an older plan, which is in use again."""
        if key not in self._older_plans:
            return None
        with self._planning:
            plan = self._older_plans.pop(key, None)
            if plan is not None:
                self._keep(key, plan)
        return plan

    def _keep(self, key: Any, plan: RunPlan) -> None:
        """Keeps a plan. If there are too many, those in use become the older ones, and the older ones are dropped."""
        if len(self._plans) >= _MOST_PLANS and key not in self._plans:
            self._older_plans, self._plans = self._plans, {}
        self._plans[key] = plan

    def _plan(self, fetches: Any, feed_dict: Any, key: Any) -> RunPlan:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
        if feed_dict is not None and not hasattr(feed_dict, "keys"):
            raise TypeError(
                f"The feed_dict must be a dictionary from tensors to values, got {type(feed_dict).__name__}."
            )
        feeds = self._feed_tensors(feed_dict)
        fetch = FetchPlan(self._graph, fetches, self._runner)
        if len({*feeds}) != len(feeds):
            raise ValueError("A tensor is fed twice, under two names.")
        with self._planning:
            plan = self._runner.plan(self._graph, fetch, feeds, _shapes_of(feed_dict))
            if key is not None:
                self._keep(key, plan)
        if self._config.log_device_placement or placement_log.enabled:
            self._log_placement(plan.ops)
        return plan

    def _log_placement(self, ops: Any) -> None:
        """Logs the devices of ops, each op once."""
        for op in ops:
            if op not in self._logged:
                self._logged.add(op)
                placement_log.placed(op.name, op.type, self._runner.device_of(op))

    def _feed_tensors(self, feed_dict: Any) -> list[Tensor]:
        tensors: list[Tensor] = []
        for key in feed_dict or ():
            try:
                tensor = self._graph.as_graph_element(key, allow_operation=False)
            except (TypeError, ValueError, KeyError) as error:
                text = error.args[0] if isinstance(error, KeyError) else error
                raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
            if not self._graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
            tensors.append(tensor)
        return tensors

    def explain(self, fetches: Any, feeds: Any = ()) -> str:
        """Returns the plan of a run as Python source: one line per kernel call, with the node it belongs to.

        After a run of the same fetches and feeds with RunOptions(trace_level=FULL_TRACE), it also shows the time of each line.
        """
        kind = type(fetches)
        try:
            plan = self._plans.get((tuple(fetches) if kind is list else fetches, tuple(feeds), kind))
        except TypeError:
            plan = None
        if plan is None:
            plan = self._structured_key(fetches, dict.fromkeys(feeds))[1]
        if plan is None:
            plan = self._plan(fetches, expand_feeds(self._graph, dict.fromkeys(feeds)), None)
        return plan.explain()

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
        """Returns a function that runs `fetches` with its arguments as the values of `feed_list`.

        With `accept_options`, the function also takes `options` and `run_metadata`.
        """
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("Argument `feed_list` must be a list or tuple.")
        feeds = list(feed_list or ())
        plan = self._plan(fetches, dict.fromkeys(feeds), None)

        def call(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if len(values) != len(feeds):
                raise TypeError(f"This callable takes {len(feeds)} values, but {len(values)} were given.")
            converted = [convert(value) for convert, value in zip(plan.converters, values)]
            results = plan.execute(converted, options, run_metadata)
            return plan.fetch.build([public(value) for value in results])

        return call if accept_options else lambda *values: call(*values)

    def _repeated(self, op: Any) -> Callable[[], None] | None:
        """Returns a function that runs `op` one or more times per call, for loops that run nothing else; None if it must run singly."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._runner.repeated(op) if isinstance(self._runner, LocalRunner) else None

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Starts a partial run. Returns the handle for `partial_run`.

        Raises:
            RuntimeError: the session is closed.
            InvalidArgumentError: there is nothing to fetch.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        tensors = self._feed_tensors(dict.fromkeys(feeds or ()))
        fetch = FetchPlan(self._graph, fetches)
        run = PartialRun(fetch, set(tensors))
        if not run.allowed:
            raise _misused("partial_run_setup needs something to fetch.")
        if isinstance(self._runner, PartialRunner):
            return self._runner.partial_run_setup(self._graph, fetch, tensors)
        handle = f"partial_run_{next(_partial_run_numbers)}"
        self._partial_runs[handle] = run
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Continues a partial run. Values that were computed before are kept, and no op runs twice.

        Raises:
            InvalidArgumentError: the handle is unknown, fetches or feeds were not set up, or the run has ended.
        """
        feeds = dict(zip(self._feed_tensors(feed_dict), (feed_dict or {}).values()))
        if isinstance(self._runner, PartialRunner):
            fetch = FetchPlan(self._graph, fetches)
            given = {tensor: self._runner.converter(tensor)(value) for tensor, value in feeds.items()}
            return fetch.build([public(value) for value in self._runner.partial_run(handle, self._graph, fetch, given)])
        run = self._partial_runs.get(handle)
        if run is None:
            raise _misused(f"{handle!r} is not a handle that partial_run_setup returned.")
        results = run.go_on(self._graph, self._runner, FetchPlan(self._graph, fetches), feeds)
        run.forget_if_ended()
        return results

    # -- life ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the session: waiting runs are cancelled, and variables are dropped."""
        with self._planning:
            if self._closed:
                return
            self._closed = True
        self._runner.close()
        for plan in [*self._plans.values(), *self._older_plans.values()]:
            if isinstance(plan, Plan):
                plan.release()
        self._plans.clear()
        self._older_plans.clear()

    def list_devices(self) -> list[DeviceAttributes]:
        """Returns the devices that this session can use.

        Raises:
            CancelledError: the session is closed.
        """
        if self._closed:
            raise CancelledError(None, None, "Session has been closed.")
        return self._runner.list_devices()

    def as_default(self) -> Any:
        """Returns a context in which `Tensor.eval` and `Operation.run` use this session."""
        return enter_session(self)


def _misused(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, problem)


class PartialRun:
    """A partial run: the values that are known so far."""

    def __init__(self, fetch: FetchPlan, feeds: set[Tensor]) -> None:
        self.allowed = {*fetch.tensors, *fetch.targets}
        self.feeds = feeds
        self.known: dict[Tensor, Any] = {}
        self.ran: set[Operation] = set()

        self.ended = False

    def forget_if_ended(self) -> None:
        """Drops the values once everything that was set up has been fetched."""
        if all(element in self.known or element in self.ran for element in self.allowed):
            self.ended = True
            self.known = dict.fromkeys(self.known)

    def go_on(self, graph: Graph, runner: Runner, fetch: FetchPlan, feeds: dict[Tensor, Any]) -> Any:
        for element in (*fetch.tensors, *fetch.targets):
            if element not in self.allowed:
                raise _misused(f"{element.name} was not among the fetches of partial_run_setup.")
        given = {}
        for tensor, value in feeds.items():
            if tensor not in self.feeds:
                raise _misused(f"{tensor.name} was not among the feeds of partial_run_setup.")
            if tensor in self.known:
                raise _misused(f"{tensor.name} was already fed in this partial run.")
            given[tensor] = runner.converter(tensor)(value)
        if self.ended:
            raise _misused("This partial run has ended: all that it was set up for has been fetched.")
        before = dict(self.known)
        self.known.update(given)
        try:
            self._compute(graph, runner, fetch)
        except BaseException:
            self.known = before  # A failed part may be retried with other feeds.
            raise
        return fetch.build([public(self.known[tensor]) for tensor in fetch.tensors])

    def _compute(self, graph: Graph, runner: Runner, fetch: FetchPlan) -> None:
        # A fetched reference is not fed again: ops that write to it need the variable, not its value.
        feeds = [tensor for tensor in self.known if not tensor.dtype._is_ref_dtype]
        targets = [op for op in fetch.targets if op not in self.ran]
        needed, _ = prune([t for t in fetch.tensors if t not in self.known], targets, set(feeds))
        ops = sorted(needed, key=lambda op: op._id)
        # Everything that runs in this part is fetched, so that the next part can start from it.
        # Handles are not: they are cheap to make again, and cannot leave the task that owns what they refer to.
        made = [op for op in ops if not op.definition.traits & Trait.SOURCE]
        fresh = [t for op in made for t in op.outputs if t not in self.known and not t.dtype._is_ref_dtype]
        fresh += [t for t in fetch.tensors if t.dtype._is_ref_dtype and t not in self.known]
        everything = FetchPlan(graph, [fresh, targets])
        plan = runner.plan(graph, everything, feeds)
        self.known.update(zip(fresh, plan.execute([self.known[tensor] for tensor in feeds])))
        self.ran.update(ops)


@export(v1="Session")
class Session(BaseSession):
    """Runs operations of a graph and owns its variables, queues and tables.

    Args:
        target: where to run; "" means this process.
        graph: the graph to run; by default the current one.
        config: a ConfigProto.
    """

    def __enter__(self) -> Session:
        self._entered_graph = context.enter_graph(self._graph)
        self._entered_graph.__enter__()
        self._entered_session = enter_session(self)
        self._entered_session.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._entered_session.__exit__(*exc)
        self._entered_graph.__exit__(*exc)
        self.close()

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        """Drops the resources in `containers` (all by default) of every session on `target`, and ends those sessions.

        A session on a server then raises AbortedError, as after a restart of the server. Others are closed.
        """
        target, wanted = _text(target), list(containers) if containers else None
        if reset_target(target, wanted, config):
            return
        for session in list(_live_sessions):
            if session._target == target:
                session._runner.reset(wanted)
                session.close()


@export(v1="InteractiveSession")
class InteractiveSession(BaseSession):
    """A session that is the default session from its creation until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._entered_graph = None
        if graph is not None:
            self._entered_graph = context.enter_graph(graph)
            self._entered_graph.__enter__()
        self._entered_session = enter_session(self)
        self._entered_session.__enter__()

    def close(self) -> None:
        if not self._closed:
            super().close()
            self._entered_session.__exit__(None, None, None)
            if self._entered_graph is not None:
                self._entered_graph.__exit__(None, None, None)


@export(v1="get_default_session")
def get_default_session() -> Any:
    """Returns the session made current by `with session:`, or None."""
    return current_session()
