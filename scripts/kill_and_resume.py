"""Kills a training program again and again at random moments, and compares what it ends with to a run that nobody touched.

python scripts/kill_and_resume.py [--kills 20] [--steps 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "train" / "sessions" / "killed_training.py"
TOLERANCE = 1e-5


def start(directory: str, steps: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), directory, str(steps)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finish(program: subprocess.Popen[str]) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Returns the parameters that a program ends with, and the threads and open files that it has left."""
    out, _ = program.communicate()
    if program.returncode:
        sys.exit(f"the program ended with status {program.returncode}")
    left, parameters = map(json.loads, out.splitlines()[-2:])
    return {name: np.array(value) for name, value in parameters.items()}, left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    moments = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as killed:
        expected, _ = finish(start(whole, args.steps))
        for _ in tqdm(range(args.kills), unit="kill"):
            program = start(killed, args.steps)
            assert program.stdout is not None
            # Some moments lie in the start, where the checkpoint is read; most in training.
            for _ in range(moments.randrange(0, 2 * args.steps // args.kills)):
                program.stdout.readline()
            time.sleep(moments.random() * 0.05)
            program.kill()
            program.communicate()
        found, left = finish(start(killed, args.steps))
        worst = max(float(np.abs(found[name] - value).max()) for name, value in expected.items())
        strange = [name for name in os.listdir(killed) if name.startswith(".") or "_temp" in name]
    left["temporary files"] = strange
    print(f"killed {args.kills} times; largest difference {worst:.2g}; left:", left)
    sys.exit(worst > TOLERANCE or any(left.values()))


if __name__ == "__main__":
    main()
