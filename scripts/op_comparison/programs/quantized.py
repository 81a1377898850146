"""Layers on quantized numbers: made from floats inside of the program, and read back as the integers they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import Run, program

RANGES = ((-1.0, 1.0), (0.0, 6.0), (-0.3, 2.7), (-5.0, 0.25))


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1.5, 3.5, shape).astype(np.float32)


def _quantized(run: Run, x: np.ndarray, low: float, high: float, name: str = "quint8") -> Any:
    """The numbers on the scale of [low, high] and that range, as three tensors."""
    bounds = {"min_range": np.float32(low), "max_range": np.float32(high)}
    return run.raw.QuantizeV2(input=x, T=run.tf.as_dtype(name), mode="MIN_FIRST", **bounds)


class _Found:
    """Outputs and their ranges by their bits, gathered into one array: they are many, and equal."""

    def __init__(self, run: Run) -> None:
        self.run, self.parts = run, []

    def add(self, made: Any, name: str) -> None:
        """Takes an output of dtype `name` and what comes with it."""
        plain = self.run.tf.as_dtype(name.removeprefix("q"))
        quantized, *bounds = self.run.do([self.run.raw.Bitcast(input=made[0], type=plain), *made[1:]])
        self.add_numbers([quantized, *(np.asarray(bound, np.float32).view(np.int32) for bound in bounds)])

    def add_numbers(self, numbers: list[Any]) -> None:
        """Takes whole numbers: their shape and values."""
        for each in numbers:
            self.parts += [np.array(np.shape(each), np.int64), np.asarray(each, np.int64).ravel()]

    def note(self) -> None:
        """Compares all that was taken."""
        self.run.note(np.concatenate(self.parts))


def _get_float(run: Run, made: Any) -> None:
    """Compares what an output of qint32 stands for: its single steps are beyond single precision."""
    steps = run.tf.cast(run.raw.Bitcast(input=made[0], type=run.tf.int32), run.tf.float32)
    run.get([steps / np.float32(2**32) * (made[2] - made[1]), *made[1:]])


@program("QuantizedMatMul", eager=True)
def quantized_products(run: Run) -> None:
    found = _Found(run)
    raw, tf = run.raw, run.tf
    for of_a in RANGES:
        for of_b in RANGES:
            for turned in (False, True):
                a = _quantized(run, _numbers(5, 3) if turned else _numbers(3, 5), *of_a)
                b = _quantized(run, _numbers(4, 5, seed=1) if turned else _numbers(5, 4, seed=1), *of_b)
                bounds = {"min_a": a[1], "max_a": a[2], "min_b": b[1], "max_b": b[2]}
                turns = {"transpose_a": turned, "transpose_b": turned}
                found.add(raw.QuantizedMatMul(a=a[0], b=b[0], **bounds, **turns, Toutput=tf.qint32), "qint32")
    found.note()


@program("QuantizedConv2D", eager=True)
def quantized_convolutions(run: Run) -> None:
    found = _Found(run)
    raw = run.raw
    for of_x in RANGES:
        for of_w in RANGES:
            for padding in ("SAME", "VALID"):
                for stride in (1, 2):
                    x = _quantized(run, _numbers(2, 7, 6, 3), *of_x)
                    w = _quantized(run, _numbers(3, 2, 3, 4, seed=1), *of_w)
                    bounds = {"min_input": x[1], "max_input": x[2], "min_filter": w[1], "max_filter": w[2]}
                    window = {"strides": [1, stride, stride, 1], "padding": padding}
                    found.add(raw.QuantizedConv2D(input=x[0], filter=w[0], **bounds, **window), "qint32")
    found.note()


def _operands(run: Run) -> Iterator[tuple[Any, Any]]:
    """Pairs of quantized tensors of all ranges, the second broadcast to the first."""
    for of_x in RANGES:
        for of_y in RANGES:
            for shape in ((3, 4), (4,), (1,), ()):
                yield _quantized(run, _numbers(3, 4), *of_x), _quantized(run, _numbers(*shape, seed=1), *of_y)


def _binary(op: Any, x: Any, y: Any) -> Any:
    return op(x=x[0], y=y[0], min_x=x[1], max_x=x[2], min_y=y[1], max_y=y[2])


@program("QuantizedMul", eager=True)
def quantized_multiplication(run: Run) -> None:
    found = _Found(run)
    for x, y in _operands(run):
        found.add(_binary(run.raw.QuantizedMul, x, y), "qint32")
    found.note()


@program("QuantizedAdd", eager=True)
def quantized_sums(run: Run) -> None:
    found = _Found(run)
    for x, y in _operands(run):
        for first, second in ((x, y), (y, x), (y, y)):
            found.add(_binary(run.raw.QuantizedAdd, first, second), "qint32")
    found.note()


@program("QuantizedBiasAdd", eager=True)
def quantized_biases(run: Run) -> None:
    found = _Found(run)
    for of_x in RANGES:
        for of_y in RANGES:
            x, y = _quantized(run, _numbers(3, 4), *of_x), _quantized(run, _numbers(4, seed=1), *of_y)
            bounds = {"min_input": x[1], "max_input": x[2], "min_bias": y[1], "max_bias": y[2]}
            made = run.raw.QuantizedBiasAdd(input=x[0], bias=y[0], out_type=run.tf.qint32, **bounds)
            found.add(made, "qint32")
    found.note()


def _product(run: Run, of_a: tuple[float, float], of_b: tuple[float, float]) -> Any:
    """Numbers of qint32 that use a part of their range, as products are."""
    a, b = _quantized(run, _numbers(9, 8), *of_a), _quantized(run, _numbers(8, 9, seed=1), *of_b)
    bounds = {"min_a": a[1], "max_a": a[2], "min_b": b[1], "max_b": b[2]}
    return run.raw.QuantizedMatMul(a=a[0], b=b[0], **bounds, Toutput=run.tf.qint32)


@program("RequantizationRange", eager=True)
def used_ranges(run: Run) -> None:
    found = _Found(run)
    for of_a in RANGES:
        for of_b in RANGES:
            made = _product(run, of_a, of_b)
            bounds = run.do(list(run.raw.RequantizationRange(input=made[0], input_min=made[1], input_max=made[2])))
            found.add_numbers([np.asarray(bound, np.float32).view(np.int32) for bound in bounds])
    found.note()


@program("Requantize", eager=True)
def other_ranges(run: Run) -> None:
    found = _Found(run)
    raw, tf = run.raw, run.tf
    for of_a in RANGES:
        for of_b in RANGES:
            made = _product(run, of_a, of_b)
            of_made = {"input": made[0], "input_min": made[1], "input_max": made[2]}
            for low, high in ((-3.0, 3.0), (0.0, 9.0), (-40.0, 55.5)):
                wanted = {"requested_output_min": np.float32(low), "requested_output_max": np.float32(high)}
                found.add(raw.Requantize(**of_made, **wanted, out_type=tf.quint8), "quint8")
    found.note()


@program("QuantizeDownAndShrinkRange", eager=True)
def shrunk_ranges(run: Run) -> None:
    found = _Found(run)
    for of_a in RANGES:
        for of_b in RANGES:
            made = _product(run, of_a, of_b)
            of_made = {"input": made[0], "input_min": made[1], "input_max": made[2]}
            found.add(run.raw.QuantizeDownAndShrinkRange(**of_made, out_type=run.tf.quint8), "quint8")
    found.note()


@program("QuantizedRelu", "QuantizedRelu6", eager=True)
def quantized_activations(run: Run) -> None:
    found = _Found(run)
    raw, tf = run.raw, run.tf
    for low, high in (*RANGES, (-3.0, 9.0), (0.5, 8.0)):
        x = _quantized(run, 4 * _numbers(3, 4), low, high)
        of_x = {"features": x[0], "min_features": x[1], "max_features": x[2], "out_type": tf.quint8}
        found.add(raw.QuantizedRelu(**of_x), "quint8")
        found.add(raw.QuantizedRelu6(**of_x), "quint8")
    found.note()


@program("QuantizedMaxPool", "QuantizedAvgPool", eager=True)
def quantized_pools(run: Run) -> None:
    found = _Found(run)
    raw = run.raw
    for low, high in RANGES:
        x = _quantized(run, _numbers(2, 7, 6, 3), low, high)
        of_x = {"input": x[0], "min_input": x[1], "max_input": x[2]}
        for padding in ("SAME", "VALID"):
            for window, stride in ((2, 2), (3, 1), (3, 2)):
                sizes = {"ksize": [1, window, window, 1], "strides": [1, stride, stride, 1], "padding": padding}
                found.add(raw.QuantizedMaxPool(**of_x, **sizes), "quint8")
                found.add(raw.QuantizedAvgPool(**of_x, **sizes), "quint8")
    found.note()


@program("QuantizedReshape", eager=True)
def quantized_forms(run: Run) -> None:
    found = _Found(run)
    for name in ("quint8", "qint32"):
        x = _quantized(run, _numbers(3, 4), -0.3, 2.7, name)
        for shape in ((2, 6), (-1,), (4, 1, 3)):
            bounds = {"input_min": x[1], "input_max": x[2]}
            found.add(run.raw.QuantizedReshape(tensor=x[0], shape=np.array(shape, np.int32), **bounds), name)
    found.note()


@program("QuantizedConcat", eager=True)
def joined_quantized(run: Run) -> None:
    found = _Found(run)
    raw = run.raw
    for name in ("quint8", "qint32"):
        for first in RANGES:
            x = _quantized(run, _numbers(3, 4), *first, name)
            for second in RANGES:
                y = _quantized(run, _numbers(3, 4, seed=1), *second, name)
                parts = {"values": [x[0], y[0]], "input_mins": [x[1], y[1]], "input_maxes": [x[2], y[2]]}
                for axis in (0, 1):
                    joined = raw.QuantizedConcat(concat_dim=np.int32(axis), **parts)
                    found.add(joined, name) if name == "quint8" else _get_float(run, joined)
                for axis in (-1, 2):
                    run.fails(lambda: raw.QuantizedConcat(concat_dim=np.int32(axis), **parts)[1])  # noqa: B023
    found.note()
