"""Interrupts and terminates training programs in the middle of a step, of a blocked dequeue and of an input thread, and measures how long they take to end.

python scripts/interrupts.py [--rounds 3] [--seconds 2] [--seed 0]

Each program must end within the given time after SIGINT (with KeyboardInterrupt) or SIGTERM, and leave a checkpoint that can be read.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stoker.compat.v1 as tf

ROOT = Path(__file__).resolve().parent.parent
# A shell that starts this script in the background has its children ignore interrupts: the program takes them again.
PROGRAM = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import stoker.compat.v1 as tf

where, directory = sys.argv[1:]
w = tf.get_variable("w", [400, 400], initializer=tf.ones_initializer())
step = tf.train.get_or_create_global_step()
reached = threading.Event()

def record():
    # An input thread that waits, as one that reads from a network does, once there is something to train on.
    if where == "an input thread" and reached.is_set():
        time.sleep(3600)
    return np.ones([400], np.float32)

record_tensor = tf.py_func(record, [], tf.float32)
record_tensor.set_shape([400])
x = tf.train.batch([record_tensor], 8, num_threads=2, capacity=16)
x = x if where != "a step" else x + 0.0 * tf.reduce_sum(tf.while_loop(lambda i, m: i < 200, lambda i, m: (i + 1, tf.tanh(tf.matmul(m, w))), [0, w])[1])
loss = tf.reduce_mean(tf.matmul(x, w))
train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, global_step=step)
never = tf.FIFOQueue(1, tf.float32, [[]]).dequeue()
with tf.train.MonitoredTrainingSession(checkpoint_dir=directory, save_checkpoint_steps=2, save_checkpoint_secs=None) as session:
    while not session.should_stop():
        number = session.run([train, step])[1]
        if number >= 5 and not reached.is_set():
            reached.set()
            print("ready", flush=True)
        if number >= 5 and where == "a blocked dequeue":
            session.run(never)
"""
WAYS = ("a step", "a blocked dequeue", "an input thread")
WHOLE = re.compile(r"checkpoint|graph\.pbtxt|events\.out\.tfevents\..*|model\.ckpt-\d+\.(index|meta|data-\d+-of-\d+)")


def attempt(where: str, number: signal.Signals, pause: float) -> tuple[float, str]:
    """Sends a signal to a program. Returns the seconds until it ended, and what is wrong with it or what it left."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", PROGRAM, where, directory]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as program:
            assert program.stdout is not None
            if program.stdout.readline() != "ready\n":
                return 0.0, f"did not start: {program.communicate()[1][-500:]}"
            time.sleep(pause)
            start = time.monotonic()
            program.send_signal(number)
            try:
                _, errors = program.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                program.kill()
                return 60.0, "did not end"
            spent = time.monotonic() - start
        if number is signal.SIGINT and not errors.rstrip().endswith("KeyboardInterrupt"):
            return spent, f"ended with {errors[-500:]}"
        if number is signal.SIGTERM and program.returncode != -signal.SIGTERM:
            return spent, f"ended with status {program.returncode}"
        path = tf.train.latest_checkpoint(directory)
        reader = tf.train.NewCheckpointReader(path) if path else None
        if reader is None or reader.get_tensor("global_step") < 2 or reader.get_tensor("w").shape != (400, 400):
            return spent, f"left no checkpoint: {os.listdir(directory)}"
        # Terminated programs cannot tidy up: the next one that opens the directory does.
        strange = [name for name in os.listdir(directory) if not WHOLE.fullmatch(name)]
        return spent, f"left {strange}" if strange and number is signal.SIGINT else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    moments = random.Random(args.seed)
    failures = 0
    for where in WAYS:
        for number in (signal.SIGINT, signal.SIGTERM):
            results = [attempt(where, number, moments.random()) for _ in range(args.rounds)]
            slowest = max(seconds for seconds, _ in results)
            problems = [problem for _, problem in results if problem]
            failures += bool(problems) or slowest > args.seconds
            print(f"{number.name} in {where}: {args.rounds} times, slowest end {slowest:.2f} s", *problems, flush=True)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
