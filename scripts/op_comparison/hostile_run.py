"""Runs bad calls through `tf.raw_ops` of TensorFlow or of stoker, in a process that may die of them.

    python hostile_run.py MODULE CASES FOLDER [NUMBER ...]

Each case runs eagerly, in a graph of constants, and in a graph of placeholders whose shapes are unknown. What came out goes
to FOLDER in chunks (as in oracle.py): {"eager": [phase, error, text], ...}, error being "" for a value.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from exchange import Function, Output, Reader, Variable
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


def outcomes(tf: Any, case: dict[str, Any], number: int) -> dict[str, Any]:
    """What comes of a case in each of the three modes."""
    nothing = ["run", "", ""]
    if "steps" in case:
        modes = ("static", "unknown") if case["graph"] else ("eager", "static", "unknown")
        return {"eager": nothing, **{mode: outcome(run_program, tf, case, mode, number) for mode in modes}}
    return {
        "eager": nothing if case["graph"] else outcome(run_eagerly, tf, case),
        "static": outcome(run_in_graph, tf, case, True),
        "unknown": outcome(run_in_graph, tf, case, False),
    }


# Bodies of functions, by the names that sequences.py gives them: of a vector x of floats and an int32 n.
BODIES: dict[str, Any] = {
    "step": lambda tf, x, n: [x + 1.0, n - 1],
    "same": lambda tf, x, n: [x, n],
    "swapped": lambda tf, x, n: [n, x],
    "one": lambda tf, x, n: [x],
    "three": lambda tf, x, n: [x, n, n],
    "longer": lambda tf, x, n: [tf.concat([x, x], 0), n - 1],
    "vector": lambda tf, x, n: [x, tf.stack([n, n])],
    "below": lambda tf, x, n: [n > 0],
    "count": lambda tf, x, n: [n],
    "text": lambda tf, x, n: [tf.constant("")],
    "bools": lambda tf, x, n: [x > 100.0],
    "two_flags": lambda tf, x, n: [n > 0, n > 0],
    "no_flag": lambda tf, x, n: [],
    "one_only": lambda tf, x, n: [tf.stack([n > 0])],
    "first": lambda tf, x: [x],
}


def traced(tf: Any, value: Any) -> Any:
    """An attribute with functions in it made."""
    if isinstance(value, list):
        return [traced(tf, item) for item in value]
    if not isinstance(value, Function):
        return value
    specs = [tf.TensorSpec(shape, dtype) for dtype, shape in value.arguments]
    body = BODIES[value.body]
    return tf.function(lambda *arguments: body(tf, *arguments), input_signature=specs).get_concrete_function()


def run_program(tf: Any, case: dict[str, Any], mode: str, number: int, phase: list[str]) -> None:
    """The steps of a program, one after the other; in a graph, one run of all with an edge from each to the next."""
    v1 = tf.compat.v1
    made: list[Any] = []
    feeds: dict[Any, Any] = {}

    def value_of(item: Any) -> Any:
        if isinstance(item, list):
            return [value_of(each) for each in item]
        if isinstance(item, Output):
            found = made[item.step]
            return found if not isinstance(found, (list, tuple)) else found[item.index]
        dtype = tf.string if item.dtype.kind == "O" else tf.as_dtype(item.dtype)
        if mode != "unknown":
            return tf.constant(item, dtype)
        tensor = v1.placeholder(dtype, None)
        feeds[tensor] = item
        return tensor

    def call_step(step: dict[str, Any]) -> Any:
        attrs = {
            key: f"{mode}{number}" if value == "<unique>" else traced(tf, value) for key, value in step["attrs"].items()
        }
        # Placeholders must not be made behind an edge, which would then be taken to order the op as well.
        with tf.control_dependencies(None) if mode != "eager" else contextlib.nullcontext():
            inputs = {name: value_of(item) for name, item in step["inputs"].items()}
        return call(tf, step["op"], inputs, attrs)

    if mode == "eager":
        phase[0] = "run"
        for step in case["steps"]:
            made.append(call_step(step))
        return
    config = v1.ConfigProto(operation_timeout_in_ms=1000)
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        ready: list[Any] = []
        for step in case["steps"]:
            with tf.control_dependencies(ready):
                made.append(call_step(step))
            ready = [getattr(tensor, "op", tensor) for tensor in flatten(made[-1])] or [made[-1]]
        outputs = [
            t
            for t in flatten(made)
            if t.dtype.base_dtype not in (tf.resource, tf.variant) and not t.dtype._is_ref_dtype
        ]
        operations = [each for each in made if type(each).__name__ == "Operation"]
        phase[0] = "run"
        session.run([*outputs, *operations, *ready], feeds)


def main() -> None:
    name, source, folder = sys.argv[1], Path(sys.argv[2]).absolute(), Path(sys.argv[3]).absolute()
    fatal = {int(number) for number in sys.argv[4:]}
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    tf = importlib.import_module(name)
    reader = Reader(source, tf)
    with tempfile.TemporaryDirectory() as scratch:  # programs write files there
        os.chdir(scratch)
        run_all(tf, reader, name, folder, fatal)
    print("done", flush=True)


def run_all(tf: Any, reader: Reader, name: str, folder: Path, fatal: set[int]) -> None:
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
            found = outcomes(tf, case, number)
            found["grown"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
            results.append(found)
        signal.alarm(0)
        path.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
