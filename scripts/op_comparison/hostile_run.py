"""Runs bad calls through `tf.raw_ops` of TensorFlow or of stoker, in a process that may die of them.

    python hostile_run.py MODULE CASES FOLDER [NUMBER ...]

Each case runs eagerly, in a graph of constants, and in a graph of placeholders whose shapes are unknown. What came out goes
to FOLDER in chunks (as in oracle.py): {"eager": [phase, error, text], ...}, error being "" for a value.
"""

from __future__ import annotations

import importlib
import json
import resource
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from exchange import Reader, Variable
from oracle import call, convert, flatten, variable_for

CHUNK = 60
ADDRESS_SPACE = 14 * 2**30
SECONDS = 20  # a case that takes longer ends the process


def outcome(run: Any, *arguments: Any) -> list[str]:
    phase = ["build"]
    try:
        run(*arguments, phase)
    except Exception as error:
        return [phase[0], type(error).__name__, str(error)[:300]]
    return [phase[0], "", ""]


def run_eagerly(tf: Any, case: dict[str, Any], phase: list[str]) -> None:
    phase[0] = "run"
    inputs = {name: convert(tf, value) for name, value in case["inputs"].items()}
    with tf.device("/CPU:0"):
        for tensor in flatten(call(tf, case["op"], inputs, case["attrs"])):
            if tensor.dtype not in (tf.resource, tf.variant):
                tensor.numpy()


def run_in_graph(tf: Any, case: dict[str, Any], known: bool, phase: list[str]) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        feeds: dict[Any, Any] = {}

        def made(value: Any) -> Any:
            if isinstance(value, list):
                return [made(item) for item in value]
            if isinstance(value, Variable):
                return variables.pop(0)
            dtype = tf.string if value.dtype.kind == "O" else tf.as_dtype(value.dtype)
            if known:
                return tf.constant(value, dtype)
            tensor = v1.placeholder(dtype, None)
            feeds[tensor] = value
            return tensor

        pairs = [
            variable_for(tf, value.value, name in case["references"], f"v{number}")
            for number, (name, value) in enumerate(case["inputs"].items())
            if isinstance(value, Variable)
        ]
        variables = [variable for variable, _ in pairs]
        if pairs:
            session.run([start for _, start in pairs])
        inputs = {name: made(value) for name, value in case["inputs"].items()}
        result = call(tf, case["op"], inputs, case["attrs"])
        outputs = [t for t in flatten(result) if t.dtype not in (tf.resource, tf.variant)]
        phase[0] = "run"
        session.run(outputs or result, feeds)


def main() -> None:
    name, source, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    fatal = {int(number) for number in sys.argv[4:]}
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tf = importlib.import_module(name)
    reader = Reader(source, tf)
    for start in range(0, len(reader.structure), CHUNK):
        path = folder / f"{name}_{start}.json"
        if path.exists():
            continue
        results = []
        for number, packed in enumerate(reader.structure[start : start + CHUNK], start):
            if number in fatal:
                results.append({mode: ["run", "Crash", ""] for mode in ("eager", "static", "unknown")})
                continue
            print(number, flush=True)
            signal.alarm(SECONDS)
            case = reader.unpack(packed)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found: dict[str, Any] = {
                "eager": ["run", "", ""] if case["graph"] else outcome(run_eagerly, tf, case),
                "static": outcome(run_in_graph, tf, case, True),
                "unknown": outcome(run_in_graph, tf, case, False),
            }
            found["grown"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
            results.append(found)
        signal.alarm(0)
        path.write_text(json.dumps(results))
    print("done", flush=True)


if __name__ == "__main__":
    main()
