"""`tf.config`: the available and the visible devices, their memory, and the number of threads."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import torch

from stoker._src.base.export import export, export_constant
from stoker._src.runtime import devices
from stoker._src.runtime.plan import threads

PhysicalDevice = namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = namedtuple("LogicalDevice", ["name", "device_type"])
LogicalDeviceConfiguration = namedtuple(
    "LogicalDeviceConfiguration",
    ["memory_limit", "experimental_priority", "experimental_device_ordinal"],
    defaults=(None, None, None),
)
for _name in ("PhysicalDevice", "LogicalDevice", "LogicalDeviceConfiguration"):
    export_constant(__name__, _name, f"config.{_name}")
export_constant(__name__, "LogicalDeviceConfiguration", "config.experimental.VirtualDeviceConfiguration")

_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_MEGABYTE = 2**20


def _both(name: str) -> Any:
    """Returns the name in `tf.config` and its older form in `tf.config.experimental`."""
    return export(f"config.{name}", f"config.experimental.{name}")


def _gpu(index: int) -> PhysicalDevice:
    return PhysicalDevice(f"/physical_device:GPU:{index}", "GPU")


def _of_type(found: list[Any], device_type: str | None) -> list[Any]:
    return [device for device in found if device_type is None or device.device_type == device_type]


@_both("list_physical_devices")
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices of this machine, of one type ("CPU", "GPU") or of all types."""
    return _of_type([_CPU, *map(_gpu, range(devices.installed_gpus()))], device_type)


@_both("get_visible_devices")
def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices that programs may use."""
    return _of_type([_CPU, *map(_gpu, range(devices.usable_gpus()))], device_type)


@_both("list_logical_devices")
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the devices under the names that `tf.device` uses."""
    named = [LogicalDevice(f"/device:{each.name.split(':', 1)[1]}", each.device_type) for each in get_visible_devices()]
    return _of_type(named, device_type)


def _known(device: Any) -> PhysicalDevice:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")
    return device


@_both("set_visible_devices")
def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Selects the devices that programs may use. Existing sessions keep theirs.

    Args:
        devices: one physical device or a list of them.
        device_type: the type that is selected; None for all types.

    Raises:
        ValueError: a device does not exist or has another type.
        NotImplementedError: the GPUs are not the first ones, or the CPU is hidden.
    """
    chosen = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    for device in chosen:
        if device_type is not None and _known(device).device_type != device_type:
            raise ValueError(f"Unrecognized device: {device!r}")
        _known(device)
    if device_type in (None, "CPU") and _CPU not in chosen:
        raise NotImplementedError("Programs always use the CPU: it cannot be hidden.")
    if device_type in (None, "GPU"):
        gpus = [device for device in chosen if device.device_type == "GPU"]
        if gpus != [_gpu(index) for index in range(len(gpus))]:
            raise NotImplementedError(
                "Only the first GPUs can be chosen here; the environment variable CUDA_VISIBLE_DEVICES chooses among all."
            )
        _show_gpus(len(gpus))


def _show_gpus(count: int) -> None:
    devices.visible_gpus = count


# -- memory ------------------------------------------------------------------------------------------------------

_growth: dict[PhysicalDevice, bool] = {}
_limits: dict[PhysicalDevice, list[Any]] = {}


def _index(device: Any) -> int | None:
    """Returns the number of a GPU, given as a device or by a name like "GPU:0"; None for the CPU."""
    name = device.name if isinstance(device, (PhysicalDevice, LogicalDevice)) else str(device)
    kind, _, number = name.removeprefix("/physical_device:").removeprefix("/device:").partition(":")
    index = int(number) if number.isdigit() else 0
    if kind == "CPU" and index == 0:
        return None
    if kind != "GPU" or index >= devices.installed_gpus():
        raise ValueError(f"No matching devices found for '{name}'")
    return index


@export("config.experimental.set_memory_growth")
def set_memory_growth(device: Any, enable: bool) -> None:
    """Sets whether GPU memory is allocated on demand. It always is, so the setting is only recorded.

    Raises:
        ValueError: the device is not a GPU, or has a memory limit.
    """
    if _known(device).device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    if device in _limits:
        raise ValueError("Cannot set memory growth on device when virtual devices configured")
    _growth[device] = bool(enable)


@export("config.experimental.get_memory_growth")
def get_memory_growth(device: Any) -> bool | None:
    """Returns the setting of `set_memory_growth`; None if it was not called.

    Raises:
        KeyError: the device is not a GPU.
    """
    if device not in list_physical_devices("GPU"):
        raise KeyError(device)
    return _growth.get(device)


@export("config.set_logical_device_configuration", "config.experimental.set_virtual_device_configuration")
def set_logical_device_configuration(device: Any, logical_devices: Sequence[Any]) -> None:
    """Limits the memory of a GPU to `memory_limit` megabytes.

    Raises:
        NotImplementedError: several logical devices are requested for one GPU.
        ValueError: the device is a CPU and has a limit, or the limit is not positive.
    """
    _known(device)
    if len(logical_devices) != 1:
        raise NotImplementedError(f"A device is one logical device here; it cannot be {len(logical_devices)}.")
    limit = logical_devices[0].memory_limit
    if device.device_type == "CPU":
        if limit is not None:
            raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    elif limit is not None:
        if limit <= 0:
            raise ValueError(f"memory_limit must be positive, got {limit}")
        index = _index(device) or 0
        total = torch.cuda.get_device_properties(index).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit * _MEGABYTE / total), index)
    _limits[device] = list(logical_devices)


@export("config.get_logical_device_configuration", "config.experimental.get_virtual_device_configuration")
def get_logical_device_configuration(device: Any) -> list[Any] | None:
    """Returns the setting of `set_logical_device_configuration`; None if it was not called."""
    return _limits.get(_known(device))


@export("config.experimental.get_memory_info")
def get_memory_info(device: Any) -> dict[str, int]:
    """Returns the bytes of a device's memory in use: "current", and the maximum, "peak". Both are zero for the CPU."""
    index = _index(device)
    if index is None:
        return {"current": 0, "peak": 0}
    return {"current": torch.cuda.memory_allocated(index), "peak": torch.cuda.max_memory_allocated(index)}


@export("config.experimental.get_memory_usage")
def get_memory_usage(device: Any) -> int:
    """Returns the bytes of a device's memory in use."""
    return get_memory_info(device)["current"]


@export("config.experimental.reset_memory_stats")
def reset_memory_stats(device: Any) -> None:
    """Resets "peak" of `get_memory_info` to the memory in use."""
    index = _index(device)
    if index is not None:
        torch.cuda.reset_peak_memory_stats(index)


@export("config.experimental.get_device_details")
def get_device_details(device: Any) -> dict[str, Any]:
    """Returns a GPU's name and compute capability; an empty dict for the CPU."""
    index = _index(_known(device))
    if index is None:
        return {}
    return {
        "device_name": torch.cuda.get_device_name(index),
        "compute_capability": torch.cuda.get_device_capability(index),
    }


# -- threads -----------------------------------------------------------------------------------------------------

_DEFAULT_THREADS = torch.get_num_threads()
_threads = {"intra": 0, "inter": 0}


def _checked(num_threads: int) -> int:
    if not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 0:
        raise ValueError(f"The number of threads must be an integer and not negative, got {num_threads!r}")
    return num_threads


@export("config.threading.set_intra_op_parallelism_threads")
def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets how many threads one op may use; 0 for the number of cores."""
    _threads["intra"] = _checked(num_threads)
    threads.allow(num_threads or _DEFAULT_THREADS)


@export("config.threading.get_intra_op_parallelism_threads")
def get_intra_op_parallelism_threads() -> int:
    return _threads["intra"]


@export("config.threading.set_inter_op_parallelism_threads")
def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Sets how many ops of a run may run at once. Ops run one after the other, so any number is satisfied."""
    _threads["inter"] = _checked(num_threads)


@export("config.threading.get_inter_op_parallelism_threads")
def get_inter_op_parallelism_threads() -> int:
    return _threads["inter"]
