"""Damages TFLite models byte by byte and counts what becomes of them: refused with ValueError, or run. Anything else is a defect.

    python scripts/damage_tflite.py [--patterns ff,01,80] [--truncations] MODEL.tflite ...

Each byte is combined with each pattern by exclusive or; with --truncations each prefix of a file is tried as well. The damaged models run in
child processes with a limit on memory and time, so that a crash or a hang is counted and named. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

import stoker

SECONDS, BYTES, BATCH = 60, 8 << 30, 400
Case = tuple[str, int, int]


def damaged(content: bytes, case: Case) -> bytes:
    kind, position, pattern = case
    if kind == "cut":
        return content[:position]
    return content[:position] + bytes([content[position] ^ pattern]) + content[position + 1 :]


def cases(content: bytes, patterns: list[int], truncations: bool) -> Iterator[Case]:
    for pattern in patterns:
        yield from (("flip", position, pattern) for position in range(len(content)))
    if truncations:
        yield from (("cut", position, 0) for position in range(len(content)))


def attempt(content: bytes) -> str:
    """Loads a model and runs it twice with inputs of ones, then each of its signatures. Returns "ran" or "refused"."""
    try:
        interpreter = stoker.lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
        for _ in range(2 if are_small(details) else 0):
            for detail in details:
                interpreter.set_tensor(detail["index"], ones(detail))
            interpreter.invoke()
            for detail in interpreter.get_output_details():
                interpreter.get_tensor(detail["index"])
        for key in interpreter.get_signature_list():
            runner = interpreter.get_signature_runner(key)
            inputs = runner.get_input_details()
            if are_small(inputs.values()):
                runner(**{name: ones(detail) for name, detail in inputs.items()})
    except ValueError:
        return "refused"
    return "ran"


def are_small(details: Iterable[dict]) -> bool:
    """Whether inputs are worth a run: those of millions of elements are legitimate, and slow."""
    return max((int(np.prod(detail["shape"])) for detail in details), default=0) <= 1 << 20


def ones(detail: dict) -> np.ndarray:
    if detail["dtype"] in (np.bytes_, np.object_):
        return np.full(detail["shape"], b"text", object)
    return np.ones(detail["shape"], detail["dtype"])


def batch(content: bytes, todo: list[Case]) -> tuple[list[str], str]:
    """Tries cases in a child until one ends it. Returns the results, and how the child ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for case in todo:
            signal.alarm(SECONDS)
            try:
                result = attempt(damaged(content, case))
            except BaseException as error:
                result = f"raised {type(error).__name__}: {error}"
            os.write(writer, (" ".join(result.split())[:300] + "\n").encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "r") as lines:
        results = [line.rstrip("\n") for line in lines]
    status = os.waitpid(child, 0)[1]
    return results, "" if not status else f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "exit"


def sweep(path: Path, patterns: list[int], truncations: bool) -> bool:
    content = path.read_bytes()
    todo = list(cases(content, patterns, truncations))
    assert batch(content, [("flip", 0, 0)]) == (["ran"], ""), f"{path} does not run undamaged"
    counts: collections.Counter[str] = collections.Counter()
    while todo:
        results, ending = batch(content, todo[:BATCH])
        if ending:
            results.append(ending)
        for case, result in zip(todo, results, strict=False):
            counts[result if result in ("ran", "refused") else "DEFECT"] += 1
            if result not in ("ran", "refused"):
                print(f"{path.name} {case[0]} byte {case[1]} pattern {case[2]:#x}: {result}", flush=True)
        todo = todo[len(results) :]
    print(path.name, len(content), "bytes:", dict(counts), flush=True)
    return not counts["DEFECT"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Damages TFLite models byte by byte.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--patterns", default="ff")
    parser.add_argument("--truncations", action="store_true")
    args = parser.parse_args()
    # Loaded before children are made: each would load it again.
    assert attempt(b"") == "refused"
    patterns = [int(text, 16) for text in args.patterns.split(",")]
    good = [sweep(path, patterns, args.truncations) for path in args.models]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
