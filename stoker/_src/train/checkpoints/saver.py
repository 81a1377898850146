"""`tf.train.Saver` saves variables to checkpoints by name, restores them, and writes meta graphs beside the checkpoints."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from numbers import Integral
from typing import Any

from google.protobuf import message

from stoker._src.base import tf_logging
from stoker._src.base.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import one_commit, path_text
from stoker._src.formats.protos import SaverDef, TrackableObjectGraph
from stoker._src.graph import context
from stoker._src.graph.interchange.meta_graph import (
    export_scoped_meta_graph,
    import_scoped_meta_graph,
    in_scope,
    prepend_name_scope,
    register_proto_function,
    strip_name_scope,
)
from stoker._src.graph.keys import GraphKeys
from stoker._src.runtime.session import BaseSession
from stoker._src.train.checkpoints.leftovers import remove_leftovers
from stoker._src.train.checkpoints.object_graph import OBJECT_GRAPH_KEY
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.saveables import all_saveable_objects, validated_saveables
from stoker._src.train.checkpoints.saver_ops import BulkSaverBuilder
from stoker._src.train.checkpoints.state import (
    delete_checkpoint,
    get_checkpoint_state,
    has_checkpoint,
    meta_graph_filename,
    write_checkpoint_state,
    written_at,
)
from stoker._src.train.training_util import global_step as step_of


@export(v1="train.Saver")
class Saver:
    """Saves variables to checkpoints and restores them, each under a name.

        saver = tf.train.Saver()                                       # after all variables have been created
        path = saver.save(session, "logs/model", global_step=step)     # logs/model-100.index, .data-00000-of-00001, .meta
        saver.restore(session, tf.train.latest_checkpoint("logs"))     # no initialization is needed

    Checkpoints appear whole or not at all, and the `checkpoint` file names one only once it is complete.

    Args:
        var_list: a list of variables and saveable objects, or a dictionary that maps their names in checkpoints to them. The default is
            all global variables and saveable objects.
        reshape: whether to accept tensors of another shape with the same number of elements.
        sharded: whether to write one file per device.
        max_to_keep: how many checkpoints to keep, deleting the oldest; None or 0 keeps all.
        keep_checkpoint_every_n_hours: one checkpoint per this many hours is never deleted.
        name: the name scope of the ops ("save").
        restore_sequentially: whether to restore the variables of each device one after the other.
        saver_def: the SaverDef of a saver whose ops are already in the graph.
        builder: the `BaseSaverBuilder` that builds the ops.
        defer_build: whether to wait with building the ops until `build()` is called.
        allow_empty: whether a saver without variables is allowed. Such a saver does nothing.
        write_version: the file format, `SaverDef.V2` or `SaverDef.V1`.
        pad_step_number: whether to pad step numbers to eight digits.
        save_relative_paths: whether to write paths in the `checkpoint` file relative to its directory, so that the directory can be moved.
        filename: the default path of the ops.

    Raises:
        TypeError: `var_list` has the wrong type.
        ValueError: there is nothing to save, two objects have the same name, or one object has two names.
        RuntimeError: `var_list` is missing in eager mode.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: Any = None,
    ) -> None:
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or var_list=None."
            )
        if context.executing_eagerly():
            tf_logging.info(
                "Saver in eager mode saves the variables it is given by name; see also tf.train.Checkpoint."
            )
            if var_list is None:
                raise RuntimeError(
                    "When eager execution is enabled, `var_list` must specify a list or dict of variables to save"
                )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._builder = builder
        self._is_built = False
        self._allow_empty = allow_empty
        self._is_empty = False
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._filename = filename
        self._save_relative_paths = save_relative_paths
        self._last_checkpoints: list[tuple[str, float]] = []
        self._swept: set[str] = set()  # directories already searched for files that killed processes left behind
        self._to_be_deleted: list[tuple[str, float]] = []
        if context.executing_eagerly():
            self._next_checkpoint_time = time.time() + keep_checkpoint_every_n_hours * 3600
        elif not defer_build:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self) -> None:
        """Builds the ops of a saver that was created with `defer_build`.

        Raises:
            RuntimeError: eager mode is enabled.
        """
        if context.executing_eagerly():
            raise RuntimeError("Use save/restore instead of build in eager mode.")
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is None or self._builder is not None:
            builder = self._builder or BulkSaverBuilder(self._write_version)
            if self._var_list is None:
                self._var_list = all_saveable_objects()
            if not self._var_list:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                self._is_empty = True
                return
            self.saver_def = builder.build(
                self._var_list,
                reshape=self._reshape,
                sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
                name=self._name,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename,
            )
        elif self._name:
            # With a SaverDef, `name` is the scope into which the graph was imported.
            self._check_saver_def()
            self.saver_def = _renamed(self.saver_def, prepend_name_scope, self._name)
        self._check_saver_def()
        self._next_checkpoint_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    def _check_saver_def(self) -> None:
        if not isinstance(self.saver_def, SaverDef):
            raise ValueError(f"saver_def must be a saver_pb2.SaverDef: {self.saver_def}")
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise ValueError(f"saver_def must specify the {field}: {self.saver_def}")

    # -- the checkpoints written so far --------------------------------------------------------------------------

    @property
    def _kept(self) -> int:
        return (self.saver_def.max_to_keep if self.saver_def else self._max_to_keep) or 0

    def _record(self, path: str) -> None:
        """Records a checkpoint as the newest and queues the surplus ones for deletion."""
        if not self._kept:
            return
        self._last_checkpoints = [each for each in self._last_checkpoints if each[0] != path]
        self._last_checkpoints.append((path, time.time()))
        while len(self._last_checkpoints) > self._kept:
            self._to_be_deleted.append(self._last_checkpoints.pop(0))

    def _has_surplus(self, path: str) -> bool:
        """Whether a checkpoint is deleted once that of `path` is written."""
        others = sum(each != path for each in self.last_checkpoints)
        return bool(self._to_be_deleted) or 0 < self._kept <= others

    def _delete_old(self, meta_graph_suffix: str) -> None:
        hours = self.saver_def.keep_checkpoint_every_n_hours if self.saver_def else self._keep_checkpoint_every_n_hours
        for path, written in self._to_be_deleted:
            if written > self._next_checkpoint_time:
                self._next_checkpoint_time += hours * 3600
                continue
            try:
                delete_checkpoint(path, self._write_version, meta_graph_suffix)
            except Exception as error:
                tf_logging.warning("Ignoring: %s", error)
        self._to_be_deleted = []

    @property
    def last_checkpoints(self) -> list[str]:
        """The paths of the checkpoints that have not been deleted, oldest first. The last one can be passed to `restore`."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Deprecated: use `set_last_checkpoints_with_time`, which also takes the times of writing."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError(f"last_checkpoints must be a list, not {last_checkpoints}")
        self._last_checkpoints = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Sets the list of checkpoints that have not been deleted, as pairs (path, seconds since the epoch), oldest first."""
        if not isinstance(last_checkpoints_with_time, list):
            raise AssertionError(f"last_checkpoints_with_time must be a list, not {last_checkpoints_with_time}")
        self._last_checkpoints = last_checkpoints_with_time

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Sets the list of checkpoints that have not been deleted to those of `checkpoint_paths` that exist."""
        times = [(path, written_at(path)) for path in checkpoint_paths]
        self.set_last_checkpoints_with_time([(path, when) for path, when in times if when is not None])

    # -- saving and restoring ------------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables.

        Args:
            sess: the session that holds the variables. It is None in eager mode.
            save_path: the path prefix. Its directory must exist.
            global_step: a number to append to the path: an integer, a tensor, or the name of a tensor.
            latest_filename: the name of the state file. The default is "checkpoint".
            meta_graph_suffix: the file extension of the meta graph.
            write_meta_graph: whether to write the meta graph, too.
            write_state: whether to write the state file.
            strip_default_attrs, save_debug_info: as in `export_meta_graph`.

        Returns:
            The path to pass to `restore`, or None if there is nothing to save.

        Raises:
            TypeError: `sess` is not a session.
            ValueError: `latest_filename` contains a directory or equals the file name of the checkpoint, or the directory does not exist.
            RuntimeError: the ops have not been built.
        """
        eager = context.executing_eagerly()
        if not self._is_built and not eager:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest_filename = "checkpoint" if latest_filename is None else latest_filename
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        if self._write_version != SaverDef.V2:
            tf_logging.warning(
                "Writing a checkpoint of the older format (V1). The newer one takes less memory and time: "
                "make the Saver without write_version."
            )
        save_path = path_text(save_path)
        if global_step is not None:
            # A step that a session returned is an integer of NumPy.
            global_step = int(global_step) if isinstance(global_step, Integral) else step_of(sess, global_step)
            digits = "08d" if self._pad_step_number else "d"
            path = f"{save_path}-{global_step:{digits}}"
        else:
            path = save_path
            if os.path.basename(save_path) == latest_filename and not self._sharded:
                raise ValueError(f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{save_path}'")
        if not eager and not isinstance(sess, BaseSession):
            raise TypeError(f"'sess' must be a Session; {sess}")
        if self._is_empty:
            if write_meta_graph:
                self._save_graph(sess, path, meta_graph_suffix, strip_default_attrs, save_debug_info)
            return None
        directory = os.path.dirname(save_path)
        was_there = has_checkpoint(path)
        made_room = False

        def finish(saved: str) -> None:
            if write_meta_graph and not eager:  # before the state file mentions the checkpoint
                self._save_graph(sess, path, meta_graph_suffix, strip_default_attrs, save_debug_info)
            if write_state:
                self._record(saved)
                write_state_file(saved)

        def write_state_file(saved: str) -> None:
            write_checkpoint_state(
                directory, saved, self.last_checkpoints, latest_filename, relative=self._save_relative_paths
            )

        try:
            try:
                with contextlib.nullcontext() if self._reads_back else one_commit(path):
                    saved = self._save_values(sess, path, directory, save_path)
                    finish(saved)
            except (OSError, OpError) as error:
                if not (write_state and self._has_surplus(path) and _is_full(error)):
                    raise
                # The checkpoint that this one replaces may hold the room that the meta graph and the state file need. It is deleted once
                # the values are complete on disk.
                saved = self._save_values(sess, path, directory, save_path)
                self._record(saved)
                self._delete_old(meta_graph_suffix)
                made_room = True
                with one_commit(path):
                    finish(saved)
        except (OSError, OpError):
            # After a failure, such as a full disk, the unfinished checkpoint is removed, unless it replaced an older one. If only the sync
            # of the directory failed, the state file may already mention the checkpoint. In that case it is complete and is kept.
            others = [each for each in self._last_checkpoints if each[0] != path]
            if made_room and not others:  # the values are complete, and there is no other checkpoint
                with contextlib.suppress(OSError, OpError):
                    write_state_file(path)
            elif not was_there and not self._is_latest(path, directory, latest_filename):
                self._last_checkpoints = others
                with contextlib.suppress(OSError, OpError):
                    delete_checkpoint(path, self._write_version, meta_graph_suffix)
            self._remove_parts(path)
            raise
        if write_state:
            self._delete_old(meta_graph_suffix)
        return saved

    @property
    def _reads_back(self) -> bool:
        """Whether the ops may read files that they have written: they merge shards, or are those of the user."""
        return bool(self._sharded or self._builder or (self.saver_def is not None and self.saver_def.sharded))

    def _is_latest(self, path: str, directory: str, latest_filename: str) -> bool:
        """Returns whether the state file names this checkpoint as the latest, or cannot be read."""
        try:
            state = get_checkpoint_state(directory, latest_filename)
        except (OSError, OpError, ValueError):
            return True
        if state is None:
            return False
        named = state.model_checkpoint_path
        return os.path.basename(named) == os.path.basename(path) or named.startswith(f"{path}-?????-of-")

    def _remove_parts(self, path: str) -> None:
        """Removes the shards of a checkpoint whose merge failed."""
        if self._sharded:
            with contextlib.suppress(OSError, OpError):
                gfile.rmtree(f"{path}_temp")

    def _save_values(self, sess: Any, path: str, directory: str, save_path: str) -> str:
        try:
            if context.executing_eagerly():
                return self._save_eagerly(path)
            if self._sharded and directory not in self._swept:
                # A process that was killed may have left unmerged shards behind.
                remove_leftovers(directory, os.path.basename(save_path))
                self._swept.add(directory)
            return sess.run(*self._save_arguments(path)).decode()
        except (FailedPreconditionError, NotFoundError) as error:
            if directory and not gfile.isdir(directory):
                raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from error
            raise

    def _save_arguments(self, path: str) -> tuple[str, dict[str, str]]:
        return self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path}

    def _save_graph(self, sess: Any, path: str, suffix: str, strip_default_attrs: bool, save_debug_info: bool) -> None:
        with sess.graph.as_default():
            self.export_meta_graph(
                meta_graph_filename(path, suffix),
                strip_default_attrs=strip_default_attrs,
                save_debug_info=save_debug_info,
            )

    def _save_eagerly(self, path: str) -> str:
        builder = self._builder or BulkSaverBuilder(self._write_version)
        builder.save_op(path, validated_saveables(self._var_list))
        return path

    def restore(self, sess: Any, save_path: Any) -> None:
        """Assigns the values of a checkpoint to the variables, which need no initialization beforehand.

        Args:
            sess: the session that holds the variables. It is None in eager mode.
            save_path: a path returned by `save` or `tf.train.latest_checkpoint`.

        Raises:
            ValueError: the checkpoint does not exist.
            NotFoundError: a variable is missing from the checkpoint.
            InvalidArgumentError: a variable has another shape or dtype in the checkpoint.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = path_text(save_path)
        if not has_checkpoint(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        tf_logging.info("Restoring parameters from %s", path)
        try:
            if context.executing_eagerly():
                self._restore_eagerly(path, self._var_list)
            else:
                sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path})
        except NotFoundError as error:
            keys = object_keys(path)
            if keys is None:
                raise _explained(
                    error, "a Variable name or other graph key that is missing from the checkpoint"
                ) from error
            self._restore_objects(sess, path, keys, error)
        except InvalidArgumentError as error:
            raise _explained(error, "a mismatch between the current graph and the graph from the checkpoint") from error

    def _restore_eagerly(self, path: str, var_list: Any) -> None:
        builder = self._builder or BulkSaverBuilder(self._write_version)
        builder.restore_ops(path, validated_saveables(var_list), self._restore_sequentially, self._reshape)

    def _restore_objects(self, sess: Any, path: str, keys: dict[str, str], error: NotFoundError) -> None:
        """Restores from an object-based checkpoint, which also records the names of its variables."""
        if self._var_list is None:
            with sess.graph.as_default():
                self._var_list = all_saveable_objects()
        renamed: dict[str, Any] = {}
        saveables = validated_saveables(self._var_list)
        names = {saveable.name for saveable in saveables}
        if names - keys.keys():
            raise NotFoundError(
                error.node_def,
                error.op,
                f"\n\nExisting variables not in the checkpoint: {', '.join(sorted(names - keys.keys()))}\n\nVariables names when "
                f"this checkpoint was written which don't exist now: {', '.join(sorted(keys.keys() - names))}\n\n"
                f"({len(names & keys.keys())} variable name(s) did match)\n\nCould not find some variables in the checkpoint (see "
                "names above). Saver was attempting to load an object-based checkpoint (tf.train.Checkpoint) using variable names. "
                f"Saver(var_list=...) restores the variables that are in it. {error.message}",
            ) from error
        for saveable in saveables:
            saveable.specs[0].name = keys[saveable.name]
            renamed[keys[saveable.name]] = saveable
        tf_logging.warning(
            "%s is a checkpoint of objects (tf.train.Checkpoint): its variables are matched by the names they had when they "
            "were saved.",
            path,
        )
        if context.executing_eagerly():
            self._restore_eagerly(path, renamed)
            return
        with sess.graph.as_default():
            Saver(renamed, name="object_based").restore(sess, path)

    # -- descriptions --------------------------------------------------------------------------------------------

    def as_saver_def(self) -> Any:
        """Returns the SaverDef that names the ops of this saver."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns the SaverDef with its names relative to `export_scope`, or None if the saver is outside that scope."""
        if export_scope is None:
            return self.saver_def
        if not in_scope(self.saver_def.filename_tensor_name, export_scope):
            return None
        return _renamed(self.saver_def, strip_name_scope, export_scope)

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Returns a saver for a SaverDef whose ops were imported into `import_scope`."""
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(
        self,
        filename: Any = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """Returns the MetaGraphDef of the current graph with this saver. See `tf.train.export_meta_graph`."""
        return export_meta_graph(
            filename=filename,
            graph_def=None,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )


def _is_full(error: Exception) -> bool:
    """Whether a disk or a quota is full."""
    return isinstance(error, ResourceExhaustedError) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)


def _renamed(saver_def: Any, rename: Callable[[str, str], str], scope: str) -> Any:
    """Returns a copy of a SaverDef with its names moved into or out of a scope."""
    renamed = SaverDef()
    renamed.CopyFrom(saver_def)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        setattr(renamed, field, rename(getattr(saver_def, field), scope))
    return renamed


def object_keys(path: str) -> dict[str, str] | None:
    """Returns a map from variable names to keys of an object-based checkpoint, or None for a name-based one."""
    reader = CheckpointReader(path)
    if not reader.has_tensor(OBJECT_GRAPH_KEY):
        return None
    try:
        objects = TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
    except message.DecodeError as error:
        raise DataLossError(None, None, f"{path}: the description of its objects is damaged: {error}") from error
    return {each.full_name: each.checkpoint_key for node in objects.nodes for each in node.attributes}


def _explained(error: Any, cause: str) -> Any:
    return type(error)(
        error.node_def,
        error.op,
        f"Restoring from checkpoint failed. This is most likely due to {cause}. Please ensure that you have not altered the graph "
        "expected based on the checkpoint; `python -m stoker inspect` shows what the checkpoint holds. Original error:\n\n"
        f"{error.message}",
    )


register_proto_function(GraphKeys.SAVERS, proto_type=SaverDef, to_proto=Saver.to_proto, from_proto=Saver.from_proto)


@export(v1="train.export_meta_graph")
def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Any = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """Returns the MetaGraphDef of a graph and writes it to `filename` if one is given.

    Args:
        filename: the file to write.
        meta_info_def: a MetaInfoDef to copy and complete.
        graph_def: a GraphDef to write instead of the nodes of the graph.
        saver_def: the SaverDef to include.
        collection_list: the collections to include. The default is all.
        as_text: whether to write text instead of binary.
        graph: the graph. The default is the current graph.
        export_scope: a name scope. Only its nodes are written, without the name of the scope.
        clear_devices: whether to omit device placements.
        clear_extraneous_savers: whether to omit all savers except the one of `saver_def`.
        strip_default_attrs: whether to omit attributes that have their default value.
        save_debug_info: whether to write the source lines of the nodes to a second file that ends in `.debug`.
        **kwargs: further arguments of TensorFlow's internal function (`unbound_inputs_col_name`).

    Raises:
        RuntimeError: eager mode is enabled and `graph` or `graph_def` is missing.
        ValueError: the message would be larger than 2 GB.
    """
    if context.executing_eagerly() and not (graph_def is not None and graph is not None):
        raise RuntimeError("Exporting/importing meta graphs is not supported when eager execution is enabled.")
    return export_scoped_meta_graph(
        filename=filename,
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        as_text=as_text,
        graph=graph,
        export_scope=export_scope,
        clear_devices=clear_devices,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        save_debug_info=save_debug_info,
        **kwargs,
    )


@export(v1="train.import_meta_graph")
def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds the nodes and collections of a meta graph to the current graph.

        saver = tf.train.import_meta_graph("logs/model-100.meta")
        saver.restore(session, "logs/model-100")
        session.run("loss:0", {"x:0": batch})

    Args:
        meta_graph_or_file: a MetaGraphDef, or the name of a file that contains one.
        clear_devices: whether to omit device placements.
        import_scope: a name scope to put in front of all names.
        **kwargs: further arguments of TensorFlow's internal function (`input_map`, `restore_collections_predicate`, ...).

    Returns:
        A saver for the variables of the meta graph, or None if it has no variables.

    Raises:
        RuntimeError: eager mode is enabled.
        OSError: the file does not exist or does not contain a meta graph.
        ValueError: the meta graph is invalid, or `input_map` lacks one of its unbound inputs.
    """
    return import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[0]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    return_elements: Any = None,
    **kwargs: Any,
) -> tuple[Saver | None, Any]:
    """Does the work of `import_meta_graph` and also returns the elements named by `return_elements`."""
    if context.executing_eagerly():
        raise RuntimeError("Exporting/importing meta graphs is not supported when eager execution is enabled.")
    meta, scope, elements = import_scoped_meta_graph(
        meta_graph_or_file, clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    if meta.HasField("saver_def"):
        return Saver(saver_def=meta.saver_def, name=scope or None), elements
    if all_saveable_objects(scope or None):
        return Saver(), elements
    tf_logging.info("Saver not created because there are no variables in the graph to restore")
    return None, elements
