"""`tensorflow.python.tools.saved_model_utils`: the messages of a SavedModel, without a session."""

from __future__ import annotations

from typing import Any

from stoker._src.saved_model import files


def read_saved_model(saved_model_dir: Any) -> Any:
    """Returns the SavedModel message of a folder.

    Raises:
        OSError: there is none.
    """
    return files.read_saved_model(saved_model_dir)


parse_saved_model = read_saved_model


def get_saved_model_tag_sets(saved_model_dir: Any) -> list[list[str]]:
    """Returns the tags of each meta graph."""
    return [list(each.meta_info_def.tags) for each in read_saved_model(saved_model_dir).meta_graphs]


def get_meta_graph_def(saved_model_dir: Any, tag_set: str) -> Any:
    """Returns the meta graph with the tags of `tag_set`, which are separated by commas.

    Raises:
        RuntimeError: there is none.
    """
    wanted = set(tag_set.split(","))
    for each in read_saved_model(saved_model_dir).meta_graphs:
        if set(each.meta_info_def.tags) == wanted:
            return each
    raise RuntimeError(f"MetaGraphDef associated with tag-set {tag_set} could not be found in SavedModel")
