"""Cases for ops that have no Sample in the tests: updates of variables, and the rest by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from op_comparison.cases import Case, case_from
from op_comparison.exchange import Variable
from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.graph import context
from stoker._src.graph.definition import OpDefinition, all_definitions, find_definition

_random = np.random.RandomState(7)

# The scalars of optimizer updates, by the names their ops give them.
SCALARS: dict[str, float] = {
    "lr": 0.1, "alpha": 0.1, "delta": 0.5, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.99,
    "beta1_power": 0.81, "beta2_power": 0.98, "l1": 0.01, "l2": 0.02, "l2_shrinkage": 0.03, "lr_power": -0.5,
    "global_step": 3, "logbase": 1.0, "sign_decay": 0.7, "beta": 0.9,
}  # fmt: skip


def extra_cases() -> list[Case]:
    cases = list(hand_written())
    for name, definition in all_definitions().items():
        if "Apply" in name:
            cases.extend(updates(definition))
        elif "Scatter" in name and not name.startswith(("TensorList", "TensorArray", "TensorScatter")):
            cases.extend(scatters(definition))
    return cases


def real(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _random.uniform(-1, 1, shape).astype(dtype)


def positive(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return _random.uniform(0.1, 1, shape).astype(dtype)


def is_variable(arg: Any) -> bool:
    return arg.is_ref or arg.dtype is dtypes.resource


def updates(definition: OpDefinition) -> Iterator[Case]:
    """An optimizer's update in single and double precision, with each of its switches."""
    switches = [key for key, spec in definition.attrs.items() if spec.kind == "bool" and key != "use_locking"]
    sparse = any(arg.name == "indices" for arg in definition.inputs)
    for dtype in (np.float32, np.float64):
        for chosen in [{}, *({key: not definition.attrs[key].default} for key in switches)]:
            inputs: list[Any] = []
            for arg in definition.inputs:
                if is_variable(arg):
                    inputs.append(Variable(positive(4, 3, dtype=dtype)))
                elif arg.name == "indices":
                    inputs.append(np.array([2, 0], np.int32))
                elif arg.name in SCALARS:
                    inputs.append(np.array(SCALARS[arg.name], np.int64 if arg.dtype is dtypes.int64 else dtype))
                else:
                    inputs.append(real(2 if sparse else 4, 3, dtype=dtype))
            yield case_from(definition.name, inputs, chosen)


def scatters(definition: OpDefinition) -> Iterator[Case]:
    """Rows and elements of a variable, one index twice."""
    names = [arg.name for arg in definition.inputs]
    if names[1:] != ["indices", "updates"] or not is_variable(definition.inputs[0]):
        return
    by_element = "Nd" in definition.name
    for dtype in (np.float32, np.float64, np.int32):
        values, rows = (_random.randint(1, 9, shape).astype(dtype) for shape in ((4, 3), (3, 3)))
        indices = np.array([[2], [0], [2]] if by_element else [2, 0, 2], np.int32)
        if "Update" in definition.name:
            indices, rows = indices[:2], rows[:2]  # which of two values stays is not defined
        yield case_from(definition.name, [Variable(values), indices, rows], {})


def hand_written() -> Iterator[Case]:
    """One line for each case; an op that is not defined is left out."""
    for op, inputs, attrs in (
        *plain(),
        *random(),
        *strings_and_files(),
        *networks(),
        *convolutions(),
        *pools(),
        *sparse(),
        *state(),
        *decoders(),
    ):
        if find_definition(op) is not None:
            yield case_from(op, inputs, attrs)


Line = tuple[str, list[Any], dict[str, Any]]


def plain() -> Iterator[Line]:
    x, y = real(3, 4), real(3, 4)
    numbers = np.array([5, -7, 0, 127, -128], np.int32)
    masks = np.array([3, 1, 9, 4, 2], np.int32)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield op, [numbers, masks], {}
    yield "LeftShift", [numbers, masks], {}
    yield "RightShift", [numbers, masks], {}
    yield "Invert", [numbers], {}
    yield "PopulationCount", [numbers], {}
    yield "TruncateDiv", [numbers, masks], {}
    yield "InvGrad", [x, y], {}
    yield "ZerosLike", [x], {}
    yield "OnesLike", [x], {}
    yield "PreventGradient", [x], {"message": ""}
    yield "PlaceholderWithDefault", [x], {"shape": [3, 4]}
    yield "BroadcastGradientArgs", [np.array([3, 1, 4], np.int32), np.array([2, 4], np.int32)], {}
    yield "BroadcastGradientArgs", [np.array([3], np.int32), np.array([], np.int32)], {}
    symmetric = real(4, 4, dtype=np.float64)
    symmetric = symmetric @ symmetric.T + np.eye(4)
    factor = np.linalg.cholesky(symmetric)
    yield "CholeskyGrad", [factor, real(4, 4, dtype=np.float64)], {}
    yield "BatchMatrixTriangularSolve", [factor, real(4, 2, dtype=np.float64)], {}
    yield (
        "BandedTriangularSolve",
        [np.stack([positive(4, dtype=np.float64) + 1, real(4, dtype=np.float64)]), real(4, 2, dtype=np.float64)],
        {},
    )
    yield "Svd", [real(4, 3, dtype=np.float64)], {"compute_uv": False}
    yield "SelfAdjointEig", [symmetric], {}
    yield "Lu", [real(4, 4, dtype=np.float64)], {}
    yield "MatrixLogarithm", [symmetric.astype(np.complex128)], {}
    yield "MatrixSetDiagV2", [x, real(2), np.array(2, np.int32)], {}
    yield "Eig", [symmetric], {"compute_v": False, "Tout": as_dtype("complex128")}
    signal = (real(2, 4, 4, 4) + 1j * real(2, 4, 4, 4)).astype(np.complex64)
    for op in ("BatchFFT", "BatchIFFT", "BatchFFT2D", "BatchIFFT2D", "BatchFFT3D", "BatchIFFT3D"):
        yield op, [signal], {}
    yield "IRFFT3D", [signal[..., :3], np.array([4, 4, 4], np.int32)], {}
    yield "IgammaGradA", [positive(5, dtype=np.float64) * 4, positive(5, dtype=np.float64) * 4], {}
    yield "RandomGammaGrad", [positive(5) * 4, positive(5) * 4], {}
    low, high = np.float32(-0.7), np.float32(0.9)
    lows, highs = np.array([-0.7, -1, 0, -0.2], np.float32), np.array([0.9, 1, 0.5, 2], np.float32)
    for attrs in ({}, {"num_bits": 4, "narrow_range": True}):
        yield "FakeQuantWithMinMaxArgs", [x], {**attrs, "min": -0.7, "max": 0.9}
        yield "FakeQuantWithMinMaxArgsGradient", [y, x], {**attrs, "min": -0.7, "max": 0.9}
        yield "FakeQuantWithMinMaxVars", [x, low, high], attrs
        yield "FakeQuantWithMinMaxVarsGradient", [y, x, low, high], attrs
        yield "FakeQuantWithMinMaxVarsPerChannel", [x, lows, highs], attrs
        yield "FakeQuantWithMinMaxVarsPerChannelGradient", [y, x, lows, highs], attrs
    for attrs in ({}, {"range_given": True}, {"signed_input": False, "num_bits": 5}):
        yield "QuantizeAndDequantizeV2", [x, low, high], attrs
        yield "QuantizeAndDequantizeV4", [x, low, high], attrs
        yield (
            "QuantizeAndDequantizeV3",
            [x, low, high, np.int32(attrs.get("num_bits", 8))],
            {k: v for k, v in attrs.items() if k != "num_bits"},
        )
    yield "QuantizeAndDequantizeV4Grad", [y, x, low, high], {}
    rows, chosen = real(3, 4), np.array([0, 2, 1], np.int32)
    for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
        yield op, [rows, chosen, np.array([0, 0, 1], np.int32), np.int32(4)], {}
    yield "SparseSegmentSqrtNWithNumSegments", [rows, chosen, np.array([0, 0, 2], np.int32), np.int32(4)], {}


def random() -> Iterator[Line]:
    """Numbers that depend on their seeds alone."""
    shape, seed = np.array([3, 5], np.int32), np.array([7, -9], np.int64)
    key, counter, philox = np.array([5], np.uint64), np.array([1, 2], np.uint64), np.int32(1)
    low, high = np.int32(-3), np.int32(1000)
    for name in ("Uniform", "Normal"):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            attrs = {"dtype": as_dtype(dtype)}
            yield f"StatelessRandom{name}", [shape, seed], attrs
            yield f"StatelessRandom{name}V2", [shape, key, counter, philox], attrs
    yield "StatelessTruncatedNormal", [shape, seed], {}
    yield "StatelessTruncatedNormalV2", [shape, key, counter, philox], {}
    for dtype in ("int32", "int64", "uint32", "uint64"):
        attrs = {"dtype": as_dtype(dtype)}
        yield "StatelessRandomUniformFullInt", [shape, seed], attrs
        yield "StatelessRandomUniformFullIntV2", [shape, key, counter, philox], attrs
    yield "StatelessRandomUniformInt", [shape, seed, low, high], {}
    yield "StatelessRandomUniformIntV2", [shape, key, counter, philox, low, high], {}
    yield "StatelessMultinomial", [real(2, 4), np.int32(6), seed], {}
    yield "StatelessShuffle", [np.arange(9), key, counter, philox], {}
    yield "StatelessRandomGammaV2", [np.array([4, 2], np.int32), seed, np.array([0.4, 3.0], np.float32)], {}
    yield (
        "StatelessRandomGammaV3",
        [np.array([4, 2], np.int32), key, counter, philox, np.array([0.4, 3.0], np.float32)],
        {},
    )
    yield (
        "StatelessRandomPoisson",
        [np.array([4, 2], np.int32), seed, np.array([0.4, 30.0], np.float32)],
        {"dtype": as_dtype("int32")},
    )
    yield (
        "StatelessRandomBinomial",
        [np.array([4, 2], np.int32), seed, np.array([5.0, 40.0]), np.array([0.4, 0.7])],
        {"dtype": as_dtype("int32")},
    )
    yield (
        "StatelessParameterizedTruncatedNormal",
        [shape, seed, np.float32(0), np.float32(1), np.float32(-1), np.float32(2)],
        {},
    )
    yield "StatelessRandomGetKeyCounter", [seed], {}
    yield "StatelessRandomGetKeyCounterAlg", [seed], {}
    yield "StatelessRandomGetAlg", [], {}
    seeds = {"seed": 3, "seed2": 11}
    yield "RandomUniform", [shape], {**seeds, "dtype": as_dtype("float32")}
    yield "RandomStandardNormal", [shape], {**seeds, "dtype": as_dtype("float32")}
    yield "TruncatedNormal", [shape], {**seeds, "dtype": as_dtype("float32")}
    yield "RandomUniformInt", [shape, low, high], seeds
    yield "Multinomial", [real(2, 4), np.int32(6)], seeds
    yield "RandomShuffle", [np.arange(9)], seeds
    yield "RandomGamma", [np.array([4], np.int32), np.array([0.4, 3.0], np.float32)], seeds
    yield "RandomPoissonV2", [np.array([4], np.int32), np.array([0.4, 30.0], np.float32)], seeds
    yield (
        "ParameterizedTruncatedNormal",
        [np.array([6], np.int32), *[np.array([v], np.float32) for v in (0, 1, -1, 2)]],
        seeds,
    )
    true = np.array([[1, 4], [0, 7]], np.int64)
    sampling = {"num_true": 2, "num_sampled": 5, "unique": True, "range_max": 20, **seeds}
    for op in ("UniformCandidateSampler", "LogUniformCandidateSampler"):
        yield op, [true], sampling
    yield (
        "FixedUnigramCandidateSampler",
        [true],
        {**sampling, "range_max": 8, "unigrams": [float(k + 1) for k in range(8)]},
    )
    yield "AllCandidateSampler", [true], {"num_true": 2, "num_sampled": 8, "unique": True, **seeds}
    yield "ComputeAccidentalHits", [true, np.array([4, 2, 0, 7], np.int64)], {"num_true": 2, **seeds}


def strings_and_files() -> Iterator[Line]:
    words = np.array([b"a", b"", b"stoker", b"\xff\x00z"], object)
    yield "EncodeBase64", [words], {"pad": True}
    yield "DecodeBase64", [np.array([b"c3Rva2Vy", b"YQ"], object)], {}
    yield "DecodeRaw", [np.array([b"abcd", b"efgh"], object)], {"out_type": as_dtype("int16")}
    yield "DecodePaddedRaw", [np.array([b"abcd", b"ef"], object), np.int32(6)], {"out_type": as_dtype("int16")}
    yield "DecodeCompressed", [words], {"compression_type": ""}
    yield (
        "DecodeCSV",
        [
            np.array([b"1,x,2.5", b',"q,q",'], object),
            [np.array([7], np.int32), np.array([b"d"], object), np.array([0.5], np.float32)],
        ],
        {},
    )
    yield "StringToHashBucket", [words], {"num_buckets": 97}
    yield "StringToHashBucketStrong", [words], {"num_buckets": 97, "key": [123, 456]}
    yield "SerializeTensor", [real(2, 3)], {}
    pixels = _random.randint(0, 256, (5, 6, 3)).astype(np.uint8)
    yield "EncodePng", [pixels], {}
    yield "SdcaFprint", [words], {}
    flat = [np.array([[0], [2]], np.int64), np.array([b"a", b"c"], object), np.array([3], np.int64)]
    other = [np.array([[0], [1]], np.int64), np.array([b"a", b"b"], object), np.array([3], np.int64)]
    yield "EditDistance", [*flat, *other], {"normalize": False}


def networks() -> Iterator[Line]:
    size = 3
    x, state, output = real(2, 4), real(2, size), real(2, size)
    w, b, peep = real(4 + size, 4 * size), real(4 * size), real(size)
    for attrs in ({}, {"use_peephole": True, "cell_clip": 0.5}):
        yield "LSTMBlockCell", [x, state, output, w, peep, peep, peep, b], attrs
        for op, more in (("BlockLSTM", {}), ("BlockLSTMV2", {})):
            yield op, [np.int64(3), real(3, 2, 4), state, output, w, peep, peep, peep, b], {**attrs, **more}
    yield "GRUBlockCell", [x, output, real(4 + size, 2 * size), real(4 + size, size), real(2 * size), real(size)], {}
    image = real(2, 4, 4, 3)
    scale, mean, variance = positive(3), real(3), positive(3)
    for training in (True, False):
        attrs = {"is_training": training}
        yield (
            "FusedBatchNormV2",
            [
                image,
                scale,
                mean,
                mean if not training else np.zeros(0, np.float32),
                variance if not training else np.zeros(0, np.float32),
            ],
            attrs,
        )
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    yield "MaxPoolWithArgmax", [image], window
    pooled = image.reshape(2, 2, 2, 2, 2, 3).max((2, 4))
    yield "MaxPoolGrad", [image, pooled, real(2, 2, 2, 3)], window
    yield "MaxPoolGradGrad", [image, pooled, real(2, 4, 4, 3)], window
    yield (
        "MaxPoolGradGradV2",
        [image, pooled, real(2, 4, 4, 3), np.array([1, 2, 2, 1], np.int32), np.array([1, 2, 2, 1], np.int32)],
        {"padding": "VALID"},
    )
    yield "LRNGrad", [real(1, 2, 2, 5), image[:1, :2, :2, :1].repeat(5, 3), real(1, 2, 2, 5)], {}
    dilation = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    yield "Dilation2DBackpropInput", [image, real(2, 2, 3), real(2, 3, 3, 3)], dilation
    yield "Dilation2DBackpropFilter", [image, real(2, 2, 3), real(2, 3, 3, 3)], dilation
    yield (
        "BatchNormWithGlobalNormalizationGrad",
        [image, mean, variance, scale, real(2, 4, 4, 3)],
        {"variance_epsilon": 0.01, "scale_after_normalization": True},
    )
    logits, lengths = real(5, 2, 4), np.array([5, 4], np.int32)
    labels = [np.array([[0, 0], [0, 1], [1, 0]], np.int64), np.array([1, 2, 0], np.int32)]
    yield "CTCLoss", [logits, *labels, lengths], {}
    yield "CTCLossV2", [logits, labels[0], labels[1] + 1, lengths], {}
    yield "CTCGreedyDecoder", [logits, lengths], {"merge_repeated": True}
    yield "CTCBeamSearchDecoder", [logits, lengths], {"beam_width": 5, "top_paths": 1, "merge_repeated": False}
    for op, x_type in (("FusedBatchNormGrad", np.float32), ("FusedBatchNormGradV2", np.float32)):
        for training in (True, False):
            yield op, [real(2, 4, 4, 3), image.astype(x_type), scale, mean, variance], {"is_training": training}
    yield "FusedBatchNormGradV3", [real(2, 4, 4, 3), image, scale, mean, variance, np.zeros(0, np.float32)], {}
    cell = [real(2, size) for _ in range(7)]
    yield (
        "LSTMBlockCellGrad",
        [x, state, output, w, peep, peep, peep, b, *cell, real(2, size), real(2, size)],
        {"use_peephole": True},
    )
    steps = [real(3, 2, size) for _ in range(7)]
    for op in ("BlockLSTMGrad", "BlockLSTMGradV2"):
        inputs = [
            np.int64(3),
            real(3, 2, 4),
            state,
            output,
            w,
            peep,
            peep,
            peep,
            b,
            *steps,
            real(3, 2, size),
            real(3, 2, size),
        ]
        yield op, inputs, {"use_peephole": False}
    gates = [real(2, size) for _ in range(5)]
    yield (
        "GRUBlockCellGrad",
        [x, output, real(4 + size, 2 * size), real(4 + size, size), real(2 * size), real(size), *gates[:4]],
        {},
    )
    places = np.arange(12).reshape(1, 2, 2, 3).repeat(2, 0).astype(np.int64)
    yield "MaxPoolGradWithArgmax", [image, real(2, 2, 2, 3), places], window
    yield (
        "FractionalAvgPool",
        [image],
        {"pooling_ratio": [1.0, 1.5, 1.5, 1.0], "seed": 3, "seed2": 4, "deterministic": True},
    )
    edges = np.array([0, 2, 4], np.int64)
    yield "FractionalMaxPoolGrad", [image, pooled, real(2, 2, 2, 3), edges, edges], {}
    volume = real(1, 4, 4, 4, 2)
    deep = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    pooled_volume = volume.reshape(1, 2, 2, 2, 2, 2, 2, 2).max((2, 4, 6))
    yield "MaxPool3DGrad", [volume, pooled_volume, real(1, 2, 2, 2, 2)], deep
    yield "MaxPool3DGradGrad", [volume, pooled_volume, real(1, 4, 4, 4, 2)], deep


# Strides, dilations and paddings of convolutions, for an image of 7 by 8 and filters of 3 by 2.
_WINDOWS: list[dict[str, Any]] = [
    {"strides": [1, *strides, 1], "dilations": [1, *dilations, 1], "padding": padding, **more}
    for strides, dilations in (((1, 1), (1, 1)), ((2, 2), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 2)), ((1, 1), (1, 3)))
    for padding, more in (("SAME", {}), ("VALID", {}), ("EXPLICIT", {"explicit_paddings": [0, 0, 2, 1, 0, 2, 0, 0]}))
]  # fmt: skip


def convolutions() -> Iterator[Line]:
    """Every stride, dilation and padding, forward and backward; groups; volumes."""
    image, filters, thin, grouped = real(2, 7, 8, 4), real(3, 2, 4, 5), real(3, 2, 4, 2), real(3, 2, 2, 6)
    for attrs in _WINDOWS:
        for name, weights, forward in (
            ("Conv2D", filters, "Conv2D"),
            ("DepthwiseConv2dNative", thin, "DepthwiseConv2dNative"),
        ):
            if name != "Conv2D" and attrs["strides"] == [1, 2, 3, 1]:
                continue  # depthwise strides are one number
            made = ours(forward, image, weights, **attrs).shape
            yield forward, [image, weights], attrs
            slopes = real(*made)
            yield f"{name}BackpropInput", [np.array(image.shape, np.int32), weights, slopes], attrs
            yield f"{name}BackpropFilter", [image, np.array(weights.shape, np.int32), slopes], attrs
    for attrs in _WINDOWS[:3]:
        yield "Conv2D", [image, grouped], attrs
    volume, kernel = real(1, 5, 6, 4, 3), real(2, 3, 2, 3, 4)
    for strides, dilations, padding in (
        ((1, 1, 1), (1, 1, 1), "SAME"), ((2, 1, 2), (1, 1, 1), "VALID"), ((2, 2, 2), (1, 1, 1), "SAME"), ((1, 1, 1), (1, 2, 1), "SAME"),
    ):  # fmt: skip
        attrs = {"strides": [1, *strides, 1], "dilations": [1, *dilations, 1], "padding": padding}
        slopes = real(*ours("Conv3D", volume, kernel, **attrs).shape)
        yield "Conv3D", [volume, kernel], attrs
        yield "Conv3DBackpropInputV2", [np.array(volume.shape, np.int32), kernel, slopes], attrs
        yield "Conv3DBackpropFilterV2", [volume, np.array(kernel.shape, np.int32), slopes], attrs


def pools() -> Iterator[Line]:
    image = real(2, 7, 8, 3)
    sizes = np.array(image.shape, np.int32)
    for ksize, strides, padding in (
        ([1, 3, 2, 1], [1, 2, 3, 1], "SAME"), ([1, 3, 2, 1], [1, 2, 3, 1], "VALID"), ([1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        ([1, 1, 1, 1], [1, 3, 3, 1], "VALID"), ([1, 7, 8, 1], [1, 1, 1, 1], "VALID"),
    ):  # fmt: skip
        window = {"ksize": ksize, "strides": strides, "padding": padding}
        yield "MaxPool", [image], window
        yield "AvgPool", [image], window
        yield "MaxPoolV2", [image, np.array(ksize, np.int32), np.array(strides, np.int32)], {"padding": padding}
        pooled = ours("MaxPool", image, **window)
        slopes = real(*pooled.shape)
        yield "AvgPoolGrad", [sizes, slopes], window
        yield "MaxPoolGrad", [image, pooled, slopes], window
        yield "MaxPoolGradGrad", [image, pooled, real(*image.shape)], window
    padded = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]}
    yield "MaxPool", [image], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], **padded}
    volume = real(1, 5, 6, 4, 2)
    for padding in ("SAME", "VALID"):
        deep = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 2, 1, 1], "padding": padding}
        yield "MaxPool3D", [volume], deep
        yield "AvgPool3D", [volume], deep
        slopes = real(*ours("AvgPool3D", volume, **deep).shape)
        yield "AvgPool3DGrad", [np.array(volume.shape, np.int32), slopes], deep
        yield "MaxPool3DGrad", [volume, ours("MaxPool3D", volume, **deep), slopes], deep


def state() -> Iterator[Line]:
    """Variables read and written."""
    held = positive(4, 3)
    for op in ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"):
        yield op, [Variable(held), real(4, 3)], {}
    yield "ReadVariableOp", [Variable(held)], {"dtype": as_dtype("float32")}
    yield "IsVariableInitialized", [Variable(held)], {}
    yield "VarIsInitializedOp", [Variable(held)], {}
    yield "VariableShape", [Variable(held)], {}
    yield "CountUpTo", [Variable(np.int32(3))], {"limit": 5}
    yield "CountUpTo", [Variable(np.int32(5))], {"limit": 5}
    yield "ResourceCountUpTo", [Variable(np.int32(3))], {"limit": 5, "T": as_dtype("int32")}
    yield "ResourceGather", [Variable(held), np.array([[2, 0]], np.int32)], {"dtype": as_dtype("float32")}
    yield "ResourceGatherNd", [Variable(held), np.array([[2, 1], [0, 0]], np.int32)], {"dtype": as_dtype("float32")}
    part = [np.array(v, np.int32) for v in ([1, 0], [3, 3], [1, 2])]
    yield "StridedSliceAssign", [Variable(held), *part, real(2, 2)], {}
    yield "ResourceStridedSliceAssign", [Variable(held), *part, real(2, 2)], {}
    numbers, shape, philox = np.array([1, 2, 3], np.int64), np.array([5], np.int64), np.int64(1)
    for op in ("StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform"):
        yield op, [Variable(numbers), philox, shape], {}
    yield "StatefulUniformFullInt", [Variable(numbers), philox, shape], {"dtype": as_dtype("uint64")}
    yield "StatefulUniformInt", [Variable(numbers), philox, shape, np.int64(-4), np.int64(99)], {}
    yield "RngSkip", [Variable(numbers), philox, np.int64(7)], {}
    yield "RngReadAndSkip", [Variable(numbers), np.int32(1), np.uint64(7)], {}


def ours(op: str, *inputs: Any, **attrs: Any) -> np.ndarray:
    """What stoker's op gives: what another op takes for granted, such as the bytes that decoders read."""
    with context.enter_eager():
        value = find_definition(op)(*inputs, **attrs).numpy()  # type: ignore[misc]
    return np.array(value, object) if isinstance(value, bytes) else value


def decoders() -> Iterator[Line]:
    rows, columns = np.mgrid[0:24, 0:32]
    pixels = np.stack([rows * 8, columns * 7, rows + columns], -1).astype(np.uint8)
    png, jpeg = ours("EncodePng", pixels), ours("EncodeJpeg", pixels)
    yield "DecodePng", [png], {}
    yield "DecodePng", [png], {"channels": 1}
    yield "DecodePng", [png], {"channels": 4, "dtype": as_dtype("uint16")}
    yield "DecodeJpeg", [jpeg], {}
    yield "DecodeJpeg", [jpeg], {"channels": 1}
    yield "DecodeJpeg", [jpeg], {"ratio": 2, "fancy_upscaling": False}
    yield "DecodeJpeg", [jpeg], {"dct_method": "INTEGER_ACCURATE"}
    yield "DecodeAndCropJpeg", [jpeg, np.array([3, 5, 10, 12], np.int32)], {}
    yield "ExtractJpegShape", [jpeg], {}
    yield "DecodeImage", [png], {}
    yield "DecodeImage", [jpeg], {}
    yield "EncodeJpeg", [pixels], {"quality": 80}
    yield "EncodeJpegVariableQuality", [pixels, np.int32(60)], {}
    head = np.array([54, 0, 40, 2, 2], "<i4")
    bitmap = b"BM" + np.array([70, 0], "<i4").tobytes() + head[[0, 2, 3, 4]].tobytes()
    bitmap += np.array([1, 24], "<i2").tobytes() + np.array([0, 16, 0, 0, 0, 0], "<i4").tobytes() + bytes(range(16))
    yield "DecodeBmp", [np.array(bitmap, object)], {}
    yield "ParseTensor", [ours("SerializeTensor", real(2, 3))], {"out_type": as_dtype("float32")}
    yield "DecodeJSONExample", [np.array([b'{"features":{"feature":{"a":{"int64List":{"value":["3"]}}}}}'], object)], {}
    example = np.array([b"\n\x0e\n\x0c\n\x01a\x12\x07\x1a\x05\n\x03\x03\x04\x05"], object)
    empty = np.array([], object)
    three = np.array([0, 0, 0], np.int64)
    yield (
        "ParseExample",
        [example, empty, [], [np.array(b"a", object)], [three]],
        {"sparse_types": [], "dense_shapes": [[3]]},
    )
    yield (
        "ParseExample",
        [example, empty, [np.array(b"a", object)], [], []],
        {"sparse_types": [as_dtype("int64")], "dense_shapes": []},
    )
    yield "ParseSingleExample", [example[0], [three]], {
        "num_sparse": 0, "sparse_keys": [], "dense_keys": ["a"], "sparse_types": [], "dense_shapes": [[3]]
    }  # fmt: skip
    matrix = real(4, 3, dtype=np.float64)
    yield "Qr", [matrix], {}
    yield "Assert", [np.array(True), [matrix]], {}
    yield "Assert", [np.array(False), [matrix]], {}


def sparse() -> Iterator[Line]:
    indices, values, shape = np.array([[0, 1], [1, 0], [1, 2]], np.int64), real(3), np.array([2, 3], np.int64)
    yield "SparseSliceGrad", [values[:2], indices, np.array([0, 1], np.int64), np.array([[0, 0], [1, 1]])], {}
    yield "SparseReduceMaxSparse", [indices, values, shape, np.array([1], np.int32)], {}
    yield "SerializeSparse", [indices, values, shape], {}
    yield "SerializeManySparse", [indices, values, shape], {}
    words = np.array([b"x", b"y", b"z"], object)
    attrs = {
        "hashed_output": True,
        "num_buckets": 100,
        "hash_key": 99,
        "out_type": as_dtype("int64"),
        "internal_type": as_dtype("string"),
    }
    yield "SparseCross", [[indices, indices], [words, words], [shape, shape], []], attrs
    yield "SparseCrossV2", [[indices, indices], [words, words], [shape, shape], [], "_X_"], {}
