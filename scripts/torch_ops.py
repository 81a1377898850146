"""Takes every sample of the op tests through `stoker.to_torch` and compares values and gradients with the Session.

    python scripts/torch_ops.py [--export] [--op NAME ...]

Prints a line for each op that differs or is refused, and the counts. With --export the first sample of each op also goes through
torch.export. Ops on strings, resources and lists, and samples that must fail, are left out.
"""

from __future__ import annotations

import argparse
import collections
import gc
import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

import stoker  # noqa: E402
import stoker.compat.v1 as tf  # noqa: E402
from stoker._src.base import dtypes  # noqa: E402
from stoker._src.graph.definition import find_definition  # noqa: E402
from stoker._src.ops.support.values import from_numpy  # noqa: E402


def all_samples() -> list:
    samples = importlib.import_module("tests.ops.samples")
    package = importlib.import_module("tests.ops")
    for module in pkgutil.walk_packages(package.__path__, "tests.ops."):
        importlib.import_module(module.name)
    found = [item for item in gc.get_objects() if isinstance(item, samples.Sample) and item.raises is None]
    return sorted(found, key=lambda sample: sample.op)


def check(sample, exports: bool) -> str:
    """Returns "" or what is wrong."""
    samples = importlib.import_module("tests.ops.samples")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        placeholders, feeds = samples._placeholders(sample, known=True)
        outputs = [t for t in samples._call(sample, placeholders) if t.dtype is not dtypes.variant]
        expected = session.run(outputs, feeds)
        try:
            module = stoker.to_torch(graph, list(feeds), list(outputs))
        except NotImplementedError as error:
            return "refused: " + str(error).splitlines()[-1].strip()
        given = [from_numpy(np.array(value)) for value in feeds.values()]
        floating = [i for i, value in enumerate(given) if value.dtype in (torch.float32, torch.float64)]
        for i in floating:
            given[i].requires_grad_(True)
        results = module(*given)
        for value, result in zip(expected, results):
            found = result.detach().resolve_conj().numpy() if isinstance(result, torch.Tensor) else np.asarray(result)
            if found.shape != value.shape or found.dtype != value.dtype:
                return f"value: {found.dtype}{found.shape} instead of {value.dtype}{value.shape}"
            if not np.allclose(found, value, rtol=1e-4, atol=1e-5, equal_nan=True):
                return "value: differs"
        problem = _gradients(sample, session, outputs, results, feeds, given, floating)
        if problem:
            return problem
        if exports:
            try:
                torch.export.export(module, tuple(value.detach() for value in given))
            except Exception as error:
                return "export: " + str(error).splitlines()[0][:100]
    return ""


def _gradients(sample, session, outputs, results, feeds, given, floating) -> str:
    definition = find_definition(sample.op)
    sums = [(t, r) for t, r in zip(outputs, results) if t.dtype in (tf.float32, tf.float64)]
    if (
        not definition.differentiable
        or definition.gradient_fn is None
        or not sums
        or not floating
        or sample.gradient is False
    ):
        return ""
    tensors = [list(feeds)[i] for i in floating]
    rng = np.random.RandomState(3)
    weights = [rng.uniform(0.5, 1.5, r.shape).astype(t.dtype.as_numpy_dtype) for t, r in sums]
    wanted = tf.gradients([t for t, _ in sums], tensors, [tf.constant(w) for w in weights])
    got = (
        torch.autograd.grad(
            [r for _, r in sums if r.requires_grad],
            [given[i] for i in floating],
            [torch.tensor(w) for (_, r), w in zip(sums, weights) if r.requires_grad],
            allow_unused=True,
        )
        if any(r.requires_grad for _, r in sums)
        else [None] * len(floating)
    )
    for tensor, expected, found in zip(tensors, wanted, got):
        expected = None if expected is None else session.run(tf.convert_to_tensor(expected), feeds)
        zero = np.zeros(1) if found is None else found.detach().numpy()
        if expected is None:
            if found is not None and np.any(zero):
                return f"gradient: torch has one for {tensor.name}, TensorFlow none"
        elif not np.allclose(zero, expected, rtol=1e-3, atol=1e-5, equal_nan=True):
            return f"gradient: differs for {tensor.name}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", action="store_true", help="also torch.export the first sample of each op")
    parser.add_argument("--op", nargs="+", help="only these")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter = collections.Counter()
    problems: dict[str, list[str]] = {}
    ops: set[str] = set()
    for sample in all_samples():
        definition = find_definition(sample.op)
        kinds = [
            np.asarray(leaf).dtype.kind
            for item in sample.inputs
            for leaf in (item if isinstance(item, list) else [item])
        ]
        if "O" in kinds or "S" in kinds or definition is None or (args.op and sample.op not in args.op):
            continue
        if any(
            arg.is_ref or (arg.dtype and arg.dtype.name in ("resource", "variant", "string"))
            for arg in (*definition.inputs, *definition.outputs)
        ):
            continue
        first = sample.op not in ops
        ops.add(sample.op)
        counts["samples"] += 1
        try:
            problem = check(sample, args.export and first)
        except Exception as error:
            problem = f"error: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
        if problem:
            counts[problem.split(":")[0]] += 1
            if problem not in problems.setdefault(sample.op, []):
                problems[sample.op].append(problem)
                print(f"{sample.op}: {problem}", flush=True)
    print(
        f"{len(ops)} ops, {len(ops) - len(problems)} without any problem; "
        + ", ".join(f"{n} {k}" for k, n in counts.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
