"""Kills a training program again and again at random moments, and compares what it ends with to a run that nobody touched.

python scripts/kill_and_resume.py [--kills 20] [--steps 200] [--seed 0]

Each start of the program is a process that is forked from this one, which has loaded stoker: that saves most of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import IO

import numpy as np
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import stoker.compat.v1 as tf  # noqa: E402
from tests.train.sessions import killed_training  # noqa: E402

TOLERANCE = 1e-5


def start(directory: str, steps: int) -> tuple[int, IO[str]]:
    """Starts the program. Returns the number of its process and what it prints."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, os.fdopen(reading)
    status = 1
    try:
        os.close(reading)
        os.dup2(writing, 1)
        killed_training.main(directory, steps)
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finish(directory: str, steps: int) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Runs the program to its end. Returns the parameters that it ends with, and the threads and open files that it has left."""
    process, output = start(directory, steps)
    lines = output.read().splitlines()
    _, status = os.waitpid(process, 0)
    if status:
        sys.exit(f"the program ended with status {status}")
    left, parameters = map(json.loads, lines[-2:])
    return {name: np.array(value) for name, value in parameters.items()}, left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    assert tf.no_op  # loads the ops
    moments = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as killed:
        expected, _ = finish(whole, args.steps)
        for _ in tqdm(range(args.kills), unit="kill"):
            process, output = start(killed, args.steps)
            # Some moments lie in the start, where the checkpoint is read; most in training.
            for _ in range(moments.randrange(0, 2 * args.steps // args.kills)):
                output.readline()
            time.sleep(moments.random() * 0.05)
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            output.close()
        found, left = finish(killed, args.steps)
        worst = max(float(np.abs(found[name] - value).max()) for name, value in expected.items())
        left["temporary files"] = [name for name in os.listdir(killed) if name.startswith(".") or "_temp" in name]
    print(f"killed {args.kills} times; largest difference {worst:.2g}; left:", left)
    sys.exit(worst > TOLERANCE or any(left.values()))


if __name__ == "__main__":
    main()
