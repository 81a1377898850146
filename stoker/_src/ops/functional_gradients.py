"""Gradients through If, Case, While and calls, built as functions of exportable ops.

The gradient of a body is traced into a graph of its own, whose captures are the values of the forward body that it needs. A
branch or a call returns those as extra outputs. A loop pushes them, one for each iteration, on a list that the backward loop
pops; values that do not change in the loop are passed as they are.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import FUNC, VIEW, define
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops import array, functional, gradients, math, state, tensor_lists
from stoker._src.ops.constants import constant


def _dense(gradient: Any) -> Any:
    return None if gradient is None else convert_to_tensor(gradient)


def _zeros_for(tensor: Tensor) -> Any:
    """The zero of gradients with respect to `tensor`; for a variable's handle, zeros of the variable."""
    if tensor.dtype.base_dtype is not dtypes.resource:
        return array.zeros_like(tensor)
    dtype = state.handle_dtype(tensor)
    shape = state.handle_shape(tensor)
    if shape.known:
        return array.zeros(shape, dtype)
    return array.zeros_like(state.READ_VARIABLE_OP(tensor, dtype=dtype))


def _is_differentiated(tensor: Tensor) -> bool:
    if tensor.dtype.base_dtype is dtypes.resource:
        return state.handle_dtype(tensor) is not None
    return gradients.is_trainable(tensor)


class BodyGradient:
    """The gradient of one function: (gradients of outputs) -> (gradients of inputs), with the captures it needs."""

    def __init__(self, function: Function, starts: list[int], like: list[Tensor]) -> None:
        """Traces the gradient of outputs `starts` of `function`; `like` are tensors of the incoming gradients' types."""
        self.function = function
        self.graph = FuncGraph(f"{function.name}_grad", function.graph, copies_constants=True)
        with self.graph.as_default():
            self.incoming = [self.graph.add_input(t.dtype.base_dtype, t.static_shape, "grad_ys") for t in like]
            sources = [t for t in function.inputs if _is_differentiated(t)]
            outputs = [function.outputs[i] for i in starts]
            found = gradients.gradients(outputs, sources, list(self.incoming)) if outputs and sources else []
            by_source = dict(zip(sources, map(_dense, found)))
        self.results: list[Any] = [by_source.get(t) for t in function.inputs]

    def captures(self) -> list[tuple[Tensor, Tensor]]:
        """(value of the forward body, input of the gradient that stands for it)."""
        return self.graph.captures


@contextmanager
def _within(graph: Any):
    """Adds to a graph that is finished, apart from the scopes that are open in it."""
    with context.enter_graph(graph), graph.control_dependencies(None):
        yield


def _extend_outputs(op: Operation, tensors: list[Tensor]) -> list[Tensor]:
    """Gives an op more outputs, of the types of `tensors`; its functions are changed to return them."""
    fresh = []
    for tensor in tensors:
        output = Tensor(op, len(op.outputs), tensor.dtype.base_dtype)
        output._static_shape = tensor.static_shape
        op.outputs.append(output)
        fresh.append(output)
    op.graph.note_change()
    return fresh


# ---- branches and calls -----------------------------------------------------------------------------------------


def _branches_gradient(op: Operation, functions: list[Function], offset: int, grads: tuple[Any, ...]) -> Any:
    """(gradient functions, their inputs, the op's inputs they give gradients for, rewritten forward functions)."""
    starts = [i for i, g in enumerate(grads) if g is not None]
    incoming = [_dense(grads[i]) for i in starts]
    bodies = [BodyGradient(function, starts, incoming) for function in functions]
    positions = [i for i in range(len(functions[0].inputs)) if any(body.results[i] is not None for body in bodies)]
    for body in bodies:
        with body.graph.as_default():
            for i in positions:
                if body.results[i] is None:
                    body.results[i] = _zeros_for(body.function.inputs[i])
    passed: list[Tensor] = []  # what the gradient op is given beside the incoming gradients
    arguments: list[list[Tensor]] = [list(body.incoming) for body in bodies]
    rewritten = list(functions)
    extra: list[Tensor] = []
    outer_values: dict[Tensor, Tensor] = {}
    for number, body in enumerate(bodies):
        inputs = {tensor: op._inputs[offset + i] for i, tensor in enumerate(body.function.inputs)}
        outputs = {tensor: op.outputs[i] for i, tensor in enumerate(body.function.outputs)}
        for value, _ in body.captures():
            known = inputs.get(value) if value in inputs else outputs.get(value)
            if known is not None:
                outer_values[value] = known
                continue
            extra.append(value)
            for other, function in enumerate(rewritten):
                returned = value
                if other != number:
                    with _within(function.graph):
                        returned = functional.FAKE_PARAM(dtype=value.dtype.base_dtype, shape=value.static_shape)
                rewritten[other] = function.extended([], [returned])
    for value, output in zip(extra, _extend_outputs(op, extra)):
        outer_values[value] = output
    for number, body in enumerate(bodies):
        for value, inner in body.captures():
            passed.append(outer_values[value])
            for other, each in enumerate(bodies):
                arguments[other].append(
                    inner if other == number else each.graph.add_input(value.dtype.base_dtype, value.static_shape)
                )
    made = [
        Function(unique_function_name(body.graph.name), body.graph, arguments[n], [body.results[i] for i in positions])
        for n, body in enumerate(bodies)
    ]
    return made, [*incoming, *passed], positions, rewritten, bool(extra)


def _note_outputs(op: Operation) -> None:
    op.attrs["Tout"] = tuple(tensor.dtype.base_dtype for tensor in op.outputs)
    if "output_shapes" in op.definition.attrs:
        op.attrs["output_shapes"] = tuple(tensor.static_shape for tensor in op.outputs)


def _scatter(count: int, positions: list[int], values: list[Any]) -> list[Any]:
    result: list[Any] = [None] * count
    for position, value in zip(positions, values):
        result[position] = value
    return result


@functional.IF.grad
@functional.STATELESS_IF.grad
def if_grad(op: Operation, *grads: Any) -> list[Any]:
    refs = [op.attrs["then_branch"], op.attrs["else_branch"]]
    made, passed, positions, rewritten, changed = _branches_gradient(op, [r.target for r in refs], 1, grads)
    if changed:
        op.attrs["then_branch"], op.attrs["else_branch"] = rewritten[0].ref, rewritten[1].ref
        _note_outputs(op)
    if not positions:
        return [None] * len(op._inputs)
    results = functional.if_of(op._inputs[0], passed, made)
    return _scatter(len(op._inputs), [i + 1 for i in positions], [array.identity(t) for t in results])


@functional.CASE.grad
@functional.STATELESS_CASE.grad
def case_grad(op: Operation, *grads: Any) -> list[Any]:
    made, passed, positions, rewritten, changed = _branches_gradient(
        op, [ref.target for ref in op.attrs["branches"]], 1, grads
    )
    if changed:
        op.attrs["branches"] = tuple(function.ref for function in rewritten)
        _note_outputs(op)
    if not positions:
        return [None] * len(op._inputs)
    results = functional.case_of(op._inputs[0], passed, made)
    return _scatter(len(op._inputs), [i + 1 for i in positions], [array.identity(t) for t in results])


@functional.PARTITIONED_CALL.grad
@functional.STATEFUL_PARTITIONED_CALL.grad
def call_grad(op: Operation, *grads: Any) -> list[Any]:
    function: Function = op.attrs["f"].target
    if function.gradient is not None:  # a library's own gradient takes all inputs and all gradients
        filled = [array.zeros_like(t) if g is None else _dense(g) for t, g in zip(op.outputs, grads)]
        gradient = function.gradient
        results = call(gradient, [*op.inputs, *filled])
        return list(results)[: len(op.inputs)]
    made, passed, positions, rewritten, changed = _branches_gradient(op, [function], 0, grads)
    if changed:
        op.attrs["f"] = rewritten[0].ref
        _note_outputs(op)
    if not positions:
        return [None] * len(op._inputs)
    return _scatter(len(op._inputs), positions, call(made[0], passed))


def call(function: Function, values: list[Any], name: str | None = None) -> list[Tensor]:
    """The outputs of an op that calls `function`."""
    definition = functional.STATEFUL_PARTITIONED_CALL if function.stateful else functional.PARTITIONED_CALL
    return definition(values, Tout=[t.dtype.base_dtype for t in function.outputs], f=function.ref, name=name)


def _gradient_of(function: Function) -> Function:
    """(inputs, gradients of outputs) -> gradients of inputs, zeros where nothing flows: the library's own, if it has one."""
    if function.derived_from is not None:
        return function
    if function.gradient is not None:
        return function.gradient
    graph = FuncGraph(f"{function.name}_gradient", function.graph.outer)
    with graph.as_default():
        inputs = [graph.add_input(t.dtype.base_dtype, t.static_shape, "x") for t in function.inputs]
        incoming = [graph.add_input(t.dtype.base_dtype, t.static_shape, "dy") for t in function.outputs]
        flowing = [(y, dy) for y, dy in zip(call(function, list(inputs)), incoming) if gradients.is_trainable(y)]
        ys, dys = [y for y, _ in flowing], [dy for _, dy in flowing]
        found = gradients.gradients(ys, inputs, dys) if flowing else [None] * len(inputs)
        results = [array.zeros_like(x) if dx is None else _dense(dx) for x, dx in zip(inputs, found)]
    made = Function(unique_function_name(graph.name), graph, [*inputs, *incoming], results)
    made.derived_from = function
    return made


SYMBOLIC_GRADIENT = define("SymbolicGradient(input: [Tin]) -> (output: [Tout])", VIEW, f=FUNC).calling(
    "once", derives=_gradient_of
)
SYMBOLIC_GRADIENT.kernel(functional.call_kernel)
SYMBOLIC_GRADIENT.shape(lambda input, *, op: functional.returned_shapes(op, [op.attrs["f"]]))


# ---- loops ------------------------------------------------------------------------------------------------------


class _LoopGradient:
    """The gradient of one While op."""

    def __init__(self, op: Operation, grads: tuple[Any, ...]) -> None:
        self.op = op
        self.grads = list(grads)
        self.trips = self._trip_count()
        self.condition, self.body = op.attrs["cond"].target, op.attrs["body"].target
        self.grads += [None] * (len(op.outputs) - len(self.grads))
        self.invariant = {
            i
            for i, (given, returned) in enumerate(zip(self.body.inputs, self.body.outputs))
            if _passed_through(returned) is given
        }

    def _trip_count(self) -> Tensor:
        """The output that counts iterations. Loops made here have one; others get one."""
        op, body = self.op, self.op.attrs["body"].target
        if op.outputs and op.outputs[0].dtype is dtypes.int32 and _counts(body) and _starts_at_zero(op._inputs[0]):
            return op.outputs[0]
        with _within(op.graph):
            start = constant(0, dtypes.int32, name="loop_counter")
        with _within(body.graph):
            counter = body.graph.add_input(dtypes.int32, SCALAR, "loop_counter")
            following = math.ADD_V2(counter, constant(1, dtypes.int32))
        return self._add_variables([start], [counter], [following])[0]

    def _add_variables(self, starts: list[Tensor], inputs: list[Tensor], outputs: list[Tensor]) -> list[Tensor]:
        """More loop variables for the forward loop: their first values, and inputs and outputs of its body."""
        op = self.op
        condition, body = op.attrs["cond"].target, op.attrs["body"].target
        unused = [condition.graph.add_input(t.dtype, t.static_shape) for t in inputs]
        rewritten = body.extended(inputs, outputs)
        rewritten.accumulators = set(body.accumulators)
        op.attrs["body"], op.attrs["cond"] = rewritten.ref, condition.extended(unused, []).ref
        for tensor in starts:
            op._inputs.append(tensor)
            tensor._consumers.append(op)
        fresh = _extend_outputs(op, outputs)
        op.attrs["T"] = tuple(tensor.dtype.base_dtype for tensor in op.outputs)
        op.attrs["output_shapes"] = tuple(tensor.static_shape for tensor in op.outputs)
        return fresh

    def build(self) -> list[Any]:
        op, body = self.op, self.body
        carried = [i for i, g in enumerate(self.grads) if i not in self.invariant and g is not None and self._flows(i)]
        carried += [i for i in self._silent_lists() if i not in carried]
        starts = [self._start(i) for i in carried]
        traced = BodyGradient(body, carried, [body.outputs[i] for i in carried])
        graph = traced.graph
        constants = [i for i in sorted(self.invariant) if traced.results[i] is not None]
        if not carried:
            return [None] * len(op._inputs)
        results: list[Tensor] = []
        with graph.as_default():
            for i, incoming in zip(carried, traced.incoming):
                found = traced.results[i]
                results.append(_zeros_for(self._shaped_like(i, incoming)) if found is None else found)
            sums = []
            for i in constants:
                found = traced.results[i]
                total = graph.add_input(found.dtype.base_dtype, found.static_shape, "grad_sum")
                sums.append(total)
                results.append(math.ADD_N([total, found]))
            counter = graph.add_input(dtypes.int32, SCALAR, "grad_counter")
            limit = graph.add_input(dtypes.int32, SCALAR, "maximum_iterations")
            trips = graph.add_input(dtypes.int32, SCALAR, "trip_count")
            following = math.ADD_V2(counter, constant(1, dtypes.int32))
        starts += [_zeros_for(op._inputs[i]) if self.grads[i] is None else _dense(self.grads[i]) for i in constants]
        initial = [constant(0, dtypes.int32, name="grad_counter"), constant(-1, dtypes.int32), self.trips, *starts]
        inputs = [counter, limit, trips, *traced.incoming, *sums]
        outputs = [following, limit, trips, *results]
        self._pass_captures(traced, initial, inputs, outputs)
        function = Function(unique_function_name(graph.name), graph, inputs, outputs)
        made = run_loop(_counting_condition(function), function, initial)
        wanted = made[3 : 3 + len(carried) + len(constants)]
        return _scatter(len(op._inputs), carried + constants, list(wanted))

    def _flows(self, i: int) -> bool:
        return _is_differentiated(self.body.inputs[i])

    def _silent_lists(self) -> list[int]:
        """Lists that change in the loop and that nothing after it uses: the body may read what it wrote before."""
        noted = self.body.accumulators
        return [
            i
            for i, tensor in enumerate(self.body.inputs)
            if tensor.dtype is dtypes.variant
            and i not in self.invariant
            and i not in noted
            and self.grads[i] is None
            and any(consumer.type not in _WRITING for consumer in tensor._consumers)
        ]

    def _start(self, i: int) -> Any:
        return _zeros_for(self.op.outputs[i]) if self.grads[i] is None else _dense(self.grads[i])

    def _shaped_like(self, i: int, incoming: Tensor) -> Tensor:
        return incoming if incoming.static_shape.known else self.body.inputs[i]

    def _pass_captures(
        self, traced: BodyGradient, initial: list[Any], inputs: list[Tensor], outputs: list[Tensor]
    ) -> None:
        """Gives the backward loop what its body captured."""
        graph, body = traced.graph, self.body
        position_of = {tensor: i for i, tensor in enumerate(body.inputs)}
        for value, inner in traced.captures():
            source = position_of.get(_passed_through(value))
            if source in self.invariant:
                initial.append(self.op._inputs[source])
                inputs.append(inner)
                outputs.append(inner)
                continue
            kept = self._accumulate(value)
            with graph.as_default():
                handle = graph.add_input(dtypes.variant, SCALAR, "accumulator")
                rest, popped = tensor_lists.TENSOR_LIST_POP_BACK(
                    handle, _sizes(value.static_shape), element_dtype=value.dtype.base_dtype
                )
            popped.set_shape(value.static_shape)
            _hand_on(value, popped)
            for consumer in set(inner._consumers):
                for index, tensor in enumerate(consumer._inputs):
                    if tensor is inner:
                        consumer._update_input(index, popped)
            for index, tensor in enumerate(outputs):
                if tensor is inner:
                    outputs[index] = popped
            initial.append(kept)
            inputs.append(handle)
            outputs.append(rest)

    def _accumulate(self, value: Tensor) -> Tensor:
        """The list of `value` in each iteration: an output of the forward loop."""
        op = self.op
        known = op.attrs["body"].target
        for i, returned in enumerate(known.outputs):
            if i in known.accumulators and returned.op.type == "TensorListPushBack" and returned.op._inputs[1] is value:
                return op.outputs[i]
        with _within(op.graph):
            empty = tensor_lists.EMPTY_TENSOR_LIST(
                _sizes(value.static_shape),
                constant(-1, dtypes.int32),
                element_dtype=value.dtype.base_dtype,
                name=f"{op.name.rsplit('/', 1)[-1]}_grad/accumulator" if op.graph._scope == "" else "accumulator",
            )
        with _within(known.graph):
            handle = known.graph.add_input(dtypes.variant, SCALAR, "accumulator")
            pushed = tensor_lists.TENSOR_LIST_PUSH_BACK(handle, value)
        output = self._add_variables([empty], [handle], [pushed])[0]
        op.attrs["body"].target.accumulators.add(output.value_index)
        return output


_WRITING = frozenset(("TensorListSetItem", "TensorListPushBack"))


def _hand_on(source: Tensor, target: Tensor) -> None:
    for name in ("handle_shape", "handle_dtype"):
        if getattr(source, name, None) is not None:
            setattr(target, name, getattr(source, name))


def _sizes(shape: Shape) -> Tensor:
    """A shape as ops of lists take it: -1 where a size is unknown."""
    if shape.dims is None:
        return constant(-1, dtypes.int32)
    return constant([-1 if size is None else size for size in shape.dims], dtypes.int32, shape=[len(shape.dims)])


def _passed_through(tensor: Tensor) -> Tensor:
    while tensor.op.type == "Identity" and not tensor.op._inputs[0].dtype._is_ref_dtype:
        tensor = tensor.op._inputs[0]
    return tensor


def _counts(body: Function) -> bool:
    made = _passed_through(body.outputs[0]).op
    if made.type not in ("AddV2", "Add") or body.inputs[0] not in made._inputs:
        return False
    other = made._inputs[1] if made._inputs[0] is body.inputs[0] else made._inputs[0]
    return other.op.type == "Const" and other.op.attrs["value"].tolist() == 1


def _starts_at_zero(tensor: Tensor) -> bool:
    tensor = _passed_through(tensor)
    return tensor.op.type == "Const" and tensor.op.attrs["value"].tolist() == 0


def _counting_condition(body: Function) -> Function:
    graph = FuncGraph(body.graph.name.replace("body", "cond"), body.graph.outer)
    with graph.as_default():
        inputs = [graph.add_input(t.dtype, t.static_shape) for t in body.inputs]
        result = math.LESS(inputs[0], inputs[2])
    return Function(unique_function_name(graph.name), graph, inputs, [result])


def run_loop(
    condition: Function, body: Function, initial: list[Any], name: str | None = None, parallel_iterations: int = 10
) -> list[Tensor]:
    """The outputs of a While op, each through an Identity as TensorFlow has it."""
    stateful = condition.stateful or body.stateful
    definition = functional.WHILE if stateful else functional.STATELESS_WHILE
    made = definition(
        initial,
        cond=condition.ref,
        body=body.ref,
        output_shapes=[tensor.static_shape for tensor in body.inputs],
        parallel_iterations=parallel_iterations,
        name=name,
    )
    return [array.identity(tensor) for tensor in made]


@functional.WHILE.grad
@functional.STATELESS_WHILE.grad
def while_grad(op: Operation, *grads: Any) -> list[Any]:
    with name_scope("while_grad"):
        return _LoopGradient(op, grads).build()
