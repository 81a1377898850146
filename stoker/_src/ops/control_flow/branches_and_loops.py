"""`cond`, `case`, `switch_case` and `while_loop`: Python functions are traced into the bodies of If, Case and While ops.

In eager mode these functions use ordinary Python control flow.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, cast

from stoker._src.base import dtypes, nest
from stoker._src.base.depth import Level
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import assertions, functional_ops, tensor_array
from stoker._src.ops.math import arithmetic, comparison

# ---- tracing ----------------------------------------------------------------------------------------------------


class Traced:
    """The result of tracing a Python function: the returned structure, and its tensors in the body."""

    def __init__(self, graph: FuncGraph, structure: Any, tensors: list[Tensor | None]) -> None:
        self.graph = graph
        self.structure = structure
        self.tensors = tensors

    def function(self, inputs: list[Tensor], outputs: list[Tensor]) -> Function:
        graph = self.graph
        made = Function(unique_function_name(graph.name), graph, inputs, outputs, control_outputs(graph))
        if graph.part_of_outer:
            captured = {inner for _, inner in graph.captures}
            made.captures = frozenset(i for i, tensor in enumerate(inputs) if tensor in captured)
        return made


def control_outputs(graph: FuncGraph) -> list[Operation]:
    """The ops of a body that run whatever is returned, chained in creation order."""
    if not graph.automatic:
        return []
    ops = graph.stateful_ops()
    for before, after in itertools.pairwise(ops):
        if before not in after._control_inputs and all(t.op is not before for t in after._inputs):
            after._add_control_input(before)
    return ops


def trace(graph: FuncGraph, function: Callable[..., Any], args: Any = (), op_result: Any = None) -> Traced:
    """Calls `function` in `graph`. Each returned operation is replaced by `op_result`, a tensor that waits for it."""
    with Level(), graph.as_default():
        structure = function(*args)
        tensors: list[Tensor | None] = []

        def convert(leaf: Any) -> Any:
            if leaf is None:
                tensors.append(None)
                return None
            if isinstance(leaf, Operation):
                with control_dependencies([leaf]):
                    leaf = shaping.identity(True if op_result is None else op_result)
            tensor = convert_to_tensor(leaf)
            if tensor.dtype._is_ref_dtype:
                tensor = shaping.identity(tensor)
            tensor = graph.as_graph_element(tensor)
            tensors.append(tensor)
            return tensor

        structure = nest.map_structure(convert, structure, expand_composites=True)
    return Traced(graph, structure, tensors)


def _with_captures(bodies: list[Traced]) -> tuple[list[Any], list[list[Tensor]]]:
    """The union of the bodies' captures, and for each body the inputs that represent them."""
    passed: dict[int, Any] = {}
    for body in bodies:
        for value in body.graph.external_captures:
            passed.setdefault(id(value), value)
    return list(passed.values()), [[body.graph.capture(value) for value in passed.values()] for body in bodies]


def _waits(bodies: list[Traced]) -> list[Operation]:
    return list(dict.fromkeys(op for body in bodies for op in body.graph.control_captures))


# ---- cond -------------------------------------------------------------------------------------------------------

_STRUCTURE = (
    "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure of return values."
)


@export(v1="cond")
def cond(
    pred: Any,
    true_fn: Any = None,
    false_fn: Any = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Any = None,
    fn2: Any = None,
) -> Any:
    """Returns the result of `true_fn()` if `pred` is true, else that of `false_fn()`. Only one of them runs.

    Both functions are traced, and must return the same structure with the same dtypes. A list of one element is returned as that
    element unless `strict` is set.

    Args:
        pred: a scalar bool tensor.
        true_fn, false_fn: functions without arguments.
        strict: whether to return lists of one element as lists.
        name: the name of the op ("cond").
        fn1, fn2: older names of `true_fn` and `false_fn`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the branches return different structures or dtypes.
    """
    if fn1 is not None:
        if true_fn is not None:
            raise TypeError("cond(): 'true_fn' and 'fn1' may not be set simultaneously.")
        true_fn = fn1
    if fn2 is not None:
        if false_fn is not None:
            raise TypeError("cond(): 'false_fn' and 'fn2' may not be set simultaneously.")
        false_fn = fn2
    return _unpacked(_cond(pred, true_fn, false_fn, name, ValueError), strict)


@export(v2="cond")
def cond_v2(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """Returns the result of `true_fn()` if `pred` is true, else that of `false_fn()`. Only one of them runs."""
    return _cond(pred, true_fn, false_fn, name)


def _unpacked(result: Any, strict: bool) -> Any:
    if not strict and isinstance(result, (list, tuple)) and len(result) == 1 and not hasattr(result, "_fields"):
        return result[0]
    return result


def _cond(pred: Any, true_fn: Any, false_fn: Any, name: str | None, mismatch: type[Exception] = TypeError) -> Any:
    for label, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"'{label}' must be callable.")
    if context.executing_eagerly():
        if not isinstance(pred, bool):
            pred = convert_to_tensor(pred)
        with name_scope(name, "cond", [pred]):
            return true_fn() if pred else false_fn()
    if isinstance(pred, bool):
        raise TypeError(f"pred must not be a Python bool: {pred}")
    with name_scope(name, "cond", [pred]) as scope:
        pred = convert_to_tensor(pred)
        if pred.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(f"pred must be a bool tensor, found {pred.dtype.name}.")
        if pred.static_shape.rank not in (0, None):
            raise ValueError(f"pred must be a scalar, found shape {pred.shape}.")
        bodies = [
            trace(FuncGraph(f"{scope}{label}"), function, op_result=pred)
            for label, function in (("true", true_fn), ("false", false_fn))
        ]
        _check_branches(bodies, _STRUCTURE, ("true_fn", "false_fn"), mismatch)
        return _called(functional_ops.if_of, pred, bodies, scope)


def _called(branching: Callable[..., Any], chooser: Any, bodies: list[Traced], scope: str) -> Any:
    """The results of the selected body, computed by a node named `scope`."""
    passed, captured = _with_captures(bodies)
    functions = [_branch(body, inputs) for body, inputs in zip(bodies, captured)]
    with control_dependencies(_waits(bodies)):
        results = branching(chooser, passed, functions, scope)
        for body in bodies:
            for item in body.graph.get_collection(GraphKeys.UPDATE_OPS):
                update = item if isinstance(item, Operation) else item.op
                if update.graph is body.graph and not body.graph.automatic:  # in automatic mode all updates run anyway
                    _lift_update(update, body, branching, chooser, bodies, passed, captured)
    return _packed(bodies[0], results)


def _lift_update(
    update: Operation,
    owner: Traced,
    branching: Callable[..., Any],
    chooser: Any,
    bodies: list[Traced],
    passed: list[Any],
    captured: list[list[Tensor]],
) -> None:
    """An op that runs only an update of a branch, if the branch is selected. The program decides when to run it."""
    functions = [
        Function(unique_function_name(body.graph.name), body.graph, inputs, [], [update] if body is owner else [])
        for body, inputs in zip(bodies, captured)
    ]
    branching(chooser, passed, functions, update.name)
    graph = context.get_default_graph()
    graph.add_to_collection(GraphKeys.UPDATE_OPS, graph.get_operations()[-1])


def _branch(body: Traced, inputs: list[Tensor]) -> Function:
    return body.function(inputs, [tensor for tensor in body.tensors if tensor is not None])


def _packed(body: Traced, results: Any) -> Any:
    """The op's outputs in the structure that the branch returned."""
    results = results if isinstance(results, list) else []
    flat = iter([shaping.identity(tensor) for tensor in results])
    leaves = [None if tensor is None else next(flat) for tensor in body.tensors]
    return nest.pack_sequence_as(body.structure, leaves, expand_composites=True)


def _check_branches(bodies: list[Traced], rule: str, labels: Any, mismatch: type[Exception] = TypeError) -> None:
    """Raises `mismatch` (which differs between 1.x and 2.x) if the branches return different structures or dtypes."""
    first = bodies[0]
    for other, label in zip(bodies[1:], labels[1:]):
        try:
            nest.assert_same_structure(first.structure, other.structure, expand_composites=True)
        except (ValueError, TypeError) as error:
            raise mismatch(
                f"{rule}\n\n{labels[0]} output: {first.structure}\n{label} output: {other.structure}\n\nError details:\n{error}"
            ) from None
        for a, b in zip(first.tensors, other.tensors):
            found = [None if tensor is None else tensor.dtype.base_dtype for tensor in (a, b)]
            if found[0] is not found[1]:
                names = ["None" if dtype is None else dtype.name for dtype in found]
                raise mismatch(
                    f"{rule}\n\n{labels[0]} output: {first.structure}\n{label} output: {other.structure}\n\nError details:\n"
                    f"Outputs of {labels[0]} and {label} must have the same type: {names[0]}, {names[1]}"
                )


# ---- case, switch_case ------------------------------------------------------------------------------------------


@export(v1="case")
def case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """Returns the result of the first function whose predicate is true, else that of `default`.

    Args:
        pred_fn_pairs: a list of (scalar bool tensor, function), or a dict. In graph mode, a dict is sorted by tensor name.
        default: the function to call if no predicate is true. Without it, the last function runs after an assertion.
        exclusive: whether to fail if more than one predicate is true.
        strict: whether to return lists of one element as lists.
        name: the name scope.

    Raises:
        TypeError: an entry is not a pair of a predicate and a function.
        ValueError: there are no pairs, or the functions return different structures or dtypes.
    """
    return _case(pred_fn_pairs, default, exclusive, strict, name, ValueError)


@export(v2="case")
def case_v2(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """Returns the result of the first function whose predicate is true, else that of `default`. See the 1.x form."""
    return _case(pred_fn_pairs, default, exclusive, strict, name, TypeError)


def _case(pred_fn_pairs: Any, default: Any, exclusive: bool, strict: bool, name: str, mismatch: type[Exception]) -> Any:
    pairs = _pairs(pred_fn_pairs)
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    preds, functions = [pred for pred, _ in pairs], [function for _, function in pairs]
    if not pairs:
        raise ValueError("pred_fn_pairs is empty.")
    with name_scope(name, "case", [pred for pred in preds if isinstance(pred, Tensor)]):
        preds = [convert_to_tensor(pred) for pred in preds]
        waits: list[Any] = []
        if exclusive:
            waits.append(_at_most_one(preds))
        if default is None:
            default = functions.pop()
            last = preds.pop()
            waits.append(_at_least_one([*preds, last]))
        with control_dependencies([op for op in waits if op is not None]):
            return _unpacked(_chain(preds, functions, default, mismatch), strict)


def _pairs(pred_fn_pairs: Any) -> list[tuple[Any, Any]]:
    if isinstance(pred_fn_pairs, dict):
        items = list(pred_fn_pairs.items())
        if not context.executing_eagerly():
            items.sort(key=lambda item: getattr(item[0], "name", ""))
        pairs = [(key.deref() if hasattr(key, "deref") else key, function) for key, function in items]
    elif isinstance(pred_fn_pairs, (list, tuple)):
        pairs = list(pred_fn_pairs)
    else:
        raise TypeError(f"pred_fn_pairs must be a list, tuple, or dict. Received {type(pred_fn_pairs)}")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in pred_fn_pairs must be a 2-tuple. Received {pair}")
        pred, function = pair
        if not isinstance(pred, Tensor) and not context.executing_eagerly():
            raise TypeError(f"pred must be a Tensor, got: {pred}")
        if isinstance(pred, Tensor) and pred.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(f"pred must be Tensor of type bool: {pred}")
        if not callable(function):
            raise TypeError(f"fn for pred {pred} must be callable.")
    return pairs


def _count(preds: list[Tensor]) -> Tensor:
    return arithmetic.ADD_N([casting.cast(pred, dtypes.int32) for pred in preds])


def _at_most_one(preds: list[Tensor]) -> Any:
    count = _count(preds)
    return assertions.assert_op(
        comparison.LESS(count, constant(2, dtypes.int32)),
        ["Input error: exclusive=True: more than 1 conditions evaluated as True, number of them:", count],
        summarize=len(preds),
    )


def _at_least_one(preds: list[Tensor]) -> Any:
    return assertions.assert_op(
        comparison.LESS(constant(0, dtypes.int32), _count(preds)),
        ["None of conditions evaluated as True. Conditions:", *preds],
        summarize=len(preds),
    )


def _chain(preds: list[Tensor], functions: list[Any], default: Any, mismatch: type[Exception]) -> Any:
    """Nested conds, with the first predicate outermost."""
    result = default
    for position, (pred, function) in enumerate(reversed(list(zip(preds, functions)))):
        label = "cond" if position == len(preds) - 1 else f"cond_{len(preds) - 1 - position}"
        result = functools.partial(_cond, pred, function, result, label, mismatch)
    return result()


@export("switch_case")
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """Returns the result of the function at `branch_index`. Out of range, `default` (or the last function) is called.

    Args:
        branch_index: a scalar int32 tensor.
        branch_fns: a list of functions, a list of (int, function), or a dict from int to function.
        default: the function for other indices.
        name: the name of the op.

    Raises:
        TypeError: a branch is not a function, or the branches return different structures or dtypes.
        ValueError: the keys are not 0, 1, 2, ..., or are repeated.
    """
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    functions = _numbered(branch_fns)
    last = default if default is not None else functions[-1]
    if not callable(last):
        raise TypeError("Argument `default` must be callable.")
    if context.executing_eagerly():
        if not branch_index.dtype.is_integer:
            raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype!r}")
        index = operator.index(cast(Any, branch_index))
        return functions[index]() if 0 <= index < len(functions) else last()
    every = [*functions, *([last] if default is not None else [])]
    with name_scope(name, "switch_case", [branch_index]) as scope:
        index = convert_to_tensor(branch_index, name="branch_index")
        if index.dtype.base_dtype is not dtypes.int32:
            raise TypeError(f"branch_index must be a Tensor of type int32, found {index.dtype.name}.")
        bodies = [
            trace(FuncGraph(f"{scope}branch{i}", always_function=True), function) for i, function in enumerate(every)
        ]
        rule = "branch_fns arguments to tf.switch_case must have the same number, type, and overall structure of return values."
        _check_branches(bodies, rule, [f"branch {i}" for i in range(len(bodies))])
        return _called(functional_ops.case_of, index, bodies, scope)


def _numbered(branch_fns: Any) -> list[Any]:
    if isinstance(branch_fns, dict):
        branch_fns = sorted(branch_fns.items())
    if not branch_fns:
        raise ValueError("Must provide at least one item in branch_fns.")
    if not isinstance(branch_fns, (list, tuple)):
        raise TypeError(f"branch_fns must be a list, tuple, or dict. Received {type(branch_fns)}")
    if not all(callable(item) for item in branch_fns):
        for item in branch_fns:
            if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], int) or not callable(item[1]):
                raise TypeError(
                    f"Each entry in branch_fns must be a callable or an (int, callable) pair. Received {item}"
                )
        keys = sorted(key for key, _ in branch_fns)
        if keys != list(range(len(keys))):
            raise ValueError(f"branch indices must form contiguous range of [0 to {len(keys)}) but found {keys}")
        branch_fns = [function for _, function in sorted(branch_fns, key=lambda item: item[0])]
    return list(branch_fns)


# ---- while_loop -------------------------------------------------------------------------------------------------


@export(v1="while_loop")
def while_loop(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Runs `body` while `cond` is true, starting from `loop_vars`. Returns the final loop variables.

    Args:
        cond: a function from the loop variables to a scalar bool tensor.
        body: a function from the loop variables to their next values, in the same structure.
        loop_vars: a structure of tensors (and TensorArrays).
        shape_invariants: for each loop variable, a shape (or TensorSpec) that holds in every iteration, with None for sizes that change.
        parallel_iterations: recorded in the graph; iterations run sequentially.
        back_prop: if False, gradients stop at the loop.
        swap_memory: has no effect.
        name: the name of the op ("while").
        maximum_iterations: the maximum number of iterations.
        return_same_structure: whether to return a list of one variable as a list.

    Raises:
        TypeError, ValueError: the arguments or the results of `body` do not match.
    """
    del swap_memory
    return _while_loop(
        cond,
        body,
        loop_vars,
        shape_invariants,
        parallel_iterations,
        back_prop,
        name,
        maximum_iterations,
        return_same_structure,
    )


@export(v2="while_loop")
def while_loop_v2(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Runs `body` while `cond` is true, starting from `loop_vars`. Returns the final loop variables in the same structure."""
    del swap_memory
    return _while_loop(
        cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, name, maximum_iterations, True
    )


def _while_loop(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any,
    parallel_iterations: int,
    back_prop: bool,
    name: str | None,
    maximum_iterations: Any,
    same_structure: bool,
) -> Any:
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    if not isinstance(parallel_iterations, int) and not context.executing_eagerly():
        raise ValueError(f"'parallel_iterations' must be a positive integer: {parallel_iterations}")
    if loop_vars is None:
        raise ValueError("'loop_vars' must be provided.")
    if not isinstance(loop_vars, (list, tuple)):
        loop_vars = (loop_vars,)
    if not loop_vars and not same_structure:
        raise ValueError("'loop_vars' must be provided.")
    if context.executing_eagerly():
        return _eager_loop(cond, body, loop_vars, maximum_iterations, same_structure)
    with name_scope(name, "while", nest.flatten(loop_vars)) as scope:
        return _Loop(cond, body, loop_vars, shape_invariants, maximum_iterations, scope).run(
            parallel_iterations, back_prop, same_structure
        )


def _eager_loop(cond: Any, body: Any, loop_vars: Any, maximum_iterations: Any, same_structure: bool) -> Any:
    """Runs the loop in Python. Returns the last result of `body`, in its own structure unless `same_structure` is set."""
    limit = None if maximum_iterations is None else convert_to_tensor(maximum_iterations)
    if limit is not None and limit.static_shape.rank:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit.shape}")
    limit = None if limit is None else int(cast(Any, limit))

    def holds(result: Any) -> bool:
        is_plain = limit is None or isinstance(result, bool)
        return bool(result if is_plain else convert_to_tensor(result, dtypes.bool_))

    structure, values, returned = loop_vars, loop_vars, loop_vars
    trips = 0
    while (limit is None or trips < limit) and holds(cond(*values)):
        results = returned = body(*values)
        if not isinstance(results, (list, tuple)) or (len(structure) == 1 and len(results) != 1):
            results = (results,)
        nest.assert_same_structure(structure, results, check_types=False)
        values = nest.pack_sequence_as(structure, nest.flatten(results))
        trips += 1

    def convert(leaf: Any) -> Any:
        return leaf if isinstance(leaf, tensor_array.TensorArray) else convert_to_tensor(leaf)

    return nest.map_structure(convert, values if same_structure else returned, expand_composites=True)


class _Loop:
    """A `while_loop` under construction. The op's loop variables are a counter, the limit, the user's variables, and captures."""

    following: Tensor  # the counter after one more iteration

    def __init__(self, cond: Any, body: Any, loop_vars: Any, invariants: Any, limit: Any, scope: str) -> None:
        self.scope = scope
        self.structure = loop_vars
        self.limit = self._limit(limit)
        self.initial = [convert_to_tensor(leaf) for leaf in nest.flatten(loop_vars, expand_composites=True)]
        self.initial = [shaping.identity(t) if t.dtype._is_ref_dtype else t for t in self.initial]
        self.shapes = self._shapes(invariants)
        self.condition = self._trace_condition(cond)
        self.body = self._trace_body(body)

    def _limit(self, limit: Any) -> Tensor:
        if limit is None:
            return constant(-1, dtypes.int32, name="maximum_iterations")
        if isinstance(limit, Tensor) and limit.dtype.is_integer:
            limit = casting.cast(limit, dtypes.int32)
        limit = convert_to_tensor(limit, dtypes.int32, name="maximum_iterations")
        if limit.static_shape.rank not in (0, None):
            raise ValueError(f"maximum_iterations must be a scalar. Received shape: {limit.shape}")
        self.limited = True
        return limit if limit.static_shape.rank == 0 else shaping.reshape(limit, [])

    limited = False

    def _shapes(self, invariants: Any) -> list[Shape]:
        if invariants is None:
            return [tensor.static_shape for tensor in self.initial]
        flat = nest.flatten(nest.map_structure(_invariant, invariants)) if nest.is_nested(invariants) else [invariants]
        leaves = nest.flatten(self.structure)
        if len(flat) != len(leaves):
            flat = _shapes_like(self.structure, invariants)
        shapes: list[Shape] = []
        for leaf, given in zip(leaves, flat):
            given = given.shape if isinstance(given, _Invariant) else given
            parts = nest.flatten(leaf, expand_composites=True)
            if isinstance(leaf, SparseTensor) and not isinstance(given, TypeSpec):
                shapes.extend(_sparse_shapes(as_shape(given)))
                continue
            start = leaf if len(parts) > 1 else self.initial[len(shapes)]
            if isinstance(given, TypeSpec) and not given.is_compatible_with(start):
                raise TypeError(f"TypeSpec {given!r} is not compatible with {start!r}")
            if isinstance(given, TypeSpec) and len(parts) > 1:
                shapes.extend(as_shape(each.shape) for each in nest.flatten(given, expand_composites=True))
                continue
            if len(parts) > 1 or isinstance(leaf, tensor_array.TensorArray):
                shapes.extend(tensor.static_shape for tensor in map(convert_to_tensor, parts))
                continue
            shape = as_shape(given.shape if isinstance(given, TensorSpec) else given)
            initial = self.initial[len(shapes)]
            if not holds(shape, initial.static_shape):
                raise ValueError(
                    f"The shape invariant specified for {initial.name} is not compatible with the initial shape of the "
                    f"loop variable. It enters the loop with shape {initial.shape}, but the specified shape invariant is "
                    f"{TensorShape(shape)}."
                )
            shapes.append(shape)
        return shapes

    def _inputs(self, graph: FuncGraph) -> tuple[Tensor, Tensor, list[Tensor]]:
        counter = graph.add_input(dtypes.int32, SCALAR, "loop_counter")
        limit = graph.add_input(dtypes.int32, SCALAR, "maximum_iterations")
        variables = []
        for tensor, shape in zip(self.initial, self.shapes):
            inner = graph.add_input(tensor.dtype.base_dtype, shape)
            for noted in ("handle_shape", "handle_dtype"):
                if hasattr(tensor, noted):
                    setattr(inner, noted, getattr(tensor, noted))
            variables.append(inner)
        return counter, limit, variables

    def _arguments(self, variables: list[Tensor]) -> Any:
        return nest.pack_sequence_as(self.structure, variables, expand_composites=True)

    def _trace_condition(self, cond: Any) -> Traced:
        graph = FuncGraph(f"{self.scope}cond")
        counter, limit, variables = self._inputs(graph)

        def traced() -> Any:
            result = cond(*self._arguments(variables))
            if isinstance(result, (list, tuple)) and len(result) == 1:
                result = result[0]
            result = convert_to_tensor(result)
            if result.dtype.base_dtype is not dtypes.bool_:
                raise TypeError(f"cond must return a boolean scalar tensor, found {result.dtype.name}.")
            if result.static_shape.rank not in (0, None):
                raise ValueError(f"cond must return a boolean scalar tensor, found shape {result.shape}.")
            if result.static_shape.rank is None:
                result = shaping.reshape(
                    result, []
                )  # a condition with several elements would otherwise never end the loop
            if self.limited:
                result = comparison.logical_and(comparison.LESS(counter, limit), result)
            return result

        return trace(graph, traced)

    def _trace_body(self, body: Any) -> Traced:
        graph = FuncGraph(f"{self.scope}body")
        self.counter, self.inner_limit, self.variables = self._inputs(graph)

        def traced() -> Any:
            self.following = arithmetic.ADD_V2(self.counter, constant(1, dtypes.int32))
            results = body(*self._arguments(self.variables))
            if not isinstance(results, (list, tuple)) or (
                len(self.structure) == 1 and (len(results) != 1 or hasattr(results, "_fields"))
            ):
                results = (results,)
            nest.assert_same_structure(list(self.structure), list(results), check_types=False, expand_composites=True)
            return results

        traced_body = trace(graph, traced)
        self._check(traced_body)
        return traced_body

    def _check(self, body: Traced) -> None:
        for initial, shape, tensor in zip(self.initial, self.shapes, body.tensors):
            if tensor is None:
                raise ValueError(f"The loop variable that starts as {initial.name} is None after the body.")
            if tensor.dtype.base_dtype is not initial.dtype.base_dtype:
                raise TypeError(
                    f"Loop var {initial.name} enters the loop with type {initial.dtype.base_dtype!r} but has type "
                    f"{tensor.dtype.base_dtype!r} after 1 iteration."
                )
            if initial.dtype.base_dtype is not dtypes.variant and not holds(shape, tensor.static_shape):
                raise ValueError(
                    f"Input tensor '{initial.name}' enters the loop with shape {TensorShape(shape)}, but has shape "
                    f"{tensor.shape} after one iteration. To allow the shape to vary across iterations, use the "
                    "`shape_invariants` argument of tf.while_loop to specify a less-specific shape."
                )

    def run(self, parallel_iterations: int, back_prop: bool, same_structure: bool) -> Any:
        passed, captured = _with_captures([self.condition, self.body])
        leading = self.condition.graph.inputs[: 2 + len(self.initial)]
        condition = self.condition.function(
            [*leading, *captured[0]], [t for t in self.condition.tensors if t is not None]
        )
        given = [self.counter, self.inner_limit, *self.variables, *captured[1]]
        returned = [self.following, self.inner_limit, *[t for t in self.body.tensors if t is not None], *captured[1]]
        function = self.body.function(given, returned)
        start = constant(0, dtypes.int32, name="loop_counter")
        with control_dependencies(_waits([self.condition, self.body])):
            results = functional_ops.run_loop(
                condition, function, [start, self.limit, *self.initial, *passed], self.scope, parallel_iterations
            )
        results = results[2 : 2 + len(self.initial)]
        if not back_prop:
            results = [shaping.stop_gradient(tensor) for tensor in results]
        packed = nest.pack_sequence_as(self.structure, results, expand_composites=True)
        for done, after in zip(nest.flatten(packed), nest.flatten(self.body.structure)):
            if isinstance(done, tensor_array.TensorArray):
                done._static = after._static  # the element shape may become known only when elements are written
        return packed if same_structure or len(packed) != 1 else packed[0]


def _sparse_shapes(dense_shape: Shape) -> list[Shape]:
    """The invariants of a sparse tensor's components, given the shape of its `dense_shape` vector."""
    if dense_shape.rank not in (1, None):
        raise ValueError(
            f"Expected a shape with 1 dimension. Obtained: {TensorShape(dense_shape)} which has {dense_shape.rank} dimensions."
        )
    rank = dense_shape.of_rank(1)[0]
    return [Shape((None, rank)), Shape((None,)), Shape((rank,))]


class _Invariant:
    """A shape as one leaf of a structure of shapes."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


def _invariant(leaf: Any) -> Any:
    return _Invariant(leaf)


def _shapes_like(structure: Any, invariants: Any) -> list[Any]:
    """Flattens shapes along the structure. Otherwise shapes given as lists of sizes would be flattened themselves."""
    return nest.flatten_up_to(structure, invariants, check_types=False)


def holds(invariant: Shape, shape: Shape) -> bool:
    """Whether every tensor of shape `shape` also satisfies `invariant`."""
    if invariant.dims is None:
        return True
    if shape.dims is None or len(shape.dims) != len(invariant.dims):
        return False
    return all(want is None or want == size for want, size in zip(invariant.dims, shape.dims))
