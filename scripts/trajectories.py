"""Fifty steps of every optimizer under stoker and under real TensorFlows, and how far they end from each other.

    python scripts/trajectories.py [--tf1 PYTHON] [--tf2 PYTHON] [--only OPTIMIZER,...]

Every optimizer takes the same random gradients (dense; sparse with repeated rows) on reference, resource and partitioned
variables of each dtype, with several hyperparameters, some of them extreme, and with the learning rate as a number, a tensor, a
variable, a function and a schedule. A row of the table is one setting; a number is the largest difference of any variable
(slots included) after fifty steps, relative to the largest number in that variable, the worst of reference, resource and
partitioned. "-" is what TensorFlow itself refuses. The exit status is 1 where a difference is larger than
its dtype allows. PYTHON is an interpreter that has that TensorFlow; one that is not there is skipped.

TensorFlow 1.15 runs this file on Python 3.7, so it keeps to what that knows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
STEPS, ROWS, COLUMNS = 50, 7, 3
DTYPES = ("float16", "bfloat16", "float32", "float64")
# Sums of repeated rows of 16-bit numbers are rounded once here and at every addition there, and the two TensorFlows round a few ops
# differently. TensorFlow keeps hyperparameters of some optimizers as float32 tensors, which is all the precision that a float64
# variable then has.
ALLOWED = {"float16": 0.05, "bfloat16": 0.3, "float32": 1e-6, "float64": 1e-6}

SETTINGS = {
    "GradientDescent": [{}, {"learning_rate": 1e-3}, {"learning_rate": 10.0}],
    "Momentum": [
        {"momentum": 0.9}, {"momentum": 0.0}, {"momentum": 0.999}, {"momentum": 0.9, "use_nesterov": True},
        {"momentum": 0.5, "use_nesterov": True, "learning_rate": 1.0},
    ],
    "Adam": [
        {}, {"beta1": 0.0}, {"beta2": 0.5}, {"beta2": 0.0}, {"beta1": 0.0, "beta2": 0.1}, {"beta1": 0.999, "beta2": 0.999999}, {"epsilon": 1e-30}, {"epsilon": 1.0},
        {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.1, "learning_rate": 1.0},
    ],
    "Adagrad": [{}, {"initial_accumulator_value": 1e-4}, {"initial_accumulator_value": 100.0, "learning_rate": 1.0}],
    "Adadelta": [
        {"learning_rate": 1.0}, {"learning_rate": 1.0, "rho": 0.5, "epsilon": 1e-2}, {"rho": 0.999, "epsilon": 1e-12}, {"rho": 0.0},
    ],
    "AdagradDA": [
        {}, {"l1_regularization_strength": 0.05}, {"l1_regularization_strength": 0.12}, {"l2_regularization_strength": 0.1, "learning_rate": 1.0},
        {"l1_regularization_strength": 0.5, "l2_regularization_strength": 2.0, "initial_gradient_squared_accumulator_value": 3.0},
    ],
    "Ftrl": [
        {}, {"learning_rate_power": 0.0}, {"learning_rate_power": -0.9}, {"initial_accumulator_value": 0.0},
        {"l1_regularization_strength": 0.1}, {"l2_regularization_strength": 1.0},
        {"l1_regularization_strength": 2.0, "l2_regularization_strength": 0.5}, {"l1_regularization_strength": 5.0},
        {"l1_regularization_strength": 5.0, "l2_regularization_strength": 1.0, "learning_rate": 1.0},
        {"l2_shrinkage_regularization_strength": 0.2}, {
            "learning_rate_power": -0.7, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02,
            "l2_shrinkage_regularization_strength": 0.01, "learning_rate": 0.5,
        },
    ],
    "ProximalGradientDescent": [
        {}, {"l1_regularization_strength": 0.05}, {"l1_regularization_strength": 2.5}, {"l2_regularization_strength": 0.5},
        {"l1_regularization_strength": 0.5, "l2_regularization_strength": 2.0},
    ],
    "ProximalAdagrad": [
        {}, {"l1_regularization_strength": 0.05}, {"l1_regularization_strength": 2.5}, {"l2_regularization_strength": 0.5, "initial_accumulator_value": 2.0},
        {"l1_regularization_strength": 0.5, "l2_regularization_strength": 2.0},
    ],
    "RMSProp": [
        {}, {"decay": 0.0}, {"decay": 0.2, "momentum": 0.5}, {"decay": 0.2, "centered": True, "epsilon": 0.01}, {"decay": 0.999, "epsilon": 1e-20}, {"momentum": 0.9}, {"centered": True},
        {"centered": True, "momentum": 0.5, "decay": 0.5, "epsilon": 1.0},
    ],
}  # fmt: skip
RATES = ("tensor", "variable", "function", "schedule")
PARTITIONS = 3


def cases():
    """(key, optimizer, its arguments, dtype, sparse, kind of variable, kind of learning rate)."""
    for name, settings in SETTINGS.items():
        for number, setting in enumerate(settings):
            for dtype in DTYPES:
                for sparse in (False, True):
                    for kind in ("reference", "resource", "partitioned"):
                        if kind == "partitioned" and (dtype != "float32" or (sparse and number)):
                            continue
                        key = "|".join([name, str(number), "number", dtype, "sparse" if sparse else "dense", kind])
                        yield key, name, setting, dtype, sparse, kind, "number"
        for rate in RATES:
            for sparse in (False, True):
                for kind in ("reference", "resource"):
                    key = "|".join([name, "0", rate, "float32", "sparse" if sparse else "dense", kind])
                    yield key, name, settings[0], "float32", sparse, kind, rate


# -- one side -----------------------------------------------------------------------------------------------------


def gradients(sparse):
    """Fifty gradients, and the rows they are of; they do not depend on the variables, so that rounding does not grow."""
    random = np.random.RandomState(11)
    for _ in range(STEPS):
        rows = random.randint(0, ROWS, [random.randint(0, 9)]) if sparse else np.arange(ROWS)
        shape = [len(rows), COLUMNS]
        yield random.uniform(-1, 1, shape) * random.choice([0, 1, 1, 1], shape), rows


def learning_rate(tf, kind, value, step):
    if kind == "tensor":
        return tf.constant(value) * tf.constant(1.0)
    if kind == "variable":
        return tf.Variable(value, trainable=False, name="rate")
    if kind == "function":
        return lambda: tf.constant(value)
    if kind == "schedule":
        return tf.train.exponential_decay(value, step, 10, 0.5, staircase=True)
    return value


def run(tf, name, setting, dtype, sparse, kind, rate):
    """The names and values of all variables after fifty steps."""
    setting = dict(setting)
    value = setting.pop("learning_rate", 0.1)
    dtype = getattr(tf, dtype)
    start = np.random.RandomState(7).uniform(-1, 1, [ROWS, COLUMNS])
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("model", use_resource=kind == "resource"):
            partitioner = tf.fixed_size_partitioner(PARTITIONS) if kind == "partitioned" else None
            initial = tf.constant_initializer(start) if partitioner is None else _sliced(tf, start)
            w = tf.get_variable("w", [ROWS, COLUMNS], dtype, initial, partitioner=partitioner)
        step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
        gradient, rows = tf.placeholder(tf.float64, [None, COLUMNS]), tf.placeholder(tf.int64, [None])
        if name == "AdagradDA":
            setting["global_step"] = step
        made = getattr(tf.train, name + "Optimizer")(learning_rate(tf, rate, value, step), **setting)
        parts = list(w) if partitioner is not None else [w]
        given, first = [], 0
        for part in parts:
            size = int(part.shape[0])
            if sparse:
                mine = tf.boolean_mask(tf.range(tf.size(rows)), (rows >= first) & (rows < first + size))
                values = tf.gather(tf.cast(gradient, dtype), mine)
                given.append(
                    (tf.IndexedSlices(values, tf.gather(rows, mine) - first, tf.constant([size, COLUMNS])), part)
                )
            else:
                given.append((tf.cast(gradient[first : first + size], dtype), part))
            first += size
        train = made.apply_gradients(given, global_step=step)
        session.run(tf.global_variables_initializer())
        for numbers, at in gradients(sparse):
            session.run(train, {gradient: numbers, rows: at})
        found = parts + made.variables()
        return [v.op.name for v in found], session.run([tf.cast(v.value(), tf.float64) for v in found])


def _sliced(tf, start):
    """An initializer of parts of one array."""

    def initializer(shape, dtype=None, partition_info=None):
        first = partition_info.var_offset[0]
        return tf.cast(tf.constant(start[first : first + int(shape[0])]), dtype)

    return initializer


def one_side(module, output):
    """Runs every case with one implementation and writes what it ends at; a case it refuses is left out."""
    if module == "stoker":
        import stoker.compat.v1 as tf
    else:
        import tensorflow

        tf = getattr(tensorflow.compat, "v1", tensorflow)
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.ERROR)
    results = {}
    for key, *case in cases():
        try:
            names, values = run(tf, *case)
        except (TypeError, ValueError, tf.errors.OpError) as error:
            results[key + "|refused"] = np.array(type(error).__name__ + ": " + str(error)[:200])
            continue
        for name, value in zip(names, values):
            results[key + "|" + name] = value
    np.savez(output, **results)


# -- the comparison -----------------------------------------------------------------------------------------------


def side(python, module, folder, only):
    """What one interpreter finds: {case: {variable: value}}, and {case: why it was refused}."""
    output = os.path.join(folder, "trajectories.npz")
    environment = dict(os.environ, PYTHONPATH=str(ROOT) if module == "stoker" else "", TF_CPP_MIN_LOG_LEVEL="3")
    command = [python, "-W", "ignore", __file__, "--side", module, output]
    command += ["--only", only] if only else []
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{python} failed: {done.stderr[-2000:]}")
    found, refused = {}, {}
    with np.load(output) as arrays:
        for key in arrays.files:
            case, _, variable = key.rpartition("|")
            if variable == "refused":
                refused[case] = str(arrays[key])
            else:
                found.setdefault(case, {})[variable] = arrays[key]
    return found, refused


def difference(ours, theirs):
    """The largest difference of any variable, relative to the largest number in it."""
    if sorted(ours) != sorted(theirs):
        return float("inf")
    worst = 0.0
    for name, value in theirs.items():
        scale = np.max(np.abs(value)) or 1.0
        worst = max(worst, float(np.max(np.abs(ours[name] - value)) / scale))
    return worst


def compare(ours, theirs, label):
    """Prints the table against one TensorFlow; whether every number is within what is allowed."""
    found, our_refusals = ours
    expected, _ = theirs
    table, bad = {}, []
    for key, *_ in cases():
        name, number, rate, dtype, sparse = key.split("|")[:5]
        if key not in expected:
            continue
        worst = difference(found[key], expected[key]) if key in found else float("inf")
        cell = (name, number, rate), (dtype, sparse)
        table.setdefault(cell[0], {})[cell[1]] = max(worst, table.get(cell[0], {}).get(cell[1], 0.0))
        if not worst <= ALLOWED[dtype]:
            bad.append(f"{key}: {worst:.1e} {our_refusals.get(key, '')}")
    columns = [(dtype, sparse) for dtype in DTYPES for sparse in ("dense", "sparse")]
    print(f"\n## Against TensorFlow {label}\n")
    print("| optimizer | " + " | ".join(f"{dtype} {sparse}" for dtype, sparse in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for (name, number, rate), row in table.items():
        setting = SETTINGS[name][int(number)]
        words = ", ".join(f"{key}={value}" for key, value in setting.items())
        words += "" if rate == "number" else f"{', ' if words else ''}rate is a {rate}"
        cells = [f"{row[column]:.0e}" if column in row else "-" for column in columns]
        print(f"| {name}({words}) | " + " | ".join(cells) + " |")
    worst = {
        dtype: max(row.get((dtype, s), 0.0) for row in table.values() for s in ("dense", "sparse")) for dtype in DTYPES
    }
    print(f"\n{sum(key in expected for key, *_ in cases())} trajectories of {STEPS} steps; largest difference: "
          + ", ".join(f"{dtype} {value:.1e}" for dtype, value in worst.items()))  # fmt: skip
    for line in bad:
        print("DIFFERS", line)
    return not bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf1", default=".venvs/tf1/bin/python")
    parser.add_argument("--tf2", default=".venvs/tf2/bin/python")
    parser.add_argument("--only", help="the optimizers to run, as in Adam,Ftrl; by default all")
    parser.add_argument("--side", nargs=2, metavar=("MODULE", "OUTPUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name in [name for name in SETTINGS if options.only and name not in options.only.split(",")]:
        del SETTINGS[name]
    if options.side:
        one_side(*options.side)
        return 0
    good = True
    with tempfile.TemporaryDirectory() as folder:
        ours = side(sys.executable, "stoker", folder, options.only)
        for case, why in ours[1].items():
            print("stoker refuses", case, why)
        for label, python in (("1.15.5", options.tf1), ("2.21", options.tf2)):
            if os.path.exists(python):
                good = compare(ours, side(python, "tensorflow", folder, options.only), label) and good
            else:
                print(f"no {python}: TensorFlow {label} is left out")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
