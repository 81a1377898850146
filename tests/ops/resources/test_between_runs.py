"""What is kept between runs by name: accumulators, barriers, staging areas and maps of sparse tensors."""

import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf

SOON = tf.RunOptions(timeout_in_ms=100)


@pytest.fixture
def session():
    """A session of a graph of its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


# -- accumulators ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [2, 3]), ("SUM", [4, 6])])
def test_accumulator(session, reduction, expected):
    """Gradients average or add up; taking them empties the accumulator and moves its step on, so that old ones are stale."""
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2], name="acc", reduction_type=reduction)
    gradient, step = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int64, [])
    apply, take = accumulator.apply_grad(gradient, step), accumulator.take_grad(2)
    count = accumulator.num_accumulated()
    assert (accumulator.name, count.op.name, take.shape) == ("acc", "acc_NumAccumulated", (2,))
    session.run(apply, {gradient: [1, 2], step: 0})
    session.run(apply, {gradient: [3, 4], step: 5})
    assert session.run(count) == 2
    np.testing.assert_array_equal(session.run(take), expected)
    session.run(apply, {gradient: [1, 2], step: 0})
    assert session.run(count) == 0
    session.run(apply, {gradient: [1, 2], step: 1})
    assert session.run(count) == 1
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(take, options=SOON)


def test_accumulator_waits_for_enough(session):
    """Taking waits until as many gradients have come as it needs."""
    accumulator = tf.ConditionalAccumulator(tf.float64)
    take, found = accumulator.take_grad(2), []
    apply = accumulator.apply_grad(tf.constant([1.0, 2.0], tf.float64))
    thread = threading.Thread(target=lambda: found.append(session.run(take)))
    thread.start()
    session.run(apply)
    session.run(apply)
    thread.join()
    np.testing.assert_array_equal(found[0], [1, 2])


def test_accumulator_refuses(session):
    """Other shapes, another kind of reduction and a number that is not positive are refused."""
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2])
    with pytest.raises(ValueError, match="incompatible"):
        accumulator.apply_grad([1.0, 2, 3])
    fed = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[2\], got \[3\]"):
        session.run(accumulator.apply_grad(fed), {fed: [1, 2, 3]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_required must be positive"):
        session.run(accumulator.take_grad(0))
    with pytest.raises(ValueError, match="MAX"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")


def test_sparse_accumulator(session):
    """A row's mean is over the gradients that had the row."""
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[None, 2])
    session.run(accumulator.apply_grad([0, 2], [[1.0, 2], [3, 4]]))
    session.run(accumulator.apply_grad([2, 3], [[10.0, 20], [30, 40]]))
    indices, values, shape = session.run(accumulator.take_grad(1))
    np.testing.assert_array_equal(indices, [0, 2, 3])
    np.testing.assert_array_equal(values, [[1, 2], [6.5, 12], [30, 40]])
    np.testing.assert_array_equal(shape, [-1, 2])
    slices = tf.IndexedSlices(tf.constant([[5.0, 6]]), tf.constant([4]), tf.constant([9, 2]))
    session.run(accumulator.apply_indexed_slices_grad(slices, local_step=1))
    taken = accumulator.take_indexed_slices_grad(1)
    assert session.run([taken.indices, taken.values])[0] == [4]
    for gradient, words in [
        (([0], [[1.0, 2]], [9, 3]), "shape dim 1 to be 2, got 3"),
        (([0, 1], [[1.0, 2]]), "Expected 2"),
        (([0], [[1.0, 2, 3]]), "values dim 1 to be 2"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(accumulator.apply_grad(*gradient, local_step=9))


# -- barriers ----------------------------------------------------------------------------------------------------


def test_barrier(session):
    """Elements leave when all of their components are there; a closed barrier takes no new keys but completes old ones."""
    types = [tf.float32, tf.int32]
    barrier = tf.raw_ops.Barrier(component_types=types, shapes=[[], [2]])
    sizes = [tf.raw_ops.BarrierReadySize(handle=barrier), tf.raw_ops.BarrierIncompleteSize(handle=barrier)]

    def insert(keys, values, index):
        session.run(tf.raw_ops.BarrierInsertMany(handle=barrier, keys=keys, values=values, component_index=index))

    insert(["a", "b", "c"], [1.0, 2, 3], 0)
    insert(["c", "a"], [[3, 3], [1, 1]], 1)
    assert session.run(sizes) == [2, 1]
    take = tf.raw_ops.BarrierTakeMany(handle=barrier, num_elements=2, component_types=types)
    indices, keys, (first, second) = session.run(take)
    assert (indices == np.iinfo(np.int64).min).all() and keys.tolist() == [b"c", b"a"]
    np.testing.assert_array_equal(first, [3, 1])
    np.testing.assert_array_equal(second, [[3, 3], [1, 1]])
    for arguments, words in [
        ((["b"], [7.0], 0), "already has a value"),
        ((["b"], [7], 1), "Expected"),
        ((["z"], [7], 0), "mismatch"),
        ((["z"], [7], 5), "out of range"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            insert(*arguments)
    session.run(tf.raw_ops.BarrierClose(handle=barrier))
    with pytest.raises(tf.errors.CancelledError, match="closed"):
        insert(["q"], [7.0], 0)
    insert(["b"], [[2, 2]], 1)
    with pytest.raises(tf.errors.OutOfRangeError, match="requested 2, total size 1"):
        session.run(take)
    small = tf.raw_ops.BarrierTakeMany(handle=barrier, num_elements=2, component_types=types, allow_small_batch=True)
    assert session.run(small).keys.tolist() == [b"b"]


def test_barrier_needs_shapes(session):
    """A barrier without the shapes of its components, or with a capacity, is refused."""
    for arguments in ({}, {"shapes": [[]], "capacity": 4}):
        barrier = tf.raw_ops.Barrier(component_types=[tf.float32], **arguments)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes|capacity"):
            session.run(tf.raw_ops.BarrierReadySize(handle=barrier))


# -- staging areas -----------------------------------------------------------------------------------------------


def test_staging_area(session):
    """Tuples come back in their order; peeking leaves them; a full area waits."""
    area = {"dtypes": [tf.float32, tf.string], "shared_name": "area", "capacity": 2}

    def stage(number):
        return tf.raw_ops.Stage(values=[number, tf.constant(["x", "y"])], shared_name="area", capacity=2)

    session.run(stage(1.0))
    session.run(stage(2.0))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(stage(3.0), options=SOON)
    assert session.run(tf.raw_ops.StagePeek(index=1, **area))[0] == 2
    assert session.run(tf.raw_ops.StageSize(**area)) == 2
    number, texts = session.run(tf.raw_ops.Unstage(**area))
    assert number == 1 and texts.tolist() == [b"x", b"y"]
    session.run(tf.raw_ops.StageClear(**area))
    assert session.run(tf.raw_ops.StageSize(**area)) == 0
    session.run(stage(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 parts, the op wants 1"):
        session.run(tf.raw_ops.Unstage(dtypes=[tf.float32], shared_name="area"))


@pytest.mark.parametrize("prefix", ["", "Ordered"])
def test_staging_map(session, prefix):
    """Values come together under their key from several ops and may be taken in parts."""
    area = {"dtypes": [tf.float32, tf.int32, tf.string], "shared_name": "map"}

    def op(name, **arguments):
        return session.run(getattr(tf.raw_ops, prefix + name)(**{**area, **arguments}))

    def put(key, indices, values):
        op("MapStage", key=np.int64(key), indices=indices, values=values)

    put(5, [0, 1, 2], [1.0, 2, "x"])
    put(3, [0], [9.0])
    assert (op("MapSize"), op("MapIncompleteSize")) == (1, 1)
    assert op("MapPeek", key=np.int64(5), indices=[0, 1, 2]) == [1, 2, b"x"]
    for key, indices, values, words in [
        (3, [0], [3.0], "already initialized"),
        (4, [7], [3.0], "out of bounds"),
        (4, [1, 1], [3, 3], "strictly ordered"),
        (4, [1, 2], [3], "2 indices for 1"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            put(key, indices, values)
    put(3, [1, 2], [5, "y"])
    if prefix:
        assert op("MapUnstageNoKey", indices=[0, 1, 2]).key == 3
    else:
        assert op("MapUnstage", key=np.int64(3), indices=[0, 1, 2]) == [9, 5, b"y"]
    assert op("MapSize") == 1
    op("MapClear")
    assert op("MapSize") == 0


# -- sparse tensors by number ------------------------------------------------------------------------------------


def test_sparse_map(session):
    """Sparse tensors are found by their numbers once, and come back as a batch."""
    one = tf.raw_ops.AddSparseToTensorsMap(
        sparse_indices=[[0, 1]], sparse_values=[5.0], sparse_shape=[2, 3], shared_name="map"
    )
    many = tf.raw_ops.AddManySparseToTensorsMap(
        sparse_indices=[[0, 1], [2, 0]], sparse_values=[5.0, 6], sparse_shape=[3, 3], shared_name="map"
    )
    numbers = tf.placeholder(tf.int64, [None])
    take = tf.raw_ops.TakeManySparseFromTensorsMap(sparse_handles=numbers, dtype=tf.float32, shared_name="map")
    first, rows = session.run(one), session.run(many)
    indices, values, shape = session.run(take, {numbers: rows})
    np.testing.assert_array_equal(indices, [[0, 1], [2, 0]])
    np.testing.assert_array_equal(values, [5, 6])
    np.testing.assert_array_equal(shape, [3, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find"):
        session.run(take, {numbers: rows})
    np.testing.assert_array_equal(session.run(take, {numbers: [first]}).sparse_shape, [1, 2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 1"):
        session.run(take, {numbers: []})
    other = tf.raw_ops.TakeManySparseFromTensorsMap(sparse_handles=[0], dtype=tf.float32, shared_name="none")
    with pytest.raises(tf.errors.NotFoundError):
        session.run(other)
