"""Three optimizers as users write them, and a program that trains with each; run by a TensorFlow it writes what they end at.

    PYTHON_WITH_TENSORFLOW tests/golden/train/user_optimizers.py tests/golden/train/user_optimizers_<115 or 221>.json

TensorFlow 1.15 runs this file on Python 3.7, so it keeps to what that knows.
"""

from __future__ import annotations

import json
import sys

import numpy as np

STEPS = 6
NAMES = ("sign_momentum", "ada_max", "lookahead")
KINDS = ("reference", "resource", "eager")


def optimizers(tf):
    """The classes, made with one implementation of `tf`."""

    class SignMomentum(tf.train.Optimizer):
        """Moves by the sign of a running mean of gradients; hyperparameters may be functions; decays weights."""

        def __init__(self, rate=0.1, beta=0.9, decay=0.01, use_locking=False, name="SignMomentum"):
            super().__init__(use_locking, name)
            self._rate, self._beta, self._decay = rate, beta, decay

        def _create_slots(self, var_list):
            for var in var_list:
                self._zeros_slot(var, "mean", self._name)

        def _prepare(self):
            self._rate_t = tf.convert_to_tensor(self._call_if_callable(self._rate), name="rate")
            self._beta_t = tf.convert_to_tensor(self._call_if_callable(self._beta), name="beta")
            self._decay_t = tf.convert_to_tensor(self._call_if_callable(self._decay), name="decay")

        def _numbers(self, var):
            return [tf.cast(each, var.dtype.base_dtype) for each in (self._rate_t, self._beta_t, self._decay_t)]

        def _apply_dense(self, grad, var):
            rate, beta, decay = self._numbers(var)
            slot = self.get_slot(var, "mean")
            mean = tf.assign(slot, beta * slot + (1 - beta) * grad, use_locking=self._use_locking)
            moved = tf.assign_sub(var, rate * (tf.sign(mean) + decay * var), use_locking=self._use_locking)
            return tf.group(moved, mean)

        def _resource_apply_dense(self, grad, var):
            return self._apply_dense(grad, var)

        def _rows(self, grad, var, indices, scatter_update):
            rate, beta, decay = self._numbers(var)
            slot = self.get_slot(var, "mean")
            mean = beta * tf.gather(slot, indices) + (1 - beta) * grad
            old = tf.gather(var, indices)
            kept = scatter_update(slot, indices, mean)
            moved = scatter_update(var, indices, old - rate * (tf.sign(mean) + decay * old))
            return tf.group(kept, moved)

        def _apply_sparse(self, grad, var):
            def scatter_update(variable, indices, values):
                return tf.scatter_update(variable, indices, values, use_locking=self._use_locking)

            return self._rows(grad.values, var, grad.indices, scatter_update)

        def _resource_apply_sparse(self, grad, var, indices):
            def scatter_update(variable, indices, values):
                return variable.scatter_update(tf.IndexedSlices(values, indices))

            return self._rows(grad, var, indices, scatter_update)

    class AdaMax(tf.train.Optimizer):
        """Adam with the largest gradient in place of the mean square: slots with initializers, a power beside them."""

        def __init__(self, rate=0.1, beta1=0.8, beta2=0.9, use_locking=False, name="MyAdaMax"):
            super().__init__(use_locking, name)
            self._rate, self._beta1, self._beta2 = rate, beta1, beta2

        def _create_slots(self, var_list):
            first = min(var_list, key=lambda var: var.name)
            self._create_non_slot_variable(initial_value=self._beta1, name="power", colocate_with=first)
            for var in var_list:
                self._get_or_make_slot_with_initializer(
                    var, tf.constant_initializer(0.5), var.shape, var.dtype.base_dtype, "largest", "largest"
                )
                self._zeros_slot(var, "m", self._name)

        def _power(self):
            with tf.init_scope():
                graph = None if tf.executing_eagerly() else tf.get_default_graph()
                return self._get_non_slot_variable("power", graph=graph)

        def _apply_dense(self, grad, var):
            m, largest = self.get_slot(var, "m"), self.get_slot(var, "largest")
            mean = tf.assign(m, self._beta1 * m + (1 - self._beta1) * grad)
            norm = tf.assign(largest, tf.maximum(self._beta2 * largest, tf.abs(grad)))
            rate = self._rate / (1 - tf.cast(self._power(), var.dtype.base_dtype))
            return tf.group(tf.assign_sub(var, rate * mean / norm), mean, norm)

        _resource_apply_dense = _apply_dense

        def _apply_sparse(self, grad, var):
            return self._apply_dense(tf.convert_to_tensor(grad), var)

        def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
            dense = tf.scatter_nd(tf.cast(indices, tf.int32)[:, None], grad, handle.shape)
            return self._apply_dense(dense, handle)

        def _finish(self, update_ops, name_scope):
            power = self._power()
            done = [op for op in update_ops if op is not None]
            with tf.control_dependencies(done), tf.colocate_with(power):
                updated = tf.assign(power, power * self._beta1)
            return tf.group(*(done + [updated]), name=name_scope)

    class Lookahead(tf.train.Optimizer):
        """Every second step variables go half of the way from where they were: wraps another optimizer."""

        def __init__(self, inner, name="Lookahead"):
            super().__init__(use_locking=False, name=name)
            self._inner = inner

        def compute_gradients(self, *args, **kwargs):
            return self._inner.compute_gradients(*args, **kwargs)

        def _create_slots(self, var_list):
            first = min(var_list, key=lambda var: var.name)
            self._create_non_slot_variable(initial_value=0, name="lookahead_step", colocate_with=first)
            for var in var_list:
                start = var.read_value() if tf.executing_eagerly() else var.initial_value
                self._get_or_make_slot(var, start, "slow", self._name)

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            grads_and_vars = list(grads_and_vars)
            var_list = [var for grad, var in grads_and_vars if grad is not None]
            with tf.init_scope():
                self._create_slots(var_list)
                graph = None if tf.executing_eagerly() else tf.get_default_graph()
                count = self._get_non_slot_variable("lookahead_step", graph=graph)
            trained = self._inner.apply_gradients(grads_and_vars, global_step=global_step)
            with tf.name_scope(name or self._name), tf.control_dependencies([] if trained is None else [trained]):
                now = tf.assign_add(count, 1)
                synchronize = tf.equal(now % 2, 0)
                updates = []
                for var in var_list:
                    slow = self.get_slot(var, "slow")
                    middle = tf.where(synchronize, slow + 0.5 * (var - slow), slow.read_value())
                    kept = tf.assign(slow, middle)
                    with tf.control_dependencies([] if tf.executing_eagerly() else [kept]):
                        updates.append(tf.assign(var, tf.where(synchronize, middle, var.read_value())))
                return tf.group(*updates)

        def variables(self):
            return super().variables() + self._inner.variables()

    return {
        "sign_momentum": lambda: SignMomentum(rate=lambda: 0.2, beta=tf.constant(0.7) if not tf.executing_eagerly() else 0.7),
        "ada_max": AdaMax,
        "lookahead": lambda: Lookahead(tf.train.MomentumOptimizer(0.1, 0.9)),
    }  # fmt: skip


def run(tf, name, kind):
    """{variable: value} after some steps on a dense and a sparse variable, the step counted; and the slots' names."""
    if kind == "eager":
        return _run_eagerly(tf, name)
    with tf.Graph().as_default(), tf.Session() as session:
        w, table, loss = _model(tf, use_resource=kind == "resource")
        step = tf.train.get_or_create_global_step()
        optimizer = optimizers(tf)[name]()
        train = optimizer.minimize(loss(), global_step=step)
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train)
        found = [w, table, step] + optimizer.variables()
        return _record(optimizer, found, session.run([tf.identity(v) for v in found]))


def _run_eagerly(tf, name):
    w, table, loss = _model(tf, use_resource=True)
    step = tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
    optimizer = optimizers(tf)[name]()
    for _ in range(STEPS):
        optimizer.minimize(loss, global_step=step, var_list=[w, table])
    found = [w, table, step] + optimizer.variables()
    return _record(optimizer, found, [v.numpy() for v in found])


def _model(tf, use_resource):
    w = tf.Variable(np.array([1.0, -2.0, 0.5], np.float32), name="w", use_resource=use_resource)
    table = tf.Variable(np.linspace(-1, 1, 8).reshape(4, 2).astype(np.float32), name="table", use_resource=use_resource)

    def loss():
        rows = tf.gather(table, [2, 0, 2])
        return tf.reduce_sum(tf.square(w) * [1.0, 2.0, 3.0]) + tf.reduce_sum(rows * rows * [[1.0], [2.0], [-0.5]])

    return w, table, loss


def _record(optimizer, found, values):
    named = {v.name: np.asarray(value, np.float64).tolist() for v, value in zip(found, values)}
    return {"values": named, "slots": optimizer.get_slot_names()}


def main(output):
    import tensorflow.compat.v1 as tf

    results = {}
    for kind in KINDS:
        tf.enable_eager_execution() if kind == "eager" else tf.disable_eager_execution()
        tf.disable_control_flow_v2()
        for name in NAMES:
            results[name + "|" + kind] = run(tf, name, kind)
    with open(output, "w") as file:
        json.dump(results, file, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
