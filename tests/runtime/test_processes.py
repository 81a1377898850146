"""What becomes of runs when the process ends or forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

_START = """
import os, signal, sys, threading
import numpy as np
import stoker.compat.v1 as tf
"""


def run_program(text):
    """Runs a program in a process of its own; the process that ended."""
    return subprocess.run(
        [sys.executable, "-c", _START + text],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
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


_CHILDREN = """
import warnings; warnings.simplefilter('ignore')

def in_child(name, work):
    child = os.fork()
    if not child:
        signal.alarm(300)  # ends a child that waits for ever
        try:
            os._exit(5 if work() else 1)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(2)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_does_not_wait_for_what_threads_of_its_parent_held():
    """A forked child runs steps in a session that other threads of its parent were using, writing, waiting and reading ahead."""
    done = run_program(
        _CHILDREN + "started = threading.Semaphore(0)\n"
        "def tell():\n"
        "    started.release()\n"
        "    return np.int32(0)\n"
        "def after_telling(make):\n"
        "    with tf.control_dependencies([tf.py_func(tell, [], tf.int32)]):\n"
        "        return make()\n"
        "v = tf.get_variable('v', initializer=3.0, use_resource=True)\n"
        "def count(i):\n"
        "    with tf.control_dependencies([v.assign_add(1.0)]):\n"
        "        return i + 1\n"
        "writing = after_telling(lambda: tf.while_loop(lambda i: i >= 0, count, [0]))\n"
        "queue = tf.FIFOQueue(2, tf.float32, shapes=[[]])\n"
        "waiting = after_telling(queue.dequeue)\n"
        "put, take = queue.enqueue(7.0), queue.dequeue()\n"
        "ahead = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000).prefetch(2)).get_next()\n"
        "session = tf.Session()\n"
        "session.run([v.initializer, ahead])\n"
        "def run(fetch):\n"
        "    try:\n"
        "        session.run(fetch)\n"
        "    except tf.errors.CancelledError:\n"
        "        pass\n"
        "threads = [threading.Thread(target=run, args=(fetch,)) for fetch in (writing, waiting)]\n"
        "for thread in threads:\n"
        "    thread.start()\n"
        "    started.acquire()\n"
        "in_child('variable', lambda: session.run(v) >= 3.0)\n"
        "in_child('queue', lambda: session.run(put) is None and session.run(take) == 7.0)\n"
        "in_child('ahead', lambda: [session.run(ahead) for _ in range(10)][-1] >= 10)\n"
        "session.close()\n"
        "for thread in threads:\n"
        "    thread.join()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "variable 5\nqueue 5\nahead 5\n", "")


def test_a_child_keeps_to_one_thread():
    """A session that asks for threads, and a step in which the fork happened, compute in the child, where the parent's threads are missing."""
    done = run_program(
        _CHILDREN + "x = tf.constant(np.full([700, 700], 0.01, np.float32))\n"
        "total = lambda x: tf.reduce_sum(tf.nn.relu(tf.matmul(x, x)) + tf.exp(x))\n"
        "y = total(x)\n"
        "parent = os.getpid()\n"
        "forked = []\n"
        "def fork():\n"
        "    if forks:\n"
        "        forked.append(os.fork())\n"
        "    return np.float32(1)\n"
        "one = tf.py_func(fork, [], tf.float32)\n"
        "one.set_shape([])\n"
        "z = total(x + one)\n"
        "forks = False\n"
        "with tf.Session() as session:\n"
        "    for _ in range(4):\n"
        "        session.run([y, z])\n"
        "    config = tf.ConfigProto(intra_op_parallelism_threads=4)\n"
        "    in_child('session', lambda: tf.Session(config=config).run(y) > 0)\n"
        "    forks = True\n"
        "    signal.alarm(300)\n"
        "    value = session.run(z)\n"
        "if os.getpid() != parent:\n"
        "    os._exit(5 if value > 0 else 1)\n"
        "print('step', os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "session 5\nstep 5\n", "")
