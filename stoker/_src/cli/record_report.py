"""`stoker inspect` of TFRecord and event files.

For Examples and SequenceExamples it lists the features with their kinds, counts and a specification for parsing. For event files it lists
the summaries by tag.
"""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from stoker._src.base.errors import DataLossError, OpError
from stoker._src.cli.reports import printable, table
from stoker._src.formats import framing, gfile, protos, tfrecord

_KINDS = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}
_WIDTH = 40


def record_lines(path: str, shown: int = 3, sample: int = 1000) -> Iterator[str]:
    """Returns the lines of the report.

    Raises:
        OpError: the file cannot be opened, or is damaged (raised after the lines about the part before the damage).
    """
    compression = _compression(path)
    with gfile.GFile(path, "rb") as file:
        yield f"{path}: {file.size():,} bytes" + (f", {compression}" if compression else "")
        records = tfrecord.read_records(file, compression)
        size, sizes, first, damage = file.size(), _Sizes(), [], None
        try:
            for record in records:
                sizes.add(len(record))
                if len(first) < max(shown, sample, 1):
                    first.append(record)
        except OpError as error:
            damage = error
        left = size - sizes.total - sizes.count * (framing.HEADER_SIZE + framing.FOOTER_SIZE)
        if damage is None and not compression and left:  # readers take an incomplete header for the end of the file
            damage = DataLossError(None, None, f"the last {left} bytes are not a whole record")
    yield str(sizes)
    if first:
        yield from _describe(first, shown, sample, path, compression)
    if damage is not None:
        raise damage


def _compression(path: str) -> str:
    with gfile.GFile(path, "rb") as file:
        head = file.read(12)
    if head[:2] == b"\x1f\x8b":
        return "GZIP"
    # An uncompressed file begins with a length below 2**32, so its bytes 4 to 7 are zero.
    if head[:1] == b"\x78" and head[4:8] != b"\0\0\0\0" and len(head) > 1 and (head[0] * 256 + head[1]) % 31 == 0:
        return "ZLIB"
    return ""


@dataclass
class _Sizes:
    count: int = 0
    total: int = 0
    smallest: int = 0
    largest: int = 0

    def add(self, size: int) -> None:
        self.smallest = size if not self.count else min(self.smallest, size)
        self.largest = max(self.largest, size)
        self.count += 1
        self.total += size

    def __str__(self) -> str:
        if not self.count:
            return "no records"
        return (
            f"{self.count:,} records, {self.total:,} bytes of data; a record has {self.smallest:,} to {self.largest:,} bytes, "
            f"{self.total / self.count:,.1f} on average"
        )


def _describe(records: list[bytes], shown: int, sample: int, path: str, compression: str) -> Iterator[str]:
    event = _parsed(protos.Event, records[0])
    if event is not None and event.file_version.startswith("brain.Event"):
        yield from _events(path, compression, shown)
        return
    looked_at = [*records[: max(sample, 1)]]
    examples = [each for each in _all_parsed(protos.Example, looked_at) if _is_example(each)]
    sequences = _all_parsed(protos.SequenceExample, looked_at)
    for found, describe, any_content in (
        (examples, _examples, any(each.features.feature for each in examples)),
        (sequences, _sequences, any(each.feature_lists.feature_list for each in sequences)),
    ):
        if any_content:
            if len(found) < len(looked_at):
                yield f"{len(looked_at) - len(found):,} of the first {len(looked_at):,} records are something else."
            yield from describe(found, shown)
            return
    yield "The records are neither Examples nor events."
    for number, record in enumerate(records[:shown]):
        yield f"  {number}: {_short(record)}"


def _parsed(kind: Any, record: bytes) -> Any:
    try:
        return kind.FromString(record)
    except DecodeError:
        return None


def _all_parsed(kind: Any, records: list[bytes]) -> list[Any]:
    return [message for record in records if (message := _parsed(kind, record)) is not None]


def _is_example(message: Any) -> bool:
    # A SequenceExample parses as an Example with an unknown field, which holds its feature lists.
    return len(message.SerializeToString()) == len(message.features.SerializeToString()) + _overhead(message)


def _overhead(message: Any) -> int:
    """Returns the number of bytes before the features in an Example: a tag and the length."""
    if not message.HasField("features"):
        return 0
    size, digits = message.features.ByteSize(), 1
    while size >= 128:
        size, digits = size // 128, digits + 1
    return 1 + digits


# ---- Examples ---------------------------------------------------------------------------------------------------


@dataclass
class _Seen:
    """Statistics of one feature: its kinds, the number of records that have it, and the number of values."""

    kinds: set[str] = field(default_factory=set)
    records: int = 0
    counts: set[int] = field(default_factory=set)
    first: str = ""

    def add(self, feature: Any) -> None:
        kind = feature.WhichOneof("kind")
        if kind is None:
            return
        values = getattr(feature, kind).value
        self.kinds.add(_KINDS[kind])
        self.records += 1
        self.counts.add(len(values))
        if not self.first:
            self.first = _values(values)

    def row(self, name: str, total: int) -> tuple[str, ...]:
        counts = (
            str(min(self.counts))
            if len(self.counts) == 1
            else f"{min(self.counts)} to {max(self.counts)}"
            if self.counts
            else "-"
        )
        return name, "/".join(sorted(self.kinds)) or "empty", f"{self.records} of {total}", counts, self.first

    def spec(self, total: int) -> str:
        kind = f"tf.{min(self.kinds)}" if len(self.kinds) == 1 else "?"
        if self.records == total and len(self.counts) == 1:
            size = min(self.counts)
            return f"tf.io.FixedLenFeature([{'' if size == 1 else size}], {kind})"
        return f"tf.io.VarLenFeature({kind})"


def _gather(features: Iterable[Any]) -> dict[str, _Seen]:
    seen: dict[str, _Seen] = collections.defaultdict(_Seen)
    for each in features:
        for name, feature in each.feature.items():
            seen[name].add(feature)
    return dict(sorted(seen.items()))


def _feature_table(seen: dict[str, _Seen], total: int) -> Iterator[str]:
    rows = [each.row(name, total) for name, each in seen.items()]
    yield from table(("feature", "kind", "in records", "values", "first"), rows)


def _examples(examples: list[Any], shown: int) -> Iterator[str]:
    seen, total = _gather(example.features for example in examples), len(examples)
    yield f"Examples; features of the first {total:,}:"
    yield from _feature_table(seen, total)
    yield "To parse them:"
    for name, each in seen.items():
        yield f"  {name!r}: {each.spec(total)},"
    if shown > 0:
        yield f"The first {min(shown, total)}:"
        rows = [
            (str(i), *(_feature_text(example.features.feature, name) for name in seen))
            for i, example in enumerate(examples[:shown])
        ]
        yield from table(("#", *seen), rows)


def _sequences(examples: list[Any], shown: int) -> Iterator[str]:
    total = len(examples)
    yield f"SequenceExamples; context of the first {total:,}:"
    yield from _feature_table(_gather(example.context for example in examples), total)
    yield "Feature lists:"
    steps: dict[str, _Seen] = collections.defaultdict(_Seen)
    lengths: dict[str, set[int]] = collections.defaultdict(set)
    for example in examples:
        for name, each in example.feature_lists.feature_list.items():
            lengths[name].add(len(each.feature))
            for feature in each.feature:
                steps[name].add(feature)
    rows = []
    for name in sorted(lengths):
        found = lengths[name]
        kind, values = steps[name].row(name, total)[1], steps[name].row(name, total)[3]
        rows.append((name, kind, f"{min(found)} to {max(found)}", values))
    yield from table(("feature list", "kind", "steps", "values per step"), rows)


def _feature_text(features: Any, name: str) -> str:
    if name not in features:
        return "-"
    kind = features[name].WhichOneof("kind")
    return "empty" if kind is None else _values(getattr(features[name], kind).value)


def _values(values: Any) -> str:
    texts = [
        _short(value, 20) if isinstance(value, bytes) else f"{value:g}" if isinstance(value, float) else str(value)
        for value in values[:6]
    ]
    text = ", ".join(texts) + (", ..." if len(values) > 6 else "")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _short(data: bytes, limit: int = _WIDTH) -> str:
    text = printable(data[:limit].decode("utf-8", "backslashreplace"))
    return text[:limit] + ("..." if len(data) > limit or len(text) > limit else "")


# ---- events -----------------------------------------------------------------------------------------------------


def _events(path: str, compression: str, shown: int) -> Iterator[str]:
    """Reads all events by tag. This is a second pass over the file, because the first one kept only some records."""
    tags: dict[tuple[str, str], list[tuple[int, str]]] = collections.defaultdict(list)
    steps, times, others = [], [], collections.Counter()
    with gfile.GFile(path, "rb") as file:
        try:
            for record in tfrecord.read_records(file, compression):
                event = _parsed(protos.Event, record)
                if event is None:
                    others["unreadable"] += 1
                    continue
                steps.append(event.step)
                times.append(event.wall_time)
                what = event.WhichOneof("what")
                if what != "summary":
                    others[what or "empty"] += 1
                    continue
                for value in event.summary.value:
                    kind, text = _summary(value)
                    tags[value.tag, kind].append((event.step, text))
        except OpError:
            pass  # the first pass has reported it
    yield f"Events of steps {min(steps)} to {max(steps)}, written {_day(min(times))} to {_day(max(times))}"
    if others:
        yield "  " + ", ".join(f"{count} {what}" for what, count in sorted(others.items()))
    rows = [
        (tag, kind, str(len(found)), f"{found[0][0]} to {found[-1][0]}", found[-1][1])
        for (tag, kind), found in sorted(tags.items())
    ]
    if rows:
        yield from table(("tag", "kind", "values", "steps", "last"), rows)
    if shown > 0:
        for (tag, kind), found in sorted(tags.items()):
            if kind == "scalar":
                yield f"  {tag}: " + ", ".join(f"{text} at {step}" for step, text in found[:shown])


def _summary(value: Any) -> tuple[str, str]:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return "scalar", f"{value.simple_value:g}"
    if kind == "tensor":
        plugin = value.metadata.plugin_data.plugin_name or "tensor"
        numbers = value.tensor.float_val
        return ("scalar", f"{numbers[0]:g}") if plugin == "scalars" and numbers else (plugin, "")
    if kind == "histo":
        return "histogram", f"{value.histo.num:g} values, {value.histo.min:g} to {value.histo.max:g}"
    if kind == "image":
        return "image", f"{value.image.height} x {value.image.width} x {value.image.colorspace}"
    return kind or "empty", ""


def _day(seconds: float) -> str:
    if not 0 <= seconds < 253402300800:  # year 10000, beyond the range of datetime
        return f"{seconds:g} s"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
