"""The nodes that save and restore the variables of a graph, with the names that TensorFlow gives them.

save/filename, save/Const     the path, which is fed
save/SaveV2                   one per shard; save/control_dependency returns the path after they have run
save/RestoreV2, save/Assign   one op reads all tensors of a shard, one assignment per tensor follows; save/restore_all waits for them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base.devices import DeviceSpec, canonical_name
from stoker._src.formats.protos import SaverDef
from stoker._src.graph import context
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import control_dependencies, device, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, joining, shaping
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.io import checkpoints
from stoker._src.ops.strings import string_ops
from stoker._src.train.checkpoints.saveables import validated_saveables

_CPU = "/device:CPU:0"
# The shards of a checkpoint are written here before they are merged.
_TEMPORARY = "_temp/part"


def texts(values: Sequence[str]) -> np.ndarray:
    """Encodes names as the string array that the ops expect."""
    encoded = np.empty(len(values), object)
    encoded[:] = [value.encode(errors="surrogateescape") for value in values]
    return encoded


def _on_host(place: str) -> str:
    """Returns the CPU of the task that owns a device."""
    return DeviceSpec.from_string(place).replace(device_type="CPU", device_index=0).to_string()


class BaseSaverBuilder:
    """Builds the nodes of a saver. Subclasses can override `save_op` and `bulk_restore`.

    Args:
        write_version: the file format, `SaverDef.V2` or the older `SaverDef.V1`.
    """

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject

    def __init__(self, write_version: int = SaverDef.V2) -> None:
        self._write_version = write_version

    def save_op(self, filename_tensor: Any, saveables: Sequence[SaveableObject]) -> Any:
        """Returns the op that writes `saveables` to one file."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        tensors = [spec.tensor for spec in specs]
        names, slices = texts([spec.name for spec in specs]), texts([spec.slice_spec for spec in specs])
        if self._write_version == SaverDef.V1:
            return checkpoints.SAVE_SLICES(filename_tensor, names, slices, tensors, name="save")
        return checkpoints.SAVE_V2(filename_tensor, names, slices, tensors)

    def bulk_restore(
        self,
        filename_tensor: Any,
        saveables: Sequence[SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Any]:
        """Returns the tensors of `saveables` in order, read by one op.

        Args:
            filename_tensor: the path.
            saveables: the objects to restore.
            preferred_shard: the number of the file that contains them, or -1 if unknown. It is only a hint, which the reader does not need.
            restore_sequentially: whether to read one tensor after the other. A single op always does.
        """
        del preferred_shard, restore_sequentially
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, slices = texts([spec.name for spec in specs]), texts([spec.slice_spec for spec in specs])
        with device(_CPU):
            return checkpoints.RESTORE_V2(filename_tensor, names, slices, dtypes=[spec.dtype for spec in specs])

    def sharded_filename(self, filename_tensor: Any, shard: int, num_shards: Any) -> Tensor:
        """Returns the file name of a shard."""
        return checkpoints.SHARDED_FILENAME(filename_tensor, shard, num_shards)

    def restore_ops(
        self,
        filename_tensor: Any,
        saveables: Sequence[SaveableObject],
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
    ) -> list[Any]:
        """Returns the ops that restore `saveables`."""
        tensors = self.bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        ops: list[Any] = []
        at = 0
        for saveable in saveables:
            count = len(saveable.specs)
            shapes = [_shape_of(spec.tensor) for spec in saveable.specs] if reshape else None
            ops.append(saveable.restore(tensors[at : at + count], shapes))
            at += count
        return ops

    # -- building the graph --------------------------------------------------------------------------------------

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: Any = "model",
    ) -> Any:
        """Adds all nodes to the current graph and returns the SaverDef that names them.

        Raises:
            TypeError, ValueError: `names_to_saveables` is not a list or dictionary of saveable objects.
        """
        if context.executing_eagerly():
            raise ValueError("save and restore operations can only be built in a graph.")
        saveables = validated_saveables(names_to_saveables)
        with name_scope(name, "save", [saveable.op for saveable in saveables]):
            path = constants.placeholder_with_default(filename or "model", shape=(), name="filename")
            path = constants.placeholder_with_default(path, shape=(), name="Const")
            if sharded:
                shards = _by_device(saveables)
                saved = self._save_shards(path, shards)
                restored = self._restore_shards(path, shards, restore_sequentially, reshape)
            else:
                saved = grouping.with_dependencies([self.save_op(path, saveables)], path)
                ops = self.restore_ops(path, saveables, restore_sequentially, reshape)
                restored = grouping.group(*ops, name="restore_all")
        return SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )

    def _save_shards(self, path: Tensor, shards: list[tuple[str, list[SaveableObject]]]) -> Tensor:
        merging = self._write_version == SaverDef.V2
        if merging:
            with device("CPU"):
                stem = string_ops.string_join([path, _TEMPORARY])
        else:
            stem = path
        num_shards = constants.constant(len(shards), name="num_shards")
        files, written = [], []
        last = ""
        for shard, (place, saveables) in enumerate(shards):
            last = _on_host(place) if merging else place
            with device(last):
                files.append(self.sharded_filename(stem, shard, num_shards))
                written.append(grouping.with_dependencies([self.save_op(files[-1], saveables)], files[-1]))
        if not merging:
            with control_dependencies([each.op for each in written]):
                return checkpoints.SHARDED_FILESPEC(path, num_shards)
        with control_dependencies([each.op for each in written]), device(last):
            merge = checkpoints.MERGE_V2_CHECKPOINTS(
                joining.stack(files, name="MergeV2Checkpoints/checkpoint_prefixes"), path, delete_old_dirs=True
            )
            with control_dependencies([merge]):
                return shaping.identity(path)

    def _restore_shards(
        self, path: Tensor, shards: list[tuple[str, list[SaveableObject]]], restore_sequentially: bool, reshape: bool
    ) -> Any:
        restored = []
        for shard, (place, saveables) in enumerate(shards):
            with device(place):
                ops = self.restore_ops(path, saveables, restore_sequentially, reshape, preferred_shard=shard)
                restored.append(grouping.group(*ops, name="restore_shard"))
        return grouping.group(*restored, name="restore_all")


class BulkSaverBuilder(BaseSaverBuilder):
    """TensorFlow's name for a builder that reads all tensors of a file with one op. Our base class already does."""


def _shape_of(tensor: Any) -> Any:
    shape = tensor.static_shape
    return list(shape.dims) if shape.known else shaping.shape(tensor)


def _by_device(saveables: Sequence[SaveableObject]) -> list[tuple[str, list[SaveableObject]]]:
    """Groups objects by device. The groups are sorted by device name."""
    shards: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        shards.setdefault(canonical_name(saveable.device), []).append(saveable)
    return sorted(shards.items())
