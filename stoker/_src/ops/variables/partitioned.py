"""Partitioned variables: `PartitionedVariable`, the position of its slices, and the partitioners."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats import protos
from stoker._src.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, shaping


class PartitionInfo:
    """The position of a slice in its variable, for initializers that ask for it."""

    def __init__(self, full_shape: list[int], var_offset: list[int]) -> None:
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_offset(self, shape: list[int]) -> int:
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: list[int]) -> int | None:
        cut = [i for i, (part, whole) in enumerate(zip(shape, self.full_shape)) if part != whole]
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape {shape} and full shape {self.full_shape}: cut along several axes."
            )
        return cut[0] if cut else None


class SaveSliceInfo:
    """How a slice is written to a checkpoint: under the name of the whole variable, with its extent."""

    def __init__(self, full_name: str, full_shape: list[int], var_offset: list[int], var_shape: list[int]) -> None:
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    @property
    def spec(self) -> str:
        """TensorFlow's text form: the full shape, then `start,length` for each dimension."""
        extents = ":".join(f"{offset},{size}" for offset, size in zip(self.var_offset, self.var_shape))
        return " ".join([*map(str, self.full_shape), extents])

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The slice as a SaveSliceInfoDef, with the name relative to `export_scope`."""
        name = self.full_name
        if export_scope:
            name = name.removeprefix(export_scope + "/")
        return protos.SaveSliceInfoDef(
            full_name=name, full_shape=self.full_shape, var_offset=self.var_offset, var_shape=self.var_shape
        )

    @classmethod
    def from_proto(cls, proto: Any, import_scope: str | None = None) -> SaveSliceInfo:
        name = f"{import_scope}/{proto.full_name}" if import_scope else proto.full_name
        return cls(name, list(proto.full_shape), list(proto.var_offset), list(proto.var_shape))


def partition_offsets(shape: list[int], partitions: list[int], name: str) -> Iterator[tuple[list[int], list[int]]]:
    """(offset, shape) of each slice, in order. If the size is not divisible, the first slices are one longer.

    Raises:
        ValueError: more than one axis is partitioned, or the counts are invalid.
    """
    if len(partitions) != len(shape) or any(count < 1 for count in partitions):
        raise ValueError(
            f"Partitioner returned {partitions} for variable {name} of shape {shape}: need one count >= 1 for each dimension."
        )
    cut = [axis for axis, count in enumerate(partitions) if count > 1]
    if len(cut) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {partitions}")
    axis = cut[0] if cut else 0
    count = partitions[axis] if partitions else 1
    if shape and count > shape[axis]:
        raise ValueError(f"Cannot cut dimension {axis} of size {shape[axis]} of variable {name} into {count} parts.")
    offset = 0
    for i in range(count):
        size = shape[axis] // count + (1 if i < shape[axis] % count else 0) if shape else 1
        yield (
            [offset if d == axis else 0 for d in range(len(shape))],
            [size if d == axis else s for d, s in enumerate(shape)],
        )
        offset += size


class PartitionedVariable:
    """A variable whose slices are separate variables. As a tensor it is their concatenation."""

    is_tensor_like = True

    def __init__(self, name: str, shape: Any, dtype: Any, variable_list: list[Any], partitions: list[int]) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(f"partitions is not a list or tuple: {partitions}")
        if not all(count >= 1 for count in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        self._name = name
        self._static = as_shape(shape)
        self._dtype = as_dtype(dtype)
        self._variables = sorted(variable_list, key=lambda v: v._get_save_slice_info().var_offset)
        self._partitions = list(partitions)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def static_shape(self) -> Shape:
        return self._static

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._static)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def op(self) -> Any:
        return self._variables[0].op

    def _get_variable_list(self) -> list[Any]:
        return self._variables

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [axis for axis, count in enumerate(self._partitions) if count > 1] or [0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def as_tensor(self) -> Tensor:
        """The concatenated slices."""
        with name_scope(self._name + "/ConcatPartitions/"):
            joined = joining.concat([variable.value() for variable in self._variables], self._partition_axes()[0])
        with name_scope(None):
            return shaping.identity(joined, name=self._name)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        return self._each("assign", value, use_locking, name, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._each("assign_add", value, use_locking, name, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._each("assign_sub", value, use_locking, name, read_value)

    def _each(self, method: str, value: Any, use_locking: bool, name: str | None, read_value: bool) -> list[Any]:
        """Applies `method` to each slice, with its part of a whole value or its entry of a list."""
        parts: Any = value
        if isinstance(value, (list, tuple)) and len(value) == len(self._variables):
            parts = value
        else:
            whole: Any = convert_to_tensor(value, self._dtype)
            infos = [variable._get_save_slice_info() for variable in self._variables]
            parts = [
                whole[tuple(slice(offset, offset + size) for offset, size in zip(info.var_offset, info.var_shape))]
                for info in infos
            ]
        return [
            getattr(variable, method)(part, use_locking=use_locking, name=name, read_value=read_value)
            for variable, part in zip(self._variables, parts)
        ]


def _convert(value: PartitionedVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{as_dtype(dtype).name}' for variable of type '{value.dtype.name}'"
        )
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _convert, 10)

Partitioner = Callable[..., list[int]]


def _known_sizes(shape: Any) -> list[int]:
    known = as_shape(shape)
    if not known.known:
        raise ValueError(f"shape is not fully defined: {TensorShape(known)}")
    return list(known)  # type: ignore[arg-type]


@export(v1="fixed_size_partitioner")
def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner that splits `axis` into `num_shards` parts (fewer if the axis is smaller)."""

    def partition(shape: Any, **unused: Any) -> list[int]:
        counts = [1] * len(shape)
        counts[axis] = min(num_shards, as_shape(shape)[axis])
        return counts

    return partition


@export(v1="variable_axis_size_partitioner")
def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """A partitioner that splits `axis` into at most `max_shards` parts of at most `max_shard_bytes` each.

    Raises:
        ValueError: a limit is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("Both max_shard_bytes and bytes_per_string_element must be positive.")
    if max_shards is not None and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = _known_sizes(shape)
        counts = [1] * len(sizes)
        dtype = as_dtype(dtype)
        element = bytes_per_string_element if dtype.name == "string" else dtype.size
        total = math.prod(sizes)
        slices = max(1, sizes[axis])
        per_slice = total // slices * element
        fitting = max(1, max_shard_bytes // max(per_slice, 1))
        shards = math.ceil(slices / fitting)
        counts[axis] = shards if max_shards is None else min(max_shards, shards)
        return counts

    return partition


@export(v1="min_max_variable_partitioner")
def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """A partitioner that splits `axis` into at most `max_partitions` parts of at least `min_slice_size` bytes."""

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = _known_sizes(shape)
        counts = [1] * len(sizes)
        dtype = as_dtype(dtype)
        element = bytes_per_string_element if dtype.name == "string" else dtype.size
        total = math.prod(sizes) * element
        counts[axis] = max(1, min(sizes[axis], max_partitions, math.ceil(total / min_slice_size)))
        return counts

    return partition
