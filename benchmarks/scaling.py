"""How training scales over processes with one core each: `python benchmarks/scaling.py --workers 2,4 [--json FILE]`.

`stoker launch --pin` starts N processes, each with cores of its own, of which it uses one, with all of the core's hardware threads. Each
process has the whole batch of a single one, so that ideal scaling is N times the examples in the same time. A machine rarely runs at the same speed for minutes, so the
N processes measure three kinds of blocks in turns, a round after the other:

    alone           one process trains by itself, without sending anything, and the others sleep; each process in turn, as cores differ
    side by side    all processes train by themselves; the slowest one counts, as it does when they train together
    together        all processes average their gradients

The table has a row for each N with the milliseconds of a step: medians over the rounds, for `alone` the mean of the processes' medians. Then

    efficiency      alone / together
    of the machine  alone / side by side: what cores lose by sharing memory and power with each other, and to other programs
    of sending      side by side / together: what averaging the gradients costs

each of the medians and, after the slash, of the least times of each kind of block: what the machine does when it is undisturbed. CPU times are the mean of the processes'
medians. For the largest N the least time of an all-reduce by its number of bytes follows, to which scripts/simulate_scale.py fits its model of messages
between machines: run it with STOKER_SHARED_MEMORY=0 for that. The machine
needs a free core for each process; benchmarks/cores.py finds some.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from stoker._src.cli.launch import physical_cores  # noqa: E402

SIZES = [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24]  # bytes of measured all-reduces
KINDS = ("alone", "side_by_side", "together")


def measure(folder: str, rounds: int, block: int, batch: int, width: int, apart: bool) -> None:
    """One process: times blocks of steps and all-reduces, and writes them."""
    import torch

    import stoker
    import stoker.compat.v1 as tf
    from stoker._src.ops.collective import collectives

    rank, size = stoker.distribute.rank(), stoker.distribute.size()
    if hasattr(os, "sched_setaffinity") and not apart:
        os.sched_setaffinity(0, physical_cores()[0])  # the first of those that --pin has given to this process
    torch.set_num_threads(1)
    tf.set_random_seed(1)
    x, y = tf.placeholder(tf.float32, [batch, width]), tf.placeholder(tf.float32, [batch, 10])
    h = x
    for _ in range(3):
        h = tf.layers.dense(h, width, tf.nn.relu)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(h, 10) - y))
    alone = tf.train.MomentumOptimizer(1e-3, 0.9, name="Alone").minimize(loss)
    together = stoker.distribute.wrap(tf.train.MomentumOptimizer(1e-3, 0.9)).minimize(loss)
    random = np.random.RandomState(rank)
    feed = {x: random.standard_normal((batch, width)), y: random.standard_normal((batch, 10))}
    feed = {key: value.astype(np.float32) for key, value in feed.items()}
    result: dict[str, Any] = {"seconds": {kind: [] for kind in KINDS}, "cpu": {kind: [] for kind in KINDS}}
    result["all_reduce"] = {}
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        session.run(tf.global_variables_initializer())
        session.run(stoker.distribute.broadcast_variables())
        one = tf.placeholder(tf.float32, [1])
        meet: Any = session.make_callable(collectives.all_reduce(one), [one])
        steps: dict[str, Any] = {
            "alone": session.make_callable([alone, loss], [x, y]),
            "together": session.make_callable([together, loss], [x, y]),
        }
        steps["side_by_side"] = steps["alone"]

        def barrier() -> None:
            meet(np.zeros(1, np.float32))

        def timed(run: Callable[..., Any], steps: int) -> tuple[float, float]:
            """The seconds of a block of steps until all processes have done theirs, and the CPU time of this one."""
            barrier()
            started, cpu = time.perf_counter(), time.process_time()
            for _ in range(steps):
                run(feed[x], feed[y])
            cpu = time.process_time() - cpu
            barrier()
            return (time.perf_counter() - started) / block, cpu / block

        for each in (
            "alone",
            "together",
        ):  # plans are made in the first runs, and tried with several numbers of threads
            timed(steps[each], 2)
        for turn in range(rounds):
            for kind in KINDS:
                idle = kind == "alone" and rank != turn % size
                seconds, cpu = timed(steps[kind], 0 if idle else block)
                if not idle:
                    result["seconds"][kind].append(seconds)
                    result["cpu"][kind].append(cpu)
        for nbytes in SIZES if size > 1 else ():
            sent = tf.placeholder(tf.float32, [nbytes // 4])
            reduced: Any = session.make_callable(tf.reduce_max(collectives.all_reduce(sent)), [sent])
            zeros, times = np.zeros(nbytes // 4, np.float32), []
            for _ in range(15):
                started = time.perf_counter()
                reduced(zeros)
                times.append(time.perf_counter() - started)
            result["all_reduce"][str(nbytes)] = float(np.min(times))
    result["bytes"] = 4 * int(sum(np.prod(v.shape.as_list()) for v in tf.trainable_variables()))
    Path(folder, f"{rank}.json").write_text(json.dumps(result))


def launched(workers: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        sizes = ["--rounds", args.rounds, "--block", args.block, "--batch", args.batch, "--width", args.width]
        pin = ["--pin"] if workers <= len(physical_cores()) else []
        command = [
            sys.executable,
            "-m",
            "stoker",
            "launch",
            *pin,
            "--workers",
            workers,
            __file__,
            "--into",
            folder,
            *sizes,
        ]
        subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, check=True)
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(workers)]


def report(workers: int, processes: list[dict[str, Any]]) -> None:
    """Prints a row of the table. All processes leave a block at the same time, so the first one's times are those of all, but for `alone`."""

    def of(kind: str, measure: str, statistic: Callable[..., Any]) -> float:
        return float(np.mean([statistic(each[measure][kind]) for each in processes])) * 1e3

    def ratio(one: str, other: str) -> str:
        shares = [of(one, "seconds", each) / of(other, "seconds", each) for each in (np.median, np.min)]
        return " / ".join(f"{share:.1%}" for share in shares)

    times = " | ".join(f"{of(kind, 'seconds', np.median):.1f}" for kind in KINDS)
    shares = " | ".join((ratio(KINDS[0], KINDS[2]), ratio(KINDS[0], KINDS[1]), ratio(KINDS[1], KINDS[2])))
    cpu = " | ".join(f"{of(kind, 'cpu', np.median):.1f}" for kind in KINDS)
    print(f"| {workers} | {times} | {shares} | {cpu} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="2", help="numbers of processes, separated by commas")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--block", type=int, default=2, help="steps of a block")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument(
        "--apart", action="store_true", help="let the threads that send run on the other cores of their process"
    )
    parser.add_argument("--json", help="write the figures of the largest number to this file")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.into:
        measure(args.into, args.rounds, args.block, args.batch, args.width, args.apart)
        return
    counts = sorted(set(map(int, args.workers.split(","))))
    cores = len(physical_cores())
    if max(counts) > cores:
        print(f"{max(counts)} processes share {cores} cores, so the efficiency is not that of the program.")
    found = {workers: launched(workers, args) for workers in counts}
    together = found[counts[-1]]
    print(f"gradients of {together[0]['bytes'] / 1e6:.1f} MB, {args.batch} examples per process, {cores} cores")
    print(
        "| processes | alone, ms | side by side | together | efficiency | of the machine | of sending | CPU alone, ms | side by side | together |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for workers, processes in found.items():
        report(workers, processes)
    for nbytes, seconds in together[0]["all_reduce"].items():
        print(f"all-reduce {int(nbytes):>10,d} bytes {seconds * 1e3:8.2f} ms")
    if args.json:
        alone = {"steps": [each for one in together for each in one["seconds"]["alone"]], "bytes": together[0]["bytes"]}
        steps = [{**each, "steps": each["seconds"]["together"]} for each in together]
        Path(args.json).write_text(json.dumps({"workers": counts[-1], "alone": alone, "together": steps}))


if __name__ == "__main__":
    main()
