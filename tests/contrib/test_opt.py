"""`tf.contrib.opt` against TensorFlow 1.15 (tests/golden/contrib)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "contrib"
_spec = importlib.util.spec_from_file_location("contrib_opt_cases", GOLDEN / "opt_cases.py")
assert _spec is not None and _spec.loader is not None
opt_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(opt_cases)
EXPECTED = json.loads((GOLDEN / "opt.json").read_text())


@pytest.mark.parametrize("name, sparse, resource", opt_cases.cases())
def test_steps_are_those_of_tensorflow(name, sparse, resource):
    """Variables after each step, and the names of slots, for dense and sparse gradients and both kinds of variables."""
    found, wanted = opt_cases.made_by(tf, name, sparse, resource), EXPECTED[opt_cases.recorded(name, sparse, resource)]
    assert found["names"] == wanted["names"]
    for mine, theirs in zip(found["values"], wanted["values"], strict=True):
        for value, reference in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-5, atol=1e-6)


def test_only_chosen_variables_decay():
    """`decay_var_list` leaves the others to the optimizer alone."""
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = (tf.get_variable(name, initializer=np.float32([2.0])) for name in "ab")
        optimizer = tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(0.5, 1.0)
        step = optimizer.minimize(0.0 * (a[0] + b[0]), decay_var_list=[a])
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run([a, b]), [[1.0], [2.0]])


def test_a_swapping_saver_saves_averages_as_variables(tmp_path):
    """What is saved under the name of a variable is its average, and the other way round."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.float32([1.0]))
        optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 0.5)
        with pytest.raises(RuntimeError, match="Must call apply_gradients"):
            optimizer.swapping_saver()
        step = optimizer.minimize(v[0])
        session.run(tf.global_variables_initializer())
        session.run(step)
        prefix = optimizer.swapping_saver().save(session, str(tmp_path / "model"))
        reader = tf.train.NewCheckpointReader(prefix)
        assert (reader.get_tensor("v"), reader.get_tensor(optimizer.average_name(v))) == ([0.5], [0.0])


@pytest.mark.parametrize("sparse", [False, True])
def test_variables_are_clipped_after_a_step(sparse):
    """Rows are no longer than the bound; a sparse gradient clips those that it has."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.full([3, 4], 2.0, "f"))
        optimizer = tf.contrib.opt.VariableClippingOptimizer(tf.train.GradientDescentOptimizer(0.0), {v: [1]}, 2.0)
        step = optimizer.minimize(tf.reduce_sum(tf.gather(v, [0, 0, 2]) if sparse else v))
        session.run(tf.global_variables_initializer())
        session.run(step)
        lengths = np.linalg.norm(session.run(v), axis=1)
        np.testing.assert_allclose(lengths, [2.0, 4.0, 2.0] if sparse else [2.0] * 3, rtol=1e-6)
