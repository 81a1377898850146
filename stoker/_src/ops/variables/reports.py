"""Ops that report which variables are initialized."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.scopes import control_dependencies, device, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, joining, ranges
from stoker._src.ops.math import comparison, masking
from stoker._src.ops.variables import state_ops, variable_functions, variables


@export(v1="is_variable_initialized")
def is_variable_initialized(variable: Any) -> Tensor:
    """Returns whether a variable is initialized."""
    return _is_initialized(variable)


def _is_initialized(variable: Any, name: str | None = None) -> Tensor:
    if isinstance(variable, variables.Variable):
        return variable.is_initialized(name)
    return state_ops.IS_VARIABLE_INITIALIZED(variable, name=name)


def _all_variables(var_list: Any) -> list[Any]:
    """`var_list`, or by default all global and local variables, or else all variable ops of the graph."""
    if var_list is not None:
        return list(var_list)
    found = variable_functions.global_variables() + variable_functions.local_variables()
    if found:
        return found
    kinds = ("Variable", "VariableV2", "AutoReloadVariable")
    return [op.outputs[0] for op in context.get_default_graph().get_operations() if op.type in kinds]


@export(v1="report_uninitialized_variables")
def report_uninitialized_variables(var_list: Any = None, name: str = "report_uninitialized_variables") -> Tensor:
    """The names of uninitialized variables (by default global and local ones), as a vector of strings."""
    chosen = _all_variables(var_list)
    with name_scope(name), device("/cpu:0"):
        if not chosen:
            return constants.constant([], dtypes.string)
        flags = joining.stack([_is_initialized(variable) for variable in chosen])
        missing = comparison.logical_not(flags)
        names = constants.constant([variable.op.name for variable in chosen])
        return masking.boolean_mask(names, missing)


@export(v1="assert_variables_initialized")
def assert_variables_initialized(var_list: Any = None) -> Any:
    """Returns an op that raises FailedPreconditionError if a variable is uninitialized; None if there are no variables."""
    chosen = _all_variables(var_list)
    if not chosen:
        return None
    with device(None), control_dependencies(None):
        found = [ranges.RANK(variable) for variable in chosen]
        return found[0] if len(found) == 1 else joining.stack(found)
