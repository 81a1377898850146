"""One side of the comparison: reads programs from its standard input, runs them, and writes what they fetch.

    python side.py stoker|plain|tensorflow

`stoker` runs programs as users do, `plain` without native code, fused loops and compiled regions.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def send(stream: Any, message: Any) -> None:
    text = pickle.dumps(message, protocol=4)
    stream.write(struct.pack("<q", len(text)) + text)
    stream.flush()


def receive(stream: Any) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        return None
    return pickle.loads(stream.read(struct.unpack("<q", header)[0]))


def _plain() -> None:
    from stoker._src.runtime.plan import planner

    begin = planner.Planner.__init__

    def without(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **{**options, "with_fused_loops": False, "with_late_shapes": False})

    planner.Planner.__init__ = without  # type: ignore[method-assign]


@contextlib.contextmanager
def _limited(limits: Any) -> Any:
    import importlib

    saved = []
    for name, value in limits:
        module_name, attribute = name.split(".")
        module = importlib.import_module(f"stoker._src.runtime.plan.{module_name}")
        saved.append((module, attribute, getattr(module, attribute)))
        setattr(module, attribute, value)
    try:
        yield
    finally:
        for module, attribute, value in saved:
            setattr(module, attribute, value)


def execute(tf: Any, side: str, request: dict[str, Any]) -> dict[str, Any]:
    """Runs one program: the arrays of each run, or the class of its error."""
    import numpy as np

    double = request.get("double", False)
    space: dict[str, Any] = {
        "tf": tf,
        "np": np,
        "F": tf.float64 if double else tf.float32,
        "N": np.float64 if double else np.float32,
    }
    exec(compile((Path(__file__).parent / "prelude.py").read_text(), "prelude", "exec"), space)
    if request.get("disturb"):
        original, random = space["data"], np.random.RandomState(request["disturb"])

        def disturbed(seed: int, shape: Any, kind: str = "normal", dtype: str = "f") -> Any:
            x = original(seed, shape, kind, dtype)
            return (
                x * (1 + request.get("scale", 3e-7) * random.choice([-1, 1], x.shape)).astype(x.dtype)
                if dtype in "fd"
                else x
            )

        space["data"] = disturbed
    results: list[Any] = []
    limits = request.get("limits", ()) if side == "stoker" else ()
    if request.get("eager"):
        space["record"] = lambda found: results.append([np.array(x) for x in found])
        try:
            exec(compile(request["source"], "program", "exec"), space)
        except Exception as error:
            return {
                "results": results,
                "error": type(error).__name__,
                "text": f"{error}"[:1500],
                "trace": traceback.format_exc()[-3000:],
            }
        return {"results": results, "error": None}
    config = tf.ConfigProto(intra_op_parallelism_threads=request.get("threads", 1), inter_op_parallelism_threads=1)
    tf.reset_default_graph()
    with _limited(limits), tf.Graph().as_default(), tf.Session(config=config) as session:

        def run(fetches: Any, feeds: Any) -> None:
            feeds = dict(feeds)
            copies = {key: value.copy() for key, value in feeds.items()}
            found = session.run(fetches, feeds)
            results.append([None if x is None else np.array(x) for x in found])
            kept.append((found, results[-1]))
            for key in feeds:
                if feeds[key].dtype != object and feeds[key].tobytes() != copies[key].tobytes():
                    results.append("a feed was changed")

        kept: list[Any] = []
        space.update(session=session, run=run, record=lambda found: results.append([np.array(x) for x in found]))
        try:
            exec(compile(request["source"], "program", "exec"), space)
            for found, copied in kept:
                for a, b in zip(found, copied):
                    if b is not None and np.asarray(a).tobytes() != b.tobytes():
                        results.append("a result changed later")
        except Exception as error:
            return {
                "results": results,
                "error": type(error).__name__,
                "text": f"{error}"[:1500],
                "trace": traceback.format_exc()[-3000:],
            }
    return {"results": results, "error": None}


def main() -> None:
    side = sys.argv[1]
    out, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    os.dup2(2, 1)
    if side == "tensorflow":
        os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
        import tensorflow.compat.v1 as tf

        if "eager" not in sys.argv:
            tf.disable_v2_behavior()
        tf.get_logger().setLevel("ERROR")
    else:
        sys.path.insert(0, str(ROOT))
        if "eager" in sys.argv:
            import stoker

            tf = stoker.compat.v1
            tf.function, tf.GradientTape = stoker.function, stoker.GradientTape
        else:
            import stoker.compat.v1 as tf  # type: ignore[no-redef]

        tf.logging.set_verbosity(tf.logging.ERROR)
        if side == "plain":
            tf.zeros  # noqa: B018 - loads what is patched
            _plain()
    import warnings

    warnings.simplefilter("ignore")
    stdin = sys.stdin.buffer
    send(out, "ready")
    while True:
        request = receive(stdin)
        if request is None:
            return
        send(out, execute(tf, side, request))


if __name__ == "__main__":
    main()
