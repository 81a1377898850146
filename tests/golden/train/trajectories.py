"""Fifty steps of every optimizer and of every training op, run alike under TensorFlow and under stoker.

    python trajectories.py ops OUTPUT.npz           what `make` runs where TensorFlow 2.21 is installed
    python trajectories.py optimizers OUTPUT.npz    the same with TensorFlow 1.15 or 2.21

Runs on Python 3.7 (TensorFlow 1.15) too, so it keeps to plain syntax. The gradients are random and do not depend on the
variables, so that rounding does not grow from step to step.
"""

import sys

import numpy as np

STEPS = 50
ROWS, COLUMNS = 6, 3

# -- training ops -------------------------------------------------------------------------------------------------

SCALARS = {
    "lr": 0.1, "alpha": 0.1, "l1": 0.02, "l2": 0.03, "rho": 0.9, "epsilon": 1e-3, "momentum": 0.8, "lr_power": -0.5,
    "l2_shrinkage": 0.04, "beta1": 0.9, "beta2": 0.99, "sign_decay": 0.9, "beta": 0.9, "logbase": 1.0,
}  # fmt: skip
_ALL = ("float16", "bfloat16", "float32", "float64", "complex64")
_REAL = ("float16", "bfloat16", "float32", "float64")
_WIDE = ("float32", "float64")

# op suffix -> (variables, other inputs with the gradient, dtypes, is sparse too, is for references too, settings)
OPS = {
    "GradientDescent": ("var", "alpha delta", _ALL, False, True, [{}]),
    "ProximalGradientDescent": ("var", "alpha l1 l2 delta", _WIDE, True, True, [{}, {"l1": 0.0}]),
    "Adadelta": ("var accum accum_update", "lr rho epsilon grad", _ALL, True, True, [{}]),
    "Adagrad": ("var accum", "lr grad", _ALL, True, True, [{}, {"update_slots": False}]),
    "AdagradV2": ("var accum", "lr epsilon grad", _ALL, True, True, [{}, {"update_slots": False}]),
    "ProximalAdagrad": ("var accum", "lr l1 l2 grad", _WIDE, True, True, [{}, {"l1": 0.0}]),
    "AdagradDA": (
        "var gradient_accumulator gradient_squared_accumulator", "grad lr l1 l2 global_step", _WIDE, True, True,
        [{}, {"l1": 0.0}],
    ),
    "Ftrl": (
        "var accum linear", "grad lr l1 l2 lr_power", _REAL, True, True,
        [{}, {"lr_power": -0.7}, {"lr_power": 0.0}, {"multiply_linear_by_lr": True}, {"l1": 0.0, "l2": 0.0}],
    ),
    "FtrlV2": (
        "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", _REAL, True, True,
        [{}, {"lr_power": -0.7}, {"multiply_linear_by_lr": True}],
    ),
    "Momentum": ("var accum", "lr grad momentum", _ALL, True, True, [{}, {"use_nesterov": True}]),
    "KerasMomentum": ("var accum", "lr grad momentum", _ALL, True, False, [{}, {"use_nesterov": True}]),
    "Adam": (
        "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", _ALL, False, True,
        [{}, {"use_nesterov": True}],
    ),
    "AdamWithAmsgrad": (
        "var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", _REAL, False, False, [{}]
    ),
    "AdaMax": ("var m v", "beta1_power lr beta1 beta2 epsilon grad", ("float16", "float32", "float64"), False, True, [{}]),
    "RMSProp": ("var ms mom", "lr rho momentum epsilon grad", _ALL, True, True, [{}, {"momentum": 0.0}]),
    "CenteredRMSProp": ("var mg ms mom", "lr rho momentum epsilon grad", _ALL, True, True, [{}]),
    "AddSign": ("var m", "lr alpha sign_decay beta grad", _REAL, False, True, [{}]),
    "PowerSign": ("var m", "lr logbase sign_decay beta grad", _REAL, False, True, [{}]),
}  # fmt: skip
_NO_SPARSE_BFLOAT16 = ("RMSProp", "CenteredRMSProp")


def op_cases():
    """(key, op name, variables, others, dtype, attributes and scalars) of every op trajectory."""
    for suffix, (variables, others, dtypes, sparse, references, settings) in OPS.items():
        prefixes = ["ResourceApply"] + ["ResourceSparseApply"] * sparse
        if references:
            prefixes += ["Apply"] + ["SparseApply"] * sparse
        for prefix in prefixes:
            for dtype in dtypes:
                if "Sparse" in prefix and dtype == "bfloat16" and suffix in _NO_SPARSE_BFLOAT16:
                    continue
                if "Resource" not in prefix and dtype not in ("float32", "float16"):
                    continue  # the same arithmetic: once is enough
                for i, setting in enumerate(settings):
                    key = "%s-%s-%d" % (prefix + suffix, dtype, i)
                    yield key, prefix + suffix, variables.split(), others.split(), dtype, setting


def _starts(variables, dtype):
    """Initial values: small numbers for variables and first moments, positive ones for sums of squares."""
    random = np.random.RandomState(7)
    values = []
    for name in variables:
        value = random.uniform(-1, 1, [ROWS, COLUMNS])
        if name in ("accum", "v", "ms", "vhat", "gradient_squared_accumulator", "accum_update"):
            value = np.abs(value) + 1.2
        values.append(value.astype("complex64" if dtype == "complex64" else "float64"))
    return values


def _gradients(dtype, sparse):
    random = np.random.RandomState(11)
    for _ in range(STEPS):
        if sparse:
            count = random.randint(0, 8)
            indices = random.randint(0, ROWS, [count])
            shape = [count, COLUMNS]
        else:
            indices, shape = None, [ROWS, COLUMNS]
        value = random.uniform(-1, 1, shape) * random.choice([0, 1, 1, 1], shape)
        if dtype == "complex64":
            value = value + 0.2j * random.uniform(-1, 1, shape)
        yield value, indices


def run_op(tf, raw, name, variables, others, dtype, setting):
    """The variables after fifty steps. `raw(name, **inputs)` makes an op."""
    sparse, resource = "Sparse" in name, "Resource" in name
    kind = getattr(tf, dtype)
    wide = tf.complex64 if dtype == "complex64" else tf.float64
    with tf.Graph().as_default(), tf.Session() as session:
        made = [
            tf.Variable(tf.cast(tf.constant(value, wide), kind), use_resource=resource)
            for value in _starts(variables, dtype)
        ]
        gradient = tf.placeholder(wide, [None, COLUMNS])
        indices = tf.placeholder(tf.int32, [None])
        step = tf.placeholder(tf.int64, [])
        powers = {"beta1_power": tf.placeholder(tf.float64, []), "beta2_power": tf.placeholder(tf.float64, [])}
        inputs = {each: (v.handle if resource else v._ref()) for each, v in zip(variables, made)}
        attrs = {k: v for k, v in setting.items() if k not in SCALARS}
        for other in others:
            if other in ("grad", "delta"):
                inputs["grad" if sparse else other] = tf.cast(gradient, kind)
                if sparse:
                    inputs["indices"] = indices
            elif other == "global_step":
                inputs[other] = step
            elif other in powers:
                inputs[other] = tf.cast(powers[other], kind)
            else:
                inputs[other] = tf.cast(tf.constant(setting.get(other, SCALARS[other]), tf.float64), kind)
        inputs.update(attrs)
        update = raw(name, **inputs)
        session.run([v.initializer for v in made])
        for number, (value, rows) in enumerate(_gradients(dtype, sparse)):
            feeds = {gradient: value, step: number + 1}
            feeds[powers["beta1_power"]] = SCALARS["beta1"] ** (number + 1)
            feeds[powers["beta2_power"]] = SCALARS["beta2"] ** (number + 1)
            if rows is not None:
                feeds[indices] = rows
            session.run(getattr(update, "op", update), feeds)
        return np.stack(session.run([tf.cast(v.value(), wide) for v in made]))


# -- optimizers ---------------------------------------------------------------------------------------------------

# name -> (how to make it, dtypes)
OPTIMIZERS = {
    "gradient_descent": (lambda tf, step: tf.train.GradientDescentOptimizer(0.1), _REAL),
    "momentum": (lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.8), _REAL),
    "nesterov": (lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.8, use_nesterov=True), ("float32", "float64")),
    "adam": (lambda tf, step: tf.train.AdamOptimizer(0.1), ("float32", "float64")),
    "adam_settings": (lambda tf, step: tf.train.AdamOptimizer(0.05, 0.5, 0.9, 1e-2), ("float32", "bfloat16")),
    "rmsprop": (lambda tf, step: tf.train.RMSPropOptimizer(0.1, 0.8, 0.5, 1e-3), ("float32", "float64")),
    "rmsprop_centered": (lambda tf, step: tf.train.RMSPropOptimizer(0.1, centered=True), ("float32",)),
    "adagrad": (lambda tf, step: tf.train.AdagradOptimizer(0.1), _REAL),
    "adagrad_settings": (lambda tf, step: tf.train.AdagradOptimizer(0.3, 2.0), ("float32",)),
    "adadelta": (lambda tf, step: tf.train.AdadeltaOptimizer(1.0, 0.9, 1e-3), ("float32", "float64")),
    "ftrl": (lambda tf, step: tf.train.FtrlOptimizer(0.1), ("float32", "float64")),
    "ftrl_settings": (
        lambda tf, step: tf.train.FtrlOptimizer(0.2, -0.7, 0.5, 0.05, 0.02, l2_shrinkage_regularization_strength=0.01),
        ("float32",),
    ),
    "ftrl_fixed_rate": (lambda tf, step: tf.train.FtrlOptimizer(0.1, 0.0, 0.1, 0.01), ("float32",)),
    "proximal_gradient_descent": (
        lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.05, 0.02), ("float32",),
    ),
    "proximal_adagrad": (
        lambda tf, step: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.05, 0.02), ("float32",),
    ),
    "adagrad_da": (
        lambda tf, step: tf.train.AdagradDAOptimizer(
            0.5, step, l1_regularization_strength=0.01, l2_regularization_strength=0.02
        ),
        ("float32", "float64"),
    ),
}  # fmt: skip


def optimizer_cases():
    """(key, optimizer, dtype, sparse, resource) of every optimizer trajectory."""
    for name in sorted(OPTIMIZERS):
        for dtype in OPTIMIZERS[name][1]:
            for sparse in (False, True):
                for resource in (False, True):
                    key = "%s-%s-%s-%s" % (name, dtype, ("dense", "sparse")[sparse], ("ref", "resource")[resource])
                    yield key, name, dtype, sparse, resource


def run_optimizer(tf, name, dtype, sparse, resource):
    """Two variables and the optimizer's own after fifty steps: (values as float64, their names)."""
    kind = getattr(tf, dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = [
            tf.Variable(tf.cast(tf.constant(value, tf.float64), kind), use_resource=resource, name=label)
            for value, label in zip(_starts(["w", "u"], dtype), ("w", "u"))
        ]
        step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step", use_resource=resource)
        gradient = tf.placeholder(tf.float64, [None, COLUMNS])
        indices = tf.placeholder(tf.int32, [None])
        given = tf.cast(gradient, kind)
        if sparse:
            given = tf.IndexedSlices(given, indices, tf.constant([ROWS, COLUMNS]))
        optimizer = OPTIMIZERS[name][0](tf, step)
        train = optimizer.apply_gradients([(given, first), (given, second)], global_step=step)
        session.run(tf.global_variables_initializer())
        for value, rows in _gradients(dtype, sparse):
            feeds = {gradient: value}
            if rows is not None:
                feeds[indices] = rows
            session.run(train, feeds)
        assert session.run(step) == STEPS
        found = [first, second] + optimizer.variables()
        values = session.run([tf.cast(v.value(), tf.float64) for v in found])
        flat = np.concatenate([np.ravel(value) for value in values])
        return flat, ",".join(v.name for v in found)


def main():
    """Writes the trajectories of the TensorFlow that is installed."""
    import tensorflow

    tf = getattr(tensorflow.compat, "v1", tensorflow)
    tf.disable_v2_behavior()
    results = {}
    if sys.argv[1] == "ops":
        for key, name, variables, others, dtype, setting in op_cases():
            raw = lambda op, **inputs: getattr(tf.raw_ops, op)(**inputs)  # noqa: E731
            results[key] = run_op(tf, raw, name, variables, others, dtype, setting)
    else:
        for key, name, dtype, sparse, resource in optimizer_cases():
            values, names = run_optimizer(tf, name, dtype, sparse, resource)
            results[key], results[key + "-names"] = values, np.array(names)
    # What a float32 can tell is enough, and small.
    for key, value in results.items():
        if value.dtype == np.float64 and "float64" not in key:
            results[key] = value.astype(np.float32)
    np.savez_compressed(sys.argv[2], **results)


if __name__ == "__main__":
    main()
