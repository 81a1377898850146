"""Critical sections, maps of tensors, permutations of indices, and a few small ops of their kind."""

import threading

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError

from .samples import Sample, check_sample, f64, samples

WORDS = np.array([b"a"], dtype=object)
ROW = np.array([[0, 0]], np.int64)
ONE_BY_ONE = np.array([1, 1], np.int64)


def crossed(value):
    return lambda *_: (ROW, np.array([value], np.int64), ONE_BY_ONE)


# Numbers of TensorFlow 2.21.
SAMPLES = [
    Sample("ToBool", [np.float64(0.0)], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.array([0, 0])], reference=lambda x: np.array(True), gradient=False),
    Sample("ToBool", [np.zeros((2, 0))], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.array(b"", object)], reference=lambda x: np.array(False), gradient=False),
    Sample("ToBool", [np.float16(1)], raises=(InvalidArgumentError, "cannot be converted to a boolean")),
    Sample("DeepCopy", [f64(2, 3)], reference=lambda x: x, gradient=False),
    Sample("RandomIndexShuffle", [np.int32(3), np.array([-1, 2, -3], np.int32), np.int32(70000)], reference=lambda *_: np.array(54097, np.int32), gradient=False),
    Sample("RandomIndexShuffle", [np.int64(3), np.array([2**40 + 1, 2, -3]), np.int64(70000)], reference=lambda *_: np.array(42388), gradient=False),
    Sample("RandomIndexShuffle", [np.array([0, 1], np.int32), np.array([[1, 2, 3], [4, 5, 6]], np.int32), np.array([9, 8], np.int32)],
           reference=lambda *_: np.array([2, 1], np.int32), gradient=False),
    Sample("RandomIndexShuffle", [np.array(65536), np.array([1, 2, 3], np.int32), np.array(65536)], reference=lambda *_: np.array(7886), gradient=False),
    Sample("RandomIndexShuffle", [np.uint64(1), np.zeros(3, np.uint32), np.uint64(2**64 - 1)], {"rounds": 8},
           reference=lambda *_: np.array(0x8F71E7C76D052A56, np.uint64), gradient=False),
    Sample("RandomIndexShuffle", [np.int32(5), np.array([1, 2, 3], np.int32), np.int32(3)], raises=(InvalidArgumentError, "3 < 5")),
    Sample("RandomIndexShuffle", [np.int32(1), np.array([1, 2], np.int32), np.int32(3)], raises=(InvalidArgumentError, r"\[2\]")),
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(False), np.array([1, 2])],
           reference=crossed(3694432073954588132), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1, 2])],
           reference=crossed(5158252350249958646), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [np.array([2**33 + 5])], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1, 2])],
           reference=crossed(112910862072883125), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1])],
           raises=(InvalidArgumentError, "length 2 but has length 1")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample):
    """Value, shape, eager mode and GraphDef round trip of one sample."""
    check_sample(sample)


def test_index_shuffle_is_a_permutation():
    """All indices up to the largest, shuffled, are all of them again; the numbers are TensorFlow's."""
    with tf.Graph().as_default(), tf.Session() as session:
        moved = tf2.random.experimental.index_shuffle(tf.range(10), [5, 6], 9)
        assert moved.shape.as_list() == [10]
        assert sorted(session.run(moved).tolist()) == list(range(10))


def test_random_crop_op_draws_what_tensorflow_draws():
    """The RandomCrop op of old graphs takes the places that TensorFlow takes, run after run."""
    image = np.arange(64 * 70, dtype=np.float32).reshape(64, 70, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        crop = tf.raw_ops.RandomCrop(image=image, size=[2, 3], seed=5, seed2=6)
        assert crop.shape.as_list() == [2, 3, 1]
        corners = [divmod(int(session.run(crop)[0, 0, 0]), 70) for _ in range(4)]
        assert corners == [(4, 31), (27, 57), (19, 37), (57, 33)]
        with pytest.raises(FailedPreconditionError, match="height = 64, target_height = 65"):
            session.run(tf.raw_ops.RandomCrop(image=image, size=[65, 1], seed=5, seed2=6))
        with pytest.raises(InvalidArgumentError, match="two elements"):
            session.run(tf.raw_ops.RandomCrop(image=image, size=[1, 1, 1], seed=5, seed2=6))


def test_tensor_map(eager):
    """A map finds values by keys of any shape and dtype; insertions and erasures leave older maps alone."""
    ops = tf.raw_ops
    empty = ops.EmptyTensorMap()
    one = ops.TensorMapInsert(input_handle=empty, key=1.0, value=[2.0, 3.0])
    two = ops.TensorMapInsert(input_handle=one, key="word", value=7)
    sizes = [int(ops.TensorMapSize(input_handle=each)) for each in (empty, one, two)]
    assert sizes == [0, 1, 2]
    assert ops.TensorMapLookup(input_handle=two, key=1.0, value_dtype=tf.float32).numpy().tolist() == [2.0, 3.0]
    assert int(ops.TensorMapLookup(input_handle=two, key="word", value_dtype=tf.int32)) == 7
    assert not bool(ops.TensorMapHasKey(input_handle=two, key=[1.0]))
    gone = ops.TensorMapErase(input_handle=two, key="word", value_dtype=tf.int32)
    assert ops.TensorMapStackKeys(input_handle=gone, key_dtype=tf.float32).numpy().tolist() == [1.0]
    for call, words in (
        (lambda: ops.TensorMapLookup(input_handle=one, key=2.0, value_dtype=tf.float32), "non-existent key"),
        (lambda: ops.TensorMapLookup(input_handle=one, key=1.0, value_dtype=tf.int32), "Type mismatch"),
        (lambda: ops.TensorMapErase(input_handle=one, key=2.0, value_dtype=tf.float32), "non-existent item"),
        (lambda: ops.TensorMapStackKeys(input_handle=empty, key_dtype=tf.float32), "empty map"),
        (lambda: ops.TensorMapStackKeys(input_handle=two, key_dtype=tf.float32), "requested dtype"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            call()


def test_push_back_batch(eager):
    """Each of several lists gets the row that belongs to it."""
    ops = tf.raw_ops
    lists = [
        ops.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.float32)
        for _ in range(2)
    ]
    pushed = ops.TensorListPushBackBatch(input_handles=tf.stack(lists), tensor=[1.0, 2.0])
    for handle in (pushed[1], tf.unstack(pushed)[1]):
        items = ops.TensorListStack(
            input_handle=handle, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32
        )
        assert items.numpy().tolist() == [2.0]
    with pytest.raises(InvalidArgumentError, match=r"3 vs\. 2"):
        ops.TensorListPushBackBatch(input_handles=tf.stack(lists), tensor=[1.0, 2.0, 3.0])


def test_critical_section_excludes_other_runs():
    """Two runs that read, compute and write in one section never lose an update."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        total = tf.get_variable("total", initializer=0, use_resource=True)
        section = tf.CriticalSection(name="section")

        def add_one():
            slow = tf.py_func(lambda x: x + 1, [total.read_value()], tf.int32)
            slow.set_shape([])
            return total.assign(slow)

        update = section.execute(add_one)
        session.run(total.initializer)
        failures = []

        def work():
            try:
                for _ in range(20):
                    session.run(update)
            except Exception as error:  # reported below
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert session.run(total) == 60
        assert [op.type for op in graph.get_operations() if "Mutex" in op.type] == [
            "MutexV2",
            "MutexLock",
            "ConsumeMutexLock",
        ]


def test_critical_section_is_left_when_it_fails():
    """A section whose function fails when run can be entered again."""
    with tf.Graph().as_default(), tf.Session() as session:
        section = tf.CriticalSection()
        bad = section.execute(
            lambda: tf.debugging.check_numerics(tf.constant(np.nan) + tf.placeholder_with_default(0.0, []), "bad")
        )
        good = section.execute(lambda: tf.constant(2.0) * 3.0)
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(bad)
        assert caught
        assert session.run(good) == 6.0
        assert session.run([good, good]) == [6.0, 6.0]


def test_critical_section_refuses_what_would_deadlock():
    """Entering a section again, or sharing a resource with another that wants it alone, is a ValueError."""
    with tf.Graph().as_default():
        first, second, third = tf.CriticalSection(), tf.CriticalSection(), tf.CriticalSection(shared_name="third")
        variable = tf.get_variable("v", initializer=1.0, use_resource=True)
        other = tf.get_variable("w", initializer=1.0, use_resource=True)
        first.execute(lambda: variable.assign_add(1.0))
        with pytest.raises(ValueError, match="already running"):
            first.execute(lambda: first.execute(variable.read_value))
        with pytest.raises(ValueError, match="exclusive resource access"):
            second.execute(lambda: variable.assign_add(1.0))
        second.execute(other.read_value, exclusive_resource_access=False)
        third.execute(other.read_value, exclusive_resource_access=False)
        assert (first.name, second.name) == ("CriticalSection", "CriticalSection_1")
        with pytest.raises(ValueError, match="not supported"):
            tf.CriticalSection(critical_section_def=1)
        assert tf.get_collection("critical_sections") == [first, second, third]


def test_critical_section_in_functions_and_at_once(eager):
    """Sections work at once and in functions; an exception leaves them."""
    section, variable = tf2.CriticalSection(), tf2.Variable(1.0)

    @tf2.function
    def add():
        return section.execute(lambda: variable.assign_add(2.0))

    def fail():
        raise KeyError("no")

    assert float(section.execute(lambda: variable.assign_add(1.0))) == 2.0
    with pytest.raises(KeyError):
        section.execute(fail)
    assert [float(add()), float(add())] == [4.0, 6.0]


def test_guarantee_const_has_no_gradient():
    """As in TensorFlow, a promise of constancy is an op without a gradient."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        promised = tf.guarantee_const(x)
        assert promised.op.type == "GuaranteeConst"
        with pytest.raises(LookupError, match="GuaranteeConst"):
            tf.gradients(promised, x)
