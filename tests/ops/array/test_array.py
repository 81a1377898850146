"""Shapes, joins, slices and padding, through the sample runner and the public API."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, booleans, c128, check_sample, f32, f64, i32, i64, samples

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def masks(*values: int) -> dict[str, int]:
    return dict(zip(MASKS, values))


def u(*shape: int, kind: str = "uint32") -> np.ndarray:
    return i32(*shape, low=0, high=9).astype(kind)


def text(*shape: int) -> np.ndarray:
    count = int(np.prod(shape))
    return np.array([b"s%d" % i for i in range(count)], dtype=object).reshape(shape)


SAMPLES = [
    Sample("Identity", [f64(2)], reference=lambda x: x),
    Sample("Snapshot", [f64(2)], reference=lambda x: x),
    Sample("StopGradient", [f64(2)], reference=lambda x: x, gradient=False),
    Sample("IdentityN", [[f64(2), f64(3)]], reference=lambda xs: list(xs)),
    Sample(
        "ShapeN", [[f64(2), f64(3)]], reference=lambda xs: [np.array([2], "i4"), np.array([3], "i4")], gradient=False
    ),
    Sample("Rank", [f64(2, 3)], reference=lambda x: np.int32(2), gradient=False),
    Sample("Size", [f64(2, 3)], {"out_type": "int64"}, reference=lambda x: np.int64(6), gradient=False),
    Sample("ExpandDims", [f64(2, 3), 1], reference=lambda x, d: x[:, None]),
    Sample("ExpandDims", [f64(), -1], reference=lambda x, d: x[None]),
    Sample("ExpandDims", [text(2), [0]], reference=lambda x, d: x[None], gradient=False),
    Sample("ExpandDims", [f64(2), 4], raises=(WHEN_BUILT, "4")),
    Sample("Squeeze", [f64(1, 3, 1)], reference=np.squeeze),
    Sample("Squeeze", [f64(1, 3, 1)], {"squeeze_dims": [-1]}, reference=lambda x: x[..., 0]),
    Sample("Squeeze", [text(1, 2)], reference=np.squeeze, gradient=False),
    Sample(
        "Squeeze", [f64(2, 3)], {"squeeze_dims": [0]}, raises=(InvalidArgumentError, "expected a dimension of 1, got 2")
    ),
    Sample("ConjugateTranspose", [c128(2, 3), [1, 0]], reference=lambda x, p: x.T.conj(), gradient=False),
    Sample("ConjugateTranspose", [f64(2, 3), [1, 0]], reference=lambda x, p: x.T),
    Sample("Transpose", [text(2, 3), [1, 0]], reference=lambda x, p: x.T, gradient=False),
    Sample("InvertPermutation", [np.array([2, 0, 1], "i4")], reference=lambda x: np.argsort(x), gradient=False),
    Sample("InvertPermutation", [np.array([2, 0, 0], "i4")], raises=(InvalidArgumentError, "permutation")),
    Sample("Reshape", [f64(2, 3), [4, -1]], raises=(InvalidArgumentError, "6")),
    Sample("Reshape", [text(2, 3), [3, 2]], reference=lambda x, s: x.reshape(3, 2), gradient=False),
    Sample("Fill", [[2, 0], u()], reference=lambda d, v: np.full((2, 0), v), gradient=False),
    Sample("Fill", [[-1, 3], f64()], raises=(WHEN_BUILT, "-1")),
    Sample("Fill", [[1 << 40, 1 << 40], f64()], raises=(InvalidArgumentError, "too many elements")),
    # joining
    Sample("Pack", [[f64(2), f64(2)]], {"axis": 1}, reference=lambda xs: np.stack(xs, 1)),
    Sample("Pack", [[text(2), text(2)]], reference=lambda xs: np.stack(xs), gradient=False),
    Sample("Pack", [[f64(2), f64(3)]], raises=(InvalidArgumentError, "2")),
    Sample("Unpack", [f64(2, 3)], {"num": 3, "axis": -1}, reference=lambda x: [x[:, i] for i in range(3)]),
    Sample("Unpack", [text(2, 2)], {"num": 2}, reference=lambda x: [x[0], x[1]], gradient=False),
    Sample("Unpack", [f64(2, 3)], {"num": 4, "axis": 1}, raises=(InvalidArgumentError, "4")),
    Sample("ConcatV2", [[f64(2, 1), f64(2, 3)], 1], reference=lambda xs, a: np.concatenate(xs, 1)),
    Sample("ConcatV2", [[f64(2, 1), f64(3, 1)], -2], reference=lambda xs, a: np.concatenate(xs, 0)),
    Sample("ConcatV2", [[u(0), u(3)], 0], reference=lambda xs, a: np.concatenate(xs, 0), gradient=False),
    Sample("ConcatV2", [[f64(2, 1), f64(3, 3)], 1], raises=(InvalidArgumentError, "2")),
    Sample("Concat", [0, [f64(2), f64(3)]], reference=lambda a, xs: np.concatenate(xs)),
    Sample("ParallelConcat", [[f64(1, 2), f64(1, 2)]], {"shape": [2, 2]}, reference=lambda xs: np.concatenate(xs)),
    Sample(
        "ConcatOffset",
        [1, [np.array([2, 3], "i4"), np.array([2, 4], "i4")]],
        reference=lambda a, s: [np.array([0, 0]), np.array([0, 3])],
        gradient=False,
    ),
    Sample("Split", [1, f64(2, 4)], {"num_split": 2}, reference=lambda a, x: np.split(x, 2, 1)),
    Sample("Split", [1, f64(2, 4)], {"num_split": 3}, raises=(InvalidArgumentError, "evenly divide")),
    Sample("SplitV", [f64(2, 5), [1, -1, 1], 1], {"num_split": 3}, reference=lambda x, s, a: np.split(x, [1, 4], 1)),
    Sample(
        "SplitV", [text(5), [2, 3], 0], {"num_split": 2}, reference=lambda x, s, a: np.split(x, [2]), gradient=False
    ),
    Sample("SplitV", [f64(2, 5), [1, 3], 1], {"num_split": 2}, raises=(InvalidArgumentError, "4")),
    Sample("Tile", [f64(2, 1), [2, 3]], reference=lambda x, m: np.tile(x, (2, 3))),
    Sample("Tile", [u(3, kind="uint64"), [0]], reference=lambda x, m: np.tile(x, 0), gradient=False),
    Sample("Tile", [text(2), [2]], reference=lambda x, m: np.tile(x, 2), gradient=False),
    Sample("Tile", [f64(), np.zeros(0, "i4")], reference=lambda x, m: x),
    Sample("Tile", [f64(2), [-1]], raises=(InvalidArgumentError, "-1")),
    # padding
    Sample("Pad", [f64(2, 3), [[1, 0], [0, 2]]], reference=lambda x, p: np.pad(x, p)),
    Sample("Pad", [u(2, kind="uint16"), [[1, 1]]], reference=lambda x, p: np.pad(x, p), gradient=False),
    Sample("Pad", [text(2), [[1, 0]]], reference=lambda x, p: np.array([b"", *x], dtype=object), gradient=False),
    Sample("Pad", [f64(2), [[-1, 0]]], raises=(WHEN_BUILT, "-1")),
    Sample(
        "PadV2",
        [f64(2, 3), [[1, 0], [0, 2]], f64()],
        gradient=(0,),
        reference=lambda x, p, c: np.pad(x, p, constant_values=c),
    ),
    Sample(
        "PadV2",
        [i64(2), [[1, 0]], np.int64(1 << 60)],
        reference=lambda x, p, c: np.pad(x, p, constant_values=c),
        gradient=False,
    ),
    Sample(
        "MirrorPad", [f64(3, 3), [[2, 1], [0, 2]]], {"mode": "REFLECT"}, reference=lambda x, p: np.pad(x, p, "reflect")
    ),
    Sample(
        "MirrorPad",
        [f64(3, 2), [[3, 1], [0, 2]]],
        {"mode": "SYMMETRIC"},
        reference=lambda x, p: np.pad(x, p, "symmetric"),
    ),
    Sample("MirrorPad", [f64(3), [[3, 0]]], {"mode": "REFLECT"}, raises=(InvalidArgumentError, "3")),
    Sample(
        "MirrorPadGrad",
        [f64(6), [[2, 1]]],
        {"mode": "REFLECT"},
        reference=lambda x, p: np.array([x[2], x[1] + x[3] + x[5], x[0] + x[4]]),
    ),
    Sample(
        "SpaceToBatchND", [f64(1, 3, 4, 1), [2, 2], [[1, 0], [0, 0]]], reference=lambda x, b, p: space_to_batch(x, b, p)
    ),
    Sample(
        "SpaceToBatch",
        [f64(1, 2, 4, 2), [[0, 0], [0, 0]]],
        {"block_size": 2},
        reference=lambda x, p: space_to_batch(x, [2, 2], p),
    ),
    Sample("SpaceToBatchND", [f64(1, 3, 4, 1), [2, 2], [[0, 0], [0, 0]]], raises=(InvalidArgumentError, "divisible")),
    Sample(
        "BatchToSpaceND", [f64(4, 2, 2, 1), [2, 2], [[1, 0], [0, 2]]], reference=lambda x, b, c: batch_to_space(x, b, c)
    ),
    Sample(
        "BatchToSpace",
        [f64(4, 1, 2, 1), [[0, 0], [1, 0]]],
        {"block_size": 2},
        reference=lambda x, c: batch_to_space(x, [2, 2], c),
    ),
    Sample("BatchToSpaceND", [f64(3, 2, 2, 1), [2, 2], [[0, 0], [0, 0]]], raises=(InvalidArgumentError, "divisible")),
    Sample("SpaceToDepth", [f64(1, 4, 2, 3)], {"block_size": 2}, reference=lambda x: space_to_depth(x, 2)),
    Sample("DepthToSpace", [f64(1, 2, 1, 8)], {"block_size": 2}, reference=lambda x: depth_to_space(x, 2)),
    Sample(
        "SpaceToDepth",
        [f64(1, 3, 4, 2)],
        {"block_size": 2, "data_format": "NCHW"},
        reference=lambda x: space_to_depth(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2),
    ),
    Sample(
        "DepthToSpace",
        [f64(1, 8, 2, 1)],
        {"block_size": 2, "data_format": "NCHW"},
        reference=lambda x: depth_to_space(x.transpose(0, 2, 3, 1), 2).transpose(0, 3, 1, 2),
    ),
    Sample("DepthToSpace", [f64(1, 2, 1, 6)], {"block_size": 2}, raises=(InvalidArgumentError, "divisible")),
    # slices
    Sample("Slice", [f64(3, 4), [1, 0], [2, -1]], reference=lambda x, b, s: x[1:3]),
    Sample("Slice", [text(3), [1], [1]], reference=lambda x, b, s: x[1:2], gradient=False),
    Sample("Slice", [f64(3, 4), [1, 0], [3, -1]], raises=(InvalidArgumentError, "3")),
    Sample("StridedSlice", [f64(3, 4), [1, 0], [3, 4], [1, 2]], reference=lambda x, b, e, s: x[1:3, 0:4:2]),
    Sample("StridedSlice", [f64(5, 2), [-1], [0], [-2]], masks(0, 1), reference=lambda x, b, e, s: x[-1::-2]),
    Sample("StridedSlice", [u(5), [3], [-9], [-1]], reference=lambda x, b, e, s: x[3::-1], gradient=False),
    Sample(
        "StridedSlice",
        [f64(2, 3, 4), [0, 1, 0], [0, 2, 0], [1, 1, 1]],
        masks(0, 0, 1, 4, 2),
        reference=lambda x, b, e, s: x[..., 1, None],
    ),
    Sample(
        "StridedSlice",
        [text(4), [-1], [0], [1]],
        masks(0, 0, 0, 0, 1),
        reference=lambda x, b, e, s: x[3],
        gradient=False,
    ),
    Sample(
        "StridedSlice",
        [f64(3), [5], [6], [1]],
        masks(0, 0, 0, 0, 1),
        raises=(InvalidArgumentError, "slice index 5 of dimension 0 out of bounds"),
    ),
    Sample("StridedSlice", [f64(3), [0], [1], [0]], raises=(WHEN_BUILT, "non-zero")),
    Sample("StridedSliceGrad", [[4, 2], [3], [0], [-2], f64(2, 2)], reference=lambda sh, b, e, s, dy: _spread(sh, dy)),
    Sample(
        "TensorStridedSliceUpdate",
        [f64(4), [1], [3], [1], f64(2)],
        reference=lambda x, b, e, s, v: np.array([x[0], v[0], v[1], x[3]]),
    ),
    Sample(
        "TensorStridedSliceUpdate",
        [text(3), [0], [2], [1], np.array(b"z", object)],
        reference=lambda x, b, e, s, v: np.array([b"z", b"z", x[2]], object),
        gradient=False,
    ),
]


def _spread(shape, dy):
    result = np.zeros(shape)
    result[3:0:-2] = dy
    return result


def space_to_batch(x, block, paddings):
    x = np.pad(x, [[0, 0], *paddings, [0, 0]])
    parts = [x[:, i :: block[0], j :: block[1]] for i in range(block[0]) for j in range(block[1])]
    return np.concatenate(parts)


def batch_to_space(x, block, crops):
    n = x.shape[0] // (block[0] * block[1])
    result = np.zeros((n, x.shape[1] * block[0], x.shape[2] * block[1], x.shape[3]), x.dtype)
    for k in range(block[0] * block[1]):
        result[:, k // block[1] :: block[0], k % block[1] :: block[1]] = x[k * n : (k + 1) * n]
    (top, bottom), (left, right) = crops
    return result[:, top : result.shape[1] - bottom, left : result.shape[2] - right]


def space_to_depth(x, b):
    return np.concatenate([x[:, i::b, j::b] for i in range(b) for j in range(b)], -1)


def depth_to_space(x, b):
    n, h, w, c = x.shape
    c //= b * b
    result = np.zeros((n, h * b, w * b, c), x.dtype)
    for k in range(b * b):
        result[:, k // b :: b, k % b :: b] = x[..., k * c : (k + 1) * c]
    return result


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


INDICES = [
    0, -1, np.int64(1), slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1), slice(-2, 0, -1),
    (0, 1), (slice(None), 2), (Ellipsis, 0), (0, Ellipsis), (None, 1), (slice(None), None, 1), (Ellipsis, None), (1, slice(0, 2), None, -1),
    (slice(0, 0),), (slice(5, 9),), (0, 0, 0), (slice(None), slice(3, 0, -2), slice(None, None, -3)), (),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_brackets_follow_numpy(index):
    """x[...] gives what NumPy's basic indexing gives, in a graph, in eager mode, and its gradient lands there."""
    x = f64(3, 4, 5)
    with tf.Graph().as_default(), tf.Session() as session:
        tensor = tf.placeholder(tf.float64, [None, 4, 5])
        part = tensor[index]
        gradient = tf.gradients(tf.reduce_sum(part * 2.0), tensor)[0]
        value, back = session.run([part, gradient], {tensor: x})
    np.testing.assert_array_equal(value, x[index])
    expected = np.zeros_like(x)
    expected[index] = 2.0
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_eager_brackets_follow_numpy(index, eager):
    """x[...] of an eager tensor gives what NumPy gives."""
    x = f64(3, 4, 5)
    np.testing.assert_array_equal(tf2.constant(x)[index].numpy(), x[index])


@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_brackets_take_scalar_tensors(kind):
    """A tensor may be an index or a bound of a slice."""
    x = f32(3, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        tensor, t = tf.constant(x), tf.placeholder(kind, [])
        column, rows, both = tensor[:, t], tensor[t:], tensor[t, 1 : t + 1]
        assert column.shape.as_list() == [3]
        assert tensor[1:3, t].shape.as_list() == [2] and rows.shape.as_list() == [None, 4]
        for at in (0, 1, 2):
            found = session.run([column, rows, both], {t: at})
            for value, expected in zip(found, (x[:, at], x[at:], x[at, 1 : at + 1])):
                np.testing.assert_array_equal(value, expected)
        with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 4 of dimension 1 out of bounds"):
            session.run(column, {t: 4})


@pytest.mark.parametrize("index", [1.5, "a", [1.0]])
def test_other_indices_are_refused(index):
    """What is neither integer, slice, ellipsis nor None is a TypeError."""
    with tf.Graph().as_default(), pytest.raises(TypeError, match="Only integers, slices"):
        tf.constant([1, 2, 3])[index]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="mask cannot be scalar"):
        tf.constant([1, 2, 3])[True]


def test_shapes_flow_through_slices_stacks_and_joins():
    """The parts of tf.shape keep what is known, so that a reshape by them has a static shape."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4, 6])
        sizes = tf.shape(x)
        assert tf.reshape(x, tf.stack([sizes[0], 24])).shape.as_list() == [None, 24]
        assert tf.reshape(x, [sizes[0], sizes[1] * sizes[2]]).shape.as_list() == [None, 24]
        assert tf.reshape(x, tf.concat([sizes[:1], [24]], 0)).shape.as_list() == [None, 24]
        assert tf.zeros(sizes[1:]).shape.as_list() == [4, 6]
        assert tf.zeros(tf.concat([sizes[:2], sizes[2:]], 0)).shape.as_list() == [None, 4, 6]
        first, second, third = tf.unstack(tf.shape(x))
        assert tf.zeros([first, third, second]).shape.as_list() == [None, 6, 4]
        assert tf.tile(x, [2, 1, 3]).shape.as_list() == [None, 4, 18]


def test_names_of_brackets_are_tensorflows():
    """x[1:] makes strided_slice with its bounds below it."""
    with tf.Graph().as_default() as graph:
        part = tf.placeholder(tf.float32, [4], name="x")[1:]
        assert part.name == "strided_slice:0"
        names = [op.name for op in graph.get_operations()]
        assert names == ["x", "strided_slice/stack", "strided_slice/stack_1", "strided_slice/stack_2", "strided_slice"]


def test_older_argument_orders_are_understood():
    """concat, split, expand_dims and squeeze take the arguments of 0.12."""
    x = f32(2, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(
            [
                tf.concat(1, [x, x]),
                tf.concat(concat_dim=0, values=[x, x]),
                tf.split(1, 2, x),
                tf.expand_dims(x, dim=0),
                tf.squeeze(tf.expand_dims(x, 1), squeeze_dims=[1]),
                tf.pack([x, x]),
                tf.unpack(x),
            ]
        )
    for value, expected in zip(
        found, [np.hstack([x, x]), np.vstack([x, x]), np.split(x, 2, 1), x[None], x, np.stack([x, x]), list(x)]
    ):
        np.testing.assert_array_equal(value, expected)


def test_stack_of_numbers_is_a_constant():
    """tf.stack of plain numbers adds a Const, of tensors a Pack."""
    with tf.Graph().as_default():
        assert tf.stack([1, 2]).op.type == "Const"
        packed = tf.stack([tf.constant(1), 2])
        assert packed.op.type == "Pack" and packed.name == "stack_1:0"
        with pytest.raises(ValueError, match="not in range"):
            tf.stack([tf.constant(1), 2], axis=3)


def test_unstack_needs_the_number():
    """tf.unstack along a dimension of unknown size says so."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Cannot infer"):
        tf.unstack(tf.placeholder(tf.float32, [None, 2]))


def test_prevent_gradient_refuses():
    """The gradient of PreventGradient is a LookupError with its message."""
    from stoker._src.ops.array.shaping import PREVENT_GRADIENT

    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(LookupError, match="because"):
            tf.gradients(PREVENT_GRADIENT(x, message="because"), x)


def test_paddings_for_space_to_batch():
    """The paddings make sizes divisible and the crops take the surplus away, known or not."""
    with tf.Graph().as_default(), tf.Session() as session:
        sizes = tf.placeholder(tf.int32, [2])
        for given in ([5, 6], sizes):
            paddings, crops = tf.required_space_to_batch_paddings(given, [3, 4], [[1, 0], [0, 1]])
            found = session.run([paddings, crops], {sizes: [5, 6]})
            np.testing.assert_array_equal(found[0], [[1, 0], [0, 2]])
            np.testing.assert_array_equal(found[1], [[0, 0], [0, 1]])


@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "symmetric"])
def test_pad_modes(mode):
    """tf.pad knows NumPy's three modes by TensorFlow's names."""
    x = f32(3, 3)
    expected = np.pad(x, [[1, 2], [0, 1]], mode.lower())
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.pad(x, [[1, 2], [0, 1]], mode)), expected)
        with pytest.raises(ValueError, match="mode"):
            tf.pad(x, [[1, 2], [0, 1]], "WRAP")


def test_booleans_and_masks_in_brackets(eager):
    """One boolean mask selects elements, as boolean_mask does."""
    x, mask = f32(3, 2), np.array([True, False, True])
    np.testing.assert_array_equal(tf2.constant(x)[mask].numpy(), x[mask])
    np.testing.assert_array_equal(tf2.constant(x)[tf2.constant(mask)].numpy(), x[mask])
    assert booleans(2).dtype == bool


@pytest.mark.parametrize("use_resource", [False, True])
def test_slices_of_variables_are_assigned(use_resource):
    """A slice of a variable has `assign`, which writes to the variable in place; also backwards and from one element."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0, 3.0, 4.0], use_resource=use_resource)
        first = tf.strided_slice(v, [0], [2], [1], var=v).assign([8.0, 9.0])
        second = tf.strided_slice(v, [3], [1], [-1], var=v).assign([5.0, 6.0])
        wrong = tf.strided_slice(v, [0], [2], [1], var=v).assign([1.0, 2.0, 3.0])
        session.run(tf.global_variables_initializer())
        assert session.run(first).tolist() == [8, 9, 3, 4]
        session.run(second)
        assert session.run(v).tolist() == [8, 9, 6, 5]
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not match the shape"):
            session.run(wrong)


def test_lookups_of_variables_leave_them_where_they_are():
    """tf.gather of a resource variable reads the rows it needs; the gradient is IndexedSlices of the variable."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=True)
        rows = tf.gather(v, [1, 1])
        g = tf.gradients(rows, v)[0]
        session.run(tf.global_variables_initializer())
        assert session.run(rows).tolist() == [[3, 4], [3, 4]]
        assert isinstance(g, tf.IndexedSlices) and session.run(g.indices).tolist() == [1, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0\] = 2 is not in \[0, 2\)"):
            session.run(tf.gather(v, [2]))


def test_a_placeholder_with_default_has_no_static_value():
    """What a run may feed is not known before: conditions on it keep both branches."""
    flag = tf.placeholder_with_default(True, [])
    assert tf.get_static_value(flag) is None and tf.get_static_value(tf.logical_not(flag)) is None


def test_static_value_of_eager_tensors_and_of_others(eager):
    """An eager tensor's static value is what `numpy()` gives, a variable has none, what is not a tensor stays as it is."""
    assert type(tf2.get_static_value(tf2.constant(3))) is np.int32
    assert tf2.get_static_value(tf2.constant("a")) == b"a"
    np.testing.assert_array_equal(tf2.get_static_value(tf2.constant([1, 2])), [1, 2])
    assert tf2.get_static_value(tf2.Variable(1.0)) is None
    assert tf2.get_static_value(3) == 3 and tf2.get_static_value([1]) == [1] and tf2.get_static_value(None) is None


@pytest.mark.parametrize(("sizes", "wanted", "expected"), [((0, 3, 4), [0, -1], (0, 12)), ((2, 3, 0), [-1, 0], (6, 0))])
def test_the_missing_size_of_an_empty_tensor(sizes, wanted, expected):
    """Where any size would do, it is what the sizes other than 0 leave."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        assert session.run(tf.reshape(x, wanted), {x: np.zeros(sizes)}).shape == expected
        with pytest.raises(InvalidArgumentError, match="reshape"):
            session.run(tf.reshape(x, wanted), {x: np.zeros((2, 3))})


@pytest.mark.parametrize("kind", ["float32", "uint8", "bool", "complex64", "float64", "bfloat16"])
@pytest.mark.parametrize("pairs", [[[0, 0], [1, 2]], [[0, 0], [0, 0]], [[3, 0], [0, 1]], [[0, 5000000], [0, 0]]])
def test_constant_paddings(kind, pairs):
    """Paddings that are constants give what fed ones give, for images of any size, none too, whose shape is not known before."""
    dtype = tf.as_dtype(kind)
    with tf.Graph().as_default(), tf.Session() as session:
        x, fed = tf.placeholder(dtype), tf.placeholder(tf.int32, [2, 2])
        fetches = [tf.pad(x, pairs), tf.pad(x, fed)]
        for shape in ([2, 3], [0, 3], [1, 1]):
            value = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype.as_numpy_dtype)
            found = session.run(fetches, {x: value, fed: pairs})
            for each in found:
                np.testing.assert_array_equal(each, np.pad(value, pairs))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be the rank of inputs"):
            session.run(fetches[0], {x: value[0]})
