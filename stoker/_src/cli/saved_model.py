"""`python -m stoker saved_model show|run`: shows the signatures of a SavedModel, or runs one on files or values.

Options and output follow TensorFlow's `saved_model_cli`. Inputs are `.npy` and `.npz` files and Python literals. No input is executed as
code, so pickles and NumPy expressions are rejected.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import OpError
from stoker._src.cli.parsers import add_command
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import replacing
from stoker._src.formats.protos import AttrValue, Example


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "saved_model",
        help="show the signatures of a SavedModel, or run one",
        description="Shows what a SavedModel holds, or runs one of its signatures.",
        examples=[
            "show --dir export --all",
            "run --dir export --tag_set serve --signature_def serving_default --input_exprs 'x=[[1.0, 2.0]]'",
        ],
    )
    actions = parser.add_subparsers(dest="action", metavar="show|run", required=True)
    show = actions.add_parser("show", help="show tag sets, signatures and their tensors")
    run = actions.add_parser("run", help="run a signature")
    for each in (show, run):
        each.add_argument("--dir", required=True, help="the directory of the SavedModel")
        each.add_argument("--tag_set", required=each is run, help="the tags of a meta graph, with commas between")
        each.add_argument("--signature_def", help="the key of a signature", required=each is run)
    show.add_argument("--all", action="store_true", help="show everything")
    show.add_argument("--list_ops", action="store_true", help="show the ops that a meta graph uses; needs --tag_set")
    run.add_argument(
        "--inputs", default="", help="NAME=FILE of .npy, or NAME=FILE[KEY] of .npz, with semicolons between"
    )
    run.add_argument("--input_exprs", default="", help="NAME=LITERAL, with semicolons between")
    run.add_argument(
        "--input_examples", default="", help="NAME=[{FEATURE: [VALUES]}], for inputs of serialized Examples"
    )
    run.add_argument("--outdir", help="where to write outputs as .npy files, instead of printing them")
    run.add_argument("--overwrite", action="store_true", help="write over files that are there")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Runs the command. Returns 1 if the model or an input cannot be read."""
    # Imported on demand because it loads torch and all ops.
    room = importlib.import_module("stoker._src.saved_model.files")
    try:
        model = room.read_saved_model(args.dir)
        if args.action == "run":
            run(args)
        else:
            for line in shown(model, args, room):
                print(line)
    except (OSError, OpError, RuntimeError, ValueError) as error:
        print(f"stoker saved_model: {getattr(error, 'message', error)}", file=sys.stderr)
        return 1
    return 0


# ---- show -------------------------------------------------------------------------------------------------------


def shown(model: Any, args: argparse.Namespace, room: Any) -> Iterator[str]:
    """Returns the lines of `show`."""
    if args.all:
        for meta in model.meta_graphs:
            tags = ", ".join(meta.meta_info_def.tags)
            yield f"\nMetaGraphDef with tag-set: '{tags}' contains the following SignatureDefs:"
            for key in sorted(meta.signature_def):
                yield f"\nsignature_def['{key}']:"
                yield from _signature(meta.signature_def[key], "  ")
            yield _ops(meta)
            yield from _functions(meta)
    elif args.tag_set is None:
        yield "The given SavedModel contains the following tag-sets:"
        for tags in sorted(sorted(meta.meta_info_def.tags) for meta in model.meta_graphs):
            yield repr(", ".join(tags))
    else:
        meta = room.meta_graph_of(model, args.tag_set.split(","))
        if args.list_ops:
            yield _ops(meta)
        elif args.signature_def is None:
            yield "The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:"
            for key in sorted(meta.signature_def):
                yield f'SignatureDef key: "{key}"'
        else:
            yield from _signature(_signature_of(meta, args.signature_def), "")


def _signature_of(meta: Any, key: str) -> Any:
    if key not in meta.signature_def:
        raise ValueError(f"Could not find signature {key!r}: there is {sorted(meta.signature_def)}.")
    return meta.signature_def[key]


def _signature(signature: Any, indent: str) -> Iterator[str]:
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        yield f"{indent}The given SavedModel SignatureDef contains the following {kind}(s):"
        for key in sorted(tensors):
            info = tensors[key]
            yield f"{indent}  {kind}s['{key}'] tensor_info:"
            yield f"{indent}      dtype: {_dtype_name(info.dtype)}"
            sizes = ", ".join(str(dim.size) for dim in info.tensor_shape.dim)
            shape = "unknown_rank" if info.tensor_shape.unknown_rank else f"({sizes})"
            yield f"{indent}      shape: {shape}"
            yield f"{indent}      name: {info.name}"
    yield f"{indent}Method name is: {signature.method_name}"


def _dtype_name(number: int) -> str:
    kind: Any = AttrValue.DESCRIPTOR.fields_by_name["type"].enum_type
    return kind.values_by_number[number].name if number in kind.values_by_number else str(number)


def _ops(meta: Any) -> str:
    names = {node.op for node in meta.graph_def.node}
    for function in meta.graph_def.library.function:
        names.update(node.op for node in function.node_def)
    listed = ", ".join(map(repr, sorted(names)))
    return f"The MetaGraph with tag set {list(meta.meta_info_def.tags)} contains the following ops: {{{listed}}}"


def _functions(meta: Any) -> Iterator[str]:
    """Returns the lines on the functions of an object model: what arguments each was traced with."""
    graph = meta.object_graph_def
    if not graph.nodes:
        return
    decoded = importlib.import_module("stoker._src.saved_model.structures").decoded
    found = {
        child.local_name: graph.nodes[child.node_id].function
        for child in graph.nodes[0].children
        if 0 <= child.node_id < len(graph.nodes) and graph.nodes[child.node_id].HasField("function")
    }
    yield "\nConcrete Functions:" if found else ""
    for number, name in enumerate(sorted(found)):
        yield f"{'' if number == 0 else chr(10)}  Function Name: '{name}'"
        for option, concrete in enumerate(found[name].concrete_functions, 1):
            places, named = decoded(graph.concrete_functions[concrete].canonicalized_input_signature)
            if not places and not named:
                continue
            yield f"    Option #{option}"
            yield "      Callable with:"
            for at, value in enumerate(places, 1):
                yield f"        Argument #{at}"
                yield from _argument(value)
            for at, key in enumerate(named, 1):
                yield f"        Named Argument #{at}"
                yield f"          {key}"


def _argument(value: Any) -> Iterator[str]:
    if type(value).__name__ == "TensorSpec":
        yield f"          {value.name}: {value!r}"
    elif isinstance(value, str):
        yield f"          {value}"
    else:
        yield f"          DType: {type(value).__name__}"
        yield f"          Value: {_spelled(value)}"


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + "".join(f"'{key}': {_spelled(value[key])}, " for key in value) + "}"
    return f"[{', '.join(map(_spelled, value))}]" if isinstance(value, list) else str(value)


# ---- run --------------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> None:
    """Runs a signature and prints or writes its outputs."""
    session_room = importlib.import_module("stoker._src.runtime.session")
    loader = importlib.import_module("stoker._src.saved_model.loader")
    graphs = importlib.import_module("stoker._src.graph.graph")
    given = {**_files(args.inputs), **_literals(args.input_exprs), **_examples(args.input_examples)}
    graph = graphs.Graph()
    with graph.as_default(), session_room.Session(graph=graph) as session:
        meta = loader.load_into(session, args.tag_set.split(","), args.dir)
        signature = _signature_of(meta, args.signature_def)
        unknown = given.keys() - set(signature.inputs)
        if unknown:
            raise ValueError(f"{sorted(unknown)} are no inputs of the signature: it has {sorted(signature.inputs)}.")
        feeds = {}
        for key, value in given.items():
            info = signature.inputs[key]
            kind = as_dtype(info.dtype).as_numpy_dtype
            feeds[info.name] = value if isinstance(value, np.ndarray) else np.array(value, dtype=kind)
        keys = sorted(signature.outputs)
        values = session.run([signature.outputs[key].name for key in keys], feeds)
    for key, value in zip(keys, values):
        if not args.outdir:
            print(f"Result for output key {key}:\n{value}")
            continue
        gfile.makedirs(args.outdir)
        path = os.path.join(args.outdir, f"{key}.npy")
        if gfile.exists(path) and not args.overwrite:
            raise ValueError(f"Output file {path} already exists. Add --overwrite to write over it.")
        with replacing(path) as file:
            np.save(file, np.asarray(value), allow_pickle=False)
        print(f"Output {key} is saved to {path}")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"{part!r} is not of the form NAME=VALUE.")
        yield name.strip(), value.strip()


def _files(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in _pairs(text):
        match = re.fullmatch(r"(.*?)(?:\[(.+)\])?", value)
        assert match is not None, "the pattern takes any text"
        path, key = match.groups()
        with gfile.GFile(path, "rb") as file:
            loaded = np.load(io.BytesIO(file.read()), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            found[name] = loaded
            continue
        with loaded:
            if key is None and len(loaded.files) != 1:
                raise ValueError(f"{path} holds {loaded.files}: name one, as in {name}={path}[{loaded.files[0]}].")
            found[name] = loaded[key or loaded.files[0]]
    return found


def _literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"The value of {name} must be a Python literal, such as [[1.0, 2.0]]: {text}") from error


def _literals(text: str) -> dict[str, Any]:
    return {name: _literal(name, value) for name, value in _pairs(text)}


def _examples(text: str) -> dict[str, Any]:
    return {name: np.array([_example(each) for each in _literal(name, value)], object) for name, value in _pairs(text)}


def _example(features: dict[str, list[Any]]) -> bytes:
    example = Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        if not isinstance(values, list):
            raise ValueError(f"The feature {name} must be a list, not {values!r}.")
        if values and isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif values and isinstance(values[0], (str, bytes)):
            feature.bytes_list.value.extend(each.encode() if isinstance(each, str) else each for each in values)
        else:
            feature.int64_list.value.extend(values)
    return example.SerializeToString(deterministic=True)
