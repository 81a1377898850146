"""`python -m stoker inspect PATH`: shows the content of a checkpoint, graph, SavedModel, TFLite model, TFRecord or event file. `inspect --op NAME` shows an op.

Each kind of file is a `Kind`: how to recognize it, and the report on it. Except for `--op` and TFLite models, it needs only `formats`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.cli.checkpoint_report import checkpoint_report, is_older_checkpoint, safetensors_report
from stoker._src.cli.graph_picture import svg
from stoker._src.cli.graph_report import graph_report, saved_model_file, saved_model_report
from stoker._src.cli.parsers import add_command
from stoker._src.cli.record_report import record_lines
from stoker._src.cli.reports import Report
from stoker._src.formats import framing, gfile
from stoker._src.formats.events import EventsWriter
from stoker._src.formats.filesystems import replacing
from stoker._src.formats.graph_files import read_graph_file
from stoker._src.formats.protos import Event
from stoker._src.formats.safetensors_files import is_safetensors
from stoker._src.formats.tensor_bundle import index_filename

_GRAPH_SUFFIXES = (".pb", ".pbtxt", ".meta", ".graphdef")


@dataclass
class Kind:
    """A kind of file that can be inspected."""

    takes: Callable[[str], bool]
    report: Callable[[str, argparse.Namespace], Report]


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "inspect",
        help="show what a checkpoint, graph, SavedModel, TFLite model, TFRecord or event file holds, or where an op is defined",
        description="Shows the tensors of a checkpoint; the inputs, variables, constants, ops and signatures of a graph or SavedModel; the operators, tensors, sizes and quantization of a TFLite model; or how many records a file has and how large they are, the features of its Examples or the tags of its events, and the first records. "
        "With --op: the signature of ops, and the file and line of their definition, kernel, shape rule, gradient, what the planner uses, and samples.",
        examples=[
            "logs/model-1000 --stats",
            "frozen.pb --graph graph.svg",
            "model.tflite --stats",
            "train.tfrecord",
            "-n 5 events.out.tfevents.1700000000.host",
            "--op ApplyAdam MatMul",
        ],
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="PATH",
        help="a checkpoint (with or without .index) or its directory, a GraphDef or MetaGraphDef (binary or text), a SavedModel's directory, a TFLite model, safetensors (a file, an .index.json or a directory), a TFRecord or event file; the content decides",
    )
    parser.add_argument(
        "-n", "--records", type=int, default=3, metavar="N", help="how many records to show (default: 3)"
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=1000,
        metavar="N",
        help="how many records to infer the features from (default: 1000)",
    )
    parser.add_argument(
        "--stats",
        action="store_true",
        help="of checkpoints and constants: minimum, maximum, mean, standard deviation, zeros, NaNs, infinities and a histogram",
    )
    parser.add_argument(
        "--graph",
        metavar="OUT",
        help="draw the graph: to OUT.svg, or as a TensorBoard event file into the directory OUT",
    )
    parser.add_argument(
        "--boxes", type=int, default=60, metavar="N", help="with --graph OUT.svg: the most boxes to draw (default: 60)"
    )
    parser.add_argument("--op", nargs="+", metavar="NAME", help="ops to find, instead of a file to read")
    parser.add_argument("--json", action="store_true", help="print JSON (not for records)")
    parser.set_defaults(execute=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Prints the report. Returns 1 if the file cannot be read completely or the op does not exist."""
    if (args.op is None) == (args.file is None):
        args.usage_error("give a PATH or --op NAME, one of the two")
    if args.op is not None:
        # Imported on demand because it loads torch and all ops, which reading files does not need.
        return importlib.import_module("stoker._src.cli.op_report").run(args.op, args.json)
    path = args.file
    try:
        kind = next((kind for kind in KINDS if kind.takes(path)), None)
        if kind is None:
            if args.json or args.graph or args.stats:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"--json, --graph and --stats are for checkpoints, graphs and models, and {path} is none.",
                )
            for line in record_lines(path, args.records, args.sample):
                print(line)
            return 0
        report = kind.report(path, args)
        if args.json:
            json.dump(report.data, sys.stdout, indent=1)
            print()
        else:
            print("\n".join(report.lines))
        if args.graph:
            _draw(report, path, args.graph, args.boxes)
    except OpError as error:
        print(f"stoker inspect: {error.message}", file=sys.stderr)
        return 1
    return 0


def _draw(report: Report, path: str, target: str, boxes: int) -> None:
    if not report.nodes:
        raise InvalidArgumentError(None, None, f"{path} holds no graph to draw.")
    if target.endswith(".svg"):
        with replacing(target) as file:
            file.write(svg(report.nodes, os.path.basename(path.rstrip("/")), most=boxes).encode())
        print(f"the graph is drawn in {target}", file=sys.stderr)
        return
    if os.path.splitext(target)[1] and not gfile.isdir(target) and not target.endswith("/"):
        raise InvalidArgumentError(
            None, None, f"--graph {target}: end it in .svg, or give a directory for an event file."
        )
    if report.graph is None:
        raise InvalidArgumentError(
            None, None, f"{path} can be drawn as .svg only: TensorBoard shows TensorFlow graphs."
        )
    writer = EventsWriter(target)
    writer.write(Event(graph_def=report.graph.SerializeToString()))
    writer.close()
    print(f"the graph is in {writer.path}: tensorboard --logdir {target}", file=sys.stderr)


# ---- kinds ------------------------------------------------------------------------------------------------------


def _is_checkpoint(path: str) -> bool:
    return gfile.exists(index_filename(path.removesuffix(".index")))


def _is_graph_file(path: str) -> bool:
    """Whether a file may hold a graph. Records begin with the checksum of their length, which tells them apart."""
    if gfile.isdir(path) or not gfile.exists(path):
        return False
    if path.endswith(_GRAPH_SUFFIXES):
        return True
    with gfile.GFile(path, "rb") as file:
        head = file.read(framing.HEADER_SIZE)
    if len(head) == framing.HEADER_SIZE:
        checksum = int.from_bytes(head[8:], "little")
        if framing.mask(framing.crc32c(head[:8])) == checksum or head[:2] in (
            b"\x1f\x8b",
            b"\x78\x9c",
            b"\x78\x01",
            b"\x78\xda",
        ):
            return False
    try:
        read_graph_file(path)
    except OpError:
        return False
    return True


def _newest(path: str) -> str | None:
    # Imported on demand because it loads torch, which reading files does not need.
    return importlib.import_module("stoker._src.train.checkpoints.state").latest_checkpoint(path)


def _is_lite_model(path: str) -> bool:
    """Whether a file is a TFLite model, by the identifier after its first four bytes or, for a damaged one, its name."""
    if gfile.isdir(path) or not gfile.exists(path):
        return False
    with gfile.GFile(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3" or path.endswith(".tflite")


def _lite_report(path: str, args: argparse.Namespace) -> Report:
    # Imported on demand because it loads LiteRT's schema, which other files do not need.
    return importlib.import_module("stoker._src.cli.lite_report").lite_report(path, args.stats)


KINDS = [
    Kind(_is_lite_model, _lite_report),
    Kind(_is_checkpoint, lambda path, args: checkpoint_report(path.removesuffix(".index"), args.stats)),
    Kind(
        lambda path: gfile.isdir(path) and saved_model_file(path) is not None,
        lambda path, args: saved_model_report(path, args.stats),
    ),
    Kind(
        lambda path: gfile.isdir(path) and _newest(path) is not None,
        lambda path, args: checkpoint_report(str(_newest(path)), args.stats),
    ),
    Kind(is_safetensors, lambda path, args: safetensors_report(path, args.stats)),
    Kind(is_older_checkpoint, lambda path, args: checkpoint_report(path, args.stats)),
    Kind(_is_graph_file, lambda path, args: graph_report(path, read_graph_file(path), args.stats)),
]
