"""Element-wise functions of one operand, and special functions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, c128, check_sample, f32, f64, i32, positive, samples

INSIDE = np.linspace(-0.9, 0.9, 7)
ABOVE = np.array([1.1, 2.0, 5.5])
WIDE = np.array([-7.0, -1.5, -0.3, 0.2, 1.7, 4.0, 12.0])
UP = np.array([0.1, 0.7, 1.0, 2.5, 4.9, 6.3, 11.0])

REAL = [
    Sample("Neg", [f64(3)], reference=np.negative),
    Sample("Abs", [f64(2, 3)], reference=np.abs),
    Sample("Abs", [i32(4)], reference=np.abs, gradient=False),
    Sample("Sign", [np.array([-2.0, 0.0, np.nan, 3.0])], reference=np.sign, gradient=False),
    Sample("Sign", [f64(4)], reference=np.sign),
    Sample("Square", [f64(3)], reference=np.square),
    Sample("Sqrt", [positive(3)], reference=np.sqrt),
    Sample("Rsqrt", [positive(3)], reference=lambda x: 1 / np.sqrt(x)),
    Sample("Reciprocal", [f64(3)], reference=lambda x: 1 / x),
    Sample("Inv", [f64(3)], reference=lambda x: 1 / x),
    Sample("Reciprocal", [np.array([1, -1, 3], np.int32)], reference=lambda x: np.array([1, -1, 0]), gradient=False),
    Sample("Reciprocal", [np.array([1, 0], np.int32)], raises=(InvalidArgumentError, "division by zero")),
    Sample("Exp", [f64(2, 2)], reference=np.exp),
    Sample("Expm1", [f64(3)], reference=np.expm1),
    Sample("Log", [positive(2, 2)], reference=np.log),
    Sample("Log1p", [positive(3)], reference=np.log1p),
    Sample("Sigmoid", [f64(3)], reference=sp.expit),
    Sample("Tanh", [f64(3)], reference=np.tanh),
    Sample("Sin", [f64(3)], reference=np.sin),
    Sample("Cos", [f64(3)], reference=np.cos),
    Sample("Tan", [INSIDE], reference=np.tan),
    Sample("Asin", [INSIDE], reference=np.arcsin),
    Sample("Acos", [INSIDE], reference=np.arccos),
    Sample("Atan", [f64(3)], reference=np.arctan),
    Sample("Sinh", [f64(3)], reference=np.sinh),
    Sample("Cosh", [f64(3)], reference=np.cosh),
    Sample("Asinh", [f64(3)], reference=np.arcsinh),
    Sample("Acosh", [ABOVE], reference=np.arccosh),
    Sample("Atanh", [INSIDE], reference=np.arctanh),
    Sample("Floor", [f64(4)], reference=np.floor, gradient=False),
    Sample("Ceil", [f64(4)], reference=np.ceil, gradient=False),
    Sample("Round", [np.array([0.5, 1.5, -0.5, -2.5, 2.4])], reference=np.round, gradient=False),
    Sample("Rint", [np.array([0.5, 1.5, -0.5, -2.5, 2.4])], reference=np.rint, gradient=False),
    Sample("Round", [i32(3)], reference=lambda x: x, gradient=False),
    Sample("IsNan", [np.array([0.0, np.nan, np.inf])], reference=np.isnan, gradient=False),
    Sample("IsInf", [np.array([0.0, np.nan, -np.inf])], reference=np.isinf, gradient=False),
    Sample("IsFinite", [np.array([0.0, np.nan, np.inf])], reference=np.isfinite, gradient=False),
    Sample("Exp", [f32(0, 3)], reference=np.exp),
    Sample("Exp", [f32()], reference=np.exp),
    Sample("SqrtGrad", [positive(3), f64(3)], reference=lambda y, d: 0.5 * d / y),
    Sample("RsqrtGrad", [positive(3), f64(3)], reference=lambda y, d: -0.5 * d * y**3),
    Sample("ReciprocalGrad", [positive(3), f64(3)], reference=lambda y, d: -d * y**2),
    Sample("SigmoidGrad", [INSIDE, f64(7)], reference=lambda y, d: d * y * (1 - y)),
    Sample("TanhGrad", [INSIDE, f64(7)], reference=lambda y, d: d * (1 - y * y)),
    Sample("SqrtGrad", [np.array([0.0]), np.array([0.0])], reference=lambda y, d: d, gradient=False),
]

COMPLEX = [
    Sample(name, [c128(4)], reference=function, gradient=False)
    for name, function in [
        ("Neg", np.negative), ("Conj", np.conj), ("Sqrt", np.sqrt), ("Exp", np.exp), ("Log", np.log), ("Sin", np.sin),
        ("Tanh", np.tanh), ("Square", np.square), ("Sign", lambda z: z / np.abs(z)), ("Reciprocal", lambda z: 1 / z),
        ("Sigmoid", lambda z: 1 / (1 + np.exp(-z))), ("Rsqrt", lambda z: 1 / np.sqrt(z)),
    ]
] + [
    Sample("Real", [c128(4)], {"Tout": "float64"}, reference=np.real, gradient=False),
    Sample("Imag", [c128(4)], {"Tout": "float64"}, reference=np.imag, gradient=False),
    Sample("Angle", [c128(4)], {"Tout": "float64"}, reference=np.angle, gradient=False),
    Sample("ComplexAbs", [c128(4)], {"Tout": "float64"}, reference=np.abs, gradient=False),
    Sample("Complex", [f64(3, 1), f64(2)], {"Tout": "complex128"}, reference=lambda a, b: a + 1j * b, gradient=False),
]  # fmt: skip

A, X = np.array([0.5, 1.0, 2.5, 7.0]), np.array([0.3, 1.7, 2.0, 9.0])
SPECIAL = [
    Sample("Erf", [WIDE], reference=sp.erf),
    Sample("Erfc", [WIDE], reference=sp.erfc),
    Sample("Erfinv", [INSIDE], reference=sp.erfinv),
    Sample("Ndtri", [np.array([0.1, 0.5, 0.8])], reference=sp.ndtri),
    Sample("Lgamma", [UP], reference=sp.gammaln),
    Sample("Digamma", [UP], reference=sp.digamma),
    Sample("Polygamma", [np.array([0.0, 1, 2, 5]), X], reference=lambda a, x: sp.polygamma(a.astype(int), x), gradient=(1,)),
    Sample("Zeta", [np.array([1.5, 2, 3, 8]), X], reference=sp.zeta, gradient=(1,)),
    Sample("Igamma", [A, X], reference=sp.gammainc),
    Sample("Igammac", [A, X], reference=sp.gammaincc),
    Sample("Igamma", [np.array([-1.0]), np.array([2.0])], reference=lambda a, x: np.array([np.nan]), gradient=False),
    Sample("Betainc", [A, X, np.array([0.1, 0.5, 0.9, 0.3])], reference=sp.betainc, gradient=(2,)),
    Sample("Betainc", [np.float64(2.0), X, np.float64(0.4)], reference=sp.betainc, gradient=(2,)),
    Sample("Betainc", [f64(2), f64(3), f64(2)], raises=(InvalidArgumentError, "inconsistent")),
    Sample("Xlogy", [np.array([0.0, 0.5, 2.0]), np.array([0.0, 2.0, 0.7])], reference=sp.xlogy, gradient=False),
    Sample("Xlogy", [f64(2, 3), positive(3)], reference=sp.xlogy),
    Sample("Xlog1py", [f64(2, 3), positive(3)], reference=sp.xlog1py),
    Sample("Xdivy", [np.array([0.0, 1.0]), np.array([0.0, 4.0])], reference=lambda x, y: np.array([0, 0.25]), gradient=False),
    Sample("Xdivy", [f64(3, 1), f64(2)], reference=np.divide),
    Sample("BesselI0", [WIDE], reference=sp.i0),
    Sample("BesselI0e", [WIDE], reference=sp.i0e),
    Sample("BesselI1", [WIDE], reference=sp.i1),
    Sample("BesselI1e", [WIDE], reference=sp.i1e),
    Sample("BesselJ0", [WIDE], reference=sp.j0),
    Sample("BesselJ1", [WIDE], reference=sp.j1),
    Sample("BesselK0", [UP], reference=sp.k0),
    Sample("BesselK0e", [UP], reference=sp.k0e),
    Sample("BesselK1", [UP], reference=sp.k1),
    Sample("BesselK1e", [UP], reference=sp.k1e),
    Sample("BesselY0", [UP], reference=sp.y0),
    Sample("BesselY1", [UP], reference=sp.y1),
    Sample("BesselK0", [np.array([-1.0])], reference=lambda x: np.array([np.inf]), gradient=False),
    Sample("Dawsn", [WIDE], reference=sp.dawsn, rtol=1e-12, atol=0),
    Sample("Dawsn", [np.array([1e-9, 30.0, 1e6])], reference=sp.dawsn, rtol=1e-12, atol=0, gradient=False),
    Sample("FresnelSin", [WIDE], reference=lambda x: sp.fresnel(x)[0], rtol=1e-11),
    Sample("FresnelCos", [WIDE], reference=lambda x: sp.fresnel(x)[1], rtol=1e-11),
    Sample("Spence", [UP], reference=sp.spence, rtol=1e-12),
    Sample("Spence", [np.array([0.0, -1.0])], reference=sp.spence, gradient=False),
    Sample("Expint", [UP], reference=sp.expi, rtol=1e-12),
    Sample("Expint", [np.array([45.0, 100.0])], reference=sp.expi, rtol=1e-12, gradient=False),
]  # fmt: skip


@samples(REAL + COMPLEX + SPECIAL)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize(
    "op", [tf.exp, tf.sigmoid, tf.lgamma, tf.math.ndtri, tf.math.special.dawsn, tf.math.special.bessel_k0]
)
def test_half_precision(op, dtype) -> None:
    """Half precision gives what single precision gives, rounded."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([0.25, 0.5, 0.75])
        narrow, wide = session.run([tf.cast(op(tf.cast(x, dtype)), tf.float32), op(x)])
    np.testing.assert_allclose(narrow, wide, rtol=1e-2)


def complex_gradient(build, z: np.ndarray) -> np.ndarray:
    """The gradient by a complex input of the real part of a function, in TensorFlow's convention (conjugated)."""
    with tf.Graph().as_default(), tf.Session() as session:
        holder = tf.placeholder(tf.complex128, z.shape)
        total = tf.reduce_sum(tf.real(build(holder)))
        return session.run(tf.gradients(total, holder)[0], {holder: z})


@pytest.mark.parametrize(
    "op",
    [
        tf.exp,
        tf.log,
        tf.sqrt,
        tf.sin,
        tf.tanh,
        tf.square,
        tf.sigmoid,
        tf.reciprocal,
        tf.rsqrt,
        tf.abs,
        tf.angle,
        tf.conj,
    ],
)
def test_complex_gradients(op) -> None:
    """d Re f / d re + i d Re f / d im, by finite differences."""
    z = c128(3)

    def value(z: np.ndarray) -> float:
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.reduce_sum(tf.real(op(tf.constant(z)))))

    found = complex_gradient(op, z)
    for i in range(3):
        step = np.zeros(3, complex)
        step[i] = 1e-6
        re = (value(z + step) - value(z - step)) / 2e-6
        im = (value(z + 1j * step) - value(z - 1j * step)) / 2e-6
        np.testing.assert_allclose(found[i], re + 1j * im, rtol=1e-4, atol=1e-6)


def test_second_derivatives() -> None:
    """Gradient ops have gradients too."""
    x = np.array([0.3, 0.6])
    cases = {
        tf.tanh: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
        tf.sigmoid: sp.expit(x) * (1 - sp.expit(x)) * (1 - 2 * sp.expit(x)),
        tf.sqrt: -0.25 * x**-1.5,
        tf.rsqrt: 0.75 * x**-2.5,
        tf.reciprocal: 2 * x**-3,
    }
    for op, expected in cases.items():
        with tf.Graph().as_default(), tf.Session() as session:
            t = tf.constant(x)
            first = tf.gradients(op(t), t)[0]
            np.testing.assert_allclose(session.run(tf.gradients(first, t)[0]), expected)


def test_compositions() -> None:
    """erfcinv, lbeta, round of integers, angle and imag of real numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        run = session.run
        np.testing.assert_allclose(run(tf.math.erfcinv(np.array([0.3, 1.2]))), sp.erfcinv([0.3, 1.2]))
        np.testing.assert_allclose(
            run(tf.lbeta(np.array([[1.0, 2.0], [3.0, 4.0]]))), [sp.betaln(1, 2), sp.betaln(3, 4)]
        )
        n = tf.constant([1, 2])
        assert tf.round(n) is n
        assert run(tf.imag(tf.constant([1.0]))).tolist() == [0] and run(tf.real(tf.constant([1.0]))).tolist() == [1]
        np.testing.assert_allclose(run(tf.angle(tf.constant([1.0, -1.0]))), [0, np.pi], rtol=1e-6)
        np.testing.assert_allclose(run(tf.math.log_sigmoid(np.array([-50.0, 0.0]))), [-50, -np.log(2)])
        with pytest.raises(TypeError, match="consistent"):
            tf.complex(tf.constant(1.0), tf.constant(1.0, tf.float64))
