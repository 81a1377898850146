"""`Session`: runs parts of a graph. A run is planned and compiled once for its fetches and feeds, then called."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.graph import Graph, current_session, enter_session
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.values import to_numpy
from stoker._src.runtime.composites import parts_of_key, parts_of_value
from stoker._src.runtime.emit import Step, emit
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.feeds import converter
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.locks import Holding, VariablesLock
from stoker._src.runtime.plan import Instruction, Planner
from stoker._src.runtime.resources import NodeContext, ResourceManager


class Plan:
    """A compiled run: `fetches` and `feeds` of one kind, ready to be called with values."""

    def __init__(self, session: BaseSession, fetch: FetchPlan, feeds: list[Tensor]) -> None:
        self.fetch = fetch
        self.feeds = feeds
        self.graph_changes = session.graph.changes
        self.converters = [converter(tensor) for tensor in feeds]
        planner = Planner(fetch.tensors, fetch.targets, feeds, session._node_context).build()
        self.step: Step = emit(planner)
        self.writes, self.reads, self.blocks = planner.writes_variables, planner.reads_variables, planner.blocks
        self.locks = self.writes or self.reads or self.blocks
        self.line_times: list[tuple[Instruction, float]] | None = None

    def execute(self, session: BaseSession, values: list[Any]) -> list[Any]:
        """Runs the step on converted feeds; the fetched tensors as NumPy."""
        holding = None
        try:
            if self.locks:
                holding = Holding(session._variables_lock, writes=self.writes)
                holding.resume()
            results = self.step.function(holding, *values)
        except BaseException as error:
            raise self._failure(error) from error
        finally:
            if holding is not None:
                holding.pause()
        return [_public(value) for value in results]

    def _failure(self, error: BaseException) -> BaseException:
        """The error to raise: with the node whose line failed, and what that line was given."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith(self.step.filename):
                break
            trace = trace.tb_next
        if trace is None:
            return explain_failure(error, None)
        instruction = self.step.lines.get(trace.tb_lineno)
        if instruction is None:
            return explain_failure(error, None)
        found = {**trace.tb_frame.f_locals}
        values = _inputs_of(instruction, found)
        return explain_failure(error, instruction.op, values)


def _inputs_of(instruction: Instruction, found: dict[str, Any]) -> list[Any] | None:
    from stoker._src.runtime.plan import _values_of

    values = []
    for value in _values_of(instruction.arguments):
        if value.is_constant:
            values.append(value.constant)
        elif value.label in found:
            values.append(found[value.label])
        else:
            return None
    return values


def _public(value: Any) -> Any:
    """What a caller gets: arrays, NumPy scalars for 0-d tensors, bytes for single strings."""
    if isinstance(value, torch.Tensor):
        array = to_numpy(value)
        return array if array.ndim else array[()]
    if hasattr(value, "ndim"):
        return value if value.ndim else value[()]
    return value


class BaseSession:
    """What Session and InteractiveSession share."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"Argument `graph` must be a tf.Graph, but got {type(graph)!r}.")
        if target is not None and not isinstance(target, (str, bytes)):
            raise TypeError(f"Argument `target` must be a string, but got {type(target)!r}.")
        self._graph = context.get_default_graph() if graph is None else graph
        self._target = target
        self._config = config
        self._closed = False
        self._plans: dict[Any, Plan] = {}
        self._planning = threading.Lock()
        self._resources = ResourceManager()
        self._variables_lock = VariablesLock()
        self._contexts: weakref.WeakKeyDictionary[Operation, NodeContext] = weakref.WeakKeyDictionary()

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> Any:
        return self._target

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs what `fetches` need and returns their values in the same structure.

        Args:
            fetches: a tensor, operation, variable, name, or a structure (list, tuple, namedtuple, dict) of them.
            feed_dict: values for tensors, by tensor or name; they replace what the graph would compute.
            options: a RunOptions message.
            run_metadata: a RunMetadata message to fill.

        Raises:
            RuntimeError: the session is closed.
            TypeError, ValueError: fetches or feeds that cannot be.
            tf.errors.OpError: an operation failed.
        """
        try:
            key = (
                tuple(fetches) if type(fetches) is list else fetches,
                tuple(feed_dict) if feed_dict else (),
                type(fetches) is list,
            )
            plan = self._plans.get(key)
        except TypeError:
            key = plan = None
        if plan is None or self._closed or plan.graph_changes != self._graph.changes:
            plan = self._plan(fetches, feed_dict, key)
        if not feed_dict:
            values = []
        elif len(feed_dict) == len(plan.feeds):
            values = [convert(value) for convert, value in zip(plan.converters, feed_dict.values())]
        else:
            values = self._expanded_feeds(plan, feed_dict)
        return plan.fetch.build(plan.execute(self, values))

    def _plan(self, fetches: Any, feed_dict: Any, key: Any) -> Plan:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
        feeds = self._feed_tensors(feed_dict)
        fetch = FetchPlan(self._graph, fetches)
        if len({*feeds}) != len(feeds):
            raise ValueError("A tensor is fed twice, under two names.")
        with self._planning:
            plan = Plan(self, fetch, feeds)
            if key is not None:
                self._plans[key] = plan
        return plan

    def _feed_tensors(self, feed_dict: Any) -> list[Tensor]:
        if not feed_dict:
            return []
        tensors: list[Tensor] = []
        for key in feed_dict:
            parts = parts_of_key(key)
            if parts is not None:
                tensors.extend(parts)
                continue
            try:
                tensor = self._graph.as_graph_element(key, allow_operation=False)
            except (TypeError, ValueError, KeyError) as error:
                kind = ValueError if isinstance(error, KeyError) else type(error)
                raise kind(f"Cannot interpret feed_dict key as Tensor: {error}") from None
            if not self._graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
            tensors.append(tensor)
        return tensors

    def _expanded_feeds(self, plan: Plan, feed_dict: Any) -> list[Any]:
        """Feeds among which are composites (SparseTensor), whose values come apart into those of their tensors."""
        values: list[Any] = []
        for key, value in feed_dict.items():
            values.extend([value] if parts_of_key(key) is None else parts_of_value(key, value))
        return [convert(value) for convert, value in zip(plan.converters, values, strict=True)]

    def _node_context(self, op: Operation) -> NodeContext:
        found = self._contexts.get(op)
        if found is None:
            found = self._contexts[op] = NodeContext(op.name, self._resources, self)
        return found

    def explain(self, fetches: Any, feeds: Any = ()) -> str:
        """The plan of a run as Python source: one line for each kernel call, with the node it belongs to."""
        plan = self._plan(fetches, dict.fromkeys(feeds), None)
        lines = plan.step.source.splitlines()
        width = max(len(line) for line in lines)
        for number, instruction in plan.step.lines.items():
            if instruction.op is not None:
                lines[number - 1] = f"{lines[number - 1]:<{width}}  # {instruction.op.name}"
        return "\n".join(lines)

    # -- life ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the session: what blocks is cancelled, variables are forgotten."""
        if not self._closed:
            self._closed = True
            self._plans.clear()
            self._resources.reset()

    def as_default(self) -> Any:
        """A context in which this is the session of `Tensor.eval` and `Operation.run`."""
        return enter_session(self)


@export(v1="Session")
class Session(BaseSession):
    """Runs operations of a graph and owns its variables, queues and tables.

    Args:
        target: where to run; "" is this process.
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


@export(v1="InteractiveSession")
class InteractiveSession(BaseSession):
    """A session that is the default one from the moment it is made until it is closed."""

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
    """The session made current by `with session:`, or None."""
    return current_session()
