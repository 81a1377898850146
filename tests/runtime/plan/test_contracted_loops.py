"""Einsum and gradients of slices inside of fused loops, with the values of NumPy."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the extension was not built")


def _run(make, *values):
    """(results, plan) of a step whose feeds have known shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        feeds = [tf.placeholder(value.dtype, value.shape) for value in values]
        fetches = make(*feeds)
        fed = dict(zip(feeds, values))
        return session.run(fetches, fed), session.explain(fetches, fed)


@st.composite
def contractions(draw):
    """Labels of two operands and of the result, in any order, and the size of each label."""
    kinds = ["r", "c", *draw(st.lists(st.sampled_from("brci"), max_size=3))]
    labels = dict(zip("abcde", kinds))
    first = draw(st.permutations([label for label, kind in labels.items() if kind != "c"]))
    second = draw(st.permutations([label for label, kind in labels.items() if kind != "r"]))
    result = draw(st.permutations([label for label, kind in labels.items() if kind != "i"]))
    sizes = {label: draw(st.integers(1, 4)) for label in labels}
    return "".join(first), "".join(second), "".join(result), sizes


@settings(deadline=None, max_examples=150)
@given(contractions(), st.sampled_from([np.float32, np.float64]), st.integers(0, 99))
def test_contractions_in_any_order(case, dtype, seed):
    """Operands and results whose dimensions have any order, with and without dimensions in common, and their gradients."""
    first, second, result, sizes = case
    random = np.random.RandomState(seed)
    a, b = (random.standard_normal([sizes[label] for label in labels]).astype(dtype) for labels in (first, second))
    equation = f"{first},{second}->{result}"

    def make(a, b):
        c = tf.einsum(equation, tf.tanh(a), b + 1.0)
        return [c * 2.0, *tf.gradients(c * c, [a, b])]

    (found, to_a, to_b), plan = _run(make, a, b)
    assert "Einsum(" not in plan or len(sizes) > 4  # loops have four dimensions
    wide = np.tanh(a.astype("d")), b.astype("d") + 1
    c = np.einsum(equation, *wide)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(found, 2 * c, **tolerance)
    expected = 2 * np.einsum(f"{result},{second}->{first}", c, wide[1]) * (1 - wide[0] ** 2)
    np.testing.assert_allclose(to_a, expected, **tolerance)
    np.testing.assert_allclose(to_b, 2 * np.einsum(f"{result},{first}->{second}", c, wide[0]), **tolerance)


@pytest.mark.parametrize("equation", ["ab,bc->a", "aab,bc->ac", "...a,ab->...b", "ab,cd->abcd", "a,a->"])
def test_other_equations(equation):
    """Sums over one operand alone, diagonals, ellipses and outer products are as in NumPy."""
    first, second = equation.split("->")[0].replace("...", "").split(",")
    a, b = (np.random.RandomState(i).randn(*[3] * len(labels)).astype("f") for i, labels in enumerate((first, second)))
    (found,), _ = _run(lambda a, b: [tf.einsum(equation, tf.exp(a), b) * 0.5], a, b)
    np.testing.assert_allclose(found, 0.5 * np.einsum(equation, np.exp(a), b), rtol=1e-4, atol=1e-5)


SLICES = [
    (slice(1, 4), slice(None)),
    (slice(None, None, 2), slice(-3, None)),
    (2, slice(1, 6, 3)),
    (slice(None), None, -1),
    (Ellipsis, slice(2)),
    (slice(4, 0, -2), slice(1, 5)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("items", SLICES, ids=str)
def test_gradients_of_slices(items, dtype):
    """The gradient of a slice is zeros with the gradient where the slice was."""
    x = np.random.RandomState(0).randn(5, 7).astype(dtype)

    def make(x):
        taken = tf.tanh(x)[items]
        return [tf.gradients(tf.square(taken) * 0.5, x)[0]]

    (found,), plan = _run(make, x)
    expected = np.zeros_like(x)
    expected[items] = np.tanh(x)[items]
    np.testing.assert_allclose(found, expected * (1 - np.tanh(x) ** 2), rtol=1e-5, atol=1e-6)
    backwards = isinstance(items[0], slice) and (items[0].step or 1) < 0
    assert bool(re.search(r"= StridedSliceGrad|small ops: .*StridedSliceGrad", plan)) == backwards
