"""Files that contain a single protocol message."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

from stoker._src.formats.filesystems import replacing


def write_message(path: str, proto: Any, *, as_text: bool) -> None:
    """Writes a message in text or binary form. The file appears complete or not at all."""
    data = text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString(deterministic=True)
    with replacing(path) as file:
        file.write(data)
