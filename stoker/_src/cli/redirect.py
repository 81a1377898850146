"""`import tensorflow` gives stoker: a finder for `tensorflow` and the modules inside of it that programs import.

Public modules (`tensorflow.compat.v1`, `tensorflow.train`) are stoker's own module objects. Internal ones
(`tensorflow.python.ops.math_ops`) are thin modules that look names up in the public namespaces, in the rooms of `_src`
that correspond, and in the parent's neighbours: half of all programs import a handful of names from them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

ROOT = "tensorflow"

# Internal module -> where its names are looked up, in order. A public path is relative to the API chosen.
_INTERNAL: dict[str, tuple[str, ...]] = {
    "python.framework.ops": (
        "",
        "stoker._src.graph.graph",
        "stoker._src.graph.scopes",
        "stoker._src.graph.conversion",
        "stoker._src.graph.context",
        "stoker._src.graph.gradient_registry",
        "stoker._src.graph.indexed_slices",
    ),
    "python.framework.dtypes": ("dtypes", "", "stoker._src.base.dtypes"),
    "python.framework.tensor_shape": ("", "stoker._src.base.shapes"),
    "python.framework.tensor_util": ("", "stoker._src.graph.static_values", "stoker._src.graph.conversion"),
    "python.framework.constant_op": ("",),
    "python.framework.errors": ("errors", ""),
    "python.framework.errors_impl": ("errors", ""),
    "python.framework.graph_util": ("graph_util", ""),
    "python.framework.importer": ("",),
    "python.framework.random_seed": ("random", ""),
    "python.framework.sparse_tensor": ("",),
    "python.framework.function": ("", "stoker._src.graph.function_graph"),
    "python.framework.test_util": ("test",),
    "python.framework.meta_graph": ("", "train"),
    "python.ops.array_ops": ("", "stoker._src.ops.array"),
    "python.ops.math_ops": ("math", "", "stoker._src.ops.math"),
    "python.ops.control_flow_ops": ("", "stoker._src.ops.control_flow", "stoker._src.ops.grouping"),
    "python.ops.variable_scope": ("", "stoker._src.ops.variable_scope"),
    "python.ops.variables": ("", "stoker._src.ops.variables", "stoker._src.ops.partitioned"),
    "python.ops.resource_variable_ops": ("", "stoker._src.ops.variables"),
    "python.ops.state_ops": ("",),
    "python.ops.init_ops": ("initializers", "", "stoker._src.ops.initializers"),
    "python.ops.nn_ops": ("nn", ""),
    "python.ops.nn": ("nn", ""),
    "python.ops.nn_impl": ("nn", ""),
    "python.ops.rnn": ("nn", ""),
    "python.ops.rnn_cell": ("nn.rnn_cell", ""),
    "python.ops.rnn_cell_impl": ("nn.rnn_cell", ""),
    "python.ops.embedding_ops": ("nn", ""),
    "python.ops.random_ops": ("random", ""),
    "python.ops.clip_ops": ("",),
    "python.ops.check_ops": ("debugging", ""),
    "python.ops.data_flow_ops": ("queue", ""),
    "python.ops.gradients": ("", "stoker._src.ops.gradients"),
    "python.ops.gradients_impl": ("", "stoker._src.ops.gradients"),
    "python.ops.image_ops": ("image", ""),
    "python.ops.io_ops": ("io", ""),
    "python.ops.linalg_ops": ("linalg", ""),
    "python.ops.logging_ops": ("", "summary"),
    "python.ops.lookup_ops": ("contrib.lookup", "lookup", ""),
    "python.ops.losses.losses": ("losses",),
    "python.ops.metrics": ("metrics",),
    "python.ops.parsing_ops": ("io", ""),
    "python.ops.partitioned_variables": ("", "stoker._src.ops.partitioned"),
    "python.ops.script_ops": ("",),
    "python.ops.sparse_ops": ("sparse", ""),
    "python.ops.special_math_ops": ("math", ""),
    "python.ops.string_ops": ("strings", ""),
    "python.ops.summary_ops": ("summary",),
    "python.ops.template": ("", "stoker._src.ops.template"),
    "python.ops.tensor_array_ops": ("",),
    "python.ops.functional_ops": ("",),
    "python.ops.histogram_ops": ("",),
    "python.ops.bitwise_ops": ("bitwise",),
    "python.platform.app": ("app",),
    "python.platform.flags": ("flags", "app.flags"),
    "python.platform.gfile": ("gfile", "io.gfile"),
    "python.platform.googletest": ("test",),
    "python.platform.resource_loader": ("resource_loader",),
    "python.platform.test": ("test",),
    "python.platform.tf_logging": ("logging",),
    "python.client.session": ("", "stoker._src.runtime.session"),
    "python.client.timeline": ("stoker._src.runtime.trace",),
    "python.client.device_lib": ("stoker._src.runtime.devices",),
    "python.training.moving_averages": ("train", "stoker._src.train.moving_averages"),
    "python.training.optimizer": ("train", "stoker._src.train.optimizer"),
    "python.training.training_util": ("train", "stoker._src.train.global_step"),
    "python.training.slot_creator": ("stoker._src.train.slot_creator",),
    "python.training.session_run_hook": ("train",),
    "python.training.basic_session_run_hooks": ("train",),
    "python.training.learning_rate_decay": ("train",),
    "python.training.adam": ("train",),
    "python.training.saver": ("train",),
    "python.training.training": ("train",),
    "python.training.queue_runner": ("train",),
    "python.training.monitored_session": ("train",),
    "python.training.checkpoint_management": ("train",),
    "python.training.py_checkpoint_reader": ("train",),
    "python.training.input": ("train",),
    "python.summary.summary": ("summary",),
    "python.lib.io.file_io": ("gfile", "io.gfile"),
    "python.lib.io.tf_record": ("python_io", "io"),
    "python.util.nest": ("nest", "stoker._src.base.nest"),
    "python.util.compat": ("compat",),
    "python.util.tf_inspect": ("stoker._src.cli.internals",),
    "python.util.tf_export": ("stoker._src.cli.internals",),
    "python.util.deprecation": ("stoker._src.cli.internals",),
    "python.framework.versions": ("version", ""),
    "examples.tutorials.mnist.input_data": ("stoker._src.cli.mnist",),
    "contrib.learn.python.learn.datasets.mnist": ("stoker._src.cli.mnist",),
    "python.pywrap_tensorflow": ("train",),
    "python.saved_model.tag_constants": ("saved_model.tag_constants", "saved_model"),
    "python.saved_model.signature_constants": ("saved_model.signature_constants", "saved_model"),
    "python.saved_model.builder": ("saved_model.builder", "saved_model"),
    "python.saved_model.loader": ("saved_model.loader", "saved_model"),
    **{
        f"python.ops.gen_{family}_ops": ("stoker._src.cli.internals",)
        for family in "array control_flow data_flow image io linalg logging lookup math nn parsing random sparse state string".split()
    },
    "python.training.gen_training_ops": ("stoker._src.cli.internals",),
    "python.training.training_ops": ("stoker._src.cli.internals",),
    "python.eager.context": ("", "stoker._src.graph.context"),
    "python.layers.base": ("layers", ""),
    "python.layers.core": ("layers",),
    "python.layers.convolutional": ("layers",),
    "python.layers.normalization": ("layers",),
    "python.layers.pooling": ("layers",),
    "core.framework.graph_pb2": ("stoker._src.formats.protos",),
    "core.framework.node_def_pb2": ("stoker._src.formats.protos",),
    "core.framework.attr_value_pb2": ("stoker._src.formats.protos",),
    "core.framework.tensor_pb2": ("stoker._src.formats.protos",),
    "core.framework.tensor_shape_pb2": ("stoker._src.formats.protos",),
    "core.framework.types_pb2": ("stoker._src.formats.protos",),
    "core.framework.summary_pb2": ("stoker._src.formats.protos",),
    "core.framework.variable_pb2": ("stoker._src.formats.protos",),
    "core.framework.step_stats_pb2": ("stoker._src.formats.protos",),
    "core.framework.function_pb2": ("stoker._src.formats.protos",),
    "core.framework.op_def_pb2": ("stoker._src.formats.protos",),
    "core.framework.versions_pb2": ("stoker._src.formats.protos",),
    "core.example.example_pb2": ("stoker._src.formats.protos",),
    "core.example.feature_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.config_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.meta_graph_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.saver_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.cluster_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.tensorflow_server_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.rewriter_config_pb2": ("stoker._src.formats.protos",),
    "core.protobuf.queue_runner_pb2": ("stoker._src.formats.protos",),
    "core.util.event_pb2": ("stoker._src.formats.protos",),
}


# Internal names that are called something else in public.
_RENAMED: dict[tuple[str, str], str] = {
    ("python.framework.test_util", "TensorFlowTestCase"): "TestCase",
    ("python.framework.tensor_util", "MakeNdarray"): "make_ndarray",
    ("python.lib.io.file_io", "FileIO"): "GFile",
    ("python.lib.io.file_io", "file_exists"): "Exists",
    ("python.lib.io.file_io", "get_matching_files"): "Glob",
    ("python.lib.io.file_io", "recursive_create_dir"): "MakeDirs",
    ("python.lib.io.file_io", "create_dir"): "MkDir",
    ("python.lib.io.file_io", "is_directory"): "IsDirectory",
    ("python.lib.io.file_io", "list_directory"): "ListDirectory",
    ("python.lib.io.file_io", "delete_file"): "Remove",
    ("python.lib.io.file_io", "delete_recursively"): "DeleteRecursively",
    ("python.lib.io.file_io", "rename"): "Rename",
    ("python.lib.io.file_io", "copy"): "Copy",
    ("python.lib.io.file_io", "stat"): "Stat",
    ("python.lib.io.file_io", "walk"): "Walk",
}


def _packages() -> set[str]:
    """Every package that an internal module lies in."""
    found = {"python", "core", "examples"}
    for name in _INTERNAL:
        parts = name.split(".")
        found.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    return found


class _Internal(ModuleType):
    """An internal module: names are found where TensorFlow's public ones are."""

    def __init__(self, name: str, places: tuple[str, ...], api: str) -> None:
        super().__init__(name)
        self.__dict__.update(_places=places, _api=api)

    def __getattr__(self, name: str) -> Any:
        inner = self.__name__.removeprefix(ROOT + ".")
        if f"{inner}.{name}" in _INTERNAL:  # a module may have the name of a function, as python.ops.variable_scope
            return importlib.import_module(f"{self.__name__}.{name}")
        if not name.startswith("__"):
            wanted = _RENAMED.get((inner, name), name)
            for place in self._places:
                try:
                    module = importlib.import_module(
                        place if place.startswith("stoker.") else f"{self._api}.{place}".rstrip(".")
                    )
                except ImportError:
                    continue
                if hasattr(module, wanted):
                    return getattr(module, wanted)
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r} (stoker looks in {', '.join(self._places) or 'tf'})"
        )


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tensorflow` and everything below it."""

    def __init__(self, api: str) -> None:
        self._api = "stoker.compat.v1" if api == "v1" else "stoker"
        self._folders = _packages()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        inner = fullname.removeprefix(ROOT).lstrip(".")
        if inner in _INTERNAL or inner in self._folders or self._public(inner) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def _public(self, inner: str) -> str | None:
        """The public module that `tensorflow.<inner>` stands for, if there is one."""
        if (inner + ".").startswith(("compat.v1.", "compat.v2.")):
            name = f"stoker.{inner}"
        else:
            name = f"{self._api}.{inner}".rstrip(".")
        try:
            return name if importlib.util.find_spec(name) is not None else None
        except ModuleNotFoundError:
            return None

    def create_module(self, spec: Any) -> ModuleType:
        inner = spec.name.removeprefix(ROOT).lstrip(".")
        public = self._public(inner)
        if public is not None and inner not in self._folders:
            return _Public(spec.name, importlib.import_module(public))
        places = _INTERNAL.get(inner, ("",) if inner.startswith("python") else ())
        return _Internal(spec.name, places, self._api)

    def exec_module(self, module: ModuleType) -> None:
        return None


class _Public(ModuleType):
    """A public module under its TensorFlow name: every attribute is that of stoker's module, also when set."""

    def __init__(self, name: str, real: ModuleType) -> None:
        super().__init__(name, real.__doc__)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.__dict__["_real"], name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_real"])

    @property
    def __all__(self) -> list[str]:
        return [name for name in dir(self.__dict__["_real"]) if not name.startswith("_")]


def install(api: str) -> None:
    """From here on `import tensorflow` gives stoker: its 1.x names for "v1", its 2.x names for "v2".

    Raises:
        RuntimeError: the real TensorFlow was imported before.
    """
    if ROOT in sys.modules and not isinstance(sys.modules[ROOT], _Public):
        raise RuntimeError("TensorFlow itself is imported in this process already; start stoker first.")
    importlib.import_module("stoker.compat.v1" if api == "v1" else "stoker")
    sys.meta_path.insert(0, _Finder(api))
