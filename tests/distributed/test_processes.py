"""The ps/worker program of the documents as processes, under `python -m stoker run`: tasks are killed, training goes on."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import stoker.compat.v1 as tf
from tests.distributed.ports import free_ports

PROGRAM = Path(__file__).with_name("program.py")
SECONDS = 900  # a guard against hangs


class Process:
    """A task of the program. A worker makes one step for each call of `step`."""

    def __init__(self, arguments, job, index):
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "stoker",
                "run",
                str(PROGRAM),
                *arguments,
                f"--job_name={job}",
                f"--task_index={index}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROGRAM.parents[2],
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._watchdog = threading.Timer(SECONDS, self._process.kill)
        self._watchdog.start()

    def line(self):
        return self._output.readline().strip()

    def step(self):
        """Makes a step. Returns the number of the global step and the loss."""
        self._input.write("\n")
        self._input.flush()
        line = self.line()
        assert line.startswith("step "), line
        return int(line.split()[1]), float(line.split()[3])

    def kill(self):
        """Kills the process (SIGKILL), wherever it is."""
        self._process.kill()
        self._process.wait()

    def finish(self):
        """Ends the training. Returns the exit code and the last line."""
        self._input.close()
        last = self.line()
        return self._process.wait(), last

    def close(self):
        self.kill()
        self._watchdog.cancel()
        self._watchdog.join()
        self._output.close()
        with suppress(BrokenPipeError):
            self._input.close()


def test_training_survives_killed_tasks(tmp_path):
    """After kill -9 of a worker the others go on; after kill -9 of the parameter server, training resumes from the last checkpoint."""
    ps, *workers = (f"127.0.0.1:{port}" for port in free_ports(3))
    arguments = [f"--ps_hosts={ps}", f"--worker_hosts={','.join(workers)}", f"--checkpoint_dir={tmp_path}"]
    with ExitStack() as stack:

        def start(job, index=0):
            process = Process(arguments, job, index)
            stack.callback(process.close)
            return process

        server, chief, other = start("ps"), start("worker"), start("worker", 1)
        assert server.line() == "serving"
        steps = [chief.step() for _ in range(12)]
        assert [number for number, _ in steps] == list(range(12))  # the numbers before the steps, as in TensorFlow
        assert steps[-1][1] < steps[0][1]
        assert other.step()[0] == 12  # the workers share the variables
        assert chief.step()[0] == 13
        other.kill()
        assert chief.step()[0] == 14
        server.kill()
        saved = int(str(tf.train.latest_checkpoint(str(tmp_path))).rsplit("-", 1)[1])
        assert saved >= 10
        assert start("ps").line() == "serving"
        number, loss = chief.step()
        assert number == saved
        assert loss < steps[0][1]
        assert chief.step()[0] == saved + 1
        assert chief.finish() == (0, "done")
