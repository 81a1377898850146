"""Four steps of each optimizer of `tf.contrib.opt`, with dense and with sparse gradients.

    python tests/golden/contrib/opt_cases.py     # under TensorFlow 1.15: writes opt.json beside this file

The same functions run under stoker in tests/contrib/test_opt.py.
"""

from __future__ import annotations

import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))

OPTIMIZERS = {
    "AdamW": lambda opt, tf: opt.AdamWOptimizer(0.05, 0.1),
    "MomentumW": lambda opt, tf: opt.MomentumWOptimizer(0.05, 0.1, 0.9, use_nesterov=True),
    "extended": lambda opt, tf: opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(weight_decay=0.05, learning_rate=0.1),
    "LazyAdam": lambda opt, tf: opt.LazyAdamOptimizer(0.1),
    "Nadam": lambda opt, tf: opt.NadamOptimizer(0.1),
    "AdaMax": lambda opt, tf: opt.AdaMaxOptimizer(0.1),
    "LARS": lambda opt, tf: opt.LARSOptimizer(1.0, eeta=0.1, weight_decay=0.01, skip_list=["b"]),
    "MovingAverage": lambda opt, tf: opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.8),
}  # fmt: skip


def made_by(tf, name, sparse, resource):
    """The variables after each of four steps, and the names of all variables."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=np.linspace(-1, 1, 12).astype("f").reshape(4, 3), use_resource=resource)
        b = tf.get_variable("b", initializer=np.float32([0.5, -0.5, 0.0]), use_resource=resource)
        rows = tf.gather(w, [0, 2, 2]) if sparse else w
        loss = tf.reduce_sum(tf.square(rows - 0.3) * [1.0, 2.0, 0.5]) + tf.reduce_sum(tf.square(b + 1.0))
        step = OPTIMIZERS[name](tf.contrib.opt, tf).minimize(loss)
        session.run(tf.global_variables_initializer())
        values = []
        for _ in range(4):
            session.run(step)
            values.append([each.tolist() for each in session.run([w, b])])
        return {"values": values, "names": sorted(each.op.name for each in tf.global_variables())}


# With reference variables TensorFlow does not order the decay and the reads of the loss: these are recorded with resources only.
DECAYED = ("AdamW", "MomentumW", "extended")


def cases():
    found = [(name, sparse, resource) for name in OPTIMIZERS for sparse in (False, True) for resource in (False, True)]
    return [(name, sparse, resource) for name, sparse, resource in found if not (sparse and name == "LARS")]


def recorded(name, sparse, resource):
    """The key of a case in opt.json."""
    return " ".join(map(str, (name, sparse, resource or name in DECAYED)))


if __name__ == "__main__":
    import tensorflow

    made = {recorded(*case): made_by(tensorflow, *case) for case in cases() if case[2] or case[0] not in DECAYED}
    with open(os.path.join(HERE, "opt.json"), "w") as file:
        json.dump(made, file, separators=(",", ":"), sort_keys=True)
