"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from stoker._src.ops.math.special_kernels import igamma_grad_a
from tests.running import run, slope_and_differences

NAN, INF = np.nan, np.inf


def run_op(op: str, *inputs: Any, **attrs: Any) -> Any:
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        result = definition(*[tf.convert_to_tensor(each) for each in inputs], **attrs)
        return [each.numpy() for each in result] if isinstance(result, tuple) else result.numpy()


X = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("values", "largest", "smallest"), [([NAN, 1, 2], 2, 1), ([2, NAN, 1], 0, 2), ([NAN] * 3, 0, 0)]
)
def test_nan_is_neither_largest_nor_smallest(values: list[float], largest: int, smallest: int) -> None:
    """ArgMax and ArgMin pass over NaN; of NaN alone the first place is given."""
    x = np.array(values, np.float32)
    assert run_op("ArgMax", x, np.int32(0)) == largest
    assert run_op("ArgMin", x, np.int32(0)) == smallest


@pytest.mark.parametrize(("dtype", "index"), [(np.uint32, tf.int32), (np.uint64, tf.int64)])
def test_indices_of_unsigned_top_k_are_indices(dtype: Any, index: Any) -> None:
    """The places keep their own dtype where it has the width of the unsigned values."""
    values, places = run_op("TopKV2", np.array([1, np.iinfo(dtype).max, 5], dtype), np.int32(2), index_type=index)
    assert places.dtype == index.as_numpy_dtype
    assert places.tolist() == [1, 2]
    assert values.tolist() == [np.iinfo(dtype).max, 5]


def test_segments_of_infinities_keep_them() -> None:
    """The sorted segment ops start from infinity, the unsorted from the largest finite number."""
    ids = np.array([0, 0], np.int32)
    assert run_op("SegmentMin", np.array([INF, INF]), ids).tolist() == [INF]
    assert run_op("SegmentMax", np.array([-INF, -INF]), ids).tolist() == [-INF]
    assert run_op("UnsortedSegmentMin", np.array([INF, INF]), ids, np.int32(1)).tolist() == [np.finfo(np.float64).max]


def test_approximate_equal_includes_its_tolerance() -> None:
    """A difference of exactly the tolerance is equal."""
    found = run_op("ApproximateEqual", np.zeros(2, np.float32), np.array([0.5, 0.75], np.float32), tolerance=0.5)
    assert found.tolist() == [True, False]


def test_nan_does_not_stop_igamma_grad_a() -> None:
    """One NaN leaves the other elements as they are."""
    whole, single = (
        run_op("IgammaGradA", np.array([1.0, 2.0]), np.array([NAN, 3.0])),
        run_op("IgammaGradA", np.array([2.0]), np.array([3.0])),
    )
    assert np.isnan(whole[0])
    np.testing.assert_allclose(whole[1:], single, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_tensors_of_unknown_rank_are_sorted(axis):
    """Along any axis, which the tensor may not yet be known to have."""
    x = tf.placeholder_with_default(X, None)
    np.testing.assert_array_equal(run(tf.sort(x, axis=axis)), np.sort(X, axis))
    np.testing.assert_array_equal(run(tf.argsort(x, axis=axis)), np.argsort(X, axis, kind="stable"))


def test_direction_of_complex_numbers_has_a_gradient():
    """x / |x| turns with x, though its length stays."""
    found, expected = slope_and_differences(
        lambda x: tf.imag(tf.sign(tf.complex(x, 2 * x + 1))), np.array([0.3, -2.0, 1.5]), [3]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.uint16, np.uint32])
def test_means_of_integers_do_not_overflow(session, dtype):
    """The mean of large small integers is taken in 64 bits."""
    numbers = np.full((3, 4), np.iinfo(dtype).max - 1, dtype)
    assert session.run(tf.reduce_mean(tf.constant(numbers), 1)).tolist() == [np.iinfo(dtype).max - 1] * 3
    assert session.run(tf.reduce_mean(tf.constant([-7, -2, 3], tf.int8))) == -2


def test_fractions_beside_integers_at_once(eager):
    """An operator given a Python fraction beside integers is a TypeError, as TensorFlow's eager mode words it."""
    x = tf.constant([1, 2])
    for call in (lambda: x - 2.5, lambda: x * 2.5, lambda: x // 2.5, lambda: x % 2.5, lambda: x**2.5):
        with pytest.raises(TypeError, match=r"Cannot convert 2\.5 to EagerTensor of dtype int32"):
            call()


def test_counts_have_the_dtype_of_what_is_counted(eager):
    """tf.sparse.bincount of int64 counts in int64."""
    for dtype in (tf.int32, tf.int64):
        values = tf.SparseTensor([[0, 0], [1, 1]], tf.constant([2, 0], dtype), [2, 3])
        assert tf.sparse.bincount(values).values.dtype == dtype


@pytest.mark.parametrize(
    ("a", "x", "expected"),
    [(10.0, 10.0, -0.127214823), (1e3, 1.01e3, -0.01194573134), (5e3, 5e3, -0.005641990), (1e5, 1e5, -0.001261566)],
)
def test_incomplete_gamma_function_changes_with_its_parameter(a, x, expected):
    """The derivative of P(a, x) by a agrees with differences of SciPy's function."""
    found = igamma_grad_a(*torch.tensor([[a], [x]], dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), [expected], rtol=1e-5)


def test_special_functions_at_the_ends_of_single_precision(eager):
    """Ei is infinite where exp is, the dilogarithm NaN where 1 / x counts as zero; complex infinities keep their zeros."""
    ei = tf2.math.special.expint(tf2.constant([88.7, 88.8, np.inf])).numpy()
    assert np.isfinite(ei[0]) and ei[1] == np.inf and np.isnan(ei[2])
    dilogarithm = tf2.math.special.spence(tf2.constant([8e37, 9e37])).numpy()
    assert np.isfinite(dilogarithm[0]) and np.isnan(dilogarithm[1])
    sign = tf2.raw_ops.Sign(x=tf2.constant([complex(np.inf, 2), 0j, 3 + 4j], tf2.complex64)).numpy()
    assert np.isnan(sign[0].real) and sign[0].imag == 0
    np.testing.assert_allclose(sign[1:], [0, 0.6 + 0.8j], rtol=1e-6)


def test_old_places_of_extremes():
    """arg_max and arg_min of 1.x take the dtype of the result third."""
    x = tf.constant([[3.0, 1.0], [2.0, 5.0]])
    least = tf.arg_min(x, 0, tf.int32, "least")
    assert least.dtype == tf.int32 and least.name == "least:0"
    assert [each.tolist() for each in run([least, tf.arg_max(x, 1)])] == [[1, 0], [0, 1]]
