"""Checkpoints whichever format they are in."""

from __future__ import annotations

from stoker._src.formats import gfile
from stoker._src.formats.checkpoint_v1 import SliceReader
from stoker._src.formats.tensor_bundle import BundleReader, index_filename

Reader = BundleReader | SliceReader
"""Either has keys, `in`, info, read, read_slice and close, and is a context manager."""


def open_checkpoint(prefix: str) -> Reader:
    """A reader of the checkpoint of a prefix (V2), or of a file or the files that a pattern matches (V1).

    Raises:
        NotFoundError: there is neither.
        DataLossError: its index is damaged.
    """
    return BundleReader(prefix) if gfile.exists(index_filename(prefix)) else SliceReader(prefix)
