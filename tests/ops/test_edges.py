"""Edges of ops that TensorFlow 2.21 was asked about: its answers, by op."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition

NAN, INF = np.nan, np.inf


def run(op: str, *inputs: Any, **attrs: Any) -> Any:
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        result = definition(*[tf.convert_to_tensor(each) for each in inputs], **attrs)
        return [each.numpy() for each in result] if isinstance(result, tuple) else result.numpy()


def test_a_bfloat16_scalar_stays_a_scalar() -> None:
    """Conversion of a 0-d bfloat16 array keeps its rank."""
    assert run("Exp", np.array(0, ml_dtypes.bfloat16)).shape == ()


@pytest.mark.parametrize(
    ("values", "largest", "smallest"), [([NAN, 1, 2], 2, 1), ([2, NAN, 1], 0, 2), ([NAN] * 3, 0, 0)]
)
def test_nan_is_neither_largest_nor_smallest(values: list[float], largest: int, smallest: int) -> None:
    """ArgMax and ArgMin pass over NaN; of NaN alone the first place is given."""
    x = np.array(values, np.float32)
    assert run("ArgMax", x, np.int32(0)) == largest
    assert run("ArgMin", x, np.int32(0)) == smallest


@pytest.mark.parametrize(("dtype", "index"), [(np.uint32, tf.int32), (np.uint64, tf.int64)])
def test_indices_of_unsigned_top_k_are_indices(dtype: Any, index: Any) -> None:
    """The places keep their own dtype where it has the width of the unsigned values."""
    values, places = run("TopKV2", np.array([1, np.iinfo(dtype).max, 5], dtype), np.int32(2), index_type=index)
    assert places.dtype == index.as_numpy_dtype
    assert places.tolist() == [1, 2]
    assert values.tolist() == [np.iinfo(dtype).max, 5]


def test_empty_inputs_give_empty_outputs() -> None:
    """Bitcast, GatherNd, PopulationCount and UniqueWithCountsV2 take tensors without elements."""
    assert run("Bitcast", np.zeros((0, 2), np.int32), type=tf.int64).shape == (0,)
    assert run("GatherNd", np.zeros((0, 2)), np.zeros((0, 1), np.int32)).shape == (0, 2)
    assert run("PopulationCount", np.zeros(0, np.int32)).shape == (0,)
    values, places, counts = run("UniqueWithCountsV2", np.zeros((0, 3), np.int32), np.array([1]))
    assert (values.shape, places.tolist(), counts.tolist()) == ((0, 1), [0, 0, 0], [3])


def test_segments_of_infinities_keep_them() -> None:
    """The sorted segment ops start from infinity, the unsorted from the largest finite number."""
    ids = np.array([0, 0], np.int32)
    assert run("SegmentMin", np.array([INF, INF]), ids).tolist() == [INF]
    assert run("SegmentMax", np.array([-INF, -INF]), ids).tolist() == [-INF]
    assert run("UnsortedSegmentMin", np.array([INF, INF]), ids, np.int32(1)).tolist() == [np.finfo(np.float64).max]


def test_float_attributes_are_single_precision() -> None:
    """An attribute is a float32 whatever the dtype of the tensors."""
    assert run("LeakyRelu", np.array([-1.0]), alpha=0.3).tolist() == [-float(np.float32(0.3))]


def test_approximate_equal_includes_its_tolerance() -> None:
    """A difference of exactly the tolerance is equal."""
    found = run("ApproximateEqual", np.zeros(2, np.float32), np.array([0.5, 0.75], np.float32), tolerance=0.5)
    assert found.tolist() == [True, False]


def test_broadcast_args_keeps_its_dtype() -> None:
    """Shapes given as int64 give an int64 shape."""
    assert run("BroadcastArgs", np.array([2, 3]), np.array([1])).dtype == np.int64


def test_ties_of_fractional_max_pool_go_to_the_first_in_row_order() -> None:
    """Of two equal elements the one in the earlier row receives the gradient."""
    x, edges = np.array([1, 5, 5, 1], np.float32).reshape(1, 2, 2, 1), np.array([0, 2])
    one = np.ones((1, 1, 1, 1), np.float32)
    assert run("FractionalMaxPoolGrad", x, one * 5, one * 9, edges, edges).ravel().tolist() == [0, 9, 0, 0]


def test_nan_does_not_stop_igamma_grad_a() -> None:
    """One NaN leaves the other elements as they are."""
    whole, single = (
        run("IgammaGradA", np.array([1.0, 2.0]), np.array([NAN, 3.0])),
        run("IgammaGradA", np.array([2.0]), np.array([3.0])),
    )
    assert np.isnan(whole[0])
    np.testing.assert_allclose(whole[1:], single, rtol=1e-12)
