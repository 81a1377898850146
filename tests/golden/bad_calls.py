"""What TensorFlow raises for bad calls of ops, and for Python values that are no tensors; and when.

    python tests/golden/bad_calls.py > tests/golden/bad_calls.json   # a Python with TensorFlow 2.21

Each call runs eagerly, in a graph of constants and in a graph of unknown shapes; kept are "phase class" ("run" for a value).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import numpy as np

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")


def image(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def ints(*values: Any, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, dtype)


WIDE = 2**40
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
# op, inputs, attributes
CALLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    # attributes: numbers are cut, what is not a number is refused, 32 bits are checked where they are read
    "int attribute 2.7": ("SpaceToDepth", {"input": image(1, 4, 4, 1)}, {"block_size": 2.7}),
    "int attribute True": ("SpaceToDepth", {"input": image(1, 4, 4, 1)}, {"block_size": True}),
    "int attribute text": ("SpaceToDepth", {"input": image(1, 4, 4, 1)}, {"block_size": "2"}),
    "int attribute nan": ("SpaceToDepth", {"input": image(1, 4, 4, 1)}, {"block_size": float("nan")}),
    "int attribute list": ("SpaceToDepth", {"input": image(1, 4, 4, 1)}, {"block_size": [2]}),
    "float attribute True": ("LeakyRelu", {"features": image(2)}, {"alpha": True}),
    "float attribute bytes": ("LeakyRelu", {"features": image(2)}, {"alpha": b"1"}),
    "bool attribute 1": ("MatMul", {"a": image(1, 1), "b": image(1, 1)}, {"transpose_a": 1}),
    "string attribute 3": ("AsString", {"input": image(2)}, {"fill": 3}),
    "list attribute number": ("Squeeze", {"input": image(1, 2)}, {"axis": 0}),
    "list attribute array": ("Squeeze", {"input": image(1, 2)}, {"axis": np.array([0])}),
    "list attribute 1.5": ("MaxPool", {"input": image(1, 4, 4, 1)}, {**POOL, "ksize": [1, 1.5, 1, 1]}),
    "wide, read when building": ("AvgPool", {"value": image(1, 4, 4, 1)}, {**POOL, "ksize": [1, WIDE, 1, 1]}),
    "wide, read when running": ("AsString", {"input": image(2)}, {"width": WIDE}),
    "too large a shape": ("Placeholder", {}, {"dtype": "float32", "shape": [WIDE, WIDE]}),
    # ranks that graphs want and kernels do not
    "reduction over a matrix of axes": ("Sum", {"input": image(2, 3), "axis": ints([[0, 1]])}, {}),
    "concat axis in a vector": ("ConcatV2", {"values": [image(1), image(1)], "axis": ints([0])}, {}),
    "concat axis in a matrix": ("ConcatV2", {"values": [image(1), image(1)], "axis": ints([[0]])}, {}),
    "padding value in a vector": (
        "MatrixDiagPartV2", {"input": image(3, 3), "k": ints([0, 1]), "padding_value": image(1)}, {}
    ),
    # found when it runs
    "cumsum axis out of range": ("Cumsum", {"x": image(2, 3), "axis": ints(5)}, {}),
    "cumsum axis is a vector": ("Cumsum", {"x": image(2, 3), "axis": ints([0])}, {}),
    "fake quant gradient of another shape": (
        "FakeQuantWithMinMaxArgsGradient", {"gradients": image(2), "inputs": image(3)}, {}
    ),
    "dilation gradient's filter": (
        "Dilation2DBackpropFilter",
        {"input": image(1, 4, 4, 1), "filter": image(2, 2), "out_backprop": image(1, 4, 4, 1)},
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
    ),
    # found when a graph is built
    "window of five": ("AvgPool", {"value": image(1, 4, 4, 1)}, {**POOL, "ksize": [1, 2, 2, 1, 1]}),
    "stride 0": ("AvgPool", {"value": image(1, 4, 4, 1)}, {**POOL, "strides": [1, 0, 1, 1]}),
    "average of a matrix": ("AvgPool", {"value": image(4, 4, 1)}, POOL),
    "no input channels": ("Conv2D", {"input": image(1, 4, 4, 0), "filter": image(2, 2, 2, 1)}, CONV),
    "a filter of nothing": ("Conv2D", {"input": image(1, 4, 4, 2), "filter": image(0, 2, 2, 1)}, CONV),
    "gradient of other channels": (
        "Conv2DBackpropInput",
        {"input_sizes": ints([1, 4, 4, 2]), "filter": image(2, 2, 2, 3), "out_backprop": image(1, 4, 4, 4)},
        CONV,
    ),
    "gradient of another rank": (
        "Conv2DBackpropFilter",
        {"input": image(4, 4), "filter_sizes": ints([2, 2, 2, 3]), "out_backprop": image(1, 4, 4, 3)},
        CONV,
    ),
    "negative size": ("Bincount", {"arr": ints([0, 1]), "size": ints(-1), "weights": image(0)}, {}),
    "negative crops": (
        "BatchToSpaceND", {"input": image(4, 1, 1, 1), "block_shape": ints([2, 2]), "crops": ints([[0, -1], [0, 0]])}, {}
    ),
    "blocks of unknown rank": (
        "BatchToSpaceND", {"input": image(4, 1, 1, 1), "block_shape": ints([2, 2]), "crops": ints([[0, 0], [0, 0]])}, {}
    ),
    "negative samples": ("Multinomial", {"logits": image(1, 2), "num_samples": ints(-1)}, {}),
    "bounds of other channels": (
        "FakeQuantWithMinMaxVarsPerChannel", {"inputs": image(2, 3), "min": image(2), "max": image(2)}, {}
    ),
    "transform lengths": ("IRFFT", {"input": np.ones([4], np.complex64), "fft_length": ints([2, 2])}, {}),
    # values
    "not positive definite": ("Cholesky", {"input": -image(2, 2)}, {}),
    "inverse of NaN": ("MatrixInverse", {"input": np.full([2, 2], np.nan, np.float32)}, {}),
    "broadcast to -1": ("BroadcastTo", {"input": image(1), "shape": ints([-1])}, {}),
    "negative regularizer": (
        "MatrixSolveLs", {"matrix": image(2, 2), "rhs": image(2, 1), "l2_regularizer": np.float64(-1)}, {}
    ),
    "batches that differ": ("BatchMatMul", {"x": image(1, 2, 2), "y": image(3, 2, 2)}, {}),
    "label twice": (
        "CTCLoss",
        {
            "inputs": image(3, 1, 4),
            "labels_indices": ints([[0, 0], [0, 0]], dtype=np.int64),
            "labels_values": ints([1, 2]),
            "sequence_length": ints([3]),
        },
        {},
    ),
    "nothing to decode": ("CTCGreedyDecoder", {"inputs": image(0, 1, 4), "sequence_length": ints([0])}, {}),
}  # fmt: skip


class Thing:
    def __repr__(self) -> str:
        return "Thing()"


VALUES: dict[str, Any] = {
    "None": None, "text": "text", "an object": Thing(), "ragged": [[1.0], [2.0, 3.0]], "a dictionary": {"a": 1},
    "a set": {1, 2}, "a function": len, "a class": Thing, "mixed": [1, "a"], "text first": ["a", 1], "None inside": [None, 1],
    "an object inside": [Thing()], "True": True, "True inside": [1, True], "float inside": [1, 2.5], "range": range(3),
    "strings": np.array(["a", "b"]), "numbers": np.arange(4), "objects": np.array([None, 1], object),
    "numbers as objects": np.array([1, 2], object), "huge": 2**70, "nested": [[1, 2], [3, [4]]],
}  # fmt: skip
DTYPES = (None, "float32", "int32", "string", "bool")
# stoker says that a number does not fit, in words of its own.
ELSEWHERE = {"huge int32 graph", "objects int32 eager", "range string eager", "range bool eager"}


def conversions(tf: Any) -> dict[str, str]:
    """For each value, dtype and mode: the dtype of the tensor, or the error."""
    found = {}
    for name, value in VALUES.items():
        for dtype in DTYPES:
            for mode in ("eager", "graph"):
                key = f"{name} {dtype} {mode}"
                if key not in ELSEWHERE:
                    with tf.Graph().as_default() if mode == "graph" else contextlib.nullcontext():
                        found[key] = _outcome(lambda: tf.convert_to_tensor(value, dtype).dtype.name)  # noqa: B023
    return found


def _outcome(call: Any) -> str:
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def outcomes(tf: Any) -> dict[str, list[str]]:
    """For each call: eagerly, with known shapes, with unknown ones."""
    return {
        name: [_eager(tf, *call), _graph(tf, True, *call), _graph(tf, False, *call)] for name, call in CALLS.items()
    }


def _eager(tf: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> str:
    tensors = {key: _tensors(tf.constant, value) for key, value in inputs.items()}
    return "run " + _outcome(lambda: str(getattr(tf.raw_ops, op)(**tensors, **attrs))[:0])


def _graph(tf: Any, known: bool, op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> str:
    v1 = tf.compat.v1
    phase = "build "
    with tf.Graph().as_default(), v1.Session() as session:
        feeds = {}

        def made(value: Any) -> Any:
            if known:
                return tf.constant(value)
            tensor = v1.placeholder(value.dtype, None)
            feeds[tensor] = value
            return tensor

        try:
            result = getattr(tf.raw_ops, op)(**{key: _tensors(made, value) for key, value in inputs.items()}, **attrs)
            phase = "run "
            session.run(result, feeds)
        except Exception as error:
            return phase + type(error).__name__
    return phase


def _tensors(make: Any, value: Any) -> Any:
    return [make(each) for each in value] if isinstance(value, list) else make(value)


def main() -> None:
    import tensorflow as tf

    json.dump({"calls": outcomes(tf), "conversions": conversions(tf)}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
