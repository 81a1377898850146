"""Type specs: what they say of values, which are wider, and where programs use them."""

import functools
import pickle

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

S = tf2.TensorSpec
RAGGED = [[1, 2], [], [3, 4, 5]]


@pytest.mark.parametrize(
    ("first", "second", "compatible", "below", "common"),
    [
        (S([None, 3]), S([None, 3]), True, True, S([None, 3])),
        (S([None, 3]), S([2, 3]), True, False, S([None, 3])),
        (S([2, 3]), S(None), True, True, S(None)),
        (S([2, 3]), S([4, 3]), False, False, S([None, 3])),
        (S([2, 3]), S([5]), False, False, S(None)),
        (S([2]), S([2], tf.int32), False, False, None),
        (S([2], name="a"), S([2]), True, False, None),
        (tf.SparseTensorSpec([2, 3]), tf.SparseTensorSpec([2, 4]), False, False, tf.SparseTensorSpec([2, None])),
        (tf.SparseTensorSpec([2, 3]), S([2, 3]), False, False, None),
        (tf.RaggedTensorSpec([2, None]), tf.RaggedTensorSpec([3, None]), False, False, tf.RaggedTensorSpec([None, None])),
        (tf.RaggedTensorSpec([2, None]), tf.RaggedTensorSpec([None, None]), True, True, tf.RaggedTensorSpec([None, None])),
        (tf.OptionalSpec(S([2])), tf.OptionalSpec(S([None])), True, True, tf.OptionalSpec(S([None]))),
        (tf.TensorArraySpec([2]), tf.TensorArraySpec([3]), False, False, tf.TensorArraySpec([None])),
    ],
)  # fmt: skip
def test_relations(first, second, compatible, below, common):
    """Which specs fit each other, which is the narrower, and the narrowest that holds both."""
    assert first.is_compatible_with(second) == compatible
    assert first.is_subtype_of(second) == below
    assert first.most_specific_common_supertype([second]) == common
    if common is None:
        with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
            first.most_specific_compatible_type(second)
    else:
        assert first.most_specific_compatible_type(second) == common
    assert pickle.loads(pickle.dumps(first)) == first and hash(first) == hash(pickle.loads(pickle.dumps(first)))


def test_specs_of_values(eager):
    """The spec of each kind of value reads as TensorFlow's does."""
    sparse = tf2.SparseTensor([[0, 0]], [1], [2, 2])
    slices = tf2.IndexedSlices(tf2.ones([2, 2]), tf2.constant([0, 1]), tf2.constant([5, 2]))
    for value, text in [
        (1.0, "TensorSpec(shape=(), dtype=tf.float32, name=None)"),
        ("x", "TensorSpec(shape=(), dtype=tf.string, name=None)"),
        ([1, 2], "TensorSpec(shape=(2,), dtype=tf.int32, name=None)"),
        (sparse, "SparseTensorSpec(TensorShape([2, 2]), tf.int32)"),
        (tf2.ragged.constant(RAGGED), "RaggedTensorSpec(TensorShape([3, None]), tf.int32, 1, tf.int64)"),
        (slices, "IndexedSlicesSpec(TensorShape([5, 2]), tf.float32, tf.int32, tf.int32, TensorShape([2]))"),
        (tf2.TensorArray(tf2.float32, 3), "TensorArraySpec(TensorShape(None), tf.float32, False, True)"),
        (tf2.Variable([1.0, 2]), "VariableSpec(shape=(2,), dtype=tf.float32, trainable=True, alias_id=None)"),
        (None, "NoneTensorSpec()"),
    ]:
        spec = tf2.type_spec_from_value(value)
        assert repr(spec) == text
        assert isinstance(spec, tf2.TypeSpec)
    assert tf2.type_spec_from_value(sparse).is_compatible_with(sparse)
    assert not S([2]).is_compatible_with([1.0, 2.0])
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        tf2.type_spec_from_value({"a": 1})


def test_bad_specs():
    """A ragged rank must have room in the shape, and one of the two must be known."""
    with pytest.raises(ValueError, match="must be less than rank"):
        tf.RaggedTensorSpec([2, 3], ragged_rank=3)
    with pytest.raises(ValueError, match="Must specify ragged_rank"):
        tf.RaggedTensorSpec(None)
    proto = S([2, None], tf.int32, "a").experimental_as_proto()
    assert S.experimental_from_proto(proto) == S([2, None], tf.int32, "a")


def test_input_signature(eager):
    """A function's signature may have specs of composites: one trace serves all that fit, and others are refused."""

    @tf2.function(input_signature=[tf2.RaggedTensorSpec([None, None], tf2.int32), tf2.SparseTensorSpec([None, 4])])
    def function(ragged, sparse):
        return ragged * 2, tf2.sparse.to_dense(sparse)

    ragged, sparse = tf2.ragged.constant(RAGGED), tf2.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    doubled, dense = function(ragged, sparse)
    assert doubled.to_list() == [[2, 4], [], [6, 8, 10]] and dense.shape == (3, 4)
    assert function(tf2.ragged.constant([[7]]), sparse)[0].to_list() == [[14]]
    assert function.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        function(ragged, ragged)
    concrete = tf2.function(lambda s: s.values).get_concrete_function(tf2.SparseTensorSpec([None, None], tf2.int32))
    assert concrete.structured_input_signature == ((tf2.SparseTensorSpec([None, None], tf2.int32),), {})


def map_all(module):
    """Maps over and into ragged and sparse tensors."""
    ragged = module.ragged.constant(RAGGED)
    deep = module.ragged.constant([[[1, 2], [3]], [[4]], []], dtype=module.int32)
    sparse = module.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
    rows = module.RaggedTensorSpec([None], module.int32)
    eyes = module.map_fn(
        lambda n: module.sparse.from_dense(module.eye(n)),
        module.constant([1, 2]),
        fn_output_signature=module.SparseTensorSpec([None, None], module.float32),
    )
    return {
        "sums": module.map_fn(module.reduce_sum, ragged, fn_output_signature=module.int32),
        "doubled": module.map_fn(lambda row: row * 2, ragged),
        "deeper": module.map_fn(lambda row: row + 1, deep),
        "ranges": module.map_fn(module.range, module.constant([2, 0, 3]), fn_output_signature=rows),
        "row sums": module.map_fn(module.sparse.reduce_sum, sparse, fn_output_signature=module.float32),
        "eyes": module.sparse.to_dense(eyes),
    }


EXPECTED = {
    "sums": [3, 0, 12],
    "doubled": [[2, 4], [], [6, 8, 10]],
    "deeper": [[[2, 3], [4]], [[5]], []],
    "ranges": [[0, 1], [], [0, 1, 2]],
    "row sums": [1, 0, 5],
    "eyes": [[[1, 0], [0, 0]], [[1, 0], [0, 1]]],
}


def test_map_fn_eagerly(eager):
    """map_fn takes rows of ragged and sparse tensors and gives them back."""
    for name, found in map_all(tf2).items():
        assert (found.to_list() if hasattr(found, "to_list") else found.numpy().tolist()) == EXPECTED[name]


def test_map_fn_in_graphs():
    """The same in a graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, found in session.run(map_all(tf)).items():
            assert (found.to_list() if hasattr(found, "to_list") else found.tolist()) == EXPECTED[name]
        with pytest.raises(TypeError, match="ragged rank 0"):
            tf.map_fn(lambda x: x, tf.constant([[1.0]]), fn_output_signature=tf.RaggedTensorSpec([None, None]))


def test_optional(eager):
    """An optional has a structure of tensors, or nothing; asking that for its value raises."""
    sparse = tf2.SparseTensor([[0, 1]], [5.0], [1, 4])
    optional = tf2.experimental.Optional.from_value((tf2.constant([1, 2]), sparse))
    assert optional.has_value().numpy()
    numbers, again = optional.get_value()
    np.testing.assert_array_equal(numbers, [1, 2])
    np.testing.assert_array_equal(again.values, [5])
    empty = tf2.experimental.Optional.empty(S([]))
    assert not empty.has_value().numpy()
    with pytest.raises(tf2.errors.InvalidArgumentError, match="does not have a value"):
        empty.get_value()


def test_array_of_string_vectors():
    """A TensorArray of vectors of strings can be stacked."""
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.TensorArray(tf.string, 2).write(0, ["a", "b"]).write(1, ["c", "d"])
        assert session.run(array.stack()).tolist() == [[b"a", b"b"], [b"c", b"d"]]


def test_a_composite_matches_its_spec_whatever_the_shapes(eager):
    """assert_same_structure and map_structure pair composites with specs of their dtypes, and specs by their parts."""
    same = functools.partial(tf2.nest.assert_same_structure, expand_composites=True)
    sparse = tf2.SparseTensor([[0, 1]], [1.0], [2, 2])
    ragged = tf2.ragged.constant([[1, 2], [3]])
    same(sparse, tf2.SparseTensorSpec([3, 2], tf2.float32))
    same([tf2.RaggedTensorSpec([5, None], tf2.int32)], [ragged])
    same(tf2.SparseTensorSpec([3], tf2.float32), tf2.SparseTensorSpec([2, 2], tf2.int32))
    names = tf2.nest.map_structure(
        lambda part, spec: part + tf2.zeros([], spec.dtype),
        ragged,
        tf2.RaggedTensorSpec([2, None], tf2.int32),
        expand_composites=True,
    )
    assert names.to_list() == [[1, 2], [3]]
    for check_types in (True, False):
        for spec in (tf2.SparseTensorSpec([2, 2], tf2.int32), tf2.RaggedTensorSpec([2, None], tf2.float32)):
            with pytest.raises(ValueError, match="Incompatible"):
                same(sparse, spec, check_types=check_types)
    with pytest.raises(TypeError, match="sequence type"):
        same(tf2.RaggedTensorSpec([2, None], tf2.float32), tf2.IndexedSlicesSpec([4, 2], tf2.float32))


def test_structures_take_whole_tensor_arrays(eager):
    """pack_sequence_as and map_structure put a TensorArray where one was, also with expand_composites."""
    ta = tf2.TensorArray(tf2.float32, 2).unstack([1.0, 2.0])
    packed = tf2.nest.pack_sequence_as([ta], [ta], expand_composites=True)[0]
    assert packed.stack().numpy().tolist() == [1.0, 2.0]
