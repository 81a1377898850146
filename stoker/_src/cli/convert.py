"""`python -m stoker convert SOURCE TARGET`: checkpoints to safetensors and back, models to TFLite. The endings of the paths decide.

Each kind of conversion is a `Kind`: which paths it takes, its options, and what it does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker._src.base.errors import InvalidArgumentError, NotFoundError, OpError
from stoker._src.cli import convert_tflite
from stoker._src.cli.parsers import add_command
from stoker._src.formats import gfile, safetensors_files
from stoker._src.formats.safetensors_files import Converted, is_safetensors

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MOST_MAP = 1 << 28  # bytes


@dataclass
class Kind:
    """One kind of conversion."""

    title: str
    takes: Callable[[argparse.Namespace], bool]  # whether it is for the given source and target
    add_options: Callable[[Any], None]  # to a group of the parser
    convert: Callable[[argparse.Namespace], None]  # may raise OpError, OSError, ValueError


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "convert",
        help="convert a checkpoint to safetensors or back, or a model to TFLite",
        description="Converts between formats. What is converted into what follows from the endings of the paths.",
        examples=[
            "logs/model-1000 model.safetensors",
            "model.safetensors restored/model",
            "logs out.safetensors --skip Adam --rename '/=.' --max-shard-size 5GB",
            "export model.tflite",
            "frozen.pb model.tflite --input_arrays x --output_arrays y",
        ],
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="a checkpoint or its directory; a .safetensors file, an .index.json or a directory of them; for TFLite, the directory of a "
        "SavedModel or the file of a frozen graph",
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        nargs="?",
        help="a .safetensors file to write; the path of a checkpoint, without endings; a .tflite file, or .dot for its picture",
    )
    for kind in KINDS:
        kind.add_options(parser.add_argument_group(kind.title))
    parser.set_defaults(execute=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Converts. Returns 1 if it cannot be done."""
    convert_tflite.name_paths(args)
    if args.source is None or args.target is None:
        args.usage_error("SOURCE and TARGET are required")
        return 2
    kind = next((kind for kind in KINDS if kind.takes(args)), None)
    if kind is None:
        args.usage_error(
            f"cannot tell how to convert {args.source} to {args.target}: one of them must end in .safetensors, or the second in .tflite"
        )
        return 2
    try:
        kind.convert(args)
    except (OpError, OSError, ValueError) as error:
        print(f"stoker convert: {getattr(error, 'message', error)}", file=sys.stderr)
        return 1
    return 0


# ---- safetensors ------------------------------------------------------------------------------------------------


def _options(group: Any) -> None:
    group.add_argument("--map", metavar="FILE", help="a JSON object from names to the names they get")
    group.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="replace a regular expression in all names; may be given several times",
    )
    group.add_argument("--skip", metavar="REGEX", help="leave out tensors whose names match, such as Adam's slots")
    group.add_argument(
        "--max-shard-size",
        default="2GB",
        metavar="SIZE",
        help="the most bytes of one .safetensors file (default: 2GB); more become several files with an index",
    )


def _takes(args: argparse.Namespace) -> bool:
    ends = (safetensors_files.SUFFIX, safetensors_files.INDEX_SUFFIX)
    return args.target.endswith(ends) or is_safetensors(args.source)


def _convert(args: argparse.Namespace) -> None:
    rename = safetensors_files.renaming(_rules(args.rename), _names(args.map))
    if args.skip is not None:
        _pattern(args.skip)
    if is_safetensors(args.source):
        done = safetensors_files.safetensors_to_checkpoint(args.source, args.target, rename, skip=args.skip)
    else:
        done = safetensors_files.checkpoint_to_safetensors(
            _checkpoint(args.source), args.target, rename, skip=args.skip, max_shard_size=_size(args.max_shard_size)
        )
    _report(done)


def _report(done: Converted) -> None:
    print(f"{done.tensors:,} tensors, {done.size:,} bytes, written to {', '.join(done.files)}")
    if done.left_out:
        print(
            f"{len(done.left_out):,} left out: {', '.join(done.left_out[:5])}{', ...' if len(done.left_out) > 5 else ''}"
        )


def _checkpoint(path: str) -> str:
    path = path.removesuffix(".index")
    if gfile.isdir(path):
        # Imported on demand because it loads torch, which reading files does not need.
        newest = importlib.import_module("stoker._src.train.checkpoints.state").latest_checkpoint(path)
        if newest is None:
            raise NotFoundError(None, None, f"The directory {path} names no checkpoint.")
        return newest
    return path


def _rules(texts: list[str]) -> list[tuple[str, str]]:
    rules = []
    for text in texts:
        pattern, sign, replacement = text.partition("=")
        if not sign or not pattern:
            raise InvalidArgumentError(None, None, f"--rename {text!r} is not of the form OLD=NEW.")
        _pattern(pattern)
        rules.append((pattern, replacement))
    return rules


def _pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise InvalidArgumentError(None, None, f"{text!r} is not a regular expression: {error}") from error


def _names(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    with gfile.GFile(path, "rb") as file:
        data = file.read(_MOST_MAP)
    try:
        names = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(None, None, f"{path} is not JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(each, str) for each in names.values()):
        raise InvalidArgumentError(None, None, f'{path} must hold a JSON object of names: {{"old": "new"}}.')
    return names


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([KMGT]?B?)", text.strip().upper())
    unit = None if match is None else match[2] if match[2] in ("", "B") else match[2].rstrip("B") + "B"
    if match is None or not int(match[1]):
        raise InvalidArgumentError(None, None, f"--max-shard-size {text!r} is not a size such as 500MB or 2GB.")
    return int(match[1]) * (1 if unit in ("", "B") else _UNITS[str(unit)])


KINDS = [
    Kind(convert_tflite.TITLE, convert_tflite.takes, convert_tflite.add_options, convert_tflite.convert),
    Kind("checkpoints and safetensors", _takes, _options, _convert),
]
