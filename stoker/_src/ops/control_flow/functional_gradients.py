"""Gradients through If, Case, While and calls, built as functions of exportable ops.

The gradient of a body is traced into its own graph, which captures the values of the forward body that it needs. A
branch or a call returns those values as additional outputs. A loop pushes them to a list in each iteration, and the backward
loop pops them. Loop-invariant values are passed directly.

Gradients of lookups stay IndexedSlices where TensorFlow's do: through calls and branches, and out of 1.x loops, which
collect the rows of each iteration in lists.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, NamedTuple

from stoker._src.base import dtypes
from stoker._src.base.depth import Level
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import FUNC, VIEW, define
from stoker._src.graph.function_graph import FuncGraph, Function, note_handle, unique_function_name
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import functional_ops, gradients, tensor_lists
from stoker._src.ops.control_flow.functional_ops import run_loop
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.support import handles


def _dense(gradient: Any) -> Any:
    return None if gradient is None else convert_to_tensor(gradient)


def _zeros_for(tensor: Tensor) -> Any:
    """Zeros in the shape of `tensor`; for a variable's handle, in the shape of the variable."""
    if tensor.dtype.base_dtype is not dtypes.resource:
        return shaping.zeros_like(tensor)
    dtype = handles.handle_dtype(tensor)
    shape = handles.handle_shape(tensor)
    if shape.known:
        return shaping.zeros(shape, dtype)
    return shaping.zeros_like(ops.ReadVariableOp(tensor, dtype=dtype))


def _is_differentiated(tensor: Tensor) -> bool:
    if tensor.dtype.base_dtype is dtypes.resource:
        return handles.handle_dtype(tensor) is not None
    return gradients.is_trainable(tensor)


# ---- IndexedSlices that leave a function --------------------------------------------------------------------------


def flat_gradients(found: list[Any]) -> list[Tensor]:
    """Flattens gradients to tensors. IndexedSlices become their values and indices."""
    return [part for g in found for part in ((g.values, g.indices) if isinstance(g, IndexedSlices) else (g,))]


def packed_gradients(like: list[Any], sources: list[Any], tensors: list[Any]) -> list[Any]:
    """The gradients of `sources` from the flat `tensors` that a function returned. `like` are the gradients inside the function."""
    rest = iter(tensors)
    return [
        IndexedSlices(next(rest), next(rest), _sizes_of(source)) if isinstance(g, IndexedSlices) else next(rest)
        for g, source in zip(like, sources)
    ]


def _sizes_of(source: Any) -> Any:
    if source.dtype.base_dtype is dtypes.resource:
        return convert_to_tensor(handles.variable_sizes(source, dtypes.int32))
    return shaping.shape(source)


def _all_rows(dense: Tensor, index_dtype: Any) -> IndexedSlices:
    sizes = shaping.shape(dense)
    return IndexedSlices(dense, casting.cast(ranges.range(sizes[0]), index_dtype), sizes)


def _index_dtype(found: list[Any]) -> Any:
    kinds = [g.indices.dtype.base_dtype for g in found if isinstance(g, IndexedSlices)]
    return dtypes.int64 if dtypes.int64 in kinds else kinds[0]


class BodyGradient:
    """The gradient of one function: (gradients of outputs) -> (gradients of inputs), with the captures it needs."""

    def __init__(self, function: Function, starts: list[int], like: list[Any]) -> None:
        """Traces the gradient of the outputs `starts` of `function`. `like` are the incoming gradients, or have the same types."""
        self.function = function
        self.graph = FuncGraph(f"{function.name}_grad", function.graph, copies_constants=True)
        with Level(), self.graph.as_default():
            outputs = [function.outputs[i] for i in starts]
            self.incoming = [
                self.graph.add_input(t.dtype.base_dtype, t.static_shape, "grad_ys") for t in flat_gradients(like)
            ]
            sources = [t for t in function.inputs if _is_differentiated(t)]
            grad_ys = packed_gradients(like, outputs, self.incoming)
            # The walk ends at the inputs: what they depend on outside of the body is not its concern.
            found = (
                gradients.gradients(outputs, sources, grad_ys, stop_gradients=sources) if outputs and sources else []
            )
            by_source = dict(zip(sources, found))
        self.results: list[Any] = [by_source.get(t) for t in function.inputs]

    def captures(self) -> list[tuple[Tensor, Tensor]]:
        """Pairs of (value of the forward body, input of the gradient function that represents it)."""
        return self.graph.captures

    def dense(self, i: int) -> Any:
        """The gradient of input `i` as a tensor, zeros if there is none."""
        with self.graph.as_default():
            found = self.results[i]
            return _zeros_for(self.function.inputs[i]) if found is None else _dense(found)

    def rows(self, found: Any, i: int, index_dtype: Any) -> IndexedSlices:
        """`found` as IndexedSlices of input `i`: all rows of a tensor, rows of zeros if it is None."""
        with self.graph.as_default():
            if found is None:
                found = _zeros_for(self.function.inputs[i])
            if isinstance(found, IndexedSlices):
                return IndexedSlices(found.values, casting.cast(found.indices, index_dtype), found.dense_shape)
            return _all_rows(found, index_dtype)


def _note_handles(given: list[Tensor], inputs: list[Tensor]) -> None:
    """Records which variables the handles in a body refer to. Bodies that were read from a file may lack this."""
    for outer, inner in zip(given, inputs):
        if outer.dtype.base_dtype is dtypes.resource and handles.handle_dtype(inner) is None:
            note_handle(inner, outer)


@contextmanager
def _within(graph: Any):
    """Allows adding to a finished graph, independent of the scopes that are open in it."""
    with context.enter_graph(graph), graph.control_dependencies(None):
        yield


def _extend_outputs(op: Operation, tensors: list[Tensor]) -> list[Tensor]:
    """Adds outputs with the types of `tensors` to an op, whose functions must be changed to return them."""
    fresh = []
    for tensor in tensors:
        output = Tensor(op, len(op.outputs), tensor.dtype.base_dtype)
        output._static_shape = tensor.static_shape
        op.outputs.append(output)
        fresh.append(output)
    op.graph.note_change()
    return fresh


# ---- branches and calls -----------------------------------------------------------------------------------------


def _alternatives(bodies: list[BodyGradient], i: int) -> list[list[Any]]:
    """The gradients of input `i` in each branch: one for each branch, or several that are summed; all dense, or all slices.

    A branch that does not use the input gives zeros. In 1.x, each branch with lookups gives its own slices, with zeros for
    all rows if it is not taken; one dense gradient makes all of them dense. In 2.x, one sparse gradient makes all of them
    sparse.
    """
    found = [body.results[i] for body in bodies]
    sliced = [isinstance(g, IndexedSlices) for g in found if g is not None]
    older = bodies[0].function.captures is not None
    if not any(sliced) or (older and not all(sliced)):
        return [[body.dense(i) for body in bodies]]
    kind = _index_dtype(found)
    if not older:
        return [[body.rows(g, i, kind) for body, g in zip(bodies, found)]]
    return [
        [body.rows(found[taken] if body is bodies[taken] else None, i, kind) for body in bodies]
        for taken in reversed(range(len(bodies)))
        if found[taken] is not None
    ]


class _Recipe(NamedTuple):
    """How calls of one of several functions are differentiated. It holds for every op that calls the same functions.

    Attributes:
        functions: the gradients of the branches.
        passed: where the inputs of these functions come from, after the incoming gradients: ("input", position) or
            ("output", position) of the op that is differentiated.
        rewritten: the branches, extended to return what their gradients need; None if no change is needed.
        extra: the tensors of the branches that they return in addition.
        positions: the inputs of the branches that have gradients.
        like: for each of these, the gradients inside the first branch, which are summed.
    """

    functions: list[Function]
    passed: list[tuple[str, int]]
    rewritten: list[Function] | None
    extra: list[Tensor]
    positions: list[int]
    like: list[list[Any]]


def _recipe(functions: list[Function], starts: list[int], incoming: list[Any]) -> _Recipe:
    """Traces the gradients of the outputs `starts` of `functions`. `incoming` have the types of the incoming gradients."""
    bodies = [BodyGradient(function, starts, incoming) for function in functions]
    count = len(functions[0].inputs)
    positions = [i for i in range(count) if any(body.results[i] is not None for body in bodies)]
    alternatives = [_alternatives(bodies, i) for i in positions]
    arguments: list[list[Tensor]] = [list(body.incoming) for body in bodies]
    passed: list[tuple[str, int]] = []
    extra: list[Tensor] = []
    returned: list[list[Tensor]] = [[] for _ in functions]
    absent: list[dict[Any, Tensor]] = [{} for _ in functions]
    for number, body in enumerate(bodies):
        known = {tensor: ("output", i) for i, tensor in enumerate(body.function.outputs)}
        known |= {tensor: ("input", i) for i, tensor in enumerate(body.function.inputs)}
        for value, inner in body.captures():
            place = known.get(value)
            if place is None:
                place = "output", len(functions[0].outputs) + len(extra)
                extra.append(value)
                for other, function in enumerate(functions):
                    returned[other].append(
                        value if other == number else _never_read(function.graph, value, absent[other])
                    )
            passed.append(place)
            for other, each in enumerate(bodies):
                arguments[other].append(
                    inner if other == number else each.graph.add_input(value.dtype.base_dtype, value.static_shape)
                )
    made = [
        Function(
            unique_function_name(body.graph.name),
            body.graph,
            arguments[n],
            flat_gradients([alternative[n] for given in alternatives for alternative in given]),
        )
        for n, body in enumerate(bodies)
    ]
    rewritten = [function.extended([], returned[n]) for n, function in enumerate(functions)] if extra else None
    return _Recipe(made, passed, rewritten, extra, positions, [[each[0] for each in given] for given in alternatives])


def _never_read(graph: Any, value: Tensor, made: dict[Any, Tensor]) -> Tensor:
    """What a branch returns in place of a value of another one: one tensor for each type, which `made` holds."""
    key = value.dtype.base_dtype, value.static_shape.dims
    found = made.get(key)
    if found is None:
        with _within(graph):
            found = made[key] = functional_ops.FAKE_PARAM(dtype=key[0], shape=value.static_shape)
    return found


def _call_recipe(function: Function, starts: list[int], incoming: list[Any]) -> _Recipe:
    """The recipe of a call. Calls of a function from many places share one, so that functions that call others twice cost
    no more than their number."""
    types = tuple(
        (isinstance(g, IndexedSlices), t.dtype.base_dtype, t.static_shape.dims)
        for g in incoming
        for t in flat_gradients([g])
    )
    key = tuple(starts), types
    recipe = function.gradient_recipes.get(key)
    if recipe is None:
        recipe = function.gradient_recipes[key] = _recipe([function], starts, incoming)
    return recipe


class _BranchesGradient:
    """The gradient of an op that calls one of several functions, and the changes to the op.

    Attributes:
        functions: the gradients of the branches.
        passed: the inputs of these functions.
        rewritten: the branches, extended to return what their gradients need; None if no change is needed.
        positions: the inputs of the branches that have gradients.
    """

    def __init__(self, op: Operation, functions: list[Function], offset: int, grads: tuple[Any, ...]) -> None:
        self.op, self.offset = op, offset
        for function in functions:
            _note_handles(op._inputs[offset:], function.inputs)
        starts = [i for i, g in enumerate(grads) if g is not None]
        is_function = functions[0].captures is None
        if is_function:  # TensorFlow passes zeros to functions, and nothing to branches of 1.x
            starts = [i for i, tensor in enumerate(op.outputs) if i in starts or gradients.has_zeros(tensor)]
        incoming = [shaping.zeros_like(op.outputs[i]) if grads[i] is None else grads[i] for i in starts]
        is_call = is_function and len(functions) == 1
        recipe = _call_recipe(functions[0], starts, incoming) if is_call else _recipe(functions, starts, incoming)
        self.functions, self.rewritten = recipe.functions, recipe.rewritten
        self.positions, self._like = recipe.positions, recipe.like
        _extend_outputs(op, recipe.extra)
        self.passed = flat_gradients(incoming)
        for kind, i in recipe.passed:
            self.passed.append(op.outputs[i] if kind == "output" else op._inputs[offset + i])

    def gradients(self, results: list[Tensor]) -> list[Any]:
        """The gradients of the op's inputs, from the outputs of the op that calls `functions`."""
        found: list[Any] = [None] * len(self.op._inputs)
        rest = iter(results)
        for position, like in zip(self.positions, self._like):
            at = position + self.offset
            parts = [next(rest) for _ in flat_gradients(like)]
            found[at] = gradients.aggregate(packed_gradients(like, [self.op._inputs[at]] * len(like), parts))
        return found


def _note_outputs(op: Operation) -> None:
    op.attrs["Tout"] = tuple(tensor.dtype.base_dtype for tensor in op.outputs)
    if "output_shapes" in op.definition.attrs:
        op.attrs["output_shapes"] = tuple(tensor.static_shape for tensor in op.outputs)


@functional_ops.IF.grad
@functional_ops.STATELESS_IF.grad
def if_grad(op: Operation, *grads: Any) -> list[Any]:
    refs = [op.attrs["then_branch"], op.attrs["else_branch"]]
    made = _BranchesGradient(op, [ref.target for ref in refs], 1, grads)
    if made.rewritten is not None:
        op.attrs["then_branch"], op.attrs["else_branch"] = (function.ref for function in made.rewritten)
        _note_outputs(op)
    if not made.positions:
        return [None] * len(op._inputs)
    results = functional_ops.if_of(op._inputs[0], made.passed, made.functions)
    return made.gradients([shaping.identity(t) for t in results])


@functional_ops.CASE.grad
@functional_ops.STATELESS_CASE.grad
def case_grad(op: Operation, *grads: Any) -> list[Any]:
    made = _BranchesGradient(op, [ref.target for ref in op.attrs["branches"]], 1, grads)
    if made.rewritten is not None:
        op.attrs["branches"] = tuple(function.ref for function in made.rewritten)
        _note_outputs(op)
    if not made.positions:
        return [None] * len(op._inputs)
    results = functional_ops.case_of(op._inputs[0], made.passed, made.functions)
    return made.gradients([shaping.identity(t) for t in results])


@functional_ops.PARTITIONED_CALL.grad
@functional_ops.STATEFUL_PARTITIONED_CALL.grad
def call_grad(op: Operation, *grads: Any) -> list[Any]:
    function: Function = op.attrs["f"].target
    if function.gradient is not None:  # a gradient function from the library takes all inputs and all gradients
        filled = [shaping.zeros_like(t) if g is None else _dense(g) for t, g in zip(op.outputs, grads)]
        gradient = function.gradient
        results = call(gradient, [*op.inputs, *filled])
        return list(results)[: len(op.inputs)]
    made = _BranchesGradient(op, [function], 0, grads)
    if made.rewritten is not None:
        op.attrs["f"] = made.rewritten[0].ref
        _note_outputs(op)
    if not made.positions:
        return [None] * len(op._inputs)
    return made.gradients(call(made.functions[0], made.passed))


def call(function: Function, values: list[Any], name: str | None = None) -> list[Tensor]:
    """Calls `function` by an op and returns its outputs."""
    definition = functional_ops.STATEFUL_PARTITIONED_CALL if function.stateful else functional_ops.PARTITIONED_CALL
    return definition(values, Tout=[t.dtype.base_dtype for t in function.outputs], f=function.ref, name=name)


def _gradient_of(function: Function) -> Function:
    """A function (inputs, gradients of outputs) -> gradients of inputs, with zeros for None: the library's own if it has one."""
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
        results = [shaping.zeros_like(x) if dx is None else _dense(dx) for x, dx in zip(inputs, found)]
    made = Function(unique_function_name(graph.name), graph, [*inputs, *incoming], results)
    made.derived_from = function
    return made


SYMBOLIC_GRADIENT = define(
    "SymbolicGradient(input: [Tin]) -> (output: [Tout])", VIEW, f=FUNC(derive=_gradient_of)
).calling("once")
SYMBOLIC_GRADIENT.kernel(functional_ops.call_kernel)
SYMBOLIC_GRADIENT.shape(lambda input, *, op: functional_ops.returned_shapes(op, [op.attrs["f"]]))


# ---- loops ------------------------------------------------------------------------------------------------------


class _LoopGradient:
    """The gradient of one While op."""

    def __init__(self, op: Operation, grads: tuple[Any, ...]) -> None:
        self.op = op
        self.grads = list(grads)
        self.trips = self._trip_count()
        self.condition, self.body = op.attrs["cond"].target, op.attrs["body"].target
        _note_handles(op._inputs, self.body.inputs)
        self.grads += [None] * (len(op.outputs) - len(self.grads))
        self.invariant = {
            i
            for i, (given, returned) in enumerate(zip(self.body.inputs, self.body.outputs))
            if _passed_through(returned) is given
        }

    def _trip_count(self) -> Tensor:
        """The output that counts iterations. Loops built here have one; others get one."""
        op, body = self.op, self.op.attrs["body"].target
        if op.outputs and op.outputs[0].dtype is dtypes.int32 and _counts(body) and _starts_at_zero(op._inputs[0]):
            return op.outputs[0]
        with _within(op.graph):
            start = constant(0, dtypes.int32, name="loop_counter")
        with _within(body.graph):
            counter = body.graph.add_input(dtypes.int32, SCALAR, "loop_counter")
            following = arithmetic.ADD_V2(counter, constant(1, dtypes.int32))
        return self._add_variables([start], [counter], [following])[0]

    def _add_variables(self, starts: list[Tensor], inputs: list[Tensor], outputs: list[Tensor]) -> list[Tensor]:
        """Adds loop variables to the forward loop, with their initial values, and the inputs and outputs of its body."""
        op = self.op
        condition, body = op.attrs["cond"].target, op.attrs["body"].target
        unused = [condition.graph.add_input(t.dtype, t.static_shape) for t in inputs]
        op.attrs["body"], op.attrs["cond"] = body.extended(inputs, outputs).ref, condition.extended(unused, []).ref
        for tensor in starts:
            op._inputs.append(tensor)
            tensor._consumers.append(op)
        fresh = _extend_outputs(op, outputs)
        op.attrs["T"] = tuple(tensor.dtype.base_dtype for tensor in op.outputs)
        op.attrs["output_shapes"] = tuple(tensor.static_shape for tensor in op.outputs)
        return fresh

    def build(self) -> list[Any]:
        op, body = self.op, self.body
        carried = self._carried()
        starts = [self._start(i) for i in carried]
        traced = BodyGradient(body, carried, [body.outputs[i] for i in carried])
        graph = traced.graph
        if not carried:
            return self._of_invariants()
        constants = [i for i in sorted(self.invariant) if traced.results[i] is not None]
        collected = {i: _Rows(traced, i, op._inputs[i]) for i in constants if self._stays_sliced(traced, i)}
        summed = [i for i in constants if i not in collected]
        results: list[Tensor] = []
        with graph.as_default():
            for i, incoming in zip(carried, traced.incoming):
                found = traced.results[i]
                results.append(_zeros_for(self._shaped_like(i, incoming)) if found is None else _dense(found))
            sums = []
            for i in summed:
                found = _dense(traced.results[i])
                total = graph.add_input(found.dtype.base_dtype, found.static_shape, "grad_sum")
                sums.append(total)
                results.append(arithmetic.ADD_N([total, found]))
            counter = graph.add_input(dtypes.int32, SCALAR, "grad_counter")
            limit = graph.add_input(dtypes.int32, SCALAR, "maximum_iterations")
            trips = graph.add_input(dtypes.int32, SCALAR, "trip_count")
            following = arithmetic.ADD_V2(counter, constant(1, dtypes.int32))
        starts += [_zeros_for(op._inputs[i]) if self.grads[i] is None else _dense(self.grads[i]) for i in summed]
        for rows in collected.values():
            starts += rows.starts
            sums += rows.inputs
            results += rows.outputs
        initial = [constant(0, dtypes.int32, name="grad_counter"), constant(-1, dtypes.int32), self.trips, *starts]
        inputs = [counter, limit, trips, *traced.incoming, *sums]
        outputs = [following, limit, trips, *results]
        self._pass_captures(traced, initial, inputs, outputs)
        function = Function(unique_function_name(graph.name), graph, inputs, outputs)
        made = iter(run_loop(_counting_condition(function), function, initial)[3:])
        gradients_of = self._of_invariants()
        for i in [*carried, *summed]:
            gradients_of[i] = next(made)
        for i, rows in collected.items():
            gradients_of[i] = rows.joined(next(made), next(made))
        return gradients_of

    def _of_invariants(self) -> list[Any]:
        """Gradients of the inputs, of which those that leave the loop unchanged have the gradients of its outputs."""
        return [self.grads[i] if i in self.invariant else None for i in range(len(self.op._inputs))]

    def _stays_sliced(self, traced: BodyGradient, i: int) -> bool:
        """Whether the gradient of a loop-invariant input is collected as rows, as 1.x loops do for captures."""
        captures = self.body.captures or ()
        return i in captures and self.grads[i] is None and isinstance(traced.results[i], IndexedSlices)

    def _carried(self) -> list[int]:
        """The loop variables that change, and whose gradients the backward loop carries.

        In 2.x, these are all with a gradient. In 1.x, they are those that influence a variable with a gradient after the loop.
        """
        changing = [i for i in range(len(self.body.inputs)) if i not in self.invariant]
        flowing = [i for i in changing if _is_differentiated(self.body.inputs[i])]
        carried = [i for i in flowing if self.grads[i] is not None]
        if self.body.captures is None:
            carried = [i for i in flowing if i in carried or gradients.has_zeros(self.body.inputs[i])]
        else:
            leading = {t for t in _leading_to(self.body, carried) if gradients.has_zeros(t)}
            carried = [i for i in flowing if i in carried or self.body.inputs[i] in leading]
        return carried + [i for i in self._silent_lists() if i not in carried]

    def _silent_lists(self) -> list[int]:
        """Lists that change in the loop and are not used afterwards. The body may read elements that it wrote earlier."""
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
        """Passes the captured values of the backward body to the backward loop."""
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
        """A list of `value` in each iteration, as an output of the forward loop."""
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


class _Rows:
    """Collects the IndexedSlices of all iterations of a loop in two lists.

    As in TensorFlow, the rows are preceded by a row 0 of zeros, so that 1.x optimizers treat row 0 as used.

    Attributes:
        starts: the lists before the first iteration.
        inputs, outputs: the lists in the backward loop's body, before and after an iteration.
    """

    def __init__(self, traced: BodyGradient, i: int, source: Tensor) -> None:
        found: IndexedSlices = traced.results[i]
        self.source = source
        sizes = _sizes_of(source)
        row = _row_shape(source)
        first = shaping.zeros([1, *row] if row.known else joining.concat([[1], sizes[1:]], 0), found.dtype.base_dtype)
        self._parts = [
            (found.values, first, Shape((None, *row)) if row.dims is not None else Shape(None)),
            (found.indices, shaping.zeros([1], found.indices.dtype.base_dtype), Shape((None,))),
        ]
        self.starts, self.inputs, self.outputs = [], [], []
        for part, start, shape in self._parts:
            empty = tensor_lists.EMPTY_TENSOR_LIST(
                _sizes(shape), constant(-1, dtypes.int32), element_dtype=part.dtype.base_dtype
            )
            self.starts.append(tensor_lists.TENSOR_LIST_PUSH_BACK(empty, start))
            with traced.graph.as_default():
                held = traced.graph.add_input(dtypes.variant, SCALAR, "grad_rows")
                self.inputs.append(held)
                self.outputs.append(tensor_lists.TENSOR_LIST_PUSH_BACK(held, part))

    def joined(self, *lists: Tensor) -> IndexedSlices:
        values, indices = (
            tensor_lists.TENSOR_LIST_CONCAT_V2(
                rows, _sizes(shape), constant([], dtypes.int64, shape=[0]), element_dtype=part.dtype.base_dtype
            )[0]
            for rows, (part, _, shape) in zip(lists, self._parts)
        )
        return IndexedSlices(values, indices, _sizes_of(self.source))


def _row_shape(source: Tensor) -> Shape:
    static = handles.handle_shape(source) if source.dtype.base_dtype is dtypes.resource else source.static_shape
    return Shape(None) if static.dims is None else Shape(static.dims[1:])


_WRITING = frozenset(("TensorListSetItem", "TensorListPushBack"))


def _leading_to(body: Function, carried: list[int]) -> set[Tensor]:
    """The inputs of a loop's body that influence the loop variables `carried` after any number of iterations."""
    position_of = {tensor: i for i, tensor in enumerate(body.inputs)}
    found: set[Tensor] = set()
    stack = [body.outputs[i] for i in carried]
    while stack:
        tensor = stack.pop()
        if tensor in found or not gradients.is_trainable(tensor):
            continue
        found.add(tensor)
        stack.extend(tensor.op._inputs)
        if tensor in position_of:
            stack.append(body.outputs[position_of[tensor]])
    return found


def _hand_on(source: Tensor, target: Tensor) -> None:
    for name in ("handle_shape", "handle_dtype"):
        if getattr(source, name, None) is not None:
            setattr(target, name, getattr(source, name))


def _sizes(shape: Shape) -> Tensor:
    """A shape in the form that list ops take: -1 for unknown sizes."""
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
        result = comparison.LESS(inputs[0], inputs[2])
    return Function(unique_function_name(graph.name), graph, inputs, [result])


@functional_ops.WHILE.grad
@functional_ops.STATELESS_WHILE.grad
def while_grad(op: Operation, *grads: Any) -> list[Any]:
    with name_scope("while_grad"):
        return _LoopGradient(op, grads).build()
