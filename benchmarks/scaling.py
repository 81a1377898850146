"""How training scales over processes with one core each: `python benchmarks/scaling.py --workers 1,2,4 [--json FILE]`.

It runs the same step in one process, and in N processes that `stoker launch` starts, each pinned to a core of its own. Each process has the whole
batch of the single one, so that ideal scaling is N times the examples in the same time. It prints a table with a row for each N:

    ms a step    the median over the steps
    efficiency   time of a step in one process / time of a step in N processes
    of CPU time  the same of the processes' CPU time, which tells on a machine that others use as well; it leaves out waiting

and for the largest N the least time of an all-reduce by its number of bytes, to which scripts/simulate_scale.py fits its model. The machine
needs a free core for each process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SIZES = [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24]  # bytes of measured all-reduces


def physical_cores() -> list[int]:
    """One processor of each core: two hardware threads of a core share its arithmetic units."""
    found: dict[str, int] = {}
    for number in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        found.setdefault(siblings.read_text().strip() if siblings.exists() else str(number), number)
    return list(found.values())


def measure(folder: str, steps: int, batch: int, width: int) -> None:
    """One process: times steps and all-reduces, and writes them."""
    import torch

    import stoker
    import stoker.compat.v1 as tf
    from stoker._src.ops.collective import collectives

    rank, size = stoker.distribute.rank(), stoker.distribute.size()
    if hasattr(os, "sched_setaffinity"):
        cores = physical_cores()
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    tf.set_random_seed(1)
    x, y = tf.placeholder(tf.float32, [batch, width]), tf.placeholder(tf.float32, [batch, 10])
    h = x
    for _ in range(3):
        h = tf.layers.dense(h, width, tf.nn.relu)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(h, 10) - y))
    optimizer = stoker.distribute.wrap(tf.train.MomentumOptimizer(1e-3, 0.9))
    train = optimizer.minimize(loss)
    random = np.random.RandomState(rank)
    feed = {x: random.standard_normal((batch, width)), y: random.standard_normal((batch, 10))}
    feed = {key: value.astype(np.float32) for key, value in feed.items()}
    result: dict[str, Any] = {"steps": [], "cpu": [], "all_reduce": {}}
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        session.run(tf.global_variables_initializer())
        session.run(stoker.distribute.broadcast_variables())
        run: Any = session.make_callable([train, loss], [x, y])
        for step in range(steps + 3):
            started, cpu = time.perf_counter(), time.process_time()
            run(feed[x], feed[y])
            if step >= 3:
                result["steps"].append(time.perf_counter() - started)
                result["cpu"].append(time.process_time() - cpu)
        if size > 1:
            for nbytes in SIZES:
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
        sizes = ["--steps", args.steps, "--batch", args.batch, "--width", args.width]
        command = [sys.executable, "-m", "stoker", "launch", "--workers", workers, __file__, "--into", folder, *sizes]
        subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, check=True)
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(workers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2", help="numbers of processes, separated by commas")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.into:
        measure(args.into, args.steps, args.batch, args.width)
        return
    counts = sorted({1, *map(int, args.workers.split(","))})
    cores = len(physical_cores()) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if max(counts) > cores:
        print(f"{max(counts)} processes share {cores} cores, so the efficiency by time is not that of the program.")
    found = {workers: launched(workers, args) for workers in counts}
    alone = found[1][0]
    one, one_cpu = np.median(alone["steps"]), np.median(alone["cpu"])
    print(f"gradients of {alone['bytes'] / 1e6:.1f} MB, {args.batch} examples per process, {cores} cores")
    print("| processes | ms a step | efficiency | of CPU time |\n|---:|---:|---:|---:|")
    for workers, each in found.items():
        many = np.median([np.median(process["steps"]) for process in each])
        cpu = np.mean([np.median(process["cpu"]) for process in each])
        print(f"| {workers} | {many * 1e3:.1f} | {one / many:.1%} | {one_cpu / cpu:.1%} |")
    together = found[counts[-1]]
    for nbytes, seconds in together[0]["all_reduce"].items():
        print(f"all-reduce {int(nbytes):>10,d} bytes {seconds * 1e3:8.2f} ms")
    if args.json:
        Path(args.json).write_text(json.dumps({"workers": counts[-1], "alone": alone, "together": together}))


if __name__ == "__main__":
    main()
