"""A program with input threads can be stopped from the keyboard, also while everything waits."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# A shell that starts the tests in the background has its children ignore interrupts: the program takes them again.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import stoker.compat.v1 as tf
never = tf.FIFOQueue(3, tf.string, [[]])
key, value = tf.TFRecordReader().read(never)
batch = tf.train.batch([value], 4)
session = tf.Session()
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(session, coord)
print("ready", flush=True)
"""
WAITS = {
    "in a run": "session.run(batch)",
    "in two blocking ops of a run": "session.run([batch, never.dequeue()])",
    "in join": "coord.join(threads)",
    "for the coordinator": "coord.wait_for_stop()",
}


@pytest.mark.parametrize("waits", WAITS)
def test_an_interrupt_ends_the_program(waits: str):
    """KeyboardInterrupt reaches the main thread, and nothing keeps the process from ending."""
    with subprocess.Popen(
        [sys.executable, "-c", START + WAITS[waits]],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
        try:
            _, errors = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode and errors.rstrip().endswith("KeyboardInterrupt")
    assert "string_input_producer is deprecated" not in errors and "start_queue_runners is deprecated" in errors
