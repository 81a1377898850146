"""Opens checkpoints of either format."""

from __future__ import annotations

from stoker._src.formats import gfile
from stoker._src.formats.checkpoint_v1 import SliceReader
from stoker._src.formats.tensor_bundle import BundleReader, index_filename

Reader = BundleReader | SliceReader
"""Either has keys, `in`, info, read, read_slice and close, and is a context manager."""


def open_checkpoint(prefix: str) -> Reader:
    """Opens the checkpoint with the given prefix (V2), or the files that match a name or pattern (V1).

    Raises:
        NotFoundError: neither exists.
        DataLossError: its index is damaged.
    """
    return BundleReader(prefix) if gfile.exists(index_filename(prefix)) else SliceReader(prefix)
