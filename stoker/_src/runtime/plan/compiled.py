"""A compiled run. A session keeps one for each set of fetches and feeds."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.formats.protos import RunOptions
from stoker._src.graph.graph import Graph
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.waiting import running
from stoker._src.runtime.feeds import converter
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.functions.bodies import step_failure
from stoker._src.runtime.locks import Holding
from stoker._src.runtime.plan import loop_runs, small_ops, threads
from stoker._src.runtime.plan.by_shape import ByShape
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.gpu import fused_kernels
from stoker._src.runtime.plan.gpu.cuda_graphs import Repeated
from stoker._src.runtime.plan.inlining import flags_of
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.planner import Planner
from stoker._src.runtime.trace import Ticks, fill_partition_graph, fill_run_metadata
from stoker._src.runtime.worker import RunningSteps, Worker

_ALIGNED = 160  # columns up to which the comments of `explain` are aligned


class Plan:
    """A compiled run for one set of `fetches` and `feeds`, ready to be called with values."""

    def __init__(
        self,
        worker: Worker,
        running_steps: RunningSteps,
        graph: Graph,
        fetch: FetchPlan,
        feeds: list[Tensor],
        shapes: list[Shape] | None = None,
    ) -> None:
        """`shapes` are the shapes of the first values that will be fed, if they are known."""
        self._worker = worker
        self._lock = worker.variables_lock
        self._running_steps = running_steps
        self.fetch = fetch
        self.feeds = feeds
        self.fed = [i for i, tensor in enumerate(fetch.tensors) if tensor in feeds]
        self.expands_feeds = False  # whether keys of the feed_dict are structures or composites
        self.graph_changes = graph.changes
        self.converters = [converter(tensor) for tensor in feeds]
        flags = flags_of([tensor for tensor in fetch.tensors if tensor is not None], fetch.targets, feeds)
        on_cpu = worker.placement.gpu is None
        by_shape = on_cpu and self._is_by_shape(flags)
        if on_cpu and not by_shape:  # what is fed has the static shapes
            shapes = [tensor.static_shape for tensor in feeds]
        planner = self._planner(
            known=[Known(shape) for shape in shapes] if on_cpu and shapes is not None else None,
            with_late_shapes=not by_shape or shapes is not None,
        ).build()
        self.ops = planner.ops
        for op in self.ops:
            worker.placement.requested(op)
        self.writes, self.reads, self.blocks = planner.writes_variables, planner.reads_variables, planner.blocks
        self.watched = planner.blocks or planner.loops
        self.locks = self.writes or self.reads or self.blocks
        self.traced_step: Step | None = None  # runs node by node; compiled for the first traced run
        gpu = worker.placement.gpu
        self.repeated = None if gpu is None else Repeated(planner, self._planner, worker.placement, self._lock)
        # For each step what chooses its number of threads. On a GPU it does not matter.
        self._tuners: dict[Any, Any] = {}
        self.shaped = ByShape(self._shaped_step, lambda: self.step, flags) if by_shape else None
        if self.shaped is None or (shapes is None and not flags):
            self.step = emit(planner)
        elif not flags and shapes is not None:
            self.shaped.steps[tuple([shape.dims for shape in shapes])] = emit(planner)
        self.times: dict[int, float] = {}  # seconds spent in each line during the last traced run
        if os.environ.get("STOKER_DEBUG") == "plan":
            print(self.explain(), file=sys.stderr)

    def _is_by_shape(self, flags: list[int]) -> bool:
        """Whether to compile for specific feeds, because some shapes are not known statically or there are flags."""
        data = all(tensor.dtype not in (dtypes.resource, dtypes.variant) for tensor in self.feeds)
        return data and (bool(flags) or not all(tensor.static_shape.known for tensor in self.feeds))

    def _planner(self, **options: Any) -> Planner:
        worker = self._worker
        return Planner(
            self.fetch.tensors,
            self.fetch.targets,
            self.feeds,
            worker.node_context,
            worker.compiler.for_plan(fuses_kernels=options.get("arrange") is not None and fused_kernels.is_available()),
            **options,
        )

    @functools.cached_property
    def step(self) -> Step:
        """The step for feeds of any shape."""
        return emit(self._planner(with_late_shapes=False).build())

    def _shaped_step(self, shapes: list[Shape], flags: dict[int, Any]) -> Step:
        return emit(self._planner(known=[Known(shape) for shape in shapes], bound=flags).build())

    def _function(self, values: Any) -> Any:
        """Returns the compiled function for these feeds."""
        if self.shaped is not None:
            return self.shaped.function(values)
        return self.step.function

    def execute(self, values: list[Any], options: Any = None, metadata: Any = None) -> list[Any]:
        """Runs the step on converted feeds. Returns the fetched values as the kernels produced them."""
        if options is not None or metadata is not None or self.watched:
            return self._execute_watched(values, options, metadata)
        if not self.locks:
            try:
                return self._run(None, values)
            except BaseException as error:
                raise self._failure(error) from error
        holding = Holding(self._lock, writes=self.writes, leaves_lent=self.repeated is not None)
        try:
            holding.acquire()
            return self._run(holding, values)
        except BaseException as error:
            raise self._failure(error) from error
        finally:
            holding.release()

    def _run(self, holding: Any, values: list[Any]) -> list[Any]:
        """Runs the step: on a GPU recorded if it repeats, on the CPU with as many threads as turned out to be fastest."""
        if self.repeated is not None:
            return self.repeated.run(self.step.function, holding, values)
        function = self._function(values)
        try:
            tuner = self._tuners[function]
        except KeyError:
            tuner = self._tuners[function] = threads.tuner()
        began = tuner.begin()
        try:
            return function(holding, *values)
        finally:
            if holding is not None:
                holding.end_wait()
            tuner.end(began)
            if tuner.tiny:
                self._tuners[function] = threads.small_runs

    def _execute_watched(self, values: list[Any], options: Any, metadata: Any) -> list[Any]:
        """Executes a run that may block or take long, has a deadline, or is traced."""
        for name, message in (("options", options), ("run_metadata", metadata)):
            if message is not None and not hasattr(message, "SerializeToString"):
                raise TypeError(f"Argument `{name}` must be a message, but got {type(message)!r}.")
        state = self._running_steps.begin(0 if options is None else options.timeout_in_ms)
        traced = options is not None and options.trace_level >= RunOptions.SOFTWARE_TRACE and metadata is not None
        holding = Holding(
            self._lock,
            writes=self.writes,
            state=state,
            touches=self.writes or self.reads,
            leaves_lent=self.repeated is not None and not traced,
        )
        if options is not None and options.output_partition_graphs and metadata is not None:
            fill_partition_graph(metadata, self.step.planner)
        try:
            with running(state):
                holding.acquire()
                if not traced:
                    return self._run(holding, values)
                if self.traced_step is None:
                    self.traced_step = emit(self._planner(with_fused_loops=False).build())
                function, instructions = self.traced_step.timed()
                ticks = Ticks()
                results = function(ticks, holding, *[self._worker.placement.data(value) for value in values])
                self.times = {line: end - begin for line, begin, end in ticks.spans()}
                fill_run_metadata(metadata, ticks, instructions)
                return results
        except BaseException as error:
            raise self._failure(error) from error
        finally:
            holding.end()
            self._running_steps.end(state)

    def _failure(self, error: BaseException) -> BaseException:
        """Returns the error to raise. It names the node whose line failed and the inputs of that line."""
        return step_failure(error, *self._steps())

    def release(self) -> None:
        """Gives up what the plan holds on a GPU. Called when its session is closed."""
        if self.repeated is not None:
            self.repeated.release()

    def _steps(self) -> list[Step]:
        """Returns all compiled steps."""
        made = [self.traced_step, *(self.shaped.steps.values() if self.shaped else ()), self.__dict__.get("step")]
        made += [] if self.repeated is None else self.repeated.steps()
        return [step for step in made if step is not None]

    def explain(self) -> str:
        """Returns the step's source. Each line shows the node it runs and, after a traced run, its time.

        Comments at the end say which ops were fused, why others were not, and how many threads the step runs with.
        """
        step = next(iter(self._steps()), None) or self.step
        lines = step.source.splitlines()
        width = min(max(len(line) for line in lines), _ALIGNED)  # the comments of longer lines follow them
        for index, (number, instruction) in enumerate(step.lines.items()):
            if instruction.op is not None:
                spent = f"  {self.times[index] * 1e6:9.1f} us" if index in self.times else ""
                lines[number - 1] = f"{lines[number - 1]:<{width}}  # {instruction.op.name}{spent}"
        return "\n".join([*lines, *[f"# {line}" for line in self._remarks(step)]])

    def _remarks(self, step: Step) -> list[str]:
        if self.repeated is not None:
            return self.repeated.remarks()
        remarks = (
            [] if step is self.traced_step else loop_runs.summary(step.planner.instructions, step.planner.shape_of)
        )
        remarks += small_ops.summary(step.planner.instructions)
        chosen = getattr(self._tuners.get(step.function), "threads", None)
        if chosen is not None:
            remarks.append(f"threads: {chosen} of {torch.get_num_threads()}, measured while the step runs")
        return remarks
