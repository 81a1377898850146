"""`python -m stoker run SCRIPT ARGS`: runs a TensorFlow program with stoker as `tensorflow`."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import sys
import zipfile
from typing import Any

from stoker._src.cli import children, launch, redirect
from stoker._src.cli.parsers import add_command


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "run",
        help="run a TensorFlow program",
        description="Runs a Python program in which `import tensorflow` (and the modules inside of it that programs use) "
        "gives stoker. Arguments after the script are the script's; tracebacks and exit status are as with plain python.",
        examples=[
            "train.py --steps=100",
            "-m trainer.task --data=records",
        ],
    )
    parser.add_argument(
        "--api", choices=("v1", "v2"), default="v1", help="which names `import tensorflow` gives (default: v1)"
    )
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE [ARGS]", help="run a module, as `python -m` does"
    )
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS]", help="the program and its arguments"
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    rest = list(args.script)
    if not args.module and not rest:
        print("stoker run: give a SCRIPT, or -m MODULE", file=sys.stderr)
        return 2
    launch.take_gpu()
    launch.take_cores()
    redirect.install(args.api)
    children.prepare(args.api)
    sys.excepthook = _without_our_frames
    if args.module:
        sys.argv = list(args.module)
        # `python -m` searches the current folder first. It is on the path already if stoker itself was started with -m.
        if sys.path[0] not in ("", os.getcwd()):
            sys.path.insert(0, os.getcwd())
        return _run_module(args.module[0])
    script = rest[0]
    if not os.path.exists(script):
        print(f"stoker run: there is no file {script!r}", file=sys.stderr)
        return 2
    sys.argv = rest
    if os.path.isdir(script) or zipfile.is_zipfile(script):
        sys.path[0] = os.path.abspath(script)
        return _run_module("__main__")
    # As with plain python, the script's folder comes first on the path, and its code runs as __main__.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    _run_script(os.path.abspath(script))
    return 0


def _run_script(path: str) -> None:
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec", dont_inherit=True)
    _run_as_main(code, path, loader, None, None)


def _run_module(name: str) -> int:
    """Runs a module, or the `__main__` of a package, as `python -m` does."""
    try:
        spec: Any = _found(name) if name == "__main__" else importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                return _refuse(
                    f"No module named {name}.__main__; {name!r} is a package and cannot be directly executed"
                )
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        return _refuse(f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})")
    if spec is None:
        return _refuse(f"No module named {name}")
    code = spec.loader.get_code(spec.name) if hasattr(spec.loader, "get_code") else None
    if code is None:
        return _refuse(f"No code object available for {name}")
    sys.argv[0] = sys.argv[0] if name == "__main__" else spec.origin
    _run_as_main(code, spec.origin, spec.loader, spec, spec.parent)
    return 0


def _found(name: str) -> Any:
    """Finds `__main__` of the folder or archive that is first on the path, ignoring a `__main__` module that is already imported."""
    return importlib.machinery.PathFinder.find_spec(name, [sys.path[0]])


def _refuse(message: str) -> int:
    print(f"{sys.executable}: {message}", file=sys.stderr)
    return 1


def _run_as_main(code: Any, path: str | None, loader: Any, spec: Any, package: str | None) -> None:
    """Runs code in the real `__main__` module, so that pickling and `import __main__` work, and hides stoker's frames."""
    main: Any = sys.modules["__main__"]
    for name in [name for name in vars(main) if not (name.startswith("__") and name.endswith("__"))]:
        delattr(main, name)
    main.__doc__ = None
    main.__file__ = path
    main.__cached__ = None if spec is None else spec.cached
    main.__loader__ = loader
    main.__spec__ = spec
    main.__package__ = package
    exec(code, main.__dict__)


def _without_our_frames(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Prints a traceback that starts in the user's program, as plain python does."""
    here = os.path.dirname(os.path.abspath(__file__))
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith(here)
        or trace.tb_frame.f_code.co_filename == "<frozen runpy>"
        or os.path.basename(os.path.dirname(trace.tb_frame.f_code.co_filename)) == "stoker"
    ):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)
