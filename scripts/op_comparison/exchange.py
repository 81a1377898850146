"""Cases and results as files: arrays in one .npz, all else in JSON beside it. Both interpreters read this module.

NumPy is all it needs. Nothing is pickled: strings travel as base64, and types NumPy cannot store (bfloat16) as their bits.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np


class Variable:
    """An input that is a variable: made with this value on each side, and read again after the op ran."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)


class Output:
    """An input that is an output of an earlier step of a program."""

    def __init__(self, step: int, index: int) -> None:
        self.step, self.index = step, index

    def __repr__(self) -> str:
        return f"step {self.step}:{self.index}"


class Function:
    """An attribute that is a function: one of the runner's bodies, traced for arguments (dtype name, shape)."""

    def __init__(self, body: str, arguments: Any) -> None:
        self.body, self.arguments = body, arguments

    def __repr__(self) -> str:
        return f"function {self.body}"


class Writer:
    """Gathers arrays while a structure is made into JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, value: Any) -> Any:
        """`value` as JSON; its arrays are kept for `save`."""
        if isinstance(value, Variable):
            return {"variable": self.pack(value.value)}
        if isinstance(value, Output):
            return {"output": [value.step, value.index]}
        if isinstance(value, Function):
            return {"function": [value.body, value.arguments]}
        if isinstance(value, np.ndarray):
            return self._pack_array(value)
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, (list, tuple)):
            return {"list": [self.pack(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": {key: self.pack(item) for key, item in value.items()}}
        if isinstance(value, np.generic):
            return self.pack(value.item())
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"plain": value}
        kind, plain = describe(value)
        return {kind: plain}

    def _pack_array(self, array: np.ndarray) -> Any:
        if array.dtype.kind in "OSU":
            texts = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel().tolist()]
            return {"strings": [base64.b64encode(text).decode() for text in texts], "shape": list(array.shape)}
        name = f"a{len(self.arrays)}"
        stored = np.ascontiguousarray(array).reshape(array.shape)
        if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
            stored = stored.view(np.dtype(f"u{array.dtype.itemsize}"))
        self.arrays[name] = stored
        return {"array": name, "dtype": array.dtype.name}

    def save(self, path: Path, structure: Any, *, compressed: bool = False) -> None:
        save = np.savez_compressed if compressed else np.savez
        save(path.with_suffix(".npz"), **self.arrays)  # type: ignore[arg-type]
        path.with_suffix(".json").write_text(json.dumps(structure))


def describe(value: Any) -> tuple[str, Any]:
    """An attribute that is a dtype or a shape, of either library, as (kind, JSON)."""
    if hasattr(value, "as_numpy_dtype"):
        return "dtype", value.name
    if hasattr(value, "as_list"):
        return "shape", None if value.rank is None else value.as_list()
    raise TypeError(f"{value!r} cannot travel")


class Reader:
    """The structures that a `Writer` saved; `module` (a TensorFlow, or stoker) makes the dtypes and shapes."""

    def __init__(self, path: Path, module: Any) -> None:
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
            self.arrays = dict(file)
        self.structure = json.loads(path.with_suffix(".json").read_text())
        self.module = module

    def unpack(self, packed: Any) -> Any:
        if "array" in packed:
            array = self.arrays[packed["array"]]
            if array.dtype.name == packed["dtype"]:
                return array
            return array.view(np.dtype(self.module.as_dtype(packed["dtype"]).as_numpy_dtype))
        if "strings" in packed:
            array = np.empty(len(packed["strings"]), object)
            array[:] = [base64.b64decode(text) for text in packed["strings"]]
            return array.reshape(packed["shape"])
        ((kind, value),) = packed.items()
        if kind == "plain":
            return value
        if kind == "bytes":
            return base64.b64decode(value)
        if kind == "list":
            return [self.unpack(item) for item in value]
        if kind == "dict":
            return {key: self.unpack(item) for key, item in value.items()}
        if kind == "output":
            return Output(*value)
        if kind == "function":
            return Function(*value)
        if kind == "variable":
            return Variable(self.unpack(value))
        if kind == "dtype":
            return self.module.as_dtype(value)
        if kind == "shape":
            return self.module.TensorShape(value)
        raise ValueError(f"cannot read {kind!r}")
