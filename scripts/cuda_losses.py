"""The training workloads on a GPU and on the CPU: how far their losses are apart, with TF32 off.

    python scripts/cuda_losses.py [--steps N] [WORKLOAD ...]

Both sessions start from the same variables. A row has the largest relative difference of the losses

- "free": each session goes on from its own variables;
- "from the same state": before every step the GPU is given the CPU's variables, so that one step's difference is seen alone;
- "one ulp": no GPU; two sessions on the CPU, one of whose variables start one unit in the last place higher. It tells how far
  rounding alone drives this network apart.

The exit status is 1 where a step from the same state differs by more than 1e-4, or a free run by more than that and more than rounding explains.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import workloads  # noqa: E402

import stoker.compat.v1 as tf  # noqa: E402

ALLOWED = 1e-4
WORKLOADS = (
    "mlp_sgd", "mlp_adam", "mlp_rmsprop_momentum", "many_small_variables_adam", "cnn_momentum", "lstm_while_loop",
    "embedding_adagrad", "attention_adam",
)  # fmt: skip


class Trainer:
    """One workload in a session of its own."""

    def __init__(self, name: str, gpu: bool) -> None:
        def keep(tf: Any, build: Any, feed: Any, items: Any, seconds: float = 0.0) -> tuple[int, str]:
            with tf.Graph().as_default():
                step, loss, placeholders = build()
                self.variables = tf.global_variables()
                initializer = tf.global_variables_initializer()
                self.session = tf.Session(config=tf.ConfigProto(device_count={} if gpu else {"GPU": 0}))
            self.session.run(initializer)
            self.fetches, self.feeds = [loss, step], dict(zip(placeholders, feed, strict=True))
            return 0, ""

        timed, workloads._train = workloads._train, keep
        try:
            workloads.ALL[name](tf)
        finally:
            workloads._train = timed

    def step(self) -> float:
        return float(self.session.run(self.fetches, self.feeds)[0])

    @property
    def state(self) -> list[Any]:
        return self.session.run(self.variables)

    @state.setter
    def state(self, values: list[Any]) -> None:
        for variable, value in zip(self.variables, values, strict=True):
            variable.load(value, self.session)


@contextmanager
def trainers(name: str, gpu: bool) -> Iterator[tuple[Trainer, Trainer]]:
    """One on the CPU and one on the GPU (or another on the CPU), in the same state."""
    one, other = Trainer(name, gpu=False), Trainer(name, gpu=gpu)
    other.state = one.state
    try:
        yield one, other
    finally:
        one.session.close()
        other.session.close()


def apart(losses: list[tuple[float, float]]) -> float:
    return max(abs(a - b) / max(abs(a), 1e-8) for a, b in losses)


def free(name: str, steps: int) -> float:
    with trainers(name, gpu=True) as (cpu, gpu):
        return apart([(cpu.step(), gpu.step()) for _ in range(steps)])


def from_the_same_state(name: str, steps: int) -> float:
    losses = []
    with trainers(name, gpu=True) as (cpu, gpu):
        for _ in range(steps):
            gpu.state = cpu.state
            losses.append((cpu.step(), gpu.step()))
    return apart(losses)


def one_ulp(name: str, steps: int) -> float:
    with trainers(name, gpu=False) as (cpu, other):
        other.state = [
            np.nextafter(value, np.inf) if np.issubdtype(value.dtype, np.floating) else value for value in cpu.state
        ]
        return apart([(cpu.step(), other.step()) for _ in range(steps)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, metavar="WORKLOAD", help="which (default: all)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps of each (default: 20)")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: nothing to compare", file=sys.stderr)
        return 2
    tf.config.experimental.enable_tensor_float_32_execution(False)
    wrong = 0
    print("| workload | free | from the same state | one ulp |\n|---|---:|---:|---:|")
    for name in args.workloads:
        of_all, of_one, of_rounding = (measure(name, args.steps) for measure in (free, from_the_same_state, one_ulp))
        wrong += of_one > ALLOWED or of_all > max(ALLOWED, 10 * of_rounding)
        print(f"| {name} | {of_all:.1e} | {of_one:.1e} | {of_rounding:.1e} |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
