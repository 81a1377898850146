"""The cost of one sparse training step on a large and on a small table, for every optimizer that has sparse updates.

    python -P benchmarks/sparse_step.py [--rows 1000] [--repeats 200] [--only OPTIMIZER,...] [--module MODULE]

A step takes 1,000 rows of 64 columns (some repeated) and updates a table of 1,000,000 rows, or of 10,000. The update ops touch only
the rows they are given, but a row of a 256 MB table comes from memory and a row of a 2.5 MB table from the processor's cache. What that costs
any program is measured beside: "bare" is torch's gather of the same rows, a product, and the scatter back (without slots: the
scatter that adds), on as many tables as the optimizer has variable and slots, and nothing else. "own" is the step less that, which is what the optimizer and the session add.

Times are of the processor (user and system, one thread), so that other programs count little. With `--module tensorflow.compat.v1`, under a
Python that has it, the steps alone are timed, and are TensorFlow's.
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

import numpy as np

tf: Any = None  # the module that --module names

COLUMNS, SMALL, LARGE, BATCHES = 64, 10_000, 1_000_000, 50

OPTIMIZERS = {
    "GradientDescent": lambda train, step: train.GradientDescentOptimizer(0.1),
    "Momentum": lambda train, step: train.MomentumOptimizer(0.1, 0.9),
    "Momentum (Nesterov)": lambda train, step: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda train, step: train.AdagradOptimizer(0.1),
    "Adadelta": lambda train, step: train.AdadeltaOptimizer(0.1),
    "AdagradDA": lambda train, step: train.AdagradDAOptimizer(0.1, step),
    "Ftrl": lambda train, step: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "Ftrl (shrinkage)": lambda train, step: train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
    "ProximalGradientDescent": lambda train, step: train.ProximalGradientDescentOptimizer(0.1, 0.01),
    "ProximalAdagrad": lambda train, step: train.ProximalAdagradOptimizer(0.1, 0.1, 0.01),
    "RMSProp": lambda train, step: train.RMSPropOptimizer(0.1),
    "RMSProp (centered)": lambda train, step: train.RMSPropOptimizer(0.1, centered=True),
    "Adam": lambda train, step: train.AdamOptimizer(0.1),
}


def batches_of(table_rows, rows):
    """(rows, gradients): random rows of the table, as many of them repeated as in the small one."""
    random = np.random.RandomState(0)
    batches = []
    for _ in range(BATCHES):
        distinct, places = np.unique(random.randint(0, SMALL, rows), return_inverse=True)
        named = random.permutation(table_rows)[: len(distinct)]
        batches.append((named[places], random.rand(rows, COLUMNS).astype(np.float32)))
    return batches


def processor_time(run, batches, repeats):
    """Microseconds of the processor for one call of `run` on a batch: the mean of the least quarter."""
    times = []
    for i in range(repeats + 5):
        begin = time.process_time()
        run(*batches[i % BATCHES])
        times.append(time.process_time() - begin)
        if sum(times) > 5:
            break
    kept = sorted(times[5:] or times)
    return 1e6 * float(np.mean(kept[: max(1, len(kept) // 4)]))


def step_time(make, table_rows, *, rows, repeats, resource):
    """(microseconds of a training step, how many tables it updates: the variable and its slots)."""
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        table = tf.get_variable(
            "table", [table_rows, COLUMNS], initializer=tf.zeros_initializer(), use_resource=resource
        )
        step = tf.train.get_or_create_global_step()
        indices, values = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, COLUMNS])
        gradient = tf.IndexedSlices(values, indices, tf.constant([table_rows, COLUMNS], tf.int64))
        optimizer = make(tf.train, step)
        train = optimizer.apply_gradients([(gradient, table)], global_step=step)
        session.run(tf.global_variables_initializer())
        run = session.make_callable(train, [indices, values])
        tables = 1 + sum(list(slot.shape) == list(table.shape) for slot in optimizer.variables())
        return processor_time(run, batches_of(table_rows, rows), repeats), tables


def bare_time(count, table_rows, *, rows, repeats):
    """Microseconds to read, change and write the rows of `count` tables with nothing but torch; of one table, to add to them."""
    torch = importlib.import_module("torch")
    tables = [torch.zeros(table_rows, COLUMNS) for _ in range(count)]

    def run(indices, values):
        at = torch.from_numpy(indices)
        if count == 1:
            tables[0].index_add_(0, at, torch.from_numpy(values))
            return
        parts = [table.index_select(0, at) for table in tables]
        for part in parts:
            part.mul_(0.5)
        for table, part in zip(tables, parts):
            table.index_copy_(0, at, part)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return processor_time(run, batches_of(table_rows, rows), repeats)
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    global tf
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="of a step (default: 1000)")
    parser.add_argument("--repeats", type=int, default=200, help="steps (default: 200)")
    parser.add_argument("--only", help="optimizers by the start of their names, separated by commas")
    parser.add_argument("--module", default="stoker.compat.v1", help="what to time (default: stoker.compat.v1)")
    options = parser.parse_args()
    tf = importlib.import_module(options.module)
    tf.disable_v2_behavior()
    ours = options.module.startswith("stoker")
    sizes, settings = (SMALL, LARGE), {"rows": options.rows, "repeats": options.repeats}
    bare: dict[int, list[float]] = {}
    kinds = ("step", "bare", "own") if ours else ("step",)
    columns = [
        column
        for what in kinds
        for column in (*(f"{what}, {size:,} x {COLUMNS}" for size in sizes), f"ratio of {what}")
    ]
    print(f"| optimizer | variable | KB touched | {' | '.join(columns)} |")
    print("|---|---|---:" + "|---:" * len(columns) + "|")
    for name, make in OPTIMIZERS.items():
        if options.only and not name.startswith(tuple(options.only.split(","))):
            continue
        for resource in (False, True):
            steps = [step_time(make, size, resource=resource, **settings) for size in sizes]
            tables, rows = steps[0][1], [[time for time, _ in steps]]
            if ours:
                if tables not in bare:
                    bare[tables] = [bare_time(tables, size, **settings) for size in sizes]
                rows += [bare[tables], [time - control for time, control in zip(rows[0], bare[tables])]]
            # Read and written, but for Adam, which goes through all rows.
            kilobytes = "all" if name == "Adam" else f"{2 * tables * options.rows * COLUMNS * 4 / 1000:,.0f}"
            cells = [f"{small:,.0f} us | {large:,.0f} us | {large / small:.2f}" for small, large in rows]
            print(
                f"| {name} | {'resource' if resource else 'reference'} | {kilobytes} | {' | '.join(cells)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
