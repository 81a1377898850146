"""`tf.train.ClusterSpec`: the tasks of a cluster."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf

DENSE = {"worker": ["a:1", "b:2"]}
SPARSE = {"ps": {1: "c:3", 4: "d:4"}}


@pytest.fixture
def spec():
    return tf.train.ClusterSpec({**DENSE, **SPARSE})


def test_jobs_and_tasks(spec):
    """A job's tasks are a list, or a dictionary if indices are missing."""
    assert spec.as_dict() == {**DENSE, **SPARSE}
    assert spec.jobs == ["worker", "ps"]
    assert spec.num_tasks("ps") == 2
    assert spec.task_indices("ps") == [1, 4]
    assert spec.task_address("ps", 4) == "d:4"
    assert spec.job_tasks("ps") == [None, "c:3", None, None, "d:4"]
    assert spec.job_tasks("worker") == ["a:1", "b:2"]


def test_a_dictionary_without_gaps_is_a_list():
    """Indices from 0 without gaps are the same as a list; a job may have no task."""
    assert tf.train.ClusterSpec({"w": {1: "b", 0: "a"}}).as_dict() == {"w": ["a", "b"]}
    assert tf.train.ClusterSpec({"w": {}}).as_dict() == {"w": {}}
    assert tf.train.ClusterSpec({b"w": (b"a",)}).as_dict() == {"w": ["a"]}


def test_equality_is_by_contents(spec):
    """A spec equals one made from its message, from itself or from the same dictionary, and nothing else."""
    assert spec == tf.train.ClusterSpec(spec) == tf.train.ClusterSpec(spec.as_cluster_def())
    assert spec == tf.train.ClusterSpec({**SPARSE, **DENSE})
    assert spec != tf.train.ClusterSpec(DENSE)
    assert spec != spec.as_dict()
    assert bool(spec)
    assert not tf.train.ClusterSpec({})


def test_message(spec):
    """The ClusterDef has the jobs in alphabetical order and the tasks by index."""
    jobs = [(job.name, dict(job.tasks)) for job in spec.as_cluster_def().job]
    assert jobs == [("ps", {1: "c:3", 4: "d:4"}), ("worker", {0: "a:1", 1: "b:2"})]
    assert str(spec) == "ClusterSpec({'ps': {1: 'c:3', 4: 'd:4'}, 'worker': ['a:1', 'b:2']})"


@pytest.mark.parametrize("name", ["num_tasks", "task_indices", "job_tasks"])
def test_an_unknown_job(spec, name):
    """Questions about a job that does not exist are errors."""
    with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
        getattr(spec, name)("x")
    with pytest.raises(ValueError, match="No such job in cluster: 'x'"):
        spec.task_address("x", 0)
    with pytest.raises(ValueError, match="No task with index 2 in job 'ps'"):
        spec.task_address("ps", 2)


@pytest.mark.parametrize(
    "cluster", [3, None, ["a:1"], {"a": 3}, {"a": [3]}, {1: ["a"]}, {"a": {"x": "b"}}, {"a": {1: 2}}]
)
def test_other_types(cluster):
    """Anything but dictionaries of addresses, messages and specs is refused."""
    with pytest.raises(TypeError):
        tf.train.ClusterSpec(cluster)
