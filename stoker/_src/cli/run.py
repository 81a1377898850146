"""`python -m stoker run SCRIPT ARGS`: a TensorFlow program whose `import tensorflow` gets stoker."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from typing import Any

from stoker._src.cli import redirect


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a TensorFlow program",
        description="Runs a Python program in which `import tensorflow` (and the modules inside of it that programs use) "
        "gives stoker. Arguments after the script are the script's; tracebacks and exit status are as with plain python.",
        epilog="examples: stoker run train.py --steps=100     stoker run -m trainer.task --data=records",
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
    redirect.install(args.api)
    if args.module is not None:
        sys.argv = args.module
        sys.path.insert(0, os.getcwd())
        sys.excepthook = _without_our_frames
        runpy.run_module(args.module[0], run_name="__main__", alter_sys=True)
        return 0
    script = rest[0]
    if not os.path.exists(script):
        print(f"stoker run: there is no file {script!r}", file=sys.stderr)
        return 2
    sys.argv = rest
    # As with plain python: the script's folder comes first on the path, and its code runs as __main__.
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    _run_as_main(script)
    return 0


def _run_as_main(script: str) -> None:
    """Runs the file in the real `__main__` module, so that pickling and `import __main__` work, without our frames."""
    import __main__

    sys.excepthook = _without_our_frames
    with open(script, "rb") as source:
        code = compile(source.read(), script, "exec")
    for name in [name for name in vars(__main__) if not name.startswith("__")]:
        delattr(__main__, name)
    __main__.__file__ = script
    __main__.__spec__ = None
    __main__.__package__ = None
    exec(code, __main__.__dict__)


def _without_our_frames(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Prints a traceback that starts in the user's program, as plain python would."""
    here = os.path.dirname(os.path.abspath(__file__))
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith(here)
        or "runpy" in trace.tb_frame.f_code.co_filename
        or os.path.basename(os.path.dirname(trace.tb_frame.f_code.co_filename)) == "stoker"
    ):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)
