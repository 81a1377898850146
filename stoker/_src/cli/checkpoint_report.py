"""`stoker inspect` of checkpoints: tensors with shapes, dtypes, sizes and statistics, and the objects of object-based ones."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.message import DecodeError

from stoker._src.base import dtypes
from stoker._src.base.errors import DataLossError, OpError
from stoker._src.cli.reports import STATISTICS, Report, printable, shape_text, statistics, statistics_cells
from stoker._src.formats import gfile, sstable
from stoker._src.formats.checkpoint_v1 import SliceReader
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.formats.safetensors_files import OBJECT_GRAPH_KEY, SafetensorsReader
from stoker._src.formats.tensor_bundle import BundleReader, index_filename


def is_older_checkpoint(path: str) -> bool:
    """Whether a file is a checkpoint of the older format (a table of slices)."""
    try:
        with gfile.GFile(path, "rb") as file:
            size = file.size()
            if size < 48:
                return False
            file.seek(size - 8)
            if file.read(8) != sstable.MAGIC:
                return False
        SliceReader(path).close()
    except OpError:
        return False
    return True


def checkpoint_report(path: str, with_statistics: bool) -> Report:
    """The report on the checkpoint with this prefix, or on this file of the older format."""
    newer = gfile.exists(index_filename(path))
    with BundleReader(path) if newer else SliceReader(path) as reader:
        kind = (
            f"in {reader.num_shards} data file(s)" if isinstance(reader, BundleReader) else "in the older format (V1)"
        )
        graph = None
        if OBJECT_GRAPH_KEY in reader.keys():  # noqa: SIM118
            graph = reader.read(OBJECT_GRAPH_KEY)[()]
        return _report(path, "V2" if newer else "V1", kind, reader, graph, with_statistics)


def safetensors_report(path: str, with_statistics: bool) -> Report:
    """The report on a safetensors file, or on the files of an index."""
    reader = SafetensorsReader(path)
    kind = f"in {reader.num_files} safetensors file(s)"
    return _report(path, "safetensors", kind, reader, reader.object_graph or None, with_statistics)


def _report(path: str, format_name: str, kind: str, reader: Any, graph: Any, with_statistics: bool) -> Report:
    infos = {name: reader.info(name) for name in reader.keys()}  # noqa: SIM118
    report = Report([f"{path}: a checkpoint of {len(infos):,} tensors {kind}"])
    objects = {} if graph is None else _objects(graph, path)
    found = {name: statistics(reader.read(name)) for name in infos} if with_statistics else {}
    numbers = [info for info in infos.values() if info.dtype is not dtypes.string]
    elements = sum(math.prod(info.shape) for info in numbers)
    size = sum(math.prod(info.shape) * info.dtype.size for info in numbers)
    report.data = {
        "path": path,
        "kind": "checkpoint",
        "format": format_name,
        "object_based": bool(objects),
        "elements": elements,
        "bytes": size,
        "tensors": [_entry(name, info, objects.get(name), found) for name, info in infos.items()],
    }
    _lines(report, infos, objects, found)
    report.lines.append(f"{elements:,} numbers, {size:,} bytes")
    return report


def _entry(name: str, info: Any, variable: str | None, found: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "dtype": info.dtype.name, "shape": list(info.shape)}
    entry["elements"] = math.prod(info.shape)
    entry["bytes"] = None if info.dtype is dtypes.string else math.prod(info.shape) * info.dtype.size
    if info.slices:
        entry["slices"] = len(info.slices)
    if variable:
        entry["variable"] = variable
    if name in found:
        entry["stats"] = found[name]
    return entry


def _lines(report: Report, infos: dict[str, Any], objects: dict[str, str], found: dict[str, Any]) -> None:
    if found:
        rows = [
            (name, info.dtype.name, shape_text(info.shape), *statistics_cells(found[name]))
            for name, info in infos.items()
        ]
        report.table(("tensor", "dtype", "shape", *STATISTICS), rows)
        return
    width = max((len(printable(name)) for name in infos), default=0)
    for name, info in infos.items():
        slices = f", {len(info.slices)} slices" if info.slices else ""
        variable = f"  (variable {printable(objects[name])})" if objects.get(name) else ""
        report.lines.append(
            f"  {printable(name):{width}}  {info.dtype.name} {shape_text(info.shape)}{slices}{variable}"
        )


def _objects(graph: Any, path: str) -> dict[str, str]:
    """The full names of variables, by key, in an object-based checkpoint."""
    try:
        objects = TrackableObjectGraph.FromString(bytes(graph))
    except (DecodeError, TypeError) as error:
        raise DataLossError(None, None, f"{path}: the description of its objects is damaged: {error}") from error
    return {each.checkpoint_key: each.full_name for node in objects.nodes for each in node.attributes}
