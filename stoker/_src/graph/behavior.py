"""Process-wide 1.x or 2.x behaviour: eager execution, resource variables, integer shapes. The default is 2.x."""

from __future__ import annotations

import importlib
from typing import Any

from stoker._src.base import settings, shapes
from stoker._src.base.export import export
from stoker._src.graph import context

_importing_compat = False


def lazy_namespace(name: str) -> Any:
    """`stoker.compat.v1` as an attribute. It is loaded on first use, and does not change the behaviour of a 2.x program."""
    global _importing_compat
    if name not in ("v1", "v2"):
        raise AttributeError(f"module 'stoker.compat' has no attribute {name!r}")
    _importing_compat = True
    try:
        return importlib.import_module(f"stoker.compat.{name}")
    finally:
        _importing_compat = False


def entered_v1() -> None:
    """Called when `stoker.compat.v1` is imported. An import by name selects 1.x behaviour."""
    if not _importing_compat:
        disable_v2_behavior()


@export(v1="disable_v2_behavior")
def disable_v2_behavior() -> None:
    """Selects 1.x behaviour: graphs, reference variables, shapes of Dimension objects."""
    context.set_eager_by_default(False)
    shapes.set_v2_tensorshape(False)
    settings.use_resource_variables = False
    settings.tensor_equality = False
    settings.control_flow_v2 = False


@export(v1="enable_v2_behavior")
def enable_v2_behavior() -> None:
    """Selects 2.x behaviour: eager execution, resource variables, shapes of integers, element-wise `==`."""
    context.set_eager_by_default(True)
    shapes.set_v2_tensorshape(True)
    settings.use_resource_variables = True
    settings.tensor_equality = True
    settings.control_flow_v2 = True


@export(v1="enable_eager_execution")
def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Enables eager execution. It must be called before the default graph has operations.

    Raises:
        ValueError: the default graph already has operations.
    """
    if context.has_default_graph() or (not context.eager_by_default() and context.get_default_graph().version):
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    context.set_eager_by_default(True)
    settings.use_resource_variables = True


@export(v1="disable_eager_execution")
def disable_eager_execution() -> None:
    """Disables eager execution: ops are added to the default graph, as in 1.x."""
    context.set_eager_by_default(False)


@export("executing_eagerly")
def executing_eagerly() -> bool:
    """Whether ops run when they are called."""
    return context.executing_eagerly()


@export(v1="enable_resource_variables")
def enable_resource_variables() -> None:
    """Makes resource variables the default."""
    settings.use_resource_variables = True


@export(v1="disable_resource_variables")
def disable_resource_variables() -> None:
    """Makes reference variables the default."""
    settings.use_resource_variables = False


@export(v1="resource_variables_enabled")
def resource_variables_enabled() -> bool:
    """Whether variables are resource variables by default."""
    return settings.use_resource_variables


@export(v1="enable_v2_tensorshape")
def enable_v2_tensorshape() -> None:
    """Makes iteration over a TensorShape give integers."""
    shapes.set_v2_tensorshape(True)


@export(v1="disable_v2_tensorshape")
def disable_v2_tensorshape() -> None:
    """Makes iteration over a TensorShape give Dimension objects."""
    shapes.set_v2_tensorshape(False)


@export(v1="enable_tensor_equality")
def enable_tensor_equality() -> None:
    """Makes `==` between tensors compare element by element."""
    settings.tensor_equality = True


@export(v1="disable_tensor_equality")
def disable_tensor_equality() -> None:
    """Makes `==` between tensors compare identity."""
    settings.tensor_equality = False


@export(v1="enable_control_flow_v2")
def enable_control_flow_v2() -> None:
    """Enables functional control flow. Conditionals and loops are always functional ops here.

    As in TensorFlow, this makes gradients of lookups in loops dense, and gradients of unused outputs zero.
    """
    settings.control_flow_v2 = True


@export(v1="disable_control_flow_v2")
def disable_control_flow_v2() -> None:
    """Disables functional control flow. Conditionals and loops remain functional ops with the same values.

    As in TensorFlow, this makes gradients of lookups in loops sparse, and gradients of unused outputs None.
    """
    settings.control_flow_v2 = False


@export(v1="control_flow_v2_enabled")
def control_flow_v2_enabled() -> bool:
    """Whether functional control flow is enabled."""
    return settings.control_flow_v2


@export(v1="executing_eagerly_outside_functions")
def executing_eagerly_outside_functions() -> bool:
    """Whether code outside of functions runs eagerly."""
    return context.eager_by_default()
