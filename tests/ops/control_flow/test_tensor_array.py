"""TensorArray, lists of tensors, and the arrays and stacks of 1.x graphs."""

import numpy as np
import pytest
import torch

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.ops.control_flow import tensor_array_v3
from stoker._src.ops.control_flow.tensor_list_values import TensorList
from tests.running import run


def test_write_read_stack_in_a_graph():
    """What is written is read, stacked, gathered and joined."""
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    for i in range(3):
        ta = ta.write(i, tf.constant([1.0, 2.0]) * i)
    assert ta.element_shape.as_list() == [2]
    stacked, gathered, joined, size, one = run([ta.stack(), ta.gather([2, 0]), ta.concat(), ta.size(), ta.read(1)])
    np.testing.assert_array_equal(stacked, [[0, 0], [1, 2], [2, 4]])
    np.testing.assert_array_equal(gathered, [[2, 4], [0, 0]])
    np.testing.assert_array_equal(joined, [0, 0, 1, 2, 2, 4])
    np.testing.assert_array_equal(one, [1, 2])
    assert size == 3


def test_unstack_scatter_split():
    """Arrays from the rows, chosen rows and pieces of a tensor."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a = tf.TensorArray(tf.float32, size=3).unstack(x)
    b = tf.TensorArray(tf.float32, size=4).scatter([3, 0], x[:2])
    c = tf.TensorArray(tf.float32, size=2, infer_shape=False).split(x, [1, 2])
    found = run([a.read(1), b.read(3), b.read(1), c.read(1)])
    np.testing.assert_array_equal(found[0], [3, 4])
    np.testing.assert_array_equal(found[1], [1, 2])
    np.testing.assert_array_equal(found[2], [0, 0])
    np.testing.assert_array_equal(found[3], [[3, 4], [5, 6]])


def test_array_as_loop_variable_with_gradient():
    """Partial products written in a loop; the gradient goes through the array."""
    x = tf.placeholder(tf.float64, [4])
    rows = tf.TensorArray(tf.float64, size=4).unstack(x)

    def body(i, product, out):
        product = product * rows.read(i)
        return i + 1, product, out.write(i, product)

    start = tf.constant(1.0, tf.float64)
    _, _, out = tf.while_loop(lambda i, *_: i < 4, body, [0, start, tf.TensorArray(tf.float64, size=4)])
    y = out.stack()
    gradient = tf.gradients(y, x)[0]
    value = np.array([1.0, 2.0, 3.0, 0.5])
    products = np.cumprod(value)
    np.testing.assert_allclose(run(y, {x: value}), products)
    expected = [products[i:].sum() / value[i] for i in range(4)]
    np.testing.assert_allclose(run(gradient, {x: value}), expected)


def test_array_errors():
    """No size, wrong dtype, wrong shape, handles."""
    with pytest.raises(ValueError, match="Size must"):
        tf.TensorArray(tf.float32)
    ta = tf.TensorArray(tf.float32, size=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="dtype is float32"):
        ta.write(0, tf.constant(1))
    with pytest.raises(ValueError, match="Incompatible shape"):
        ta.write(0, tf.constant([1.0])).write(1, tf.constant([1.0, 2.0]))
    with pytest.raises(ValueError, match="both `handle` and `size`"):
        tf.TensorArray(tf.float32, handle=tensor_array_v3.TENSOR_ARRAY_V3(1, dtype=tf.float32)[0], size=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="element 5"):
        run(ta.write(0, 1.0).read(5))


def test_an_array_behind_a_handle():
    """A handle and a flow, as a 1.x graph has them, make an array with every method."""
    handle, flow = tensor_array_v3.TENSOR_ARRAY_V3(3, dtype=tf.float32, clear_after_read=False)
    ta = tf.TensorArray(tf.float32, handle=handle, flow=flow).unstack(tf.constant([[1.0], [2.0], [3.0]]))
    assert ta.handle is handle
    found = run([ta.stack(), ta.gather([2]), ta.concat(), ta.size(), ta.read(1)])
    for value, expected in zip(found, ([[1], [2], [3]], [[3]], [1, 2, 3], 3, [2])):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("behind_handle", [False, True])
def test_the_array_of_gradients_adds_up(behind_handle):
    """TensorArray.grad gives one array for each source; what is written twice adds up, sources do not mix."""
    if behind_handle:
        handle, flow = tensor_array_v3.TENSOR_ARRAY_V3(2, dtype=tf.float32)
        ta = tf.TensorArray(tf.float32, handle=handle, flow=flow)
    else:
        ta = tf.TensorArray(tf.float32, size=2)
    ta = ta.unstack(tf.constant([1.0, 2.0]))
    first = ta.grad("a").write(0, 5.0)
    again = ta.grad("a", flow=first.flow if behind_handle else None)
    with tf.control_dependencies([first.flow]):
        both = again.write(0, 1.0).write(1, 7.0)
    other = ta.grad("b").write(0, 2.0).write(1, 3.0)
    stacked, separate = run([both.stack(), other.stack()])
    np.testing.assert_array_equal(stacked, [6, 7])
    np.testing.assert_array_equal(separate, [2, 3])


def test_closing_an_array():
    """close() is an operation in a graph, for lists too."""
    assert run(tf.TensorArray(tf.float32, size=1).close()) is None


def test_eager_array(eager):
    """In eager mode writes change the array, sizes grow where allowed, and an element is read once."""
    ta = tf2.TensorArray(tf2.float32, size=0, dynamic_size=True)
    ta.write(0, 1.0)
    ta = ta.write(2, 3.0)
    np.testing.assert_array_equal(ta.stack().numpy(), [1, 0, 3])
    assert float(ta.read(0)) == 1.0
    with pytest.raises(tf2.errors.InvalidArgumentError, match="twice"):
        ta.read(0)
    with pytest.raises(tf2.errors.OutOfRangeError, match="not resizeable"):
        tf2.TensorArray(tf2.float32, size=1).write(1, 1.0)
    with pytest.raises(tf2.errors.OutOfRangeError, match="array size is: 3"):
        ta.read(3)


def test_lists_are_values():
    """Changing a list leaves older ones as they were, whatever is read in whatever order."""
    empty = TensorList([], dtypes.float32, Shape(None))
    one = empty.pushed(np.float32(1))
    two = one.pushed(np.float32(2))
    other = one.pushed(np.float32(9))
    rest, item = two.popped()
    changed = two.with_item(0, np.float32(7))
    assert [x.items() for x in (empty, one, two, other, rest, changed)] == [[], [1], [1, 2], [1, 9], [1], [7, 2]]
    assert item == 2


@pytest.mark.parametrize("seed", range(20))
def test_lists_against_copies(seed):
    """Random changes of randomly chosen versions agree with plain copied lists."""
    rng = np.random.RandomState(seed)
    versions = [(TensorList([], dtypes.float32, Shape(None)), [])]
    for step in range(60):
        found, plain = versions[rng.randint(len(versions))]
        kind = rng.randint(3)
        if kind == 0 or not plain:
            versions.append((found.pushed(np.float32(step)), [*plain, step]))
        elif kind == 1:
            versions.append((found.popped()[0], plain[:-1]))
        else:
            i = rng.randint(len(plain))
            versions.append((found.with_item(i, np.float32(step)), [*plain[:i], step, *plain[i + 1 :]]))
    for found, plain in versions:
        assert found.items() == plain


def _floats(shape=(2,)):
    return TensorList([], dtypes.float32, Shape(shape))


def test_lengths_of_older_lists():
    """The length of every version of a list is known, whatever was pushed, popped and set after it, and also of a list of rows."""
    versions, lengths = [_floats()], [0]
    for change in "+++-=-++=":
        last = versions[-1]
        if change == "+":
            versions.append(last.pushed(torch.ones(2)))
        elif change == "-":
            versions.append(last.popped()[0])
        else:
            versions.append(last.with_item(0, torch.zeros(2)))
        lengths.append(lengths[-1] + {"+": 1, "-": -1, "=": 0}[change])
    assert [each.length() for each in versions] == lengths
    rows = TensorList.of_rows(torch.zeros(3, 2), dtypes.float32, Shape((2,)))
    assert rows.pushed(torch.ones(2)).length() == 4
    assert rows.length() == 3
    old = newest = _floats()
    for _ in range(100):
        newest = newest.pushed(torch.ones(2))
    assert (old.length(), newest.length()) == (0, 100)


def test_sums_of_lists_count_unwritten_items_as_zero():
    """Lists are added item by item. Zeros like a list, and items that were never written, change nothing; an empty list is no list."""
    written = _floats().pushed(torch.tensor([1.0, 2.0])).pushed(torch.tensor([3.0, 4.0]))
    blank = TensorList([None, None], dtypes.float32, Shape((2,)))
    zeros = written.zeros_like()
    total = blank.sum_with([zeros, written, _floats(), blank.with_item(1, torch.tensor([10.0, 10.0]))])
    assert [item.tolist() for item in total.items()] == [[1, 2], [13, 14]]
    assert zeros.item(1, Shape(None)).tolist() == [0, 0]
    assert zeros.rows().tolist() == [[0, 0], [0, 0]]
    assert written.items()[0].tolist() == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="different lengths: 1 and 2"):
        written.sum_with([_floats().pushed(torch.zeros(2))])


def test_zeros_like_a_list_of_unknown_shapes_keep_each_shape():
    """Where items may have different shapes, each has its zeros."""
    zeros = _floats(None).pushed(torch.ones(2)).pushed(torch.ones(3, 1)).zeros_like()
    assert [item.tolist() for item in zeros.items()] == [[0, 0], [[0], [0], [0]]]


@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_a_recursion_over_an_array(seed):
    """A loop with branches that reads earlier items of the array it writes: values and gradients are those of Python's recursion."""
    rng = np.random.RandomState(seed)
    count, size = 7, 3
    left, right = [0] * 4 + [0, 2, 4], [0] * 4 + [1, 3, 5]
    leaf = [True] * 4 + [False] * 3
    x, w = tf.placeholder(tf.float64, [count, size]), tf.placeholder(tf.float64, [size, size])

    def body(i, hs):
        def compose():
            a, b = (hs.read(tf.constant(side)[i]) for side in (left, right))
            return tf.tanh(tf.matmul((a * b)[None], w))[0] + a

        return i + 1, hs.write(i, tf.cond(tf.constant(leaf)[i], lambda: tf.sin(x[i]), compose))

    array = tf.TensorArray(tf.float64, count, clear_after_read=False, element_shape=[size])
    states = tf.while_loop(lambda i, _: i < count, body, [0, array])[1].stack()
    weights = rng.randn(count, size)
    gradients = tf.gradients(tf.reduce_sum(states * weights), [x, w])

    def plain(x, w):
        made = []
        for i in range(count):
            a, b = (made[side[i]] if made and not leaf[i] else None for side in (left, right))
            made.append(np.sin(x[i]) if leaf[i] else np.tanh((a * b) @ w) + a)
        return np.array(made)

    given = [rng.randn(count, size), rng.randn(size, size)]
    found, *found_gradients = run([states, *gradients], dict(zip([x, w], given)))
    np.testing.assert_allclose(found, plain(*given), rtol=1e-12)
    for k, gradient in enumerate(found_gradients):
        expected = np.zeros_like(given[k])
        for at in np.ndindex(*given[k].shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [each.copy() for each in given]
                moved[k][at] += step
                ends.append((plain(*moved) * weights).sum())
            expected[at] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_arrays_of_1x_graphs():
    """TensorArrayV3 ops: writes, reads, gather, scatter, split, concat, sizes, ordered by the flow."""
    handle, flow = tensor_array_v3.TENSOR_ARRAY_V3(tf.constant(3), dtype=tf.float32, clear_after_read=False)
    flow = tensor_array_v3.TENSOR_ARRAY_SCATTER_V3(handle, tf.constant([0, 2]), tf.constant([[1.0], [3.0]]), flow)
    flow = tensor_array_v3.TENSOR_ARRAY_WRITE_V3(handle, tf.constant(1), tf.constant([2.0]), flow)
    value, lengths = tensor_array_v3.TENSOR_ARRAY_CONCAT_V3(handle, flow, dtype=tf.float32)
    found = run(
        [
            tensor_array_v3.TENSOR_ARRAY_READ_V3(handle, tf.constant(2), flow, dtype=tf.float32),
            tensor_array_v3.TENSOR_ARRAY_GATHER_V3(handle, tf.constant([1, 0]), flow, dtype=tf.float32),
            tensor_array_v3.TENSOR_ARRAY_SIZE_V3(handle, flow),
            value,
            lengths,
        ]
    )
    np.testing.assert_array_equal(found[0], [3])
    np.testing.assert_array_equal(found[1], [[2], [1]])
    assert found[2] == 3
    np.testing.assert_array_equal(found[3], [1, 2, 3])
    np.testing.assert_array_equal(found[4], [1, 1, 1])


def test_arrays_of_1x_graphs_report_misuse():
    """Writing twice, outside, or reading what was not written."""
    handle, flow = tensor_array_v3.TENSOR_ARRAY_V3(tf.constant(1), dtype=tf.float32)
    one = tensor_array_v3.TENSOR_ARRAY_WRITE_V3(handle, tf.constant(0), tf.constant(2.0), flow)
    twice = tensor_array_v3.TENSOR_ARRAY_WRITE_V3(handle, tf.constant(0), tf.constant(2.0), one)
    outside = tensor_array_v3.TENSOR_ARRAY_WRITE_V3(handle, tf.constant(1), tf.constant(2.0), flow)
    unwritten = tensor_array_v3.TENSOR_ARRAY_READ_V3(handle, tf.constant(0), flow, dtype=tf.float32)
    for fetch, message in (
        (twice, "already been written"),
        (outside, "not resizeable"),
        (unwritten, "was not written"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(fetch)


def test_stacks_of_1x_graphs():
    """What is pushed last is popped first; an empty stack is an error."""
    handle = tensor_array_v3.STACK_V2(tf.constant(-1), elem_type=tf.float32)
    first = tensor_array_v3.STACK_PUSH_V2(handle, tf.constant(1.0))
    with tf.control_dependencies([first]):
        second = tensor_array_v3.STACK_PUSH_V2(handle, tf.constant(2.0))
    with tf.control_dependencies([second]):
        popped = tensor_array_v3.STACK_POP_V2(handle, elem_type=tf.float32)
    assert run(popped) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
        run(tensor_array_v3.STACK_POP_V2(handle, elem_type=tf.float32))


def test_stacked_loops_know_their_length():
    """An array of fixed size keeps that size through a loop; one that may grow does not."""

    def stacked(dynamic):
        start = tf.TensorArray(tf.float32, 4, dynamic_size=dynamic)
        return tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, tf.zeros([2]))), (0, start))[1].stack()

    assert stacked(False).shape.as_list() == [4, 2] and stacked(True).shape.as_list() == [None, 2]
    rows = tf.TensorArray(tf.float32, 3).unstack(tf.placeholder(tf.float32, [None, 5]))
    assert rows.stack().shape.as_list() == [None, 5]
