"""`tf.app.run`, and information about the program's files and this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from absl import app as _absl

from stoker._src.base import version
from stoker._src.base.export import export, export_constant
from stoker._src.base.flags import FLAGS
from stoker._src.base.tf_logging import get_logger

_PACKAGE = Path(__file__).resolve().parent.parent.parent

export_constant(version.__name__, "API_VERSION_1", v1=("__version__", "VERSION", "version.VERSION"))
export_constant(version.__name__, "API_VERSION_2", v2=("__version__", "version.VERSION"))
export_constant(version.__name__, "GRAPH_DEF_VERSION_1", v1=("GRAPH_DEF_VERSION", "version.GRAPH_DEF_VERSION"))
export_constant(version.__name__, "GRAPH_DEF_VERSION_2", v2="version.GRAPH_DEF_VERSION")
for _name in ("GIT_VERSION", "COMPILER_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER"):
    export_constant(version.__name__, _name, f"version.{_name}", v1=_name)
export_constant(version.__name__, "GIT_VERSION", v1="__git_version__", v2="__git_version__")
export_constant(version.__name__, "COMPILER_VERSION", v1="__compiler_version__", v2="__compiler_version__")
for _name in ("CXX11_ABI_FLAG", "MONOLITHIC_BUILD", "CXX_VERSION"):
    export_constant(version.__name__, _name, f"sysconfig.{_name}", v1=_name)
export_constant(version.__name__, "CXX11_ABI_FLAG", "__cxx11_abi_flag__")
export_constant(version.__name__, "MONOLITHIC_BUILD", "__monolithic_build__")


@export(v1="app.run")
def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls `main` with the remaining command line, and exits with its result.

    Args:
        main: by default the function `main` of the main module.
        argv: the command line, by default `sys.argv`. Undefined flags are left in it.
    """
    if main is None:
        main = sys.modules["__main__"].main
    get_logger()  # created before absl configures logging, so that it writes its own lines
    _absl.run(
        cast(Any, main),
        list(argv) if argv is not None else None,
        flags_parser=lambda args: FLAGS(args, known_only=True),
    )


def _caller_folder() -> str:
    """The folder of the file that called the public function."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return os.path.dirname(frame.f_code.co_filename)


@export(v1="resource_loader.load_resource")
def load_resource(path: str) -> bytes:
    """The contents of a file in the package.

    Raises:
        OSError: the file cannot be read.
    """
    with open(os.path.join(get_root_dir_with_all_resources(), path), "rb") as file:
        return file.read()


@export(v1="resource_loader.get_data_files_path")
def get_data_files_path() -> str:
    """The folder of the file that calls this."""
    return _caller_folder()


@export(v1="resource_loader.get_root_dir_with_all_resources")
def get_root_dir_with_all_resources() -> str:
    """The folder of the package."""
    return str(_PACKAGE)


@export(v1="resource_loader.get_path_to_datafile")
def get_path_to_datafile(path: str) -> str:
    """A path relative to the file that calls this."""
    return os.path.join(_caller_folder(), path)


@export(v1="resource_loader.readahead_file_path")
def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """Returns the path unchanged. The hint is for file systems that stoker does not have."""
    return path


@export("sysconfig.get_lib")
def get_lib() -> str:
    """The folder of the package."""
    return str(_PACKAGE)


@export("sysconfig.get_include")
def get_include() -> str:
    """The folder for C++ headers. There are none, because ops are written in Python."""
    return str(_PACKAGE / "include")


@export("sysconfig.get_compile_flags")
def get_compile_flags() -> list[str]:
    """Flags for a C++ compiler, in TensorFlow's form."""
    return [f"-I{get_include()}", f"-D_GLIBCXX_USE_CXX11_ABI={version.CXX11_ABI_FLAG}"]


@export("sysconfig.get_link_flags")
def get_link_flags() -> list[str]:
    """Flags for a linker, in TensorFlow's form."""
    return [f"-L{get_lib()}"]


@export("load_library")
def load_library(library_location: str) -> None:
    """Not supported. TensorFlow loads C++ kernels with this function.

    Raises:
        NotImplementedError: always; kernels written against TensorFlow's C++ interface cannot run on PyTorch.
    """
    raise NotImplementedError(
        f"{library_location}: libraries of kernels for TensorFlow's C++ interface cannot be loaded; "
        "write the op in Python with tf.py_func or tf.custom_gradient."
    )


@export("load_op_library")
def load_op_library(library_filename: str) -> Any:
    """Not supported. TensorFlow loads C++ ops with this function.

    Raises:
        NotImplementedError: always; see `load_library`.
    """
    return load_library(library_filename)


@export(v1="load_file_system_library")
def load_file_system_library(library_filename: str) -> None:
    """Not supported. TensorFlow loads a C++ file system with this function.

    Raises:
        NotImplementedError: always; file systems come from fsspec.
    """
    load_library(library_filename)
