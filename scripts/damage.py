"""Flips every byte of small checkpoints and SavedModels, cuts them at every length, and reads what is left.

python scripts/damage.py [--stride N] [--flips 255,1,128] [KIND...]

Kinds: bundle, v1, meta, model, objects. Reading a damaged file must raise an error of tf.errors (or the Python exception that is documented for
the reader), or give the same values; it must not take more than a few times the memory of the undamaged file. Prints the counts; the exit status is 1
where anything else happened.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.graph import context

SPACE = 1 << 30
"""How much address space reading may take beyond what the process has: a claimed size must not be allocated."""
# What readers document: Saver and readers raise tf.errors; MetaGraphs and SavedModels also ValueError, OSError and RuntimeError.
ERRORS = (tf.errors.OpError, ValueError, TypeError, KeyError, OSError, RuntimeError, NotImplementedError)


class Case:
    """Files that are written once, and how they are read.

    Args:
        write: writes them below a folder.
        read: reads them and returns arrays by name.
        documented: the exceptions that the reader may raise.
    """

    def __init__(self, write: Callable[[str], None], read: Callable[[str], Any], documented: tuple[Any, ...]) -> None:
        self.write, self.read, self.documented = write, read, documented


def _graph() -> Any:
    a = tf1.get_variable("a", [3], initializer=tf1.constant_initializer(1.5))
    b = tf1.get_variable("b", [2, 2], tf.float64, tf1.constant_initializer(-2.0))
    c = tf1.get_variable("c", [2], tf.string, lambda shape, **_: tf.constant([b"one", b"two"]))
    return {"a": a, "b": b, "c": c, "y": tf.add(a, 1.0, name="y")}


def _save(folder: str, **options: Any) -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        _graph()
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver(**options).save(session, os.path.join(folder, "model"), write_meta_graph=False)


def _read_tensors(folder: str) -> Any:
    reader = tf1.train.NewCheckpointReader(os.path.join(folder, "model"))
    return {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}


def _write_meta(folder: str) -> None:
    with tf1.Graph().as_default():
        _graph()
        tf1.train.Saver()
        tf1.train.export_meta_graph(os.path.join(folder, "model.meta"))


def _read_meta(folder: str) -> Any:
    with tf1.Graph().as_default() as graph, tf1.Session(graph=graph) as session:
        tf1.train.import_meta_graph(os.path.join(folder, "model.meta"))
        session.run([variable.initializer for variable in tf1.global_variables()])
        return {"y": session.run("y:0")}


def _write_model(folder: str) -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        tensors = _graph()
        session.run(tf1.global_variables_initializer())
        tf1.saved_model.simple_save(session, os.path.join(folder, "m"), {"a": tensors["a"]}, {"y": tensors["y"]})


def _read_model(folder: str) -> Any:
    with tf1.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.load(session, ["serve"], os.path.join(folder, "m"))
        return {"y": session.run(meta.signature_def["serving_default"].outputs["y"].name)}


def _write_objects(folder: str) -> None:
    with context.enter_eager():
        module = tf.Module()
        module.v = tf.Variable([1.0, 2.0])
        module.parts = [tf.Variable(3.0), {"k": tf.Variable(4)}]
        module.f = tf.function(lambda x: x * module.v + module.parts[0], input_signature=[tf.TensorSpec([2])])
        table = tf.lookup.KeyValueTensorInitializer([b"a"], tf.constant([5], tf.int64))
        module.table = tf.lookup.StaticHashTable(table, -1)
        module.g = tf.function(module.table.lookup, input_signature=[tf.TensorSpec([None], tf.string)])
        tf.saved_model.save(module, os.path.join(folder, "m"), signatures={"f": module.f})


def _read_objects(folder: str) -> Any:
    with context.enter_eager():
        loaded = tf.saved_model.load(os.path.join(folder, "m"))
        return {
            "v": loaded.v.numpy(),
            "f": loaded.f(tf.constant([1.0, 1.0])).numpy(),
            "g": loaded.g(tf.constant([b"a", b"b"])).numpy(),
            "parts": np.array([loaded.parts[0].numpy(), loaded.parts[1]["k"].numpy()]),
            "signature": loaded.signatures["f"](tf.constant([1.0, 1.0]))["output_0"].numpy(),
        }


CASES = {
    "bundle": Case(_save, _read_tensors, (tf.errors.OpError,)),
    "v1": Case(lambda folder: _save(folder, write_version=tf1.train.SaverDef.V1), _read_tensors, (tf.errors.OpError,)),
    "meta": Case(_write_meta, _read_meta, ERRORS),
    "model": Case(_write_model, _read_model, ERRORS),
    "objects": Case(_write_objects, _read_objects, (*ERRORS, AttributeError)),
}


def damages(data: bytes, flips: list[int], stride: int) -> Iterator[tuple[str, bytes]]:
    """Gives the contents with one byte changed, and all shorter ones."""
    for position in range(0, len(data), stride):
        for flip in flips:
            changed = bytearray(data)
            changed[position] ^= flip
            yield f"byte {position} ^ {flip}", bytes(changed)
    for length in range(0, len(data), stride):
        yield f"cut at {length}", data[:length]


def same(expected: Any, found: Any) -> bool:
    return expected.keys() == found.keys() and all(
        value.dtype == found[name].dtype and np.array_equal(value, found[name]) for name, value in expected.items()
    )


def run(
    case: Case, folder: str, flips: list[int], stride: int, *, checksummed: bool
) -> tuple[dict[str, int], list[str]]:
    """Damages each file in every way: counts of outcomes, and what should not have happened.

    Args:
        case: the files.
        folder: where to write them.
        flips: what bytes are changed by.
        stride: damage every `stride`-th byte.
        checksummed: whether the files carry checksums. If not, a changed byte may give other values: no reader could tell.
    """
    case.write(folder)
    expected = case.read(folder)
    counts: dict[str, int] = collections.Counter()
    wrong = []
    files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.name != "checkpoint"]
    used = _address_space()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + SPACE, limits[1]))
    try:
        for path in files:
            data = path.read_bytes()
            protects = checksummed or "variables" in path.parts
            for label, contents in damages(data, flips, stride):
                path.write_bytes(contents)
                started = time.perf_counter()
                try:
                    outcome = "same values" if same(expected, case.read(folder)) else "other values"
                    if outcome == "other values" and protects:
                        wrong.append(f"{path.name}, {label}: other values")
                except case.documented as error:
                    outcome = type(error).__name__
                    if isinstance(error, tf.errors.InternalError):
                        wrong.append(f"{path.name}, {label}: {error}")
                except (MemoryError, Exception) as error:
                    outcome = type(error).__name__
                    wrong.append(f"{path.name}, {label}: {outcome}: {error}")
                counts[outcome] += 1
                if time.perf_counter() - started > 20:
                    wrong.append(f"{path.name}, {label}: took {time.perf_counter() - started:.0f} s")
            path.write_bytes(data)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return counts, wrong


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="damage every N-th byte")
    parser.add_argument("--flips", default="255,1,128", help="what bytes are changed by (exclusive or)")
    parser.add_argument("kinds", nargs="*", help="default: all")
    args = parser.parse_args()
    tf1.logging.set_verbosity(tf1.logging.FATAL)
    flips, failed = [int(each) for each in args.flips.split(",")], 0
    for name in args.kinds or CASES:
        folder = tempfile.mkdtemp()
        try:
            counts, wrong = run(CASES[name], folder, flips, args.stride, checksummed=name in ("bundle", "v1"))
        finally:
            shutil.rmtree(folder)
        print(f"{name}: {sum(counts.values())} cases: {dict(counts)}; {len(wrong)} wrong", flush=True)
        for each in wrong[:20]:
            print(f"  {each[:300]}")
        failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
