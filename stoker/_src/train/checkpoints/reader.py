"""Reading checkpoints without a graph."""

from __future__ import annotations

import weakref
from typing import Any

from stoker._src.base import forking
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export, export_constant
from stoker._src.formats import gfile
from stoker._src.formats.checkpoints import open_checkpoint
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.protos import AttrValue
from stoker._src.train.checkpoints.state import latest_checkpoint


class CheckpointReader:
    """Reads the tensors of a checkpoint of either format by name. `tf.train.load_checkpoint` returns such a reader.

    Args:
        filepattern: the path prefix. In the older format it is a file, or a pattern that matches all files.

    Raises:
        NotFoundError: the checkpoint does not exist.
        DataLossError: the checkpoint is damaged.
    """

    def __init__(self, filepattern: Any) -> None:
        self._reader = open_checkpoint(path_text(filepattern))
        self._closer = weakref.finalize(self, self._reader.close)
        self._lock = forking.lock()
        names = self._reader.keys()
        self._infos = {name: self._reader.info(name) for name in names}

    def has_tensor(self, tensor_str: Any) -> bool:
        return _name(tensor_str) in self._infos

    def get_tensor(self, tensor_str: Any) -> Any:
        """Returns a tensor as a new array, or as a NumPy scalar if it has rank 0.

        Raises:
            NotFoundError: the tensor does not exist.
            DataLossError: its bytes are damaged.
        """
        with self._lock:
            value = self._reader.read(_name(tensor_str))
        return value if value.ndim else value[()]

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Returns a map from names to shapes, which are lists of integers."""
        return {name: list(info.shape) for name, info in self._infos.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Returns a map from names to dtypes."""
        return {name: info.dtype for name, info in self._infos.items()}

    def debug_string(self) -> bytes:
        """Returns one line per tensor with its name, type, shape and number of slices."""
        kind: Any = AttrValue.DESCRIPTOR.fields_by_name["type"].enum_type
        lines = []
        for name, info in self._infos.items():
            sizes = ",".join(map(str, info.shape))
            sliced = f", {len(info.slices)} slices" if info.slices else ""
            lines.append(f"{name} ({kind.values_by_number[info.dtype.as_datatype_enum].name}) [{sizes}]{sliced}\n")
        return "".join(lines).encode(errors="surrogateescape")


def _name(tensor: Any) -> str:
    return tensor.decode(errors="surrogateescape") if isinstance(tensor, bytes) else tensor


export_constant(__name__, "CheckpointReader", v1="train.NewCheckpointReader")


@export("train.load_checkpoint")
def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Returns a reader of a checkpoint, or of the newest checkpoint of a directory.

    Raises:
        ValueError: the directory does not contain a checkpoint.
        NotFoundError: the checkpoint does not exist.
    """
    return CheckpointReader(checkpoint_filename(ckpt_dir_or_file))


def checkpoint_filename(ckpt_dir_or_file: Any) -> str:
    """Returns the path of the newest checkpoint if given a directory, and any other path unchanged.

    Raises:
        ValueError: the directory does not contain a checkpoint.
    """
    path = path_text(ckpt_dir_or_file)
    if not gfile.isdir(path):
        return path
    newest = latest_checkpoint(path)
    if newest is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
    return newest


@export("train.load_variable")
def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Returns the value of one tensor of a checkpoint. A trailing ":0" of the name is ignored.

    Raises:
        NotFoundError: the tensor does not exist.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


@export("train.list_variables")
def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Returns the pair (name, shape) of every tensor of a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
