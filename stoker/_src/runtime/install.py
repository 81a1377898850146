"""Registers the implementations that run, differentiate and trace ops with `graph` and `ops`. Loaded with the ops (`base/loading.py`)."""

from __future__ import annotations

from stoker._src.graph.apply import apply_op
from stoker._src.graph.graph import Graph
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.ops.support.values import evaluate, shapes_by_kernel
from stoker._src.runtime import processes
from stoker._src.runtime.autograph.convert import converted
from stoker._src.runtime.eager.executor import executor
from stoker._src.runtime.eager.tape import GradientTape, differentiate

hooks.install(
    new_graph=Graph,
    apply=apply_op,
    eager_target=executor,
    converted=converted,
    evaluate=evaluate,
    shapes_by_kernel=shapes_by_kernel,
    new_tape=GradientTape,
    differentiate=differentiate,
)
processes.install()
