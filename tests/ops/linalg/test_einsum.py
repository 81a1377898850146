"""Contractions."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, c128, check_sample, f64, i32, samples
from tests.running import run_built


def einsum(equation: str, *inputs: np.ndarray, **kwargs) -> Sample:
    return Sample(
        "Einsum", [list(inputs)], {"equation": equation}, reference=lambda xs: np.einsum(equation, *xs), **kwargs
    )


SAMPLES = [
    einsum("ij,jk->ik", f64(2, 3), f64(3, 4)),
    einsum("bij,bjk->bik", f64(2, 2, 3), f64(2, 3, 2)),
    einsum("abc,cd->dab", f64(2, 2, 3), f64(3, 2)),
    einsum("ij->ji", f64(2, 3)),
    einsum("ij->", f64(2, 3)),
    einsum("ij->j", f64(2, 3)),
    einsum("ii->", f64(3, 3)),
    einsum("ii->i", f64(3, 3)),
    einsum("i,j->ij", f64(2), f64(3)),
    einsum("i,i->", f64(3), f64(3)),
    einsum("...ij,...jk->...ik", f64(2, 1, 2, 3), f64(3, 3, 2)),
    einsum("...ij,jk->...ik", f64(2, 2, 3), f64(3, 2)),
    einsum("ab,ab->a", f64(2, 3), f64(2, 3)),
    einsum("ijk,k->ij", f64(2, 3, 2), f64(2)),
    einsum("ij,k->k", f64(2, 3), f64(2)),
    einsum("ij,jk->ik", i32(2, 3), i32(3, 4), gradient=False),
    einsum("ij,jk->ik", c128(2, 3), c128(3, 4), gradient=False),
    Sample("Einsum", [[f64(2, 3), f64(4, 5)]], {"equation": "ij,jk->ik"}, raises=(InvalidArgumentError, "3 and 4")),
    Sample("Einsum", [[f64(2, 3)]], {"equation": "ij->ik"}, raises=(WHEN_BUILT, "output labels")),
    Sample("Einsum", [[f64(2, 3)]], {"equation": "ijk->i"}, raises=(WHEN_BUILT, "rank 2")),
]  # fmt: skip


def test_einsum_function() -> None:
    """Outputs may be left out, more than two inputs are contracted in turn, gradients flow through all."""
    a, b, c = f64(2, 3), f64(3, 4), f64(4, 2)
    assert np.allclose(run_built(lambda: tf.einsum("ij,jk", a, b)), a @ b)
    assert np.allclose(run_built(lambda: tf.einsum("ij,jk,kl->il", a, b, c)), a @ b @ c)
    with tf.Graph().as_default(), tf.Session() as session:
        parts = [tf.constant(x) for x in (a, b, c)]
        found = session.run(tf.gradients(tf.einsum("ij,jk,kl->", *parts), parts[1])[0])
    assert np.allclose(found, np.outer(a.sum(0), c.sum(1)))
    with pytest.raises(ValueError, match="expecting 2"):
        tf.einsum("ij,jk->ik", a)
    with pytest.raises(TypeError, match="keyword"):
        tf.einsum("ij->ji", a, wrong=1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axes", [0, 1, 2, [[1], [0]], [[0, 2], [1, 0]], [2, 1]])
def test_tensordot(axes, known) -> None:
    """The contraction is NumPy's, whether shapes are known or not."""
    a = f64(2, 2, 2)
    b = f64(2, 2, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, a.shape if known else None)
        y = tf.placeholder(tf.float64, b.shape if known else None)
        found = session.run(tf.tensordot(x, y, axes), {x: a, y: b})
    assert np.allclose(found, np.tensordot(a, b, axes))


def test_tensordot_refuses_axes_that_do_not_fit() -> None:
    """Numbers of axes must agree and exist."""
    with pytest.raises(ValueError, match="larger than"):
        tf.tensordot(f64(2, 2), f64(2, 2), 3)
    with pytest.raises(ValueError, match="Different number"):
        tf.tensordot(f64(2, 2), f64(2, 2), [[0, 1], [0]])


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
