"""Saves and restores a variable of more than 2 GB and a partitioned one of more than 4 GB, and measures the memory that takes.

python scripts/large_variables.py [--gigabytes 2.2 4.4]

Prints the peak of the process's memory in relation to the variable's size. The exit status is 1 where it is above 1.3, or where a value is wrong.
Needs about 7 GB of memory and 5 GB on the disk.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stoker.compat.v1 as tf

LIMIT = 1.3
COLUMNS = 1 << 20


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def measure(label: str, size: int, base: int, work) -> bool:
    gc.collect()
    reset_peak()
    work()
    ratio = (status("VmHWM") - base) / size
    print(
        f"{label}: {ratio:.2f} times the variable's {size / 1e9:.1f} GB (at the start {base / 1e9:.1f} GB)", flush=True
    )
    return ratio <= LIMIT


def run(gigabytes: float, parts: int, folder: str) -> bool:
    gc.collect()
    rows = int(gigabytes * 1e9 / 4 / COLUMNS)
    size, base = rows * COLUMNS * 4, status("VmRSS")
    path = os.path.join(folder, "model")
    with tf.Graph().as_default(), tf.Session() as session:
        partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
        variable = tf.get_variable("v", [rows, COLUMNS], initializer=tf.zeros_initializer(), partitioner=partitioner)
        pieces = list(variable) if parts > 1 else [variable]
        session.run([each.initializer for each in pieces])
        corner = [each[-1, -3:] for each in pieces]
        marks = [
            tf.scatter_update(each, [int(each.shape[0]) - 1], tf.fill([1, COLUMNS], float(i + 1)))
            for i, each in enumerate(pieces)
        ]
        session.run([mark.op for mark in marks])
        saver = tf.train.Saver()
        name = f"{gigabytes} GB in {parts} part(s)"
        fine = measure(f"{name}, save", size, base, lambda: saver.save(session, path, write_meta_graph=False))
        session.run([each.initializer for each in pieces])
        fine &= measure(f"{name}, restore", size, base, lambda: saver.restore(session, path))
        found = [value.tolist() for value in session.run(corner)]
        fine &= found == [[float(i + 1)] * 3 for i in range(parts)]
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, nargs=2, default=[2.2, 4.4])
    args = parser.parse_args()
    fine = True
    for gigabytes, parts in zip(args.gigabytes, (1, 3)):
        with tempfile.TemporaryDirectory() as folder:
            fine &= run(gigabytes, parts, folder)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
