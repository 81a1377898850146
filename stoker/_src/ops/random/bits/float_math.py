"""Float32 logarithm, exponential, sine and cosine with the exact bits of the C library that TensorFlow uses.

TensorFlow calls logf, expf, sinf and cosf. NumPy's and torch's float32 functions round differently, so these follow
the tables and polynomials of Arm's optimized routines (MIT licence), which glibc has used since 2.28, in float64
arithmetic. `native/float_math.h` is the C version.
"""

from __future__ import annotations

import math

import numpy as np

_HEX = float.fromhex

_LOG_INVERSE = np.array(
    [
        _HEX(text)
        for text in [
            "0x1.661ec79f8f3bep+0",
            "0x1.571ed4aaf883dp+0",
            "0x1.49539f0f010bp+0",
            "0x1.3c995b0b80385p+0",
            "0x1.30d190c8864a5p+0",
            "0x1.25e227b0b8eap+0",
            "0x1.1bb4a4a1a343fp+0",
            "0x1.12358f08ae5bap+0",
            "0x1.0953f419900a7p+0",
            "0x1p+0",
            "0x1.e608cfd9a47acp-1",
            "0x1.ca4b31f026aap-1",
            "0x1.b2036576afce6p-1",
            "0x1.9c2d163a1aa2dp-1",
            "0x1.886e6037841edp-1",
            "0x1.767dcf5534862p-1",
        ]
    ]
)
_LOG_CENTRE = np.array(
    [
        _HEX(text)
        for text in [
            "-0x1.57bf7808caadep-2",
            "-0x1.2bef0a7c06ddbp-2",
            "-0x1.01eae7f513a67p-2",
            "-0x1.b31d8a68224e9p-3",
            "-0x1.6574f0ac07758p-3",
            "-0x1.1aa2bc79c81p-3",
            "-0x1.a4e76ce8c0e5ep-4",
            "-0x1.1973c5a611cccp-4",
            "-0x1.252f438e10c1ep-5",
            "0x0p+0",
            "0x1.aa5aa5df25984p-5",
            "0x1.c5e53aa362eb4p-4",
            "0x1.526e57720db08p-3",
            "0x1.bc2860d22477p-3",
            "0x1.1058bc8a07ee1p-2",
            "0x1.4043057b6ee09p-2",
        ]
    ]
)
_LN2 = _HEX("0x1.62e42fefa39efp-1")


def log_float(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive normal float32 numbers."""
    word = x.view(np.int32)
    above = word - np.int32(0x3F330000)
    entry = (above >> 19) & 15
    exponent = above >> 23
    z = (word - (exponent << 23)).view(np.float32).astype(np.float64)
    r = z * _LOG_INVERSE[entry] - 1.0
    y0 = _LOG_CENTRE[entry] + exponent * _LN2
    r2 = r * r
    y = _HEX("0x1.5575b0be00b6ap-2") * r + _HEX("-0x1.ffffef20a4123p-2")
    y = _HEX("-0x1.00ea348b88334p-2") * r2 + y
    y = y * r2 + (y0 + r)
    return y.astype(np.float32)


def sincos_float(argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of float32 numbers in [0, 2 pi]."""
    x = argument.astype(np.float64)
    quadrant = (x * _HEX("0x1.45F306DC9C883p-1") + 0.5).astype(np.int32)
    r = x - quadrant * _HEX("0x1.921FB54442D18p0")
    r2 = r * r
    r3 = r * r2
    s1 = _HEX("0x1.1107605230bc4p-7") + r2 * _HEX("-0x1.994eb3774cf24p-13")
    s = (r + r3 * _HEX("-0x1.555545995a603p-3")) + (r3 * r2) * s1
    r4 = r2 * r2
    c2 = _HEX("-0x1.6c087e89a359dp-10") + r2 * _HEX("0x1.99343027bf8c3p-16")
    c1 = 1.0 + r2 * _HEX("-0x1.ffffffd0c621cp-2")
    c = (c1 + r4 * _HEX("0x1.55553e1068f19p-5")) + (r4 * r2) * c2
    odd = (quadrant & 1) == 1
    sine, cosine = np.where(odd, c, s), np.where(odd, s, c)
    sine = np.where((quadrant & 2) != 0, -sine, sine)
    cosine = np.where(((quadrant + 1) & 2) != 0, -cosine, cosine)
    return sine.astype(np.float32), cosine.astype(np.float32)


_EXP_STEPS = 32
_EXP_TABLE = [math.pow(2.0, step / _EXP_STEPS) for step in range(_EXP_STEPS)]
_EXP_C0 = _HEX("0x1.c6af84b912394p-5") / _EXP_STEPS / _EXP_STEPS / _EXP_STEPS
_EXP_C1 = _HEX("0x1.ebfce50fac4f3p-3") / _EXP_STEPS / _EXP_STEPS
_EXP_C2 = _HEX("0x1.62e42ff0c52d6p-1") / _EXP_STEPS


def exp_float(x: float) -> float:
    """The exponential of one float32 number in [-80, 80], rounded to float32: 2**(k/32) times a cubic polynomial."""
    z = _HEX("0x1.71547652b82fep+0") * _EXP_STEPS * x
    k = round(z)
    r = z - k
    y = _EXP_C2 * r + 1.0
    y = (_EXP_C0 * r + _EXP_C1) * (r * r) + y
    return float(np.float32(y * math.ldexp(_EXP_TABLE[k % _EXP_STEPS], k // _EXP_STEPS)))
