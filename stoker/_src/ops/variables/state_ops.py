"""Variable ops: reference variables of 1.x and resource variables.

Both kinds hold their value in a `VariableState`, which a session (or eager mode) owns. Kernels write in place. The planner
guarantees that the old value is no longer needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import INDEX, NUMERIC, DType
from stoker._src.base.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.formats.tensor_bundle import let_go
from stoker._src.graph.definition import (
    ANY,
    INT,
    PASSES,
    READS,
    SHAPE,
    SOURCE,
    STATEFUL,
    STRING,
    STRINGS,
    TYPE,
    WRITES,
    OpDefinition,
    define,
    scalar,
    unchanged,
)
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.handles import handle_dtype, handle_shape


class VariableState:
    """The value of one variable. `value` is None until it is initialized."""

    __slots__ = ("block", "device", "dtype", "home", "name", "shape", "value")

    def __init__(self, name: str, dtype: DType, shape: Shape, device: Any = None) -> None:
        self.device = device  # the device of the value; None to use that of the first value
        self.home: Any = None  # the device that has lent the variable to the host, if any (runtime/lent_variables.py)
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.value: Any = None
        self.block: Any = None  # a memory block shared with variables that are updated together (training.py)

    def read(self) -> Any:
        """The value. The caller must not change it.

        Raises:
            FailedPreconditionError: the variable is not initialized.
        """
        value = self.value
        if value is None:
            raise FailedPreconditionError(
                None,
                None,
                f"Attempting to use uninitialized value {self.name}: run its initializer "
                "(tf.global_variables_initializer()) or restore a checkpoint first.",
            )
        return value

    def assign(self, value: Any, *, validate_shape: bool = True) -> None:
        """Assigns a copy of `value`, in place if the shape allows it."""
        old = self.value
        if isinstance(value, np.ndarray):
            self._check(value.shape, validate_shape)
            self.value = value.copy()
            return
        if old is not None and old.shape == value.shape and old.dtype == value.dtype:
            if value.numel() >= _LARGE and hasattr(value, "pages"):
                _copy_pages(old, value)
            else:
                old.copy_(value)
            return
        self._check(value.shape, validate_shape)
        if value.numel() >= _LARGE and hasattr(value, "pages") and self.device in (None, torch.device("cpu")):
            self.value = torch.empty_like(value)
            _copy_pages(self.value, value)
            return
        copy = value.clone(memory_format=torch.contiguous_format)
        self.value = copy if self.device is None else copy.to(self.device)

    def take(self, value: Any, *, validate_shape: bool = True) -> None:
        """`assign` for a value that nobody else holds. It becomes the first value of a variable without a copy."""
        if (
            self.value is not None
            or not isinstance(value, torch.Tensor)
            or self.device not in (None, value.device)
            or hasattr(value, "pages")
            or not value.is_contiguous()
            or value.untyped_storage().nbytes() != value.nbytes
        ):
            self.assign(value, validate_shape=validate_shape)
            return
        self._check(value.shape, validate_shape)
        self.value = value

    def _check(self, shape: Any, validate: bool) -> None:
        if validate and not self.shape.compatible(Shape(shape)):
            raise InvalidArgumentError(
                None,
                None,
                f"Assign requires shapes of both tensors to match. lhs shape= {self.shape} rhs shape= {Shape(shape)} (variable {self.name})",
            )

    def __repr__(self) -> str:
        return f"<variable {self.name} {self.dtype.name}{self.shape}>"


_LARGE = 1 << 23  # elements
_SMALL = 1 << 13  # elements of values that may wait for each other


def _copy_pages(target: torch.Tensor, source: Any) -> None:
    """Copies a tensor that is the pages of a file, and lets go of each part once it is copied."""
    flat, other, width = target.view(-1), source.view(-1), source.element_size()
    for start in range(0, flat.numel(), _LARGE):
        end = min(start + _LARGE, flat.numel())
        flat[start:end].copy_(other[start:end])
        let_go(source.pages, start * width, end * width)


# A variable with this shared name belongs to the holder of its handle (eager variables, as in TensorFlow).
ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def _variable(ctx: Any, kind: str, container: str, shared_name: str, dtype: DType, shape: Shape) -> VariableState:
    name = shared_name or ctx.name
    if name == ANONYMOUS:
        return VariableState(container, dtype, shape, ctx.device)
    return ctx.resources.lookup_or_create(container, kind, name, lambda: VariableState(name, dtype, shape, ctx.device))


# ---- reference variables ----------------------------------------------------------------------------------------

VARIABLE_V2 = define(
    "VariableV2() -> (ref: Ref(dtype))", SOURCE | STATEFUL, shape=SHAPE, dtype=TYPE, container="", shared_name=""
)


@VARIABLE_V2.kernel
def variable_kernel(*, shape: Shape, dtype: DType, container: str, shared_name: str, ctx: Any) -> VariableState:
    # In graphs of old TensorFlow versions a scalar shape may also mean "unknown". The first assignment decides.
    return _variable(ctx, "variable", container, shared_name, dtype, shape)


@VARIABLE_V2.shape
def variable_shape(*, shape: Shape) -> Shape:
    return shape


VARIABLE = define(
    "Variable() -> (ref: Ref(dtype))", SOURCE | STATEFUL, shape=SHAPE, dtype=TYPE, container="", shared_name=""
)


@VARIABLE.kernel
def old_variable_kernel(*, shape: Shape, dtype: DType, container: str, shared_name: str, ctx: Any) -> VariableState:
    return _variable(ctx, "variable", container, shared_name, dtype, _old_shape(shape))


@VARIABLE.shape
def old_variable_shape(*, shape: Shape) -> Shape:
    return _old_shape(shape)


def _old_shape(shape: Shape) -> Shape:
    """This op wrote an unknown shape as a scalar shape, so a scalar shape is treated as unknown."""
    return UNKNOWN_SHAPE if shape.rank == 0 else shape


TEMPORARY_VARIABLE = define("TemporaryVariable() -> (ref: Ref(dtype))", STATEFUL, shape=SHAPE, dtype=TYPE, var_name="")


@TEMPORARY_VARIABLE.kernel
def temporary_variable_kernel(*, shape: Shape, dtype: DType, var_name: str, ctx: Any) -> VariableState:
    made = VariableState(var_name or ctx.name, dtype, shape)
    ctx.resources.remove("", "temporary_variable", made.name)
    return ctx.resources.lookup_or_create("", "temporary_variable", made.name, lambda: made)


@TEMPORARY_VARIABLE.shape
def temporary_variable_shape(*, shape: Shape) -> Shape:
    return shape


DESTROY_TEMPORARY_VARIABLE = define(
    "DestroyTemporaryVariable(ref: Ref(T)) -> (value: T)", READS | WRITES | STATEFUL, T=ANY, var_name=STRING
)


@DESTROY_TEMPORARY_VARIABLE.kernel
def destroy_temporary_variable_kernel(ref: VariableState, *, var_name: str, ctx: Any) -> Any:
    if ctx.resources.remove("", "temporary_variable", var_name) is None:
        raise NotFoundError(None, None, f"Temporary variable {var_name} does not exist, or was destroyed before.")
    return ref.read()


@DESTROY_TEMPORARY_VARIABLE.shape
def destroy_temporary_variable_shape(ref: Shape) -> Shape:
    return ref


ASSIGN = define(
    "Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T))",
    WRITES | STATEFUL,
    T=ANY,
    validate_shape=True,
    use_locking=True,
).not_differentiable()


@ASSIGN.kernel
def assign_kernel(ref: VariableState, value: Any, *, validate_shape: bool) -> VariableState:
    if not validate_shape and ref.value is not None and ref.value.shape != value.shape:
        ref.value = None
    ref.assign(value, validate_shape=validate_shape)
    return ref


def assign_taking_over(ref: VariableState, value: Any, *, validate_shape: bool) -> VariableState:
    if ref.value is not None:
        return assign_kernel(ref, value, validate_shape=validate_shape)
    ref.take(value, validate_shape=validate_shape)
    return ref


ASSIGN.taking_over(1, assign_taking_over).storing()


def _assigned_with(op: Operation, *attributes: str) -> Any:
    """The op that makes an assigned value together with others, such as the RestoreV2 of a checkpoint. Of other values, small ones are alike.

    Large values of several ops must not wait for each other: the initial values of all variables would be in memory twice.
    """
    value = op._inputs[1]
    if _is_small(value):
        return (value.dtype.base_dtype, *(op.attrs[name] for name in attributes))
    while value.op.definition.traits & PASSES and value.op._inputs and not value.op._control_inputs:
        value = value.op._inputs[0]
    return (value.op, *(op.attrs[name] for name in attributes)) if len(value.op.outputs) > 1 else op


def _is_small(value: Tensor) -> bool:
    size = value.static_shape.size
    return size is not None and size <= _SMALL


@ASSIGN.batch(lambda op: _assigned_with(op, "validate_shape"))
def assign_many(refs: list[VariableState], values: list[Any], *, validate_shape: bool) -> None:
    _copy_many(refs, values, lambda ref, value: assign_kernel(ref, value, validate_shape=validate_shape))


def _copy_many(variables: list[VariableState], values: list[Any], assign: Callable[[VariableState, Any], Any]) -> None:
    """Copies values that fit in one call, and assigns the others."""
    targets, sources = [], []
    for position, (variable, value) in enumerate(zip(variables, values)):
        old = variable.value
        if (
            isinstance(old, torch.Tensor)
            and isinstance(value, torch.Tensor)
            and old.shape == value.shape
            and old.dtype is value.dtype
            and value.numel() < _LARGE
        ):
            targets.append(old)
            sources.append(value)
        else:
            try:
                assign(variable, value)
            except InvalidArgumentError as error:
                error.member = position  # type: ignore[attr-defined]
                raise
    if targets:
        torch._foreach_copy_(targets, sources)  # pyright: ignore[reportPrivateImportUsage]


@ASSIGN.shape
def assign_shape(ref: Shape, value: Shape, *, validate_shape: bool) -> Shape:
    return ref.merge(value) if validate_shape else value


def _in_place(
    name: str, update: Callable[[torch.Tensor, torch.Tensor], Any], update_many: Callable[[Any, Any], Any]
) -> OpDefinition:
    definition = define(
        f"{name}(ref: Ref(T), value: T) -> (output_ref: Ref(T))", WRITES | STATEFUL, T=NUMERIC, use_locking=False
    ).not_differentiable()

    def kernel(ref: VariableState, value: torch.Tensor) -> VariableState:
        target = ref.read()
        _same_shape(ref, target, value)
        update(target, value)
        return ref

    kernel.__name__ = f"{name.lower()}_kernel"
    definition.kernel(kernel)
    definition.shape(lambda ref, value: ref.merge(value))
    _together(definition, update_many)
    return definition


def _together(definition: OpDefinition, update_many: Callable[[Any, Any], Any]) -> None:
    """Lets updates by small values, such as those of moving averages, run as one call."""

    def many(variables: list[VariableState], values: list[torch.Tensor]) -> None:
        targets = []
        for position, (variable, value) in enumerate(zip(variables, values)):
            try:
                targets.append(variable.read())
                _same_dtype(variable, targets[-1], value)
                _same_shape(variable, targets[-1], value)
            except OpError as error:
                error.member = position  # type: ignore[attr-defined]
                raise
        update_many(targets, values)

    definition.batch(lambda op: op._inputs[1].dtype.base_dtype if _is_small(op._inputs[1]) else op)(many)


def _same_shape(state: VariableState, target: torch.Tensor, value: torch.Tensor) -> None:
    if target.shape != value.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"Variable {state.name} has shape {Shape(target.shape)} but the update has shape {Shape(value.shape)}.",
        )


_add_many: Any = torch._foreach_add_  # pyright: ignore[reportPrivateImportUsage]
_sub_many: Any = torch._foreach_sub_  # pyright: ignore[reportPrivateImportUsage]
ASSIGN_ADD = _in_place("AssignAdd", torch.Tensor.add_, _add_many).storing("add")
ASSIGN_SUB = _in_place("AssignSub", torch.Tensor.sub_, _sub_many).storing("sub")

IS_VARIABLE_INITIALIZED = define(
    "IsVariableInitialized(ref: Ref(dtype)) -> (is_initialized: bool)", READS | STATEFUL, dtype=ANY
)
IS_VARIABLE_INITIALIZED.kernel(lambda ref: torch.tensor(ref.value is not None))
IS_VARIABLE_INITIALIZED.shape(scalar)

REF_IDENTITY = define("RefIdentity(input: Ref(T)) -> (output: Ref(T))", PASSES, T=ANY)
REF_IDENTITY.kernel(lambda input: input)
REF_IDENTITY.shape(unchanged)
REF_IDENTITY.grad(lambda op, g: g)

# ---- resource variables -----------------------------------------------------------------------------------------

VAR_HANDLE_OP = define(
    "VarHandleOp() -> (resource: resource)",
    SOURCE | STATEFUL,
    container="",
    shared_name="",
    debug_name="",
    dtype=TYPE,
    shape=SHAPE,
    allowed_devices=STRINGS(()),
)


@VAR_HANDLE_OP.kernel
def var_handle_kernel(*, container: str, shared_name: str, dtype: DType, shape: Shape, ctx: Any) -> VariableState:
    return _variable(ctx, "resource_variable", container, shared_name, dtype, shape)


@VAR_HANDLE_OP.shape
def var_handle_shape() -> Shape:
    return SCALAR


READ_VARIABLE_OP = define("ReadVariableOp(resource: resource) -> (value: dtype)", READS | STATEFUL, dtype=TYPE)
READ_VARIABLE_OP.planning.reads_variable = True


READ_VARIABLE_OP.planning.reads_value = True


@READ_VARIABLE_OP.kernel
def read_variable_kernel(resource: VariableState, *, dtype: DType) -> Any:
    """For eager mode. Graphs know the variable's dtype statically and read it directly."""
    if resource.dtype is not dtype:
        raise _wrong_dtype("read", dtype, resource.dtype)
    return resource.read()


@READ_VARIABLE_OP.shape
def read_variable_shape(resource: Shape, *, op: Operation) -> Shape:
    _check_handle_dtype(op, "read")
    return handle_shape(op._inputs[0])


def _check_handle_dtype(op: Operation, what: str) -> None:
    found = handle_dtype(op._inputs[0])
    if found is not None and found is not op.attrs["dtype"]:
        raise _wrong_dtype(what, op.attrs["dtype"], found)


def _wrong_dtype(what: str, expected: DType, found: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, f"Trying to {what} variable with wrong dtype. Expected {expected.name} got {found.name}"
    )


@READ_VARIABLE_OP.grad
def read_variable_grad(op: Operation, g: Tensor) -> Tensor:
    return g


ASSIGN_VARIABLE_OP = define(
    "AssignVariableOp(resource: resource, value: dtype) -> ()", WRITES | STATEFUL, dtype=ANY, validate_shape=False
)


@ASSIGN_VARIABLE_OP.kernel
def assign_variable_kernel(resource: VariableState, value: Any, *, dtype: DType, validate_shape: bool) -> None:
    if resource.dtype is not dtype:
        raise _wrong_dtype("write", dtype, resource.dtype)
    resource.assign(value, validate_shape=validate_shape)


def assign_variable_taking_over(resource: VariableState, value: Any, *, dtype: DType, validate_shape: bool) -> None:
    if resource.dtype is not dtype:
        raise _wrong_dtype("write", dtype, resource.dtype)
    resource.take(value, validate_shape=validate_shape)


ASSIGN_VARIABLE_OP.taking_over(1, assign_variable_taking_over).storing()


@ASSIGN_VARIABLE_OP.batch(lambda op: _assigned_with(op, "dtype", "validate_shape"))
def assign_variable_many(
    resources: list[VariableState], values: list[Any], *, dtype: DType, validate_shape: bool
) -> None:
    def assign(resource: VariableState, value: Any) -> None:
        assign_variable_kernel(resource, value, dtype=dtype, validate_shape=validate_shape)

    _copy_many(resources, values, assign)


@ASSIGN_VARIABLE_OP.shape
def assign_variable_shape(resource: Shape, value: Shape, *, op: Operation) -> tuple[()]:
    _check_handle_dtype(op, "write")
    handle_shape(op._inputs[0]).merge(value)
    return ()


def _same_dtype(variable: VariableState, target: Any, value: Any) -> None:
    if target.dtype != value.dtype:
        raise InvalidArgumentError(
            None,
            None,
            f"Trying to update variable {variable.name} with wrong dtype. Expected {target.dtype} got {value.dtype}",
        )


def _resource_in_place(
    name: str, update: Callable[[torch.Tensor, torch.Tensor], Any], update_many: Callable[[Any, Any], Any]
) -> OpDefinition:
    definition = define(f"{name}(resource: resource, value: dtype) -> ()", WRITES | STATEFUL, dtype=ANY)

    def kernel(resource: VariableState, value: torch.Tensor) -> None:
        target = resource.read()
        _same_dtype(resource, target, value)
        _same_shape(resource, target, value)
        update(target, value)

    kernel.__name__ = f"{name.lower()}_kernel"
    definition.kernel(kernel)

    def shape(resource: Shape, value: Shape, *, op: Operation) -> tuple[()]:
        _check_handle_dtype(op, "update")
        handle_shape(op._inputs[0]).merge(value)
        return ()

    definition.shape(shape)
    _together(definition, update_many)
    return definition


ASSIGN_ADD_VARIABLE_OP = _resource_in_place("AssignAddVariableOp", torch.Tensor.add_, _add_many).storing("add")
ASSIGN_SUB_VARIABLE_OP = _resource_in_place("AssignSubVariableOp", torch.Tensor.sub_, _sub_many).storing("sub")

VAR_IS_INITIALIZED_OP = define(
    "VarIsInitializedOp(resource: resource) -> (is_initialized: bool)", READS | STATEFUL
).not_differentiable()
VAR_IS_INITIALIZED_OP.kernel(lambda resource: torch.tensor(resource.value is not None))
VAR_IS_INITIALIZED_OP.shape(scalar)

DESTROY_RESOURCE_OP = define("DestroyResourceOp(resource: resource) -> ()", WRITES | STATEFUL, ignore_lookup_error=True)


@DESTROY_RESOURCE_OP.kernel
def destroy_resource_kernel(resource: Any, *, ignore_lookup_error: bool) -> None:
    if isinstance(resource, VariableState):
        if resource.value is None and not ignore_lookup_error:
            raise NotFoundError(None, None, f"Resource {resource.name} does not exist.")
        resource.value = None
        return
    # Other resources (queues, tables) are closed. Their handles stay valid.
    if hasattr(resource, "close"):
        resource.close(cancel_pending=True)


DISABLE_COPY_ON_READ = define("DisableCopyOnRead(resource: resource) -> ()", STATEFUL)
DISABLE_COPY_ON_READ.kernel(lambda resource: None)  # reads copy only if the planner requires it

# ---- CountUpTo --------------------------------------------------------------------------------------------------

COUNT_UP_TO = define("CountUpTo(ref: Ref(T)) -> (output: T)", READS | WRITES | STATEFUL, limit=INT, T=INDEX)
COUNT_UP_TO.shape(scalar)
RESOURCE_COUNT_UP_TO = define(
    "ResourceCountUpTo(resource: resource) -> (output: T)", READS | WRITES | STATEFUL, limit=INT, T=INDEX
)
RESOURCE_COUNT_UP_TO.shape(scalar)


def _counted(variable: VariableState, limit: int) -> torch.Tensor:
    value = variable.read()
    if value.ndim:
        raise InvalidArgumentError(
            None, None, f"input is not a scalar: {Shape(value.shape)} (variable {variable.name})"
        )
    held = torch.iinfo(value.dtype)
    if not held.min <= limit <= held.max:
        raise InvalidArgumentError(None, None, f"Attr limit has value {limit} out of range for an int{held.bits}")
    if int(value) >= limit:
        raise OutOfRangeError(None, None, f"Reached limit of {limit}")
    before = value.clone()
    value.add_(1)
    return before


@COUNT_UP_TO.kernel
def count_up_to_kernel(ref: VariableState, *, limit: int) -> torch.Tensor:
    return _counted(ref, limit)


@RESOURCE_COUNT_UP_TO.kernel
def resource_count_up_to_kernel(resource: VariableState, *, limit: int) -> torch.Tensor:
    return _counted(resource, limit)
