"""Variables that start with the values of a checkpoint: `tf.train.init_from_checkpoint` and `tf.train.warm_start`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import device
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.io import checkpoints
from stoker._src.ops.io.vocabulary_remapping import GENERATE_VOCAB_REMAPPING, LOAD_AND_REMAP_MATRIX
from stoker._src.ops.variables import initializers, variable_functions
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.variable_scope import variable_store
from stoker._src.ops.variables.variables import ResourceVariable, Variable
from stoker._src.train.checkpoints.reader import CheckpointReader, checkpoint_filename

_PART = re.compile(r"/part_\d+$")


@export(v1="train.init_from_checkpoint")
def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Replaces the initializers of variables: when they run, values of a checkpoint are loaded.

        tf.train.init_from_checkpoint("logs", {"encoder/": "model/encoder/"})     # all variables of a scope
        tf.train.init_from_checkpoint("logs", {"w": "model/w", "b": b})           # by name, or the variable

    Args:
        ckpt_dir_or_file: a checkpoint, or a directory with one.
        assignment_map: from names (or pairs of them) in the checkpoint to what is initialized: `scope/` to `scope/`, `/` to
            a scope for the checkpoint's root, a name to a name, a variable, or a list of all slices of one.

    Raises:
        ValueError: something is not in the checkpoint or not in the graph, or has another shape.
        TypeError: something is neither a name nor a variable.
    """
    path = checkpoint_filename(ckpt_dir_or_file)
    reader = CheckpointReader(path)
    store = variable_store()
    pairs = assignment_map.items() if isinstance(assignment_map, dict) else list(assignment_map)
    for name, wanted in sorted(pairs, key=lambda pair: pair[0]):
        if not isinstance(wanted, str):
            _initialize(_as_slices(wanted), path, name, reader)
        elif wanted in store.variables:
            _initialize([store.variables[wanted]], path, name, reader)
        elif wanted in store.partitioned:
            _initialize(list(store.partitioned[wanted]), path, name, reader)
        elif not wanted.endswith("/") or not name.endswith("/"):
            raise ValueError(
                f"There is no variable {wanted} to initialize with {name}. "
                "To initialize all variables of a scope write 'scope/': 'other_scope/'."
            )
        else:
            _initialize_scope(path, name, wanted, reader)


def _as_slices(wanted: Any) -> list[Any]:
    slices = list(wanted) if isinstance(wanted, (list, tuple, PartitionedVariable)) else [wanted]
    for each in slices:
        if not isinstance(each, Variable):
            raise TypeError(f"Expected the name of a variable, a variable or a list of its slices; found {each!r}")
    return slices


def _initialize_scope(path: str, name: str, scope: str, reader: CheckpointReader) -> None:
    root, inside = name.removeprefix("/"), scope.removeprefix("/")
    groups: dict[str, list[Any]] = {}
    for each, variable in variable_store().variables.items():
        if each.startswith(inside):
            groups.setdefault(_PART.sub("", each) if variable._get_save_slice_info() else each, []).append(variable)
    for each, slices in sorted(groups.items()):
        member = each.removeprefix(inside)
        if not reader.has_tensor(root + member):
            raise ValueError(f"Tensor {root}{member} ({member} in {name}) is not found in {path} checkpoint")
        _initialize(slices, path, root + member, reader)


def _initialize(slices: Sequence[Any], path: str, name: str, reader: CheckpointReader) -> None:
    """Makes the slices of a variable, or a whole one, start with a tensor of a checkpoint."""
    shapes = reader.get_variable_to_shape_map()
    if name not in shapes:
        raise ValueError(f"Tensor {name} is not found in {path} checkpoint {shapes}")
    for variable in slices:
        info = variable._get_save_slice_info()
        whole = variable.static_shape if info is None else Shape(info.full_shape)
        if not whole.compatible(Shape(shapes[name])):
            raise ValueError(
                f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of tensor {name} "
                f"({shapes[name]}) from checkpoint reader."
            )
        slice_spec = "" if info is None else info.spec
        with device(variable.device), device("/cpu:0"):
            (restored,) = checkpoints.RESTORE_V2(
                path, [name], [slice_spec], dtypes=[variable.dtype.base_dtype], name="checkpoint_initializer"
            )
        restored.set_shape(variable.shape)
        _start_with(
            variable, shaping.identity(restored) if isinstance(variable, ResourceVariable) else restored, restored
        )


def _start_with(variable: Any, value: Tensor, initial: Tensor) -> None:
    variable_functions.start_with(variable, value)
    variable._initial_value = initial


# ---- warm start -------------------------------------------------------------------------------------------------


class _VocabInfo(NamedTuple):
    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class VocabInfo(_VocabInfo):
    """How the vocabulary of an embedding or of a softmax layer changed.

    Args:
        new_vocab: the file of the vocabulary now, a word a line.
        new_vocab_size: how many of its words are used.
        num_oov_buckets: how many rows follow for words that are not in it.
        old_vocab: the file of the vocabulary that the checkpoint was trained with.
        old_vocab_size: how many of its words were used (-1: all).
        backup_initializer: what rows of new words start with (zeros).
        axis: 0 if rows are words, 1 if columns are.

    Raises:
        ValueError: another axis.
    """

    __slots__ = ()

    def __new__(
        cls,
        new_vocab: Any,
        new_vocab_size: int,
        num_oov_buckets: int,
        old_vocab: Any,
        old_vocab_size: int = -1,
        backup_initializer: Any = None,
        axis: int = 0,
    ) -> VocabInfo:
        if axis not in (0, 1):
            raise ValueError(f"The only supported values for the axis argument are 0 and 1.  Provided axis: {axis}")
        values = new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size, backup_initializer, axis
        return super().__new__(cls, *values)


export_constant(__name__, "VocabInfo", "estimator.VocabInfo", v1="train.VocabInfo")


@export(v1="train.warm_start")
def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:
    """Makes variables start with the values of a checkpoint, also where their vocabulary changed.

    Args:
        ckpt_to_initialize_from: a checkpoint, or a directory with one.
        vars_to_warm_start: which: a regular expression over trainable variables, a list of those over all global variables, a
            list of variables, or None for those with a VocabInfo alone.
        var_name_to_vocab_info: how vocabularies changed, by the names of variables.
        var_name_to_prev_var_name: names in the checkpoint where they are others.

    Raises:
        ValueError: an entry of a dictionary that is not used; something is not in the checkpoint.
    """
    vocabularies = var_name_to_vocab_info or {}
    renamed = var_name_to_prev_var_name or {}
    groups = _grouped(_chosen(vars_to_warm_start))
    started = [name for name in groups if vars_to_warm_start or name in vocabularies]
    for argument, given in (("var_name_to_prev_var_name", renamed), ("var_name_to_vocab_info", vocabularies)):
        unused = set(given) - set(started)
        if unused:
            raise ValueError(
                f"You provided the following variables in {argument} that were not used: {sorted(unused)}.  "
                f"Perhaps you misspelled them?  Here is the list of viable variable names: {sorted(groups)}"
            )
    path = checkpoint_filename(ckpt_to_initialize_from)
    reader = CheckpointReader(path)
    for name, slices in groups.items():
        saved = renamed.get(name, name)
        if name in vocabularies:
            for variable in slices:
                value = _remapped(variable, path, saved, vocabularies[name], reader)
                _start_with(variable, value, value)
        elif vars_to_warm_start:
            _initialize(slices, path, saved, reader)


def _chosen(vars_to_warm_start: Any) -> list[Any]:
    graph = context.get_default_graph()
    if vars_to_warm_start is None or isinstance(vars_to_warm_start, str):
        return graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, vars_to_warm_start)
    if not isinstance(vars_to_warm_start, list):
        raise ValueError(f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(vars_to_warm_start)}")
    if all(isinstance(each, str) for each in vars_to_warm_start):
        found = (graph.get_collection(GraphKeys.GLOBAL_VARIABLES, each) for each in vars_to_warm_start)
        return [variable for each in found for variable in each]
    if all(isinstance(each, (Variable, PartitionedVariable)) for each in vars_to_warm_start):
        return [slice_ for each in vars_to_warm_start for slice_ in _as_slices(each)]
    raise ValueError("If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.")


def _grouped(variables: Iterable[Any]) -> dict[str, list[Any]]:
    """Variables by their names, slices of one together."""
    groups: dict[str, list[Any]] = {}
    for variable in variables:
        info = variable._get_save_slice_info()
        slices = groups.setdefault(variable.op.name if info is None else info.full_name, [])
        if variable not in slices:
            slices.append(variable)
    return groups


def _remapped(variable: Any, path: str, name: str, info: VocabInfo, reader: CheckpointReader) -> Tensor:
    """A variable's first value: rows (or columns) of known words from the checkpoint, others from an initializer."""
    shapes = reader.get_variable_to_shape_map()
    if name not in shapes:
        raise ValueError(f"Tensor {name} is not found in {path} checkpoint {shapes}")
    place = variable._get_save_slice_info()
    rows, cols = variable.static_shape.dims
    offset = [0, 0] if place is None else list(place.var_offset)
    axis = info.axis
    size, first = (rows, cols)[axis], offset[axis]
    total = info.new_vocab_size + info.num_oov_buckets
    if first + size > total:
        raise ValueError(
            f"{variable.name} has {'rows' if axis == 0 else 'columns'} {first} to {first + size}, and there are new_vocab_size "
            f"({info.new_vocab_size}) + num_oov_buckets ({info.num_oov_buckets}) = {total} words and buckets."
        )
    initializer = info.backup_initializer or initializers.Zeros()
    words = min(max(info.new_vocab_size - first, 0), size)
    remapping, present = GENERATE_VOCAB_REMAPPING(
        info.new_vocab, info.old_vocab, new_vocab_offset=first, num_new_vocab=words, old_vocab_size=info.old_vocab_size
    )
    other = cols if axis == 0 else rows
    missing = words * other - present * other
    matrix = LOAD_AND_REMAP_MATRIX(
        path,
        name,
        remapping if axis == 0 else ranges.range(offset[0], offset[0] + rows, dtype="int64"),
        np.zeros(0, np.int64) if axis == 0 else remapping,
        initializer([missing, 1]),
        num_rows=words if axis == 0 else rows,
        num_cols=cols if axis == 0 else words,
    )
    buckets = size - words
    if not buckets:
        return matrix
    return joining.concat([matrix, initializer([buckets, cols] if axis == 0 else [rows, buckets])], axis)
