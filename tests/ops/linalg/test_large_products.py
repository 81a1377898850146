"""Large matrix products: what they keep, and what they do when memory is short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def _run_program(text):
    """Runs a program in a process of its own, which it must leave with status 0; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


_PRODUCT = """
import numpy as np
import stoker.compat.v1 as tf
a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
y = tf.matmul(a, b)
session = tf.Session()
def run(n):
    return session.run(y, {a: np.ones((n, 512), np.float32), b: np.ones((512, 512), np.float32)})
def pages():
    return [int(field) for field in open("/proc/self/statm").read().split()]
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_products_of_ever_new_sizes_do_not_fill_the_memory():
    """What is prepared for a size of matrices and kept is bounded: 250 sizes cost less than 100 MB."""
    out = _run_program(
        _PRODUCT + "run(512)\nbefore = pages()[1]\nfor n in range(513, 763):\n    run(n)\nprint(pages()[1] - before)\n"
    )
    assert int(out) * os.sysconf("SC_PAGESIZE") < 100e6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_product_without_memory_is_a_resource_exhausted_error():
    """However little memory is left, a product gives its value or ResourceExhaustedError; the process goes on."""
    out = _run_program(
        _PRODUCT + "import os, resource\n"
        "run(100)\n"
        "run(512)\n"
        "for n in range(520, 580):\n"
        "    left = (n - 520) * 128 * 1024\n"
        "    feeds = {a: np.ones((n, 512), np.float32), b: np.ones((512, 512), np.float32)}\n"
        "    limit = pages()[0] * os.sysconf('SC_PAGESIZE') + left\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))\n"
        "    try:\n"
        "        session.run(y, feeds)\n"
        "    except tf.errors.ResourceExhaustedError:\n"
        "        pass\n"
        "    finally:\n"
        "        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "print(run(600)[0, 0])\n"
    )
    assert out == "512.0\n"
