"""Training that is killed, or interrupted, and goes on."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

PROGRAM = Path(__file__).with_name("killed_training.py")
ROOT = PROGRAM.parents[3]
STEPS = 60
WHOLE = re.compile(r"checkpoint|graph\.pbtxt|events\.out\.tfevents\..*|model\.ckpt-\d+\.(index|meta|data-\d+-of-\d+)")


# A shell that starts the tests in the background has its children ignore interrupts: the program takes them again.
RUN = (
    "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
)


def start(directory, *, steps=STEPS):
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(PROGRAM), str(directory), str(steps)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(program):
    """The parameters that a program prints at its end."""
    out, errors = program.communicate(timeout=120)
    assert program.returncode == 0, errors
    return {name: np.array(value) for name, value in json.loads(out.splitlines()[-1]).items()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return finish(start(tmp_path_factory.mktemp("whole")))


def test_a_killed_program_goes_on_as_if_nothing_had_happened(uninterrupted, tmp_path):
    """Killed at random moments and started again, training ends with the same parameters, and leaves no temporary files."""
    moments = random.Random(5)
    for _ in range(3):
        program = start(tmp_path)
        lines = moments.randrange(1, 12)
        for line in program.stdout:
            lines -= line.startswith("step")
            if not lines:
                break
        time.sleep(moments.random() * 0.02)  # somewhere within a step or a save
        program.kill()
        program.communicate()
        if path := tf.train.latest_checkpoint(str(tmp_path)):
            reader = tf.train.NewCheckpointReader(path)  # whole, whatever was being written
            assert reader.get_tensor("global_step") >= 0
    found = finish(start(tmp_path))
    assert found.keys() == uninterrupted.keys()
    for name, value in uninterrupted.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-5)
    assert [name for name in os.listdir(tmp_path) if not WHOLE.fullmatch(name)] == []


def test_an_interrupt_ends_the_program_soon(tmp_path):
    """SIGINT in the middle of a step ends the program, long before threads lose their patience; its last checkpoint is whole."""
    program = start(tmp_path)
    for line in program.stdout:
        if line.strip() == "step 10":
            break
    program.send_signal(signal.SIGINT)
    try:
        _, errors = program.communicate(timeout=60)
    finally:
        program.kill()
    assert "KeyboardInterrupt" in errors
    assert tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("global_step") >= 9
