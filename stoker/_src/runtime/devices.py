"""Placement of ops: on the GPU if there is one and the data is there, else on the CPU, unless `tf.device` names a device.

Placement follows the data. Floating point feeds, constants, variables and random numbers start on the GPU. An op with an input
there runs there, and its other inputs are moved to it. Everything else (shapes, strings, integers, queues) stays on the CPU. If an op
names a device, all of its data is moved there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base.devices import DeviceSpec
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.moving import moved_to

PREFIX = "/job:localhost/replica:0/task:0/device:"
_UNMOVED = Trait.SOURCE | Trait.BLOCKING | Trait.RETAINS


visible_gpus: int | None = None  # how many GPUs programs may use, counted from the first; None for all


def installed_gpus() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def usable_gpus() -> int:
    found = installed_gpus()
    return found if visible_gpus is None else min(found, visible_gpus)


_tensor_float_32 = True  # TensorFlow's default on hardware that supports it


@export("config.experimental.enable_tensor_float_32_execution")
def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Sets whether float32 matmuls and convolutions on a GPU may round their factors to TF32's 10 bits. The default is True."""
    global _tensor_float_32
    _tensor_float_32 = bool(enabled)
    _apply_tensor_float_32()


@export("config.experimental.tensor_float_32_execution_enabled")
def tensor_float_32_execution_enabled() -> bool:
    return _tensor_float_32


def _apply_tensor_float_32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = _tensor_float_32
    torch.backends.cudnn.allow_tf32 = _tensor_float_32


class Placement:
    """The devices of one session. `gpu` is None if there is no usable GPU; data is then never moved."""

    def __init__(self, config: Any, prefix: str = PREFIX) -> None:
        """`prefix` is the start of the devices' names, up to the type."""
        self.prefix = prefix
        allowed = config.device_count.get("GPU", -1) if config is not None else -1
        count = usable_gpus() if allowed != 0 else 0
        self.count = count if allowed < 0 else min(count, allowed)
        self.gpu = torch.device("cuda", 0) if self.count else None
        self.cpus = max(1, config.device_count.get("CPU", 1)) if config is not None else 1
        self.soft = config is not None and config.allow_soft_placement
        if self.gpu is not None:
            _apply_tensor_float_32()

    def names(self) -> list[str]:
        cpus = [f"{self.prefix}CPU:{index}" for index in range(self.cpus)]
        return [*cpus, *(f"{self.prefix}GPU:{index}" for index in range(self.count))]

    def is_here(self, spec: DeviceSpec) -> bool:
        """Whether a device name refers to this process, apart from the device's type and number."""
        return spec.job in (None, "localhost") and (spec.task or 0) == 0

    def requested(self, op: Operation) -> torch.device | None:
        """Returns the device that `op` names, or None if it names none.

        Raises:
            InvalidArgumentError: the device does not exist, and placement is not soft.
        """
        if not op.device:
            return None
        spec = DeviceSpec.from_string(op.device)
        index = spec.device_index or 0
        here = self.is_here(spec)
        if here and (spec.device_type is None or (spec.device_type == "CPU" and index < self.cpus)):
            # All CPU devices map to this machine's CPU.
            return torch.device("cpu") if spec.device_type else None
        if here and spec.device_type == "GPU" and index < self.count:
            return torch.device("cuda", index)
        if here and self.soft:
            return None
        raise InvalidArgumentError(
            None,
            op,
            f"Cannot assign a device for operation {op.name}: {op.name} was explicitly assigned to {op.device} but available "
            f"devices are [ {', '.join(self.names())} ]. Make sure the device specification refers to a valid device, or set "
            "allow_soft_placement in ConfigProto.",
        )

    def name(self, op: Operation) -> str:
        """Returns the device that `op` is expected to run on: the one it names, or the one where its data starts."""
        wanted = self.requested(op)
        if wanted is None:
            tensors = (*op.outputs, *op._inputs)
            floats = any(tensor.dtype.is_floating or tensor.dtype.is_complex for tensor in tensors)
            wanted = self.gpu if self.gpu is not None and floats else torch.device("cpu")
        return f"{self.prefix}{'CPU' if wanted.type == 'cpu' else 'GPU'}:{wanted.index or 0}"

    def variable_device(self, op: Operation) -> torch.device | None:
        """Returns the device of the variable that `op` creates; None for the device of its initial value (the CPU)."""
        if self.gpu is None:
            return None
        wanted = self.requested(op)
        if wanted is not None:
            return wanted
        dtype = op.attrs.get("dtype")
        return self.gpu if dtype is not None and (dtype.is_floating or dtype.is_complex) else None

    def data(self, value: Any) -> Any:
        """Moves a constant or a feed to the device where it starts: the GPU for floating point numbers."""
        if (
            self.gpu is None
            or not isinstance(value, torch.Tensor)
            or not (value.is_floating_point() or value.is_complex())
        ):
            return value
        return value.to(self.gpu, non_blocking=True)

    def kernel(self, op: Operation, kernel: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
        """Returns a kernel that first moves `op`'s data to one device, and a suffix for the kernel's name."""
        wanted = self.requested(op)
        if self.gpu is None or op.definition.traits & _UNMOVED or op.definition.planning.calls:
            return "", kernel  # the ops of a function's body place its inputs
        on_gpu = op.definition.planning.on_gpu
        made = None if on_gpu is None or wanted not in (None, self.gpu) else on_gpu(op)
        if made is not None:
            return "_on_gpu", functools.partial(made, device=self.gpu)
        if wanted is None:
            makes = not op._inputs or all(arg.host for arg in op.definition.inputs)
            floats = any(t.dtype.is_floating or t.dtype.is_complex for t in op.outputs)
            return "", _made_on(self.gpu, kernel) if makes and floats else _following(kernel)
        return f"_on_{wanted.type}{wanted.index or ''}", _on(wanted, kernel)


class Nowhere:
    """The placement of work of the host: everything stays where it is."""

    gpu = None

    def data(self, value: Any) -> Any:
        return value

    def kernel(self, op: Any, kernel: Any) -> tuple[str, Any]:
        return "", kernel


def _tensors(args: Any) -> Any:
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, list):
            yield from _tensors(arg)
        elif isinstance(value := getattr(arg, "value", None), torch.Tensor):
            yield value  # a variable


def _moved(args: Any, device: torch.device) -> list[Any]:
    return [
        moved_to(arg, device) if isinstance(arg, torch.Tensor) else _moved(arg, device) if type(arg) is list else arg
        for arg in args
    ]


def _following(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the kernel to run on the GPU if one of its inputs is there."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = None
        mixed = False
        for tensor in _tensors(args):
            if found is None:
                found = tensor.device
            elif tensor.device != found:
                mixed = True
                if tensor.is_cuda:
                    found = tensor.device
        if not mixed:
            return kernel(*args, **kwargs)
        # A variable cannot move, so the other inputs move to its device.
        held = (arg.value.device for arg in args if isinstance(getattr(arg, "value", None), torch.Tensor))
        return kernel(*_moved(args, next(held, found)), **kwargs)  # type: ignore[arg-type]

    return call


def _on(device: torch.device, kernel: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return _placed(kernel(*_moved(args, device), **kwargs), device)

    return call


def _made_on(device: torch.device, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a kernel that creates numbers without inputs (random numbers) to create them on the GPU."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _placed(kernel(*args, **kwargs), device)

    return call


def _placed(result: Any, device: torch.device) -> Any:
    if isinstance(result, torch.Tensor):
        return result.to(device)
    if isinstance(result, tuple):
        return tuple(_placed(item, device) for item in result)
    return result


def memory_of(name: str) -> int:
    """Returns the bytes of a device's memory. For the CPU this is 256 MiB, as in TensorFlow."""
    kind, index = name.rsplit(":", 2)[1:]
    return torch.cuda.get_device_properties(int(index)).total_memory if kind == "GPU" else 256 << 20


class DeviceAttributes:
    """A device: its name, type and memory."""

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int) -> None:
        self.name = name
        self.device_type = device_type
        self.memory_limit_bytes = self.memory_limit = memory_limit_bytes
        self.incarnation = incarnation

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


def described(placement: Placement, prefix: str = PREFIX) -> list[DeviceAttributes]:
    """Returns the devices of a session."""
    return [
        DeviceAttributes(name.replace(placement.prefix, prefix), name.rsplit(":", 2)[1], memory_of(name), number + 1)
        for number, name in enumerate(placement.names())
    ]


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """Returns the devices of this machine, as `tensorflow.python.client.device_lib` does."""
    return described(Placement(session_config), "/device:")
