"""Drives every op with bad input and compares what stoker raises with what TensorFlow raises.

    python scripts/bad_inputs.py [--tf2 PYTHON] [--only OP ...] [--folder FOLDER] [--variants N] [--most N] [--sequences]

The cases are variants (op_comparison/hostile.py) of one good call of each op, or with --sequences of short programs of
stateful ops (op_comparison/sequences.py), of which --only then names the first one. Reported are, for eager calls, graphs of
constants and graphs of unknown shapes: errors that are no TensorFlow error, messages of torch, crashes, large allocations,
and classes or phases (building, running) that differ from TensorFlow's. The exit status is 1 where any of the first four occur.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from op_comparison.cases import Case, case_from, sample_tables  # noqa: E402
from op_comparison.exchange import Writer  # noqa: E402
from op_comparison.extra import extra_cases  # noqa: E402
from op_comparison.hostile import describe, hostile_variants  # noqa: E402
from op_comparison.sequences import Program, bad_programs, describe_program  # noqa: E402
from op_table import as_message  # noqa: E402

from stoker._src import ops  # noqa: E402, F401  # defines them
from stoker._src.base import errors  # noqa: E402
from stoker._src.graph.definition import find_definition  # noqa: E402

RUNNER = ROOT / "scripts" / "op_comparison" / "hostile_run.py"
MODES = ("eager", "static", "unknown")
ALLOWED = {"", "ValueError", "TypeError", "LookupError", "KeyError"} | {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.OpError)
}
# Words of torch, and of Python's own errors about our code.
FOREIGN = (
    "torch", "INTERNAL ASSERT", "size mismatch", "Expected all", "Expected size", "Expected tensor", "must match the size of tensor", "aten::", "not implemented for '",
    "index out of bounds", "invalid shape dimension", "object has no attribute", "expected scalar type", "out of range (expected",
    "dimension out of range", "storage", "NoneType", "takes ", "positional argument", "not supported between instances",
    "list index out of range", "unsupported operand", "broadcast_tensors", "numel", "cannot reshape array",
)  # fmt: skip
LARGE = 1024  # MiB
# TensorFlow has no kernel for this, the op is gone from its newest graphs, or it has no answer.
NO_ANSWER = ("Crash", "NotFoundError", "UnimplementedError", "AttributeError", "NotImplementedError")


# Ops that take float64 here and not in TensorFlow: their samples are made float32.
WIDER_HERE = ("FusedBatchNorm", "FusedBatchNormGrad", "LRN", "LRNGrad", "MaxPool3D", "MaxPool3DGrad")


def good_cases() -> list[Case]:
    """The first good call of each op."""
    found: dict[str, Case] = {}
    for sample in sample_tables():
        definition = find_definition(sample.op)
        assert definition is not None
        if any("func" in spec.kind for spec in definition.attrs.values()):
            continue  # the sample's functions exist in its own graph only
        if sample.raises is None and sample.op not in found:
            inputs = [
                each.astype(np.float32)
                if sample.op in WIDER_HERE and getattr(each, "dtype", None) == np.float64
                else each
                for each in sample.inputs
            ]
            found[sample.op] = case_from(sample.op, inputs, sample.attrs)
    for case in extra_cases():
        found.setdefault(case.op, case)
    return [case for _, case in sorted(found.items())]


def bad_calls(most: int) -> list[Case]:
    return [variant for case in good_cases() for variant in spread(list(hostile_variants(case)), most)]


def message(case: Case | Program) -> dict[str, Any]:
    return case.message() if isinstance(case, Program) else as_message(case)


def described(case: Case | Program) -> str:
    return describe_program(case) if isinstance(case, Program) else describe(case)


def spread(variants: list[Case], most: int) -> list[Case]:
    step = max(1.0, len(variants) / most)
    return [variants[int(i * step)] for i in range(min(most, len(variants)))]


def run_side(python: str, module: str, folder: Path) -> list[dict[str, Any]]:
    environment = dict(
        os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", OMP_NUM_THREADS="1",
        PYTHONPATH=str(ROOT) if module == "stoker" else "",
    )  # fmt: skip
    fatal: list[str] = []
    while True:
        done = subprocess.run(
            [python, str(RUNNER), module, str(folder / "cases"), str(folder), *fatal],
            env=environment, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        lines = done.stdout.split()
        if lines and lines[-1] == "done":
            break
        if not lines or lines[-1] in fatal:
            raise SystemExit(f"{python} failed with status {done.returncode}: {done.stderr[-2000:]}")
        fatal.append(lines[-1])
    paths = sorted(folder.glob(f"{module}_*.json"), key=lambda path: int(path.stem.split("_")[1]))
    return [result for path in paths for result in json.loads(path.read_text())]


def judged(ours: dict[str, Any], theirs: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind of finding, text) for one case."""
    findings = []
    if ours.get("grown", 0) > LARGE:
        findings.append(("allocates", f"{ours['grown']} MiB"))
    for mode in MODES:
        phase, error, text = ours[mode]
        their_phase, their_error, their_text = theirs[mode]
        if error == "Crash":
            if their_error != "Crash":  # where both take longer than they are given, the sizes alone are to blame
                findings.append(("crash", mode))
        elif error not in ALLOWED:
            findings.append(("foreign class", f"{mode}: {error}: {text}"))
        elif any(word in text for word in FOREIGN) and text != their_text:
            findings.append(("foreign text", f"{mode}: {error}: {text}"))
        if their_error in NO_ANSWER or error == "Crash":
            continue
        if mode != "eager" and theirs["eager"][1] == "NotFoundError" and their_phase == "run":
            continue  # a graph says so with InvalidArgumentError
        if error != their_error:
            label = "accepts" if not error else "refuses" if not their_error else "another class"
            findings.append((label, f"{mode}: {error or 'a value'} ({text:.110}), TensorFlow {their_error or 'a value'} ({their_text:.110})"))  # fmt: skip
        elif error and phase != their_phase:
            findings.append(("another phase", f"{mode}: {phase}, TensorFlow {their_phase} ({error}: {text:.80})"))
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--tf2", default=os.environ.get("STOKER_TF2", str(ROOT / ".venvs/tf2/bin/python")))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--variants", type=int, default=10**9, help="calls of each op, spread over all there are")
    parser.add_argument("--sequences", action="store_true", help="programs of queues, tables, lists, functions, ...")
    parser.add_argument("--most", type=int, default=10**9, help="findings to print of each kind")
    arguments = parser.parse_args()
    cases: list[Any] = bad_programs() if arguments.sequences else bad_calls(arguments.variants)
    cases = [case for case in cases if not arguments.only or case.op in arguments.only]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        writer = Writer()
        writer.save(folder / "cases", [writer.pack(message(case)) for case in cases])
        with ThreadPoolExecutor() as pool:
            sides = pool.map(run_side, (arguments.tf2, sys.executable), ("tensorflow", "stoker"), (folder, folder))
            theirs, ours = sides
    counts: Counter[str] = Counter()
    for case, one, other in zip(cases, ours, theirs):
        for kind, text in judged(one, other):
            counts[kind] += 1
            if counts[kind] <= arguments.most:
                print(f"{kind}: {described(case)}: {text}")
    print(f"{len(cases)} calls, {len({case.op for case in cases})} ops: {dict(counts)}")
    sys.exit(any(counts[kind] for kind in ("foreign class", "foreign text", "crash", "allocates")))


if __name__ == "__main__":
    main()
