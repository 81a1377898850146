"""The directory of a SavedModel: where its files are, and the message in `saved_model.pb` or `.pbtxt`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from google.protobuf import message, text_format

from stoker._src.base.export import export
from stoker._src.formats import atomic, gfile
from stoker._src.formats.filesystems import mapped, path_text, resolve
from stoker._src.formats.protos import SavedModel
from stoker._src.saved_model import constants


def variables_path(export_dir: str) -> str:
    """Returns the path of the checkpoint inside a SavedModel."""
    return os.path.join(export_dir, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)


def assets_directory(export_dir: str) -> str:
    return os.path.join(export_dir, constants.ASSETS_DIRECTORY)


@export("saved_model.contains_saved_model")
def contains_saved_model(export_dir: Any) -> bool:
    """Returns whether a directory contains a SavedModel."""
    path = path_text(export_dir)
    return any(
        gfile.exists(os.path.join(path, name))
        for name in (constants.SAVED_MODEL_FILENAME_PBTXT, constants.SAVED_MODEL_FILENAME_PB)
    )


@export(v1=("saved_model.maybe_saved_model_directory", "saved_model.loader.maybe_saved_model_directory"))
def maybe_saved_model_directory(export_dir: Any) -> bool:
    """The older name of `contains_saved_model`."""
    return contains_saved_model(export_dir)


@contextmanager
def writing(export_dir: str) -> Iterator[str]:
    """Gives the directory to write a SavedModel to. On the local disk, the model then replaces `export_dir` in one step."""
    location = resolve(export_dir)
    if location.prefix not in ("", "file://"):
        gfile.makedirs(export_dir)
        yield export_dir
        return
    parent = os.path.dirname(os.path.realpath(location.path))
    gfile.makedirs(parent)
    with mapped(export_dir), atomic.replacing_directory(location.path) as place:
        yield place


def read_saved_model(export_dir: Any) -> Any:
    """Reads the SavedModel message of a directory.

    Raises:
        OSError: the file does not exist or cannot be parsed.
    """
    directory = path_text(export_dir)
    for name in (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT):
        path = os.path.join(directory, name)
        if not gfile.exists(path):
            continue
        model = SavedModel()
        with gfile.GFile(path, "rb") as file:
            data = file.read()
        try:
            if name == constants.SAVED_MODEL_FILENAME_PB:
                model.ParseFromString(data)
            else:
                text_format.Parse(data, model)
        except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
            raise OSError(f"Cannot parse file {path}: {error}.") from error
        return model
    raise OSError(
        f"SavedModel file does not exist at: {directory}{os.path.sep}"
        f"{{{constants.SAVED_MODEL_FILENAME_PBTXT}|{constants.SAVED_MODEL_FILENAME_PB}}}"
    )


def meta_graph_of(model: Any, tags: Any) -> Any:
    """Returns the MetaGraphDef with exactly these tags.

    Raises:
        RuntimeError: the model has no such meta graph.
    """
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for meta in model.meta_graphs:
        if set(meta.meta_info_def.tags) == wanted:
            return meta
    available = [set(meta.meta_info_def.tags) for meta in model.meta_graphs]
    raise RuntimeError(
        f"MetaGraphDef associated with tags {str(sorted(wanted)).strip('[]')} could not be found in SavedModel, with available "
        f"tags '{available}'. To inspect available tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli` "
        "(`python -m stoker saved_model show`)."
    )
