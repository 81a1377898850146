"""What becomes of runs when the process ends or forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

_START = """
import os, sys, threading
import numpy as np
import stoker.compat.v1 as tf
"""


def run_program(text):
    """Runs a program in a process of its own; the process that ended."""
    return subprocess.run(
        [sys.executable, "-c", _START + text],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


_DAEMONS = {
    "steps": """
x = tf.constant(np.full([300, 300], 0.01, np.float32))
y = x
for _ in range(20):
    y = tf.tanh(tf.matmul(y, x) + tf.random_normal([600, 300])[:300])
def work():
    session.run(y)
""",
    "loop": """
x = tf.constant(np.full([100, 100], 0.01, np.float32))
y = tf.while_loop(lambda i, a: i >= 0, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, x))), [0, x])
def work():
    started.set()
    session.run(y)
""",
    "dequeue": """
y = tf.FIFOQueue(1, tf.float32).dequeue()
def work():
    started.set()
    session.run(y)
""",
    "eager": """
tf.enable_eager_execution()
def work():
    y = tf.ones([300, 300])
    for _ in range(20):
        y = tf.tanh(tf.matmul(y, y))
""",
}


@pytest.mark.parametrize("kind", _DAEMONS)
def test_a_daemon_thread_in_a_run_does_not_disturb_the_end_of_the_program(kind):
    """The exit status is the program's and nothing is printed, also where daemon threads are inside of runs when it ends."""
    done = run_program(
        "started = threading.Event()\n"
        f"{_DAEMONS[kind]}\n"
        "session = None if tf.executing_eagerly() else tf.Session()\n"
        "def loop():\n"
        "    while True:\n"
        "        work()\n"
        "        started.set()\n"
        "for _ in range(3):\n"
        "    threading.Thread(target=loop, daemon=True).start()\n"
        "started.wait()\n"
        "sys.exit(7)\n"
    )
    assert (done.returncode, done.stderr) == (7, "")


def test_threads_go_on_when_the_main_one_has_ended():
    """A thread that is not a daemon runs its steps to their end, also those that want threads of their own."""
    done = run_program(
        "y = tf.reduce_sum(tf.random_uniform([1 << 20], seed=3))\n"
        "session = tf.Session()\n"
        "def work():\n"
        "    threading.main_thread().join()\n"
        "    print(session.run(y) > 0)\n"
        "threading.Thread(target=work).start()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_forked_child_computes():
    """Kernels that share their work among threads run in a child that was forked after the parent used those threads."""
    done = run_program(
        "import warnings; warnings.simplefilter('ignore')\n"
        "with tf.device('/cpu:0'):\n"  # CUDA itself does not survive a fork
        "    x = tf.constant(np.full([700, 700], 0.01, np.float32))\n"
        "    y = tf.reduce_sum(tf.nn.relu(tf.matmul(x, x)) + tf.exp(x) + tf.random_uniform([700, 700]))\n"
        "session = tf.Session()\n"
        "session.run(y)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(5 if session.run(y) > 0 else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
