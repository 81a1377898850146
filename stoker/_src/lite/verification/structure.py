"""Reads a flatbuffer into plain records and checks every offset on the way.

Offsets, tables, vtables, vectors and strings must lie inside the buffer and be aligned. The contents are returned as `Table`s,
so that the checks in `meaning` never use an unchecked offset.
"""

from __future__ import annotations

import struct
from typing import Any

from stoker._src.lite.verification.layout import Field, layout, members

IDENTIFIER = b"TFL3"
# A file may refer to one table from many places. Each table is read once. No real model has this many tables.
_MOST_TABLES = 4_000_000


class Table:
    """A table whose fields are attributes by their names in the schema.

    Scalars are numbers, strings and vectors of scalars are memory views of their bytes, vectors of tables are lists, tables are
    `Table`s. A field that is not stored has its default value, or None for offsets.
    """

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.kind} has no field {name}") from None

    def rows(self, name: str) -> list[Any]:
        """The tables of a vector. It is empty if the field is not stored."""
        return self.fields[name] or []


def read_model(content: Any) -> Table:
    """The model in a buffer of bytes.

    Raises:
        ValueError: the buffer is not a TFLite model, or a part of the model lies outside of it.
    """
    return _Reader(content).model()


class _Reader:
    def __init__(self, content: Any) -> None:
        self.bytes = memoryview(content)
        self.size = len(self.bytes)
        self.known: dict[tuple[str, int], Table] = {}

    def model(self) -> Table:
        if self.size < 8 or self.bytes[4:8] != IDENTIFIER:
            raise ValueError(
                f"The model is not a valid Flatbuffer buffer: it has {self.size} bytes and no identifier {IDENTIFIER.decode()!r} at byte 4."
            )
        return self.table("Model", self.follow(0, "the root"))

    def number(self, format: str, position: int, what: str) -> Any:
        size = struct.calcsize(format)
        if position < 0 or position + size > self.size:
            raise self.damaged(what, position, f"needs {size} bytes")
        if position % size:
            raise self.damaged(what, position, f"is not aligned to {size} bytes")
        return struct.unpack_from(format, self.bytes, position)[0]

    def damaged(self, what: str, position: int, why: str) -> ValueError:
        return ValueError(
            f"The model is not a valid Flatbuffer buffer: {what} at byte {position} {why} (the buffer has {self.size} bytes)."
        )

    def follow(self, position: int, what: str) -> int:
        offset = self.number("<I", position, what)
        target = position + offset
        if not offset or target + 4 > self.size:
            raise self.damaged(what, position, f"points {offset} bytes ahead")
        return target

    def table(self, kind: str, position: int) -> Table:
        known = self.known.get((kind, position))
        if known is not None:
            return known
        if len(self.known) > _MOST_TABLES:
            raise self.damaged(kind, position, f"is table number {_MOST_TABLES}, more than a model can have")
        vtable = position - self.number("<i", position, kind)
        length = self.number("<H", vtable, f"the vtable of {kind}")
        extent = self.number("<H", vtable + 2, f"the vtable of {kind}")
        if length < 4 or length % 2 or vtable + length > self.size:
            raise self.damaged(f"the vtable of {kind}", vtable, f"has a length of {length} bytes")
        if extent < 4 or position + extent > self.size:
            raise self.damaged(kind, position, f"has a length of {extent} bytes")
        slots = struct.unpack_from(f"<{length // 2 - 2}H", self.bytes, vtable + 4)
        fields: dict[str, Any] = {}
        later = []
        for slot, field in layout(kind).items():
            offset = slots[slot] if slot < len(slots) else 0
            if not offset:
                fields[field.name] = field.default
                continue
            what = f"{kind}.{field.name}"
            size = struct.calcsize(field.scalar) if field.scalar else 4
            if offset < 4 or offset + size > extent:
                raise self.damaged(what, position, f"lies at offset {offset} of a table of {extent} bytes")
            if field.scalar:
                fields[field.name] = self.number(field.scalar, position + offset, what)
            else:
                later.append((field, self.follow(position + offset, what), what))
        for field, target, what in later:
            fields[field.name] = self.value(field, fields, target, what)
        table = self.known[kind, position] = Table(kind, fields)
        return table

    def value(self, field: Field, fields: dict[str, Any], target: int, what: str) -> Any:
        if field.union is not None:
            enumeration, selector = field.union
            kind = members(enumeration).get(fields[selector], "NONE")
            if kind == "NONE":
                raise self.damaged(what, target, f"has the unknown type {fields[selector]}")
            return self.table(kind, target)
        if field.element:
            content = self.vector(target, field.element, what)
            if not field.table:
                return content
            first = target + 4
            return [
                self.table(field.table, self.follow(place, f"an element of {what}"))
                for place in range(first, first + len(content), 4)
            ]
        if field.table:
            return self.table(field.table, target)
        text = self.vector(target, 1, what)
        end = target + 4 + len(text)
        if end >= self.size or self.bytes[end]:
            raise self.damaged(what, target, "is a string without an end")
        return text

    def vector(self, position: int, element: int, what: str) -> memoryview:
        count = self.number("<I", position, what)
        first = position + 4
        if count * element > self.size - first:
            raise self.damaged(what, position, f"has {count} elements of {element} bytes")
        if count and first % element:
            raise self.damaged(what, position, f"has elements that are not aligned to {element} bytes")
        return self.bytes[first : first + count * element]
