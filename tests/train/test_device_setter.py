"""`replica_device_setter` and the strategies that choose a parameter server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stoker.compat.v1 as tf
from tests.golden.distributed import cases

RECORDED = json.loads((Path(cases.__file__).parent / "values.json").read_text())


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", sorted(cases.SETTERS))
def test_devices_are_tensorflows(name, resource):
    """Variables, slots, parts of partitioned variables, accumulators and other ops get TensorFlow's devices for every kind of setter."""
    expected = RECORDED["placements, " + ("resource" if resource else "reference")][name]
    placed = cases._devices(tf, tf.train.replica_device_setter(**cases.SETTERS[name]), resource)
    assert {key: placed.get(key) for key in expected} == expected


def test_without_parameter_servers_there_is_no_setter():
    """Without a cluster and without tasks nothing is placed; `tf.device` accepts the result."""
    with tf.device(tf.train.replica_device_setter()):
        assert tf.no_op().device == ""


@pytest.mark.parametrize("cluster", [3, [("ps", ["a:1"])], "ps"])
def test_what_is_not_a_cluster_is_refused(cluster):
    """A cluster is a ClusterSpec, a ClusterDef or a dictionary."""
    with pytest.raises(TypeError, match="must be a dictionary mapping one or more job names"):
        tf.train.replica_device_setter(cluster=cluster)


def test_a_strategy_must_be_callable():
    """A strategy that cannot be called is refused when the setter is made."""
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(ps_tasks=2, ps_strategy=3)


def test_greedy_strategy_balances_bytes():
    """Each variable goes to the task with the fewest bytes so far."""
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(3, tf.contrib.training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(ps_tasks=3, ps_strategy=strategy)):
        sizes = ([10], [3, 4], [1], [2, 2], [5], [7], [100], [1], [1], [30])
        made = [tf.get_variable(f"v{i}", size, use_resource=False) for i, size in enumerate(sizes)]
    # The order in which TensorFlow 1.15 places them.
    assert [each.device[-1] for each in made] == list("0122202111")


def test_byte_size_of_an_op():
    """The load of an op is the size of its output: strings count 8 bytes, handles one; unknown shapes and several outputs are refused."""
    load = tf.contrib.training.byte_size_load_fn
    assert load(tf.constant([1, 2]).op) == 8
    assert load(tf.constant(["a", "bcd"]).op) == 16
    assert load(tf.get_variable("v", [5], use_resource=True).op) == 1
    with pytest.raises(ValueError, match=r"Shape \(\?, 3\) is not fully defined"):
        load(tf.placeholder(tf.float32, [None, 3]).op)
    with pytest.raises(ValueError, match="must have a single output"):
        load(tf.no_op())
