"""RaggedTensor: how it is made, taken apart, indexed, joined, reduced, fed and fetched; strings that give one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context

ROWS = [[1, 2], [], [3]]
DEEP = [[[1, 2], []], [], [[3]]]


def lists(value):
    return value.to_list() if hasattr(value, "to_list") else value.numpy().tolist()


# ---- made and taken apart ---------------------------------------------------------------------------------------

FACTORIES = {
    "from_row_splits": [0, 2, 2, 3],
    "from_row_lengths": [2, 0, 1],
    "from_row_starts": [0, 2, 2],
    "from_row_limits": [2, 2, 3],
    "from_value_rowids": [0, 0, 2],
}


@pytest.mark.parametrize("factory", FACTORIES)
def test_every_partition_gives_the_same_rows(eager, factory):
    """Splits, lengths, starts, limits and row numbers of one partition give one RaggedTensor."""
    ragged = getattr(tf2.RaggedTensor, factory)([1, 2, 3], FACTORIES[factory])
    assert ragged.to_list() == ROWS
    assert ragged.shape.as_list() == [3, None]
    assert ragged.row_splits.numpy().tolist() == [0, 2, 2, 3]
    assert ragged.value_rowids().numpy().tolist() == [0, 0, 2]
    assert ragged.row_lengths().numpy().tolist() == [2, 0, 1]
    assert ragged.bounding_shape().numpy().tolist() == [3, 2]
    assert int(ragged.nrows()) == 3


BAD = [
    (lambda r: r.from_row_splits([1, 2], [0, 1]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_row_splits([1, 2], [0, 3, 2]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_row_splits([1, 2], [1, 2]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_row_splits([1, 2], []), ValueError),
    (lambda r: r.from_row_lengths([1, 2], [1]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_row_lengths([1, 2], [3, -1]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_value_rowids([1, 2], [1, 0]), tf.errors.InvalidArgumentError),
    (lambda r: r.from_value_rowids([1, 2], [1, 1], nrows=1), ValueError),
    (lambda r: r.from_uniform_row_length([1, 2, 3], 2), ValueError),
    (lambda r: r.from_tensor([[1]], lengths=[1], padding=0), ValueError),
    (lambda r: r.from_tensor([1, 2]), ValueError),
    (lambda r: r.from_sparse(tf2.SparseTensor([[0, 1]], [1], [1, 2])), tf.errors.InvalidArgumentError),
    (lambda r: r([1], [0, 1]), ValueError),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_partitions_that_do_not_fit_are_refused(eager, number):
    """A partition that contradicts itself or the values raises."""
    make, error = BAD[number]
    with pytest.raises(error):
        make(tf2.RaggedTensor)


def test_partitions_are_checked_when_run():
    """In a graph, what cannot be known while building is checked by the run, unless `validate` is False."""
    splits = tf.placeholder(tf.int64, [None])
    ragged = tf.RaggedTensor.from_row_splits([1, 2], splits)
    with tf.Session() as session:
        assert session.run(ragged, {splits: [0, 1, 2]}).to_list() == [[1], [2]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="number of values"):
            session.run(ragged, {splits: [0, 1]})


def test_tensors_become_rows(eager):
    """Rows of a tensor: whole, of given lengths, or without their padding."""
    x = [[1, 2, 0], [3, 0, 0]]
    assert tf2.RaggedTensor.from_tensor(x).to_list() == x
    assert tf2.RaggedTensor.from_tensor(x).shape.as_list() == [2, 3]
    assert tf2.RaggedTensor.from_tensor(x, padding=0).to_list() == [[1, 2], [3]]
    assert tf2.RaggedTensor.from_tensor(x, lengths=[1, 2]).to_list() == [[1], [3, 0]]
    cube = np.arange(12).reshape(2, 3, 2)
    assert tf2.RaggedTensor.from_tensor(cube, ragged_rank=2).to_list() == cube.tolist()


def test_rows_become_tensors(eager):
    """to_tensor fills rows up, and cuts or extends to a shape."""
    ragged = tf2.ragged.constant(ROWS)
    assert ragged.to_tensor().numpy().tolist() == [[1, 2], [0, 0], [3, 0]]
    assert ragged.to_tensor(-1, shape=[None, 3]).numpy().tolist() == [[1, 2, -1], [-1, -1, -1], [3, -1, -1]]
    assert ragged.to_tensor(shape=[2, 1]).numpy().tolist() == [[1], [0]]
    assert tf2.ragged.constant([["a"], ["b", "c"]]).to_tensor().numpy().tolist() == [[b"a", b""], [b"b", b"c"]]
    sparse = ragged.to_sparse()
    assert sparse.indices.numpy().tolist() == [[0, 0], [0, 1], [2, 0]]
    assert sparse.dense_shape.numpy().tolist() == [3, 2]
    assert tf2.RaggedTensor.from_sparse(sparse).to_list() == ROWS


def test_constants(eager):
    """Nested lists give the ragged ranks that their depth says, or that the caller asks for."""
    assert tf2.ragged.constant(DEEP).ragged_rank == 2
    blocks = tf2.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    assert blocks.shape.as_list() == [2, None, 2]
    assert tf2.ragged.constant([[], []]).dtype == tf.float32
    assert tf2.ragged.constant(5).numpy() == 5
    with pytest.raises(ValueError, match="same nesting depth"):
        tf2.ragged.constant([1, [2]])


# ---- indexing ---------------------------------------------------------------------------------------------------

_small = st.integers(-4, 4)
_slices = st.builds(slice, st.none() | _small, st.none() | _small, st.none() | st.sampled_from([-2, -1, 1, 2]))
_rows = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(_rows, _slices, _slices)
def test_slices_are_those_of_python(rows, outer, inner):
    """ragged[a, b] slices the rows by a, and each of them by b, as Python does lists."""
    with context.enter_eager():
        found = tf2.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)[outer, inner]
        assert found.to_list() == [row[inner] for row in rows[outer]]


def test_single_rows_and_new_dimensions(eager):
    """A number takes a row, None adds a dimension, and a number inside a ragged dimension is refused."""
    ragged, deep = tf2.ragged.constant(ROWS), tf2.ragged.constant(DEEP)
    assert lists(ragged[-1]) == [3]
    assert lists(ragged[2, 0]) == 3
    assert lists(deep[0]) == DEEP[0]
    assert lists(deep[0, :, :1]) == [[1], []]
    assert lists(ragged[..., :1]) == [[1], [], [3]]
    assert lists(ragged[:, tf2.newaxis]) == [[row] for row in ROWS]
    assert lists(ragged[tf2.newaxis]) == [ROWS]
    with pytest.raises(ValueError, match="inner ragged dimension"):
        ragged[:, 0]
    with pytest.raises(IndexError, match="out of bounds"):
        ragged[5]


# ---- functions --------------------------------------------------------------------------------------------------


def test_arithmetic_goes_through_the_values(eager):
    """Operators and elementwise functions keep the rows; dense operands broadcast over them."""
    ragged = tf2.ragged.constant(ROWS)
    assert lists(ragged + ragged) == [[2, 4], [], [6]]
    assert lists(2 - ragged) == [[1, 0], [], [-1]]
    assert lists(tf2.constant(2) * ragged) == [[2, 4], [], [6]]
    assert lists(ragged * [[1], [2], [3]]) == [[1, 2], [], [9]]
    assert lists(ragged == ragged) == [[True, True], [], [True]]
    assert lists(tf2.where(ragged > 1, ragged, -ragged)) == [[-1, 2], [], [3]]
    assert lists(tf2.cast(ragged, tf.float32)) == [[1.0, 2.0], [], [3.0]]
    assert lists(tf2.ragged.map_flat_values(tf2.add, ragged, 1)) == [[2, 3], [], [4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="different"):
        _ = ragged + tf2.ragged.constant([[1], [], [3, 4]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="dimension 1"):
        _ = ragged + [[1, 2], [1, 2], [1, 2]]
    with pytest.raises(TypeError, match="to_tensor"):
        tf2.convert_to_tensor(ragged)


@settings(max_examples=30, deadline=None)
@given(_rows)
def test_reductions_along_rows(rows):
    """Sums, products and extremes of each row; of columns, over the rows that reach them."""
    with context.enter_eager():
        ragged = tf2.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)
        assert lists(tf2.reduce_sum(ragged, 1)) == [sum(row) for row in rows]
        assert lists(tf2.reduce_max(ragged, 1)) == [max(row, default=-(2**31)) for row in rows]
        assert lists(tf2.reduce_sum(ragged)) == sum(map(sum, rows))
        width = max(map(len, rows))
        columns = [sum(row[i] for row in rows if i < len(row)) for i in range(width)]
        assert lists(tf2.reduce_sum(ragged, 0)) == columns


def test_reductions_of_more_levels(eager):
    """Values tf.ragged gives for two ragged levels (from TensorFlow 2.21)."""
    deep = tf2.ragged.constant(DEEP)
    assert lists(tf2.reduce_sum(deep, 1)) == [[1, 2], [], [3]]
    assert lists(tf2.reduce_sum(deep, 2)) == [[3, 0], [], [3]]
    assert lists(tf2.reduce_sum(deep, 0)) == [[4, 2], []]
    assert lists(tf2.reduce_sum(deep, [1, 2])) == [3, 0, 3]
    np.testing.assert_array_equal(tf2.reduce_mean(tf2.ragged.constant(ROWS), 1).numpy(), [1.5, np.nan, 3.0])
    assert lists(tf2.reduce_sum(tf2.ragged.constant(ROWS), 1, keepdims=True)) == [[3], [0], [3]]
    assert lists(tf2.reduce_any(tf2.ragged.constant(ROWS) > 1, 1)) == [True, False, True]


def test_joining_and_gathering(eager):
    """concat, stack, tile, gather, boolean_mask, expand_dims and range of rows."""
    ragged = tf2.ragged.constant(ROWS)
    assert lists(tf2.concat([ragged, ragged], 0)) == ROWS + ROWS
    assert lists(tf2.concat([ragged, [[7], [8], [9]]], 1)) == [[1, 2, 7], [8], [3, 9]]
    assert lists(tf2.stack([ragged, ragged])) == [ROWS, ROWS]
    assert lists(tf2.ragged.stack([[1, 2], [3]])) == [[1, 2], [3]]
    assert lists(tf2.tile(ragged, [1, 2])) == [[1, 2, 1, 2], [], [3, 3]]
    assert lists(tf2.gather(ragged, [2, 0])) == [[3], [1, 2]]
    assert lists(tf2.gather([5, 6, 7], tf2.ragged.constant([[0], [1, 2]]))) == [[5], [6, 7]]
    assert lists(tf2.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])) == [[1], [3, 4]]
    assert lists(tf2.ragged.boolean_mask(ragged, [True, False, True])) == [[1, 2], [3]]
    assert lists(tf2.ragged.range([1, 2], [4, 3])) == [[1, 2, 3], [2]]
    assert lists(tf2.ragged.range([5], [0], -2)) == [[5, 3, 1]]
    assert lists(tf2.expand_dims(ragged, 2)) == [[[1], [2]], [], [[3]]]
    assert tf2.ragged.segment_ids_to_row_splits([0, 0, 2]).numpy().tolist() == [0, 2, 2, 3]
    assert tf2.ragged.row_splits_to_segment_ids([0, 2, 2, 3]).numpy().tolist() == [0, 0, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in \[0, 3\)"):
        tf2.gather(ragged, [3])


def test_stacks_of_tensors(eager):
    """Vectors become rows cut by int32; along another axis tensors stay tensors."""
    rows = tf2.ragged.stack([tf2.constant([1, 2]), tf2.constant([3])])
    assert lists(rows) == [[1, 2], [3]] and rows.row_splits.dtype == tf2.int32
    assert lists(tf2.ragged.stack([[[1, 2]], [[3]]])) == [[[1, 2]], [[3]]]
    assert tf2.ragged.stack([[1, 2], [3, 4]], axis=1).numpy().tolist() == [[1, 3], [2, 4]]


def test_stacks_of_partitions(eager):
    """Partitions may be of any rank, or ragged; what they hold is checked."""
    stack = tf2.ragged.stack_dynamic_partitions
    assert lists(stack([1, 2, 3], [0, 1, 0], 3)) == [[1, 3], [2], []]
    assert lists(stack([1, 2, 3], 1, 2)) == [[], [[1, 2, 3]]]
    assert lists(stack([[1, 2], [3, 4]], [[0, 1], [0, 0]], 2)) == [[1, 3, 4], [2]]
    ragged = tf2.ragged.constant([[1, 2], [3], [4]])
    assert lists(stack(ragged, [0, 1, 0], 2)) == [[[1, 2], [4]], [[3]]]
    assert lists(stack(ragged, tf2.ragged.constant([[0, 1], [1], [0]]), 2)) == [[1, 4], [2, 3]]
    for bad in ([0, 1, -1], [0, 1, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            stack([1, 2, 3], bad, 2)


def test_ranges_wider_than_their_dtype(eager):
    """The number of elements of a range of int32 is counted in 64 bits; a range without a step is refused."""
    assert lists(tf2.ragged.range([-(2**31)], [2**31 - 1], 2**30)) == [[-(2**31), -(2**30), 0, 2**30]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf2.ragged.range([0.0], [1.0], [float("nan")])


# ---- graphs -----------------------------------------------------------------------------------------------------


def test_feeding_and_fetching():
    """A ragged placeholder is fed a RaggedTensorValue, and a fetch gives one."""
    fed = tf.ragged.placeholder(tf.int32, 1, [])
    value = tf.ragged.constant_value(ROWS, dtype=np.int32)
    with tf.Session() as session:
        found = session.run(fed + 1, {fed: value})
        assert isinstance(found, type(value))
        assert found.to_list() == [[2, 3], [], [4]]
        with pytest.raises(TypeError, match="RaggedTensorValue"):
            session.run(fed, {fed: ROWS})


@pytest.mark.parametrize("check_types", [True, False])
def test_composites_of_another_kind_are_another_structure(eager, check_types):
    """With expand_composites two composites match when kind and dtype do, whether or not types are checked."""
    sparse = tf2.SparseTensor([[0]], [1], [2])
    ragged = tf2.ragged.constant([[1], [2, 3]])
    slices = tf2.IndexedSlices(tf2.constant([1.0]), tf2.constant([0]))
    options = {"check_types": check_types, "expand_composites": True}
    for other in (ragged, slices, tf2.SparseTensor([[0]], [1.0], [2]), 1):
        with pytest.raises(ValueError, match="same nested structure"):
            tf2.nest.assert_same_structure(sparse, other, **options)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor"):
        tf2.nest.assert_same_structure(slices, tf2.IndexedSlices(tf2.constant([1]), tf2.constant([0])), **options)
    tf2.nest.assert_same_structure(sparse, tf2.SparseTensor([[0, 0]], [5], [2, 3]), **options)


def test_ragged_tensors_of_other_sizes_are_the_same_structure(eager):
    """With expand_composites ragged tensors match whatever their shapes, but not with another dtype of splits."""
    options = {"expand_composites": True}
    rows = tf2.ragged.constant([[1], [2, 3]])
    tf2.nest.assert_same_structure(rows, tf2.ragged.constant([[4]]), **options)
    with pytest.raises(ValueError, match="Incompatible"):
        tf2.nest.assert_same_structure(rows, tf2.ragged.constant([[4]], row_splits_dtype=tf2.int32), **options)


def test_nest_takes_ragged_tensors_apart(eager):
    """With expand_composites a RaggedTensor is its flat values and splits, and is put together again."""
    ragged = tf2.ragged.constant(DEEP)
    flat = tf2.nest.flatten({"x": ragged}, expand_composites=True)
    assert len(flat) == 3
    back = tf2.nest.pack_sequence_as({"x": ragged}, flat, expand_composites=True)
    assert back["x"].to_list() == DEEP


def test_functions_take_and_give_ragged_tensors(eager):
    """A tf.function takes a RaggedTensor apart on the way in and puts one together on the way out."""
    doubled = tf2.function(lambda x: x * 2)
    assert doubled(tf2.ragged.constant(ROWS)).to_list() == [[2, 4], [], [6]]
    assert doubled(tf2.ragged.constant([[5]])).to_list() == [[10]]


def test_rows_of_embeddings(eager):
    """embedding_lookup of ragged ids gives the embeddings of each row."""
    table = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    found = tf2.nn.embedding_lookup(table, tf2.ragged.constant([[0], [1, 0]]))
    assert found.to_list() == [[[1.0, 2.0]], [[3.0, 4.0], [1.0, 2.0]]]


def test_gradients_reach_the_values():
    """to_tensor, gather and reductions pass gradients to the flat values, and to the default value."""
    values, fill = tf.constant([1.0, 2.0, 3.0]), tf.constant(5.0)
    ragged = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 3])
    weights = tf.constant([[1.0, 10.0], [100.0, 1000.0], [7.0, 9.0]])
    dense = tf.gradients(ragged.to_tensor(fill) * weights, [values, fill])
    gathered = tf.gradients(tf.gather(ragged, [0, 0, 2]).values, values)[0]
    summed = tf.gradients(tf.reduce_sum(ragged, 1) * [1.0, 2.0, 3.0], values)[0]
    with tf.Session() as session:
        for_values, for_fill = session.run(dense)
        assert for_values.tolist() == [1.0, 10.0, 7.0]
        assert for_fill == 1109.0
        assert session.run(tf.convert_to_tensor(gathered)).tolist() == [2.0, 2.0, 1.0]
        assert session.run(summed).tolist() == [1.0, 1.0, 3.0]


# ---- strings ----------------------------------------------------------------------------------------------------


def test_strings_are_split_into_rows(eager):
    """Words, bytes, characters and code points of each string, with one dimension more than the strings have."""
    assert lists(tf2.strings.split(["a b", "", "c"])) == [[b"a", b"b"], [], [b"c"]]
    assert lists(tf2.strings.split([["a b"], ["c d"]])) == [[[b"a", b"b"]], [[b"c", b"d"]]]
    assert lists(tf2.strings.split("a,b", ",")) == [b"a", b"b"]
    assert lists(tf2.strings.bytes_split(["ab", "é"])) == [[b"a", b"b"], [b"\xc3", b"\xa9"]]
    assert lists(tf2.strings.unicode_split(["aé", ""], "UTF-8")) == [[b"a", "é".encode()], []]
    assert lists(tf2.strings.unicode_decode(["aé", ""], "UTF-8")) == [[97, 233], []]
    points, offsets = tf2.strings.unicode_decode_with_offsets(["éa"], "UTF-8")
    assert (lists(points), lists(offsets)) == ([[233, 97]], [[0, 2]])
    assert lists(tf2.strings.unicode_encode(points, "UTF-8")) == ["éa".encode()]
    assert lists(tf2.strings.length(tf2.strings.split(["a bb", "ccc"]))) == [[1, 2], [3]]


def test_ngrams(eager):
    """Runs of tokens of each row, padded at the ends where asked for."""
    rows = tf2.ragged.constant([["a", "b"], ["c"]])
    assert lists(tf2.strings.ngrams(rows, 2)) == [[b"a b"], []]
    assert lists(tf2.strings.ngrams(rows, 2, pad_values=("<", ">"))) == [[b"< a", b"a b", b"b >"], [b"< c", b"c >"]]
    assert lists(tf2.strings.ngrams(["a", "b", "c"], 2, "-")) == [b"a-b", b"b-c"]
    with pytest.raises(ValueError, match="greater than 0"):
        tf2.strings.ngrams(rows, 0)


def test_old_splits_give_rows_too():
    """result_type of the 1.x functions chooses a RaggedTensor; another one is refused."""
    with tf.Session() as session:
        assert session.run(tf.strings.split(["a b", "c"], result_type="RaggedTensor")).to_list() == [
            [b"a", b"b"],
            [b"c"],
        ]
        assert session.run(tf.string_split(["a b"], result_type="RaggedTensor")).to_list() == [[b"a", b"b"]]
    with pytest.raises(ValueError, match="result_type"):
        tf.strings.split(["a"], result_type="list")


# ---- features ---------------------------------------------------------------------------------------------------


def _example(**features):
    made = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=values))
        if values and isinstance(values[0], float)
        else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for name, values in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def test_ragged_features(eager):
    """Every kind of partition cuts the values of each example into the same rows (TensorFlow 2.21's results)."""
    batch = [
        _example(v=[1.0, 2.0, 3.0], lengths=[2, 1], splits=[0, 2, 3], starts=[0, 2], limits=[2, 3], ids=[0, 0, 1]),
        _example(),
        _example(v=[4.0, 5.0], lengths=[0, 2], splits=[0, 0, 2], starts=[0, 0], limits=[0, 2], ids=[1, 1]),
    ]
    kind = tf2.io.RaggedFeature
    partitions = {
        "lengths": kind.RowLengths("lengths"),
        "splits": kind.RowSplits("splits"),
        "starts": kind.RowStarts("starts"),
        "limits": kind.RowLimits("limits"),
        "ids": kind.ValueRowIds("ids"),
    }
    specs = {name: kind(tf.float32, "v", [each]) for name, each in partitions.items()}
    parsed = tf2.io.parse_example(batch, {**specs, "flat": kind(tf.float32, "v")})
    assert parsed["flat"].to_list() == [[1.0, 2.0, 3.0], [], [4.0, 5.0]]
    for name in partitions:
        assert parsed[name].to_list() == [[[1.0, 2.0], [3.0]], [], [[], [4.0, 5.0]]], name
    single = tf2.io.parse_single_example(batch[0], specs)
    for name in partitions:
        assert single[name].to_list() == [[1.0, 2.0], [3.0]], name
