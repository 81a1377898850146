"""Datasets of the contents of files."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.data.dataset import Dataset, DatasetV1
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops.array import shaping
from stoker._src.ops.dataset import sources

_BUFFER = 256 * 1024


def _names(filenames: Any) -> Any:
    """Returns a dataset of file names.

    Raises:
        TypeError: `filenames` is a dataset of something other than scalar strings.
    """
    if isinstance(filenames, Dataset):
        spec = filenames.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype != dtypes.string:
            raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got {spec}.")
        return filenames
    names = convert_to_tensor(filenames, dtypes.string, name="filenames")
    return DatasetV1.from_tensor_slices(shaping.reshape(names, [-1]))


class _Files:
    """The constructors of datasets of files share this: one dataset for each file, one after the other or interleaved."""

    def __init__(self, definition: OpDefinition, *before: Any, compression_first: bool) -> None:
        self._definition, self._before, self._compression_first = definition, before, compression_first

    def variant(
        self, filenames: Any, compression_type: Any, buffer_size: Any, parallel: Any, name: str | None
    ) -> Tensor:
        compression = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")
        buffer = convert_to_tensor(_BUFFER if buffer_size is None else buffer_size, dtypes.int64, name="buffer_size")
        last = (compression, buffer) if self._compression_first else (buffer, compression)

        def one(filename: Tensor) -> Any:
            return DatasetV1._of(self._definition(filename, *self._before, *last), TensorSpec([], dtypes.string))

        names = _names(filenames)
        if parallel is None:
            return names.flat_map(one, name=name)._variant_tensor
        return names.interleave(one, cycle_length=parallel, num_parallel_calls=parallel, name=name)._variant_tensor


_RECORDS = _Files(sources.TF_RECORD_DATASET, compression_first=True)
_LINES = _Files(sources.TEXT_LINE_DATASET, compression_first=True)


@export(v2="data.TFRecordDataset")
class TFRecordDataset(Dataset):
    """The records of TFRecord files."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        """Creates the dataset.

        Args:
            filenames: names of files, or a dataset of names.
            compression_type: "", "ZLIB" or "GZIP".
            buffer_size: the bytes to read at once; a hint.
            num_parallel_reads: how many files to read in turn; by default one after the other.
            name: the op's name.
        """
        variant = _RECORDS.variant(filenames, compression_type, buffer_size, num_parallel_reads, name)
        super().__init__(variant, TensorSpec([], dtypes.string))


@export(v2="data.TextLineDataset")
class TextLineDataset(Dataset):
    """The lines of text files, without their ends."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        """Creates the dataset.

        Args:
            filenames: names of files, or a dataset of names.
            compression_type: "", "ZLIB" or "GZIP".
            buffer_size: the bytes to read at once; a hint.
            num_parallel_reads: how many files to read in turn; by default one after the other.
            name: the op's name.
        """
        variant = _LINES.variant(filenames, compression_type, buffer_size, num_parallel_reads, name)
        super().__init__(variant, TensorSpec([], dtypes.string))


@export(v2="data.FixedLengthRecordDataset")
class FixedLengthRecordDataset(Dataset):
    """The records of files of fixed record size."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        """Creates the dataset.

        Args:
            filenames: names of files, or a dataset of names.
            record_bytes: the size of a record.
            header_bytes: bytes to skip at the start of a file.
            footer_bytes: bytes to ignore at the end of a file.
            buffer_size: the bytes to read at once; a hint.
            compression_type: "", "ZLIB" or "GZIP".
            num_parallel_reads: how many files to read in turn; by default one after the other.
            name: the op's name.
        """
        sizes = [
            convert_to_tensor(0 if value is None else value, dtypes.int64)
            for value in (header_bytes, record_bytes, footer_bytes)
        ]
        files = _Files(sources.FIXED_LENGTH_RECORD_DATASET_V2, *sizes, compression_first=False)
        variant = files.variant(filenames, compression_type, buffer_size, num_parallel_reads, name)
        super().__init__(variant, TensorSpec([], dtypes.string))


@export(v1="data.TFRecordDataset")
class TFRecordDatasetV1(TFRecordDataset, DatasetV1):
    """The records of TFRecord files."""


@export(v1="data.TextLineDataset")
class TextLineDatasetV1(TextLineDataset, DatasetV1):
    """The lines of text files, without their ends."""


@export(v1="data.FixedLengthRecordDataset")
class FixedLengthRecordDatasetV1(FixedLengthRecordDataset, DatasetV1):
    """The records of files of fixed record size."""
