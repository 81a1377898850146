"""One step of every training op with extreme numbers: zero, one, negative, infinite and NaN; what TensorFlow leaves.

    PYTHON_WITH_TENSORFLOW_2 tests/golden/train/update_edges.py tests/golden/train/update_edges.npz

Gradients hold zeros, infinities and NaN, slots zeros; the settings of a case are drawn at random. What an op refuses is
recorded by the class of its error.
"""

from __future__ import annotations

import sys
import zlib

import numpy as np

ROWS, COLUMNS, STEPS = 4, 3, 10
# op: variables, other inputs with the gradient, whether there are sparse ops, an attribute to try
OPS = {
    "GradientDescent": ("var", "alpha delta", False, None),
    "ProximalGradientDescent": ("var", "alpha l1 l2 delta", True, None),
    "Momentum": ("var accum", "lr grad momentum", True, "use_nesterov"),
    "KerasMomentum": ("var accum", "lr grad momentum", True, "use_nesterov"),
    "Adagrad": ("var accum", "lr grad", True, "update_slots"),
    "AdagradV2": ("var accum", "lr epsilon grad", True, "update_slots"),
    "ProximalAdagrad": ("var accum", "lr l1 l2 grad", True, None),
    "AdagradDA": (
        "var gradient_accumulator gradient_squared_accumulator", "grad lr l1 l2 global_step", True, None,
    ),
    "Adadelta": ("var accum accum_update", "lr rho epsilon grad", True, None),
    "RMSProp": ("var ms mom", "lr rho momentum epsilon grad", True, None),
    "CenteredRMSProp": ("var mg ms mom", "lr rho momentum epsilon grad", True, None),
    "Adam": ("var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", False, "use_nesterov"),
    "AdamWithAmsgrad": ("var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", False, None),
    "AdaMax": ("var m v", "beta1_power lr beta1 beta2 epsilon grad", False, None),
    "AddSign": ("var m", "lr alpha sign_decay beta grad", False, None),
    "PowerSign": ("var m", "lr logbase sign_decay beta grad", False, None),
    "Ftrl": ("var accum linear", "grad lr l1 l2 lr_power", True, "multiply_linear_by_lr"),
    "FtrlV2": ("var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", True, "multiply_linear_by_lr"),
}  # fmt: skip
NAN, INF = float("nan"), float("inf")
NUMBERS = {
    "lr": [0.1, 0.1, 1.0, 0.0, -0.5, INF, NAN, 3.7], "alpha": [0.1, 1.0, 0.0, -0.5, INF, NAN],
    "l1": [0.0, 0.0, 0.3, 2.0, -1.0, INF], "l2": [0.0, 0.0, 0.5, 3.0, -0.25, NAN], "l2_shrinkage": [0.0, 0.2, 1.5, -0.1],
    "lr_power": [-0.5, -0.5, 0.0, -1.0, -0.3, 0.5], "momentum": [0.9, 0.0, 1.0, -0.5, 2.0, NAN],
    "rho": [0.9, 0.3, 1.0, 2.0], "beta1": [0.9, 0.0, 1.0, 0.5, 2.0], "beta2": [0.999, 0.0, 1.0, 0.5, 2.0],
    "beta": [0.9, 0.0, 1.0], "beta1_power": [0.9, 0.0, 1.0, 0.3, 2.0], "beta2_power": [0.999, 0.0, 1.0, 0.4, 2.0],
    "epsilon": [1e-8, 0.0, 1e-3, 1.0], "sign_decay": [0.99, 0.0, 1.0, -1.0], "logbase": [1.0, 0.0, 0.7],
    "global_step": [1, 0, 7, 1000],
}  # fmt: skip


def cases():
    """(key, op, whether it is sparse, its attributes)."""
    for name, (_, _, sparse, attribute) in OPS.items():
        for rows in (False, True) if sparse else (False,):
            for attributes in [{attribute: False}, {attribute: True}] if attribute else [{}]:
                full = "Resource" + ("Sparse" if rows else "") + "Apply" + name
                yield "-".join([full] + [str(value) for value in attributes.values()]), name, full, rows, attributes


def run(tf, raw, key, name, full, rows, attributes):
    """What each step leaves: a list with all variables side by side, or the name of the error."""
    variables, others = (part.split() for part in OPS[name][:2])
    random = np.random.RandomState(zlib.crc32(key.encode()))
    with tf.Graph().as_default(), tf.Session() as session:
        starts = [tf.placeholder(tf.float32, [ROWS, COLUMNS]) for _ in variables]
        held = [tf.Variable(start, use_resource=True) for start in starts]
        inputs = {variable: each.handle for variable, each in zip(variables, held)}
        numbers = [each for each in others if each not in ("grad", "delta")]
        fed = {each: tf.placeholder(tf.int64 if each == "global_step" else tf.float32, []) for each in numbers}
        gradient, indices = tf.placeholder(tf.float32, [None, COLUMNS]), tf.placeholder(tf.int32, [None])
        inputs.update(fed)
        inputs["delta" if "delta" in others and not rows else "grad"] = gradient
        if rows:
            inputs["indices"] = indices
        op = raw(full, **inputs, **attributes)
        initialize, reads = [each.initializer for each in held], [each.read_value() for each in held]
        results = []
        for step in range(STEPS):
            feeds = {}
            for i, start in enumerate(starts):
                value = random.uniform(-2, 2, [ROWS, COLUMNS])
                if i and step % 3:
                    value = np.abs(value)
                if i and step % 4 == 1:
                    value[0] = 0
                feeds[start] = value
            size = [ROWS, 0, 5, 3, 1][step % 5] if rows else ROWS
            value = random.uniform(-2, 2, [size, COLUMNS])
            if size:
                value[0, step % 3] = [0, NAN, INF, 0.5, -INF][step % 5]
            feeds[gradient], feeds[indices] = value, random.randint(0, ROWS, [size])
            for each in numbers:
                feeds[fed[each]] = NUMBERS[each][random.randint(len(NUMBERS[each])) if step else 0]
            session.run(initialize, feeds)
            try:
                session.run(op, feeds)
            except tf.errors.OpError as error:
                results.append(type(error).__name__)
            else:
                results.append(np.stack(session.run(reads)))
        return results


def main(output):
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    found = {}
    for key, *case in cases():
        for step, result in enumerate(run(tf, lambda name, **inputs: getattr(tf.raw_ops, name)(**inputs), key, *case)):
            found["%s-%d" % (key, step)] = np.asarray(result)
    np.savez_compressed(output, **found)


if __name__ == "__main__":
    main(sys.argv[1])
