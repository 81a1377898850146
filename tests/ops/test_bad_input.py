"""Every op with bad input: TensorFlow's errors, never torch's or Python's own."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
from stoker._src.base.errors import OpError

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path[:0] = [str(SCRIPTS), str(SCRIPTS / "op_comparison")]

import bad_inputs  # noqa: E402
from op_comparison.hostile import describe, hostile_variants  # noqa: E402
from oracle import call, convert, flatten  # noqa: E402

LOOPS = ("While", "StatelessWhile", "For")  # a loop over other numbers may be a long one
LARGE = ("1048576", "2147483647", "1099511627776", "9223372036854775807", "4294967297")


def _calls():
    """A few bad calls of each op, without sizes that a run could try to serve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in bad_inputs.good_cases():
            if not case.graph and case.op not in LOOPS:
                modest = [each for each in hostile_variants(case) if not any(size in each.kind for size in LARGE)]
                yield from bad_inputs.spread(modest, 6)


CALLS = list(_calls())


@pytest.mark.parametrize("part", range(8))
def test_bad_calls_end_in_tensorflow_errors(part, eager):
    """Whatever is wrong with a call: a value, or an error of TensorFlow's kind in our words."""
    failures = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CALLS[part::8]:
            try:
                inputs = {name: convert(tf, value) for name, value in case.inputs.items()}
                flatten(call(tf, case.op, inputs, dict(case.attrs)))
            except (OpError, ValueError, TypeError) as error:
                if any(word in str(error) for word in bad_inputs.FOREIGN):
                    failures.append(f"{describe(case)}: {type(error).__name__}: {error}")
            except Exception as error:
                failures.append(f"{describe(case)}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)


HUGE = 2**45


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.fill([HUGE], 1.0),
        lambda: tf.range(0, HUGE, 1, dtype=tf.int64),
        lambda: tf.linspace(0.0, 1.0, HUGE),
        lambda: tf.one_hot([0], 2**31 - 1, axis=-1) + tf.one_hot(np.zeros([2**15], np.int32), 2**31 - 1),
        lambda: tf.tile([1.0], [HUGE]),
        lambda: tf.pad([1.0], [[0, HUGE]]),
        lambda: tf.random.uniform([HUGE]),
        lambda: tf.random.stateless_normal([HUGE], [1, 2]),
        lambda: tf.scatter_nd([[0]], [1.0], tf.constant([HUGE], tf.int64)),
        lambda: tf.math.unsorted_segment_sum([1.0], [0], tf.constant(HUGE, tf.int64)),
        lambda: tf.linalg.diag(np.zeros(3), num_rows=2**31 - 1, num_cols=3) + tf.linalg.diag(np.zeros([2**14, 3]), num_rows=2**31 - 1),
        lambda: tf.sparse.fill_empty_rows(tf.SparseTensor([[0, 0]], [1.0], [HUGE, 1]), 0.0),
        lambda: tf.sparse.to_dense(tf.SparseTensor([[0, 0]], [1.0], [HUGE, 1])),
        lambda: tf.strings.as_string([1.0] * 4096, width=2**31 - 1),
        lambda: tf.io.decode_raw(["a"] * 4096, tf.uint8, fixed_length=2**31 - 1),
        lambda: tf.ragged.range(HUGE),
        lambda: tf.space_to_batch([[[[1.0]]]], [1, 1], [[0, HUGE], [0, 0]]),
        lambda: tf.raw_ops.StridedSliceGrad(shape=[HUGE], begin=[0], end=[1], strides=[1], dy=[1.0]),
        lambda: tf.raw_ops.UnsortedSegmentJoin(inputs=["a"], segment_ids=[0], num_segments=tf.constant(HUGE, tf.int64)),
    ],
)  # fmt: skip
def test_more_than_the_machine_holds_is_refused_first(call, eager):
    """A size that memory cannot hold is an error before anything is allocated, not the end of the process."""
    with pytest.raises((tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)):
        call()


def test_more_outputs_than_an_op_can_have(eager):
    """The number of outputs is limited, whatever attribute states it."""
    for too_many in (
        lambda n: tf.raw_ops.DynamicPartition(data=[1.0], partitions=[0], num_partitions=n),
        lambda n: tf.raw_ops.Split(axis=0, value=[1.0], num_split=n),
        lambda n: tf.raw_ops.Unpack(value=[1.0], num=n),
    ):
        for number in (2**31 - 1, 2**63 - 1):
            with pytest.raises(ValueError, match="Number of outputs is too big"):
                too_many(number)


def test_gradient_ops_do_not_broadcast(eager):
    """Gradient ops take inputs of one shape only."""
    for op, names in (("ReluGrad", ("gradients", "features")), ("TanhGrad", ("y", "dy"))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="same size and shape"):
            getattr(tf.raw_ops, op)(**{names[0]: [1.0], names[1]: [1.0, 2.0]})


def test_ranks_are_checked_when_they_become_known():
    """An input of unknown rank is refused when it runs, as one of known rank is when the graph is built."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        start = tf.compat.v1.placeholder(tf.int32)
        result = tf.raw_ops.Range(start=start, limit=5, delta=1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at most rank 1 but is rank 2"):
            session.run(result, {start: [[0]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="start must be a scalar"):
            session.run(result, {start: [0, 1]})
        assert session.run(result, {start: [3]}).tolist() == [3, 4]  # a vector of one passes for a scalar by then
        assert session.run(result, {start: 3}).tolist() == [3, 4]


@pytest.mark.parametrize("rate", [2**30 - 1, 2**31 - 1])
def test_dilations_that_no_window_has_room_for_are_refused(rate, eager):
    """Windows whose padded sizes 32 bits do not hold never reach torch, which would end the process."""
    image, filters = tf.zeros((1, 8, 8, 3)), tf.zeros((3, 3, 3, 2))
    for convolution in (tf.nn.conv2d, tf.nn.depthwise_conv2d):
        with pytest.raises(tf.errors.InvalidArgumentError, match="padded sizes"):
            convolution(image, filters, [1, 1, 1, 1], "SAME", dilations=[rate, rate])


def test_variables_are_read_and_written_with_their_own_dtype(eager):
    """Eagerly, too, an op that names another dtype than the variable's is refused."""
    variable = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected int32 got float32"):
        tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected int32 got float32"):
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.constant([1, 2]))
    assert variable.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("value", [b"a\0", [b"a\0", b"b"], ["a\0"], [["\0"]], (b"\0\0",)], ids=repr)
def test_strings_keep_zero_bytes_at_their_end(value, eager):
    """NumPy's own strings would drop them; elements are plain bytes."""
    found = np.array(tf.constant(value).numpy(), object).ravel().tolist()
    wanted = np.array(value, object).ravel().tolist()
    assert found == [each.encode() if isinstance(each, str) else each for each in wanted]
    assert all(type(each) is bytes for each in found)


def test_loop_conditions_of_several_elements_end_the_run():
    """A condition whose rank is not known when the graph is built must be one element when it runs."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        start = v1.placeholder(tf.float32)
        last = v1.while_loop(lambda x: x < 3, lambda x: x + 1, [start])
        assert session.run(last, {start: 1.0}) == 3
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(last, {start: [1.0, 1.0]})


@pytest.mark.parametrize("insertions, numbers", [
    ([("a", 0), ("a", 1), ("b", 0), ("b", 1)], [0, 1]),
    ([("a", 0), ("a", 0), ("a", 0), ("b", 0), ("a", 1), ("b", 1)], [0, 1]),
    ([("a", 0), ("", 0), ("b", 0), ("b", 1), ("a", 1)], [0, 1]),
])  # fmt: skip
def test_barriers_number_the_calls_that_bring_keys(insertions, numbers):
    """Insertions that are refused, empty, or complete elements only have no number of their own (TensorFlow's numbers)."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        barrier = tf.raw_ops.Barrier(component_types=[tf.float32, tf.float32], shapes=[[], []])
        seen = set()
        for keys, component in insertions:
            insert = tf.raw_ops.BarrierInsertMany(
                handle=barrier, keys=tf.constant(list(keys), tf.string), values=[1.0] * len(keys), component_index=component
            )  # fmt: skip
            if (keys, component) in seen:
                with pytest.raises(tf.errors.InvalidArgumentError, match="already has a value"):
                    session.run(insert)
            else:
                session.run(insert)
            seen.add((keys, component))
        taken = tf.raw_ops.BarrierTakeMany(handle=barrier, num_elements=2, component_types=[tf.float32, tf.float32])
        found, keys, _ = session.run(taken)
        assert [number + 2**63 for number in found.tolist()] == numbers
        assert keys.tolist() == [b"a", b"b"]
