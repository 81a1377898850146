"""Partial or full device names, such as `/job:worker/replica:0/task:1/device:GPU:0`."""

from __future__ import annotations

import re
from typing import Any

_PART = re.compile(
    r"(?:/|^)(?:(?P<key>job|replica|task):(?P<value>[^/]+)"
    r"|(?P<kind>device:[A-Za-z]\w*(?=:)|cpu|gpu|tpu)(?::(?P<index>\d+|\*))?)?(?=/|$)",
    re.IGNORECASE,
)


class DeviceSpec:
    """The parts of a device name. Each part may be None.

    TensorFlow's 1.x class is mutable, and its 2.x class is immutable. This class serves both.
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = None if device_type is None else str(device_type).upper()
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parses a device name.

        Raises:
            ValueError: `spec` is not a device name.
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        spec = spec.decode() if isinstance(spec, bytes) else spec
        if not isinstance(spec, str):
            raise AttributeError(f"A device is a string or a DeviceSpec, not {spec!r}.")
        self.__init__()
        position = 0
        while position < len(spec):
            match = _PART.match(spec, position)
            if match is None:
                raise ValueError(f"Unknown attribute: '{spec[position:].strip('/').split('/')[0]}' in '{spec}'")
            if match["key"]:
                value = match["value"]
                setattr(self, match["key"].lower(), value if match["key"].lower() == "job" else int(value))
            elif match["kind"]:
                if self.device_type is not None:
                    raise ValueError(f"Multiple device types are not allowed: '{spec}'")
                self.device_type = match["kind"].upper().removeprefix("DEVICE:")
                self.device_index = None if match["index"] in (None, "*") else int(match["index"])
            position = max(match.end(), position + 1)
        return self

    def merge_from(self, other: DeviceSpec) -> None:
        """Overrides the parts that `other` specifies."""
        for part in ("job", "replica", "task"):
            if getattr(other, part) is not None:
                setattr(self, part, getattr(other, part))
        if other.device_type is not None:
            self.device_type = other.device_type
            self.device_index = other.device_index
        elif other.device_index is not None:
            self.device_index = other.device_index

    def make_merged_spec(self, other: DeviceSpec) -> DeviceSpec:
        merged = self.replace()
        merged.merge_from(other)
        return merged

    def replace(self, **parts: Any) -> DeviceSpec:
        mine = {key: getattr(self, key) for key in ("job", "replica", "task", "device_type", "device_index")}
        return DeviceSpec(**{**mine, **parts})

    def to_string(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.device_type is not None:
            text += f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        return text

    def __str__(self) -> str:
        return self.to_string()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())


def canonical_name(device: Any) -> str:
    """A device name in TensorFlow's canonical form: `/cpu:0` becomes `/device:CPU:0`."""
    if device is None:
        return ""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    return DeviceSpec.from_string(device).to_string()


def merge_device(outer: Any, inner: str) -> str:
    """The device of an op in nested `tf.device` blocks. Parts that the inner block specifies take precedence."""
    if not inner:
        return canonical_name(outer)
    spec = DeviceSpec.from_string(canonical_name(outer))
    spec.merge_from(DeviceSpec.from_string(inner))
    return spec.to_string()
