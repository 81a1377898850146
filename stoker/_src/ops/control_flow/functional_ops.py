"""Ops that call functions: If, Case, While, PartitionedCall. Their gradients are in `functional_gradients.py`.

A kernel receives a function as `f(holding, *values) -> tuple of values`. `holding` is the run's hold on the lock of the variables.
The kernel passes it on to the bodies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import REAL, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, common_shape
from stoker._src.graph.attr_values import FunctionRef
from stoker._src.graph.definition import (
    ANY,
    FUNC,
    FUNCS,
    SHAPE,
    SHAPES,
    STATEFUL,
    TYPE,
    VIEW,
    OpDefinition,
    define,
    scalar,
)
from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import RunState


def _truth(value: Any) -> bool:
    """The truth of a condition: a number must be nonzero; a string, or a tensor of higher rank, must not be empty."""
    if isinstance(value, np.ndarray):
        return bool(value.size and (value.ndim or value[()]))
    return bool(value) if value.ndim == 0 else value.numel() > 0


def returned_shapes(op: Operation, functions: list[FunctionRef]) -> list[Shape]:
    """The output shapes that all functions agree on, refined by the attribute `output_shapes`."""
    stated = op.attrs.get("output_shapes") or ()
    known = [ref.target for ref in functions if ref.target is not None]
    agreed = agreed_shapes(known) if known else []
    shapes = []
    for i in range(len(op.outputs)):
        shape = agreed[i] if i < len(agreed) else UNKNOWN_SHAPE
        if i < len(stated) and stated[i].compatible(shape):
            shape = shape.merge(stated[i])
        shapes.append(shape)
    return shapes


# ---- If ---------------------------------------------------------------------------------------------------------


def _if(name: str, traits: Any) -> OpDefinition:
    definition = define(
        f"{name}(cond: Tcond, input: [Tin]) -> (output: [Tout])",
        traits | VIEW,
        Tcond=ANY,
        then_branch=FUNC,
        else_branch=FUNC,
        output_shapes=SHAPES(()),
    ).calling("once")
    definition.kernel(if_kernel)
    definition.choosing(lambda op, cond: op.attrs["then_branch" if _truth(cond) else "else_branch"])

    @definition.shape
    def if_shape(cond: Shape, input: list[Shape], *, op: Operation) -> list[Shape]:
        return returned_shapes(op, [op.attrs["then_branch"], op.attrs["else_branch"]])

    return definition


def if_kernel(cond: Any, input: list[Any], *, then_branch: Any, else_branch: Any, holding: Any) -> Any:
    return then_branch(holding, *input) if _truth(cond) else else_branch(holding, *input)


IF = _if("If", STATEFUL)
STATELESS_IF = _if("StatelessIf", VIEW)

# ---- Case -------------------------------------------------------------------------------------------------------


def _case(name: str, traits: Any) -> OpDefinition:
    definition = define(
        f"{name}(branch_index: host int32, input: [Tin]) -> (output: [Tout])",
        traits | VIEW,
        branches=FUNCS(minimum=1),
        output_shapes=SHAPES(()),
    ).calling("once")
    definition.kernel(case_kernel)
    definition.choosing(lambda op, index: op.attrs["branches"][_chosen(index, len(op.attrs["branches"]))])

    @definition.shape
    def case_shape(branch_index: Shape, input: list[Shape], *, op: Operation) -> list[Shape]:
        return returned_shapes(op, list(op.attrs["branches"]))

    return definition


def case_kernel(branch_index: int, input: list[Any], *, branches: tuple[Any, ...], holding: Any) -> Any:
    return branches[_chosen(branch_index, len(branches))](holding, *input)


def _chosen(index: int, count: int) -> int:
    """An index out of range takes the last branch, as in TensorFlow."""
    return index if 0 <= index < count else count - 1


CASE = _case("Case", STATEFUL)
STATELESS_CASE = _case("StatelessCase", VIEW)

# ---- While ------------------------------------------------------------------------------------------------------


def _while(name: str, traits: Any) -> OpDefinition:
    definition = define(
        f"{name}(input: [T]) -> (output: [T])",
        traits | VIEW,
        cond=FUNC,
        body=FUNC,
        output_shapes=SHAPES(()),
        parallel_iterations=10,
    ).calling("loop")
    definition.kernel(while_kernel)

    @definition.shape
    def while_shape(input: list[Shape], *, op: Operation) -> list[Shape]:
        stated = op.attrs["output_shapes"]
        return list(stated) if len(stated) == len(op.outputs) else [UNKNOWN_SHAPE] * len(op.outputs)

    return definition


def while_kernel(input: list[Any], *, cond: Any, body: Any, holding: Any) -> Any:
    values = input
    state = None if holding is None else holding.state  # a recorded step holds nothing
    if state is None:  # this run cannot be cancelled
        state = RunState()
    run = getattr(body, "run", None)  # a body that can run all iterations at once
    finished = None if run is None else run(values, state)
    if finished is not None:
        return finished
    while _truth(cond(holding, *values)[0]):
        state.check("While")
        values = body(holding, *values)
    finish = getattr(body, "finish", None)  # a body that leaves sums for the end
    return values if finish is None else finish(values)


WHILE = _while("While", STATEFUL)
STATELESS_WHILE = _while("StatelessWhile", VIEW)

# ---- calls ------------------------------------------------------------------------------------------------------


def _call(name: str, traits: Any) -> OpDefinition:
    definition = define(
        f"{name}(args: [Tin]) -> (output: [Tout])",
        traits | VIEW,
        f=FUNC,
        config="",
        config_proto="",
        executor_type="",
    ).calling("once")
    definition.kernel(call_kernel)

    @definition.shape
    def call_shape(args: list[Shape], *, op: Operation) -> list[Shape]:
        return returned_shapes(op, [op.attrs["f"]])

    return definition


def call_kernel(args: list[Any], *, f: Any, holding: Any) -> Any:
    return f(holding, *args)


PARTITIONED_CALL = _call("PartitionedCall", VIEW)
STATEFUL_PARTITIONED_CALL = _call("StatefulPartitionedCall", STATEFUL)

# ---- FakeParam --------------------------------------------------------------------------------------------------

FAKE_PARAM = define("FakeParam() -> (output: dtype)", dtype=TYPE, shape=SHAPE)


@FAKE_PARAM.kernel
def fake_param_kernel(*, dtype: Any, shape: Shape) -> Any:
    """A placeholder for an output of a branch that was not taken. It is never read."""
    if dtype in (dtypes.variant, dtypes.resource):
        return None
    sizes = [size or 0 for size in shape.dims or ()]
    if dtype is dtypes.string:
        return np.full(sizes, b"", dtype=object)
    return torch.zeros(sizes, dtype=torch_dtype(dtype))


@FAKE_PARAM.shape
def fake_param_shape(*, shape: Shape) -> Shape:
    return shape


def _of_outputs(functions: list[Any]) -> dict[str, Any]:
    return {
        "Tout": [tensor.dtype.base_dtype for tensor in functions[0].outputs],
        "output_shapes": agreed_shapes(functions),
    }


def if_of(pred: Any, passed: list[Any], functions: list[Any], name: str | None = None) -> Any:
    """Calls the first of two functions with `passed` if `pred` is true, else the second."""
    definition = IF if any(function.stateful for function in functions) else STATELESS_IF
    branches = {"then_branch": functions[0].ref, "else_branch": functions[1].ref}
    return definition(pred, passed, name=name, **branches, **_of_outputs(functions))


def case_of(index: Any, passed: list[Any], functions: list[Any], name: str | None = None) -> Any:
    """Calls the function at position `index` with `passed`. (StatelessCase is not used, because 1.15 does not know it.)"""
    branches = [function.ref for function in functions]
    return CASE(index, passed, name=name, branches=branches, **_of_outputs(functions))


def agreed_shapes(functions: list[Any]) -> list[Shape]:
    """The common output shapes of all functions."""
    shapes = [tensor.static_shape for tensor in functions[0].outputs]
    for function in functions[1:]:
        shapes = [common_shape(shape, tensor.static_shape) for shape, tensor in zip(shapes, function.outputs)]
    return shapes


# ---- ToBool -----------------------------------------------------------------------------------------------------

TO_BOOL = define("ToBool(input: T) -> (output: bool)", T=ANY)
TO_BOOL.shape(scalar)
_WITH_TRUTH = (*REAL, dtypes.bool_, dtypes.string)
_NARROW = (dtypes.float16, dtypes.bfloat16)


@TO_BOOL.kernel
def to_bool_kernel(input: Any, *, T: DType) -> torch.Tensor:
    """Converts a tensor to the condition of If or While: a scalar must be nonzero (or nonempty), others must have elements."""
    if not input.ndim and (T not in _WITH_TRUTH or T in _NARROW):
        raise InvalidArgumentError(None, None, f"{T.name} cannot be converted to a boolean")
    return torch.tensor(_truth(input))


def run_loop(
    condition: Function, body: Function, initial: list[Any], name: str | None = None, parallel_iterations: int = 10
) -> list[Tensor]:
    """Builds a While op. Each output passes through an Identity, as in TensorFlow."""
    stateful = condition.stateful or body.stateful
    definition = WHILE if stateful else STATELESS_WHILE
    made = definition(
        initial,
        cond=condition.ref,
        body=body.ref,
        output_shapes=[tensor.static_shape for tensor in body.inputs],
        parallel_iterations=parallel_iterations,
        name=name,
    )
    return [shaping.identity(tensor) for tensor in made]
