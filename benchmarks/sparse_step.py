"""The cost of one sparse training step on a large and on a small table, for every optimizer that has sparse updates.

    python benchmarks/sparse_step.py [--rows 1000] [--repeats 200]

A step takes 1,000 rows of 64 columns (some repeated) and updates a table of 1,000,000 rows, or of 10,000. The update ops touch only
the rows they are given, so both cost the same, save for caches: a row of 256 MB comes from memory, a row of 2.5 MB from the
processor's cache. The column "apart" leaves that out: the large table, but rows out of 10,000 that lie spread over it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import stoker.compat.v1 as tf

COLUMNS, SMALL, LARGE, BATCHES = 64, 10_000, 1_000_000, 50

OPTIMIZERS = {
    "GradientDescent": lambda step: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda step: tf.train.MomentumOptimizer(0.1, 0.9),
    "Momentum (Nesterov)": lambda step: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda step: tf.train.AdagradOptimizer(0.1),
    "Adadelta": lambda step: tf.train.AdadeltaOptimizer(0.1),
    "AdagradDA": lambda step: tf.train.AdagradDAOptimizer(0.1, step),
    "Ftrl": lambda step: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "Ftrl (shrinkage)": lambda step: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
    "ProximalGradientDescent": lambda step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01),
    "ProximalAdagrad": lambda step: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.01),
    "RMSProp": lambda step: tf.train.RMSPropOptimizer(0.1),
    "RMSProp (centered)": lambda step: tf.train.RMSPropOptimizer(0.1, centered=True),
    "Adam": lambda step: tf.train.AdamOptimizer(0.1),
}


def step_times(make, table_rows, named_rows, *, rows, repeats, resource):
    """Microseconds of steps (the least quarter of them, on average) on a table of `table_rows`, rows out of `named_rows`."""
    # One thread: what is measured is the work, not how a busy machine schedules threads.
    config = tf.ConfigProto(intra_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        table = tf.get_variable(
            "table", [table_rows, COLUMNS], initializer=tf.zeros_initializer(), use_resource=resource
        )
        step = tf.train.get_or_create_global_step()
        indices, values = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, COLUMNS])
        gradient = tf.IndexedSlices(values, indices, tf.constant([table_rows, COLUMNS], tf.int64))
        train = make(step).apply_gradients([(gradient, table)], global_step=step)
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(0)
        batches = [
            (random.choice(named_rows, rows), random.rand(rows, COLUMNS).astype(np.float32)) for _ in range(BATCHES)
        ]
        times = []
        for i in range(repeats + 5):
            at, numbers = batches[i % BATCHES]
            begin = time.perf_counter()
            session.run(train, {indices: at, values: numbers})
            times.append(time.perf_counter() - begin)
            if sum(times) > 20:
                break
        kept = sorted(times[5:] or times)
        return 1e6 * float(np.mean(kept[: max(1, len(kept) // 4)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--only", help="optimizers by the start of their names, separated by commas")
    options = parser.parse_args()
    spread = np.random.RandomState(1).choice(LARGE, SMALL, replace=False)
    print("| optimizer | variable | 10,000 x 64 | 1,000,000 x 64 | ratio | apart | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, make in OPTIMIZERS.items():
        if options.only and not name.startswith(tuple(options.only.split(","))):
            continue
        for resource in (False, True):
            settings = {"rows": options.rows, "repeats": options.repeats, "resource": resource}
            small = step_times(make, SMALL, np.arange(SMALL), **settings)
            large = step_times(make, LARGE, np.arange(LARGE), **settings)
            apart = step_times(make, LARGE, spread, **settings)
            kind = "resource" if resource else "reference"
            print(
                f"| {name} | {kind} | {small:,.0f} us | {large:,.0f} us | {large / small:.2f} | {apart:,.0f} us "
                f"| {apart / small:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
