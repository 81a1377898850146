"""Element-wise ops on numbers at the edges of their types: what to compute, for TensorFlow and for stoker alike."""

from __future__ import annotations

import numpy as np

FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
INTS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
EVERY = (*FLOATS, *COMPLEX, *INTS)

UNARY = {
    **dict.fromkeys(("Neg", "Sign"), (*FLOATS, *COMPLEX, *SIGNED)),
    "Abs": (*FLOATS, *SIGNED),
    "Square": EVERY,
    **dict.fromkeys(
        "Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid".split(),
        (*FLOATS, *COMPLEX),
    ),
    **dict.fromkeys("Erfc Lgamma Floor Ceil Rint Round IsNan IsInf IsFinite Dawsn Expint".split(), FLOATS),
    **dict.fromkeys(("Invert", "PopulationCount"), INTS),
}
BINARY = {
    **dict.fromkeys(("AddV2", "Sub", "Mul", "Equal", "NotEqual"), EVERY),
    **dict.fromkeys(("RealDiv", "Pow", "MulNoNan", "DivNoNan", "Xlogy", "Xlog1py", "Xdivy"), (*FLOATS, *COMPLEX)),
    **dict.fromkeys(("FloorDiv", "FloorMod", "Maximum", "Minimum", "Less", "GreaterEqual"), (*FLOATS, *INTS)),
    "TruncateDiv": INTS,
    "TruncateMod": (*FLOATS, "int32", "int64"),
    "SquaredDifference": (*FLOATS, *COMPLEX, "int32", "int64"),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"), INTS),
    "Atan2": FLOATS,
    **dict.fromkeys(("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"), FLOATS),
}
NAMES = {"Atan2": ("y", "x"), **dict.fromkeys([name for name in BINARY if name.endswith("Grad")], ("y", "dy"))}
CASTS = [(a, b) for a in (*EVERY, "bool") for b in (*EVERY, "bool") if a != b]


def numbers(dtype: str) -> np.ndarray:
    """Zeros, ones, halves, ends of the range, infinities, NaN."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3.5, 1e-3, 10, -7.7, 33.3, np.inf, -np.inf, np.nan], dtype)
    if kind.kind == "c":
        return np.array([0.3 + 0.7j, -1.2 + 0.4j, 0.9 - 1.1j, -0.6 - 0.2j, 1, -1.5, 2j, -0.5j], dtype)
    if kind.kind == "b":
        return np.array([True, False])
    info = np.iinfo(kind)
    small = [0, 1, 2, 3, 7, 100] + ([-1, -2, -7, -100] if info.min < 0 else [])
    return np.array([*small, info.min, info.min + 1, info.max - 1, info.max], dtype)


def pairs(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every number with every other; without divisions that have no answer."""
    x, y = (grid.ravel() for grid in np.meshgrid(numbers(dtype), numbers(dtype)))
    if name in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod") and np.dtype(dtype).kind in "iu":
        fine = y != 0
        if np.dtype(dtype).kind == "i":
            fine &= ~((y == -1) & (x == np.iinfo(dtype).min))
        x, y = x[fine], y[fine]
    return x, y


def castable(source: str, target: str) -> np.ndarray:
    """Numbers whose conversion is defined: floating point ones must fit into integers."""
    x = numbers(source)
    if np.dtype(target).kind in "iu" and np.dtype(source).kind in "fc":
        info = np.iinfo(target)
        return x[
            np.isfinite(x) & (x.real > info.min - 1) & (x.real <= info.max) & (x.real > -1 if info.min == 0 else True)
        ]
    return x
