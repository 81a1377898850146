"""`tensorflow.python.framework.test_util` and `platform.googletest`: decorators and helpers for tests."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any

from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.scopes import device as device_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import python_functions
from stoker._src.runtime.functions import def_function
from stoker._src.testing import test_case

TensorFlowTestCase = test_case.TestCase

# ---- which mode a test runs in ---------------------------------------------------------------------------------------


def _decorator(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a decorator for methods. Applied to a class, it decorates all its tests."""

    def decorate(target: Any) -> Any:
        if isinstance(target, type):
            for name, method in list(vars(target).items()):
                if callable(method) and name.startswith("test") and name not in ("test_session",):
                    setattr(target, name, wrap(method))
            return target
        return wrap(target)

    return decorate


def _in_graph(method: Any) -> Any:
    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        with Graph().as_default():
            return method(self, *args, **kwargs)

    return wrapper


run_deprecated_v1 = deprecated_graph_mode_only = _decorator(_in_graph)
run_all_in_deprecated_graph_mode_only = run_deprecated_v1


def run_in_graph_and_eager_modes(
    func: Any = None, config: Any = None, use_gpu: bool = True, assert_no_eager_garbage: bool = False
) -> Any:
    """Runs a test in a graph with a session, then again eagerly; `self.evaluate` works in both.

    Args:
        func: the test. If it is omitted, a decorator is returned.
        config: the session's ConfigProto.
        use_gpu: whether ops may run on a GPU.
        assert_no_eager_garbage: whether to fail if the eager run leaves reference cycles.
    """

    def decorate(method: Any) -> Any:
        if isinstance(method, type):
            raise ValueError("`run_in_graph_and_eager_modes` only supports test methods.")

        @functools.wraps(method)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
            with Graph().as_default(), self.test_session(use_gpu=use_gpu, config=config):
                method(self, *args, **kwargs)
            self.tearDown()
            self._tempdir = None
            self.setUp()
            eager = assert_no_garbage_created(method) if assert_no_eager_garbage else method
            with context.enter_eager():
                eager(self, *args, **kwargs)

        return wrapper

    return decorate if func is None else decorate(func)


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Callable[[type], type]:
    """Returns a class decorator that applies `decorator` to every test method."""

    def decorate(cls: type) -> type:
        for name, method in list(vars(cls).items()):
            if callable(method) and name.startswith("test") and name != "test_session":
                setattr(cls, name, decorator(*args, **kwargs)(method) if args or kwargs else decorator(method))
        return cls

    return decorate


run_all_in_graph_and_eager_modes = for_all_test_methods(run_in_graph_and_eager_modes)


def also_run_as_tf_function(f: Any) -> Any:
    """Runs a test eagerly, and again inside a `tf.function`."""

    @functools.wraps(f)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        with context.enter_eager():
            f(self, *args, **kwargs)
            def_function.function(lambda: f(self, *args, **kwargs), autograph=False)()

    return wrapper


def build_as_function_and_v1_graph(func: Any) -> Any:
    """Runs a test in a graph, and again inside a `tf.function`."""

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        with Graph().as_default():
            func(self, *args, **kwargs)
        with context.enter_eager():
            def_function.function(lambda: func(self, *args, **kwargs), autograph=False)()

    return wrapper


def py_func_if_in_function(f: Any) -> Any:
    """Wraps a check that needs values. It is called immediately, or when the enclosing function runs."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not context.get_default_graph().building_function:
            return f(*args, **kwargs)
        tensors = [arg for arg in args if isinstance(arg, Tensor)]

        def check(*values: Any) -> None:
            found = iter(values)
            f(*[next(found) if isinstance(arg, Tensor) else arg for arg in args], **kwargs)

        return python_functions.py_func(check, tensors, [])

    return wrapper


@contextlib.contextmanager
def run_functions_eagerly(run_eagerly: bool) -> Iterator[None]:
    """Returns a context that sets whether `tf.function`s run as plain Python."""
    before = def_function.functions_run_eagerly()
    def_function.run_functions_eagerly(run_eagerly)
    try:
        yield
    finally:
        def_function.run_functions_eagerly(before)


# ---- tests that run under conditions ----------------------------------------------------------------------------------


def skip_if(condition: Any) -> Callable[[Any], Any]:
    """Skips the test if the condition (or its result, if it is callable) is true."""

    def decorate(method: Any) -> Any:
        @functools.wraps(method)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return None if (condition() if callable(condition) else condition) else method(*args, **kwargs)

        return wrapper

    return decorate


def _skipping(unless: Callable[[], bool], reason: str) -> Callable[[Any], Any]:
    def wrap(method: Any) -> Any:
        @functools.wraps(method)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not unless():
                self.skipTest(reason)
            return method(self, *args, **kwargs)

        return wrapper

    return _decorator(wrap)


run_gpu_only = run_cuda_only = run_gpu_or_tpu = _skipping(test_case.is_gpu_available, "Test requires GPU")


def run_v1_only(reason: Any = None, func: Any = None) -> Any:
    """Skips the test if 2.x behaviour is on."""
    if callable(reason):
        reason, func = None, reason
    decorate = _skipping(lambda: not context.eager_by_default(), reason or "Test runs in 1.x behaviour only")
    return decorate if func is None else decorate(func)


def run_v2_only(func: Any = None, reason: str | None = None) -> Any:
    """Skips the test unless 2.x behaviour is on."""
    decorate = _skipping(context.eager_by_default, reason or "Test runs in 2.x behaviour only")
    return decorate if func is None else decorate(func)


def _as_it_is(target: Any) -> Any:
    """No-op for decorators that choose between implementations, because stoker has only one."""
    return target


enable_control_flow_v2 = with_control_flow_v2 = enable_c_shapes = with_c_shapes = _as_it_is
enable_output_all_intermediates = _as_it_is


def _described(*description: str) -> Callable[[Any], Any]:
    """No-op for decorators that take a reason and switch off a feature that stoker does not have."""
    return _as_it_is


disable_xla = no_xla_auto_jit = xla_allow_fallback = disable_control_flow_v2 = disable_tfrt = _described
disable_mlir_bridge = run_without_tensor_float_32 = run_all_without_tensor_float_32 = _described

# ---- where ops go ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Places ops on the GPU if there is one and `use_gpu` is set, else on the CPU."""
    name = test_case.gpu_device_name() if use_gpu else "/device:CPU:0"
    if use_gpu and not name:
        yield
        return
    with device_scope(name):
        yield


def use_gpu() -> Any:
    return device(use_gpu=True)


def force_cpu() -> Any:
    return device(use_gpu=False)


@contextlib.contextmanager
def force_gpu() -> Iterator[None]:
    """Places ops on the GPU, which must exist."""
    with device_scope(test_case.gpu_device_name() or "/device:GPU:0"):
        yield


def is_xla_enabled() -> bool:
    return False


def IsGoogleCudaEnabled() -> bool:
    return test_case.is_built_with_cuda()


def IsBuiltWithROCm() -> bool:
    return test_case.is_built_with_rocm()


def IsMklEnabled() -> bool:
    return False


def GpuSupportsHalfMatMulAndConv() -> bool:
    return test_case.is_gpu_available()


# ---- what a test leaves behind -------------------------------------------------------------------------------------


def _live_tensors() -> set[int]:
    gc.collect()
    return {id(item) for item in gc.get_objects() if isinstance(item, Tensor)}


def assert_no_new_tensors(f: Any) -> Any:
    """Fails a test that leaves more live tensors than before."""

    @functools.wraps(f)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = _live_tensors()
        with Graph().as_default() if not context.executing_eagerly() else contextlib.nullcontext():
            result = f(self, *args, **kwargs)
        left = len(_live_tensors() - before)
        if left:
            raise AssertionError(f"{left} tensors live on after {f.__name__}.")
        return result

    return wrapper


def assert_no_garbage_created(f: Any) -> Any:
    """Fails a test that leaves reference cycles for the garbage collector."""

    @functools.wraps(f)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        gc.collect()
        enabled = gc.isenabled()
        gc.disable()
        try:
            result = f(self, *args, **kwargs)
            found = gc.collect()
        finally:
            if enabled:
                gc.enable()
        if found:
            raise AssertionError(f"{f.__name__} left {found} objects in reference cycles.")
        return result

    return wrapper


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Graph) -> dict[str, Any]:
    """Returns the nodes called `expected_ops`, which must be in the graph with the given types.

    Raises:
        ValueError: one is missing, or has another type.
    """
    nodes = {node.name: node for node in graph.as_graph_def().node}
    for name, kind in expected_ops.items():
        if name not in nodes:
            raise ValueError(f"Expected op {name!r} is not in the graph.")
        if nodes[name].op != kind:
            raise ValueError(f"Node {name!r}: expected type {kind}, found {nodes[name].op}.")
    return {name: nodes[name] for name in expected_ops}


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """Returns the node of that name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


def NHWCToNCHW(input_tensor: Any) -> Any:
    """Moves the channels of a batch of images, or of its shape, to the front."""
    return _moved(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """Moves the channels of a batch of images, or of its shape, to the end."""
    return _moved(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})


def _moved(value: Any, orders: dict[int, list[int]]) -> Any:
    if isinstance(value, Tensor):
        return shaping.transpose(value, orders[len(value.shape)])
    return [value[axis] for axis in orders[len(value)]]


# ---- platform.googletest ---------------------------------------------------------------------------------------------


def GetTempDir() -> str:
    """Returns a folder for the files of this test run."""
    return test_case.get_temp_dir()


def StatefulSessionAvailable() -> bool:
    return False


main = test_case.main
test_src_dir_path = test_case.test_src_dir_path
