"""`StagingArea` and `MapStagingArea` as classes: elements in lists and dictionaries, static shapes, names and errors."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.ops.resources.staging_areas import MapStagingArea, StagingArea


def test_elements_leave_in_order():
    """Elements come out first in, first out; `peek` leaves them and `clear` removes them."""
    area = StagingArea([tf.float32, tf.int32], shapes=[[2], []], capacity=3, memory_limit=100)
    number = tf.placeholder(tf.int32, [])
    put, got = area.put([tf.fill([2], 0.5), number]), area.get()
    assert [each.shape.as_list() for each in got] == [[2], []]
    assert (area.dtypes, area.names, area.capacity, area.memory_limit) == ([tf.float32, tf.int32], None, 3, 100)
    with tf.Session() as session:
        for value in (1, 2, 3):
            session.run(put, {number: value})
        assert session.run(area.size()) == 3
        np.testing.assert_array_equal(session.run(area.peek(2))[0], [0.5, 0.5])
        assert [session.run(got)[1] for _ in range(2)] == [1, 2]
        session.run(area.clear())
        assert session.run(area.size()) == 0


def test_a_step_ahead():
    """A step can put the next element while it takes the one before, as input pipelines do."""
    area = tf.contrib.staging.StagingArea([tf.int64])
    counter = tf.Variable(0, dtype=tf.int64)
    put = area.put(counter.assign_add(1))
    (got,) = area.get()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(put)
        assert [session.run([got, put])[0] for _ in range(3)] == [1, 2, 3]


def test_names_of_parts_and_of_ops():
    """An area with names takes and gives dictionaries; its ops are named after it and stand where it stands."""
    with tf.device("/cpu:0"):
        area = StagingArea([tf.float32], names=["x"])
    put, got = area.put({"x": tf.zeros([3])}), area.get()
    assert (area.name, put.name, put.type, got["x"].name) == (
        "StagingArea",
        "StagingArea_put",
        "Stage",
        "StagingArea_get:0",
    )
    assert put.colocation_groups() == got["x"].op.colocation_groups() == [b"loc:@StagingArea_root/NoOp"]
    assert (area.size().op.name, area.clear().name) == ("StagingArea_size", "StagingArea_clear")
    assert StagingArea([tf.float32]).name == "StagingArea_1"
    assert StagingArea([tf.float32], shared_name="here").name == "here"
    with tf.Session() as session:
        session.run(put)
        np.testing.assert_array_equal(session.run(got)["x"], np.zeros(3))


def test_areas_share_elements_by_name():
    """Two areas with the same shared name are one."""
    put = StagingArea([tf.int32], shared_name="one").put([4])
    got = StagingArea([tf.int32], shared_name="one").get()
    with tf.Session() as session:
        session.run(put)
        assert session.run(got) == [4]


@pytest.mark.parametrize("ordered", [False, True])
def test_elements_by_key_in_parts(ordered):
    """An element is complete when all parts are there, and leaves the area with its last part."""
    area = MapStagingArea([tf.float32, tf.int32], shapes=[[2], []], names=["x", "y"], ordered=ordered)
    key = tf.placeholder(tf.int64, [])
    first, second = area.put(key, {"x": [1.0, 2.0]}), area.put(key, {"y": 5})
    sizes = area.size(), area.incomplete_size()
    (same, part), (found, rest) = area.get(key, ["y"]), area.get(indices=[0])
    assert same is key
    assert rest["x"].shape.as_list() == [2]
    with tf.Session() as session:
        session.run(first, {key: 3})
        assert session.run(sizes) == (0, 1)
        session.run(second, {key: 3})
        assert session.run(sizes) == (1, 0)
        assert session.run(area.peek(key), {key: 3})["y"] == 5
        assert session.run(part, {key: 3}) == {"y": 5}
        assert session.run(found.op.outputs)[0] == 3
        assert session.run(sizes) == (0, 0)


def test_smallest_key_first():
    """An ordered area without a wanted key gives the element with the smallest one."""
    area = MapStagingArea([tf.int32], ordered=True)
    key = tf.placeholder(tf.int64, [])
    put, got = area.put(key, [tf.cast(key, tf.int32) * 10], [0]), area.get()
    with tf.Session() as session:
        for value in (7, 2, 5):
            session.run(put, {key: value})
        assert [session.run(got) for _ in range(3)] == [(2, [20]), (5, [50]), (7, [70])]


def _area(**options):
    return StagingArea([tf.float32], **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _area(shapes=[[3]]).put(tf.ones([2])), r"Shapes \(2,\) and \(3,\) are incompatible"),
        (lambda: _area().put([1.0, 2.0]), "Unexpected number of inputs '2' vs '1'"),
        (lambda: _area().put(tf.constant(1)), "Datatypes do not match"),
        (lambda: _area(names=["x"]).put(1.0), "You must enqueue a dictionary"),
        (lambda: _area(names=["x"]).put({"y": 1.0}), r"Dictionary: \(\['y'\]\), Queue: \(\['x'\]\)"),
        (lambda: _area().put({"y": 1.0}), "must have names to enqueue a dictionary"),
        (lambda: _area(shapes=[[1], [2]]), "shapes must be the same length as dtypes"),
        (lambda: _area(names=["a", "b"]), "names must be the same length as dtypes"),
        (lambda: MapStagingArea([tf.float32]).put(1, [2.0]), "Indices must be supplied"),
        (lambda: MapStagingArea([tf.float32]).put(1, [2.0], [0, 1]), "'2' doesn't match number of values '1'"),
        (lambda: MapStagingArea([tf.float32]).get(1, ["x"]), r"String indices provided '\['x'\]'"),
        (lambda: MapStagingArea([tf.float32]).get(1, [1]), "Index '1' is not one of the 1 parts"),
    ],
)
def test_wrong_elements(call, message):
    """Parts that do not fit the area are refused when the op is made, in TensorFlow's words where it has some."""
    with pytest.raises(ValueError, match=message):
        call()
