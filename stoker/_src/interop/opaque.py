"""Kernels that torch cannot trace, as one torch op: `torch.ops.stoker.run_op(tensors, numbers, text)`.

Native code, NumPy and decisions about values cannot be traced, so `torch.export` and `torch.compile` see such an op as a whole. The text holds the op,
its attributes and the layout of its arguments: an exported program runs wherever `import stoker` has registered the op. Static shapes come
from the op's shape rule. Sizes that depend on data are new symbols, as those of `torch.nonzero` are.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from stoker._src.base.dtypes import as_dtype
from stoker._src.formats.protos import NodeDef
from stoker._src.graph.attr_values import to_attr_value, typed_attr_value
from stoker._src.graph.definition import OpDefinition, find_definition
from stoker._src.graph.graph import Graph
from stoker._src.interop.calls import Call, flattened
from stoker._src.ops.array.constants import placeholder
from stoker._src.ops.support.values import torch_dtype

# The ops whose kernels torch cannot trace, as `scripts/torch_ops.py --export` finds them.
OPAQUE = frozenset(
    """
    AdjustHue AdjustSaturation BandedTriangularSolve BatchCholesky BatchMatrixInverse BatchMatrixSolve BatchMatrixSolveLs BatchToSpace Betainc
    Bincount CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss CTCLossV2 CombinedNonMaxSuppression ComputeAccidentalHits ConcatOffset CropAndResize
    CropAndResizeGradBoxes CropAndResizeGradImage DenseBincount DenseCountSparseOutput DenseToDenseSetOperation DenseToSparseSetOperation
    DrawBoundingBoxes DrawBoundingBoxesV2 DynamicStitch EditDistance Eig ExtractGlimpse ExtractGlimpseV2 ExtractImagePatches ExtractVolumePatches
    FractionalMaxPoolGrad FusedPadConv2D HistogramFixedWidth IgammaGradA Lu MatrixExponential MatrixLogarithm MatrixSolveLs MatrixSquareRoot
    MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax MirrorPadGrad Mod NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
    NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps ParallelDynamicStitch QuantizeAndDequantizeV2 QuantizeV2 RaggedBincount RaggedCountSparseOutput
    RaggedFillEmptyRows RaggedFillEmptyRowsGrad RaggedGather RaggedRange RaggedTensorToSparse RaggedTensorToTensor RandomGammaGrad RandomIndexShuffle
    Range ResizeArea ResizeBicubic ScaleAndTranslate ScatterNdNonAliasingAdd SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd
    SegmentProdV2 SegmentSum SegmentSumV2 SetSize SpaceToBatch SparseAdd SparseAddGrad SparseBincount SparseConcat SparseCountSparseOutput SparseCross
    SparseCrossHashed SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseFillEmptyRows SparseFillEmptyRowsGrad SparseReduceMax
    SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse SparseReorder SparseReshape SparseSegmentMean SparseSegmentMeanGrad
    SparseSegmentMeanGradV2 SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2 SparseSegmentSum SparseSegmentSumGrad
    SparseSegmentSumGradV2 SparseSlice SparseSliceGrad SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit SparseTensorDenseAdd
    SparseToDense SparseToSparseSetOperation StatelessMultinomial StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2
    StatelessRandomGammaV3 StatelessRandomPoisson TensorScatterMax TensorScatterMin TridiagonalSolve UnicodeScript UnravelIndex UnsortedSegmentMax
    UnsortedSegmentMin UnsortedSegmentProd
    """.split()
)
_KNOWN: dict[str, tuple[OpDefinition, dict[str, Any]]] = {}  # by the text before the layout


def described(definition: OpDefinition, attrs: dict[str, Any]) -> str:
    """Returns a text for an op and its attributes."""
    node = NodeDef(op=definition.name)
    for name, spec in definition.attrs.items():
        if name in attrs:
            node.attr[name].CopyFrom(to_attr_value(attrs[name], spec.kind))
    text = f"{definition.name} {base64.b64encode(node.SerializeToString(deterministic=True)).decode()}"
    _KNOWN[text] = definition, attrs
    return text


def call(text: str, args: Sequence[Any]) -> list[torch.Tensor]:
    """Runs the op of a text as one torch op. Returns all outputs."""
    tensors: list[torch.Tensor] = []
    numbers: list[int] = []
    layout = _layout(args, tensors, numbers)
    return torch.ops.stoker.run_op(tensors, numbers, f"{text} {layout}")


def _layout(values: Sequence[Any], tensors: list[torch.Tensor], numbers: list[int]) -> str:
    """Returns the layout of arguments, and collects their tensors and integers. Only what torch's tracer understands is used here."""
    parts = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            parts.append("t")
        elif isinstance(value, (list, tuple)):
            inner = _layout(value, tensors, numbers)
            parts.append("[ " + inner + " ]" if inner else "[ ]")
        elif isinstance(value, bool):
            parts.append("b1" if value else "b0")
        elif isinstance(value, float):
            parts.append("f" + repr(value))
        elif value is None:
            parts.append("-")
        else:
            numbers.append(value)
            parts.append("n")
    return " ".join(parts)


def _arguments(words: Iterator[str], tensors: Iterator[Any], numbers: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    for word in words:
        if word == "]":
            break
        if word == "t":
            found.append(next(tensors))
        elif word == "n":
            found.append(next(numbers))
        elif word == "[":
            found.append(_arguments(words, tensors, numbers))
        else:
            found.append({"b": lambda text: text == "1", "f": float}[word[0]](word[1:]) if word != "-" else None)
    return found


@functools.lru_cache(maxsize=4096)
def _op(text: str) -> tuple[OpDefinition, dict[str, Any], str]:
    """Returns the op of a whole text, its attributes and the layout."""
    name, encoded, layout = text.split(" ", 2)
    known = _KNOWN.get(f"{name} {encoded}")
    if known is not None:
        return *known, layout
    definition = find_definition(name)
    if definition is None:
        raise ValueError(f"This version of stoker has no op {name}.")
    node = NodeDef.FromString(base64.b64decode(encoded))
    attrs = {key: typed_attr_value(value, definition.attrs[key].kind, key) for key, value in node.attr.items()}
    return definition, attrs, layout


def _call_of(text: str, tensors: Sequence[Any], numbers: Sequence[Any]) -> Call:
    definition, attrs, layout = _op(text)
    return Call(definition, attrs, _arguments(iter(layout.split()), iter(tensors), iter(numbers)))


@torch.library.custom_op("stoker::run_op", mutates_args=())
def run_op(tensors: list[torch.Tensor], numbers: list[int], text: str) -> list[torch.Tensor]:
    """Runs a kernel of stoker."""
    return list(_call_of(text, tensors, numbers).run(tensors))


@run_op.register_fake
def _(tensors: list[torch.Tensor], numbers: list[int], text: str) -> list[torch.Tensor]:
    sizes = [size for tensor in tensors for size in tensor.shape] + list(numbers)
    symbols = {str(size): size for size in sizes if isinstance(size, torch.SymInt)}
    # A size of a result that is the number of a symbol in two trials is the symbol.
    trials = [
        {name: start + 7 * position for position, name in enumerate(symbols)}
        for start in ((101, 211) if symbols else (0,))
    ]
    dtypes, *shapes = _shapes(text, tensors, numbers, trials)
    device = tensors[0].device if tensors else None
    results = []
    for position, dtype in enumerate(dtypes):
        found = [each[position] for each in shapes]
        if None in found:
            name = text.partition(" ")[0]
            raise NotImplementedError(
                f"The rank of result {position} of {name} depends on data, so torch cannot export it."
            )
        dims = [_size(each, symbols, trials) for each in zip(*found)]
        results.append(torch.empty(dims, dtype=dtype, device=device))
    return results


def _size(found: tuple[int | None, ...], symbols: dict[str, Any], trials: list[dict[str, int]]) -> Any:
    """Returns a size of a result: that of all trials, the symbol that they stand for, or a new symbol."""
    if None not in found:
        if len(set(found)) == 1:
            return found[0]
        for name, symbol in symbols.items():
            if found == tuple(numbers[name] for numbers in trials):
                return symbol
    return torch.library.get_ctx().new_dynamic_size()


def _shapes(
    text: str, tensors: list[torch.Tensor], numbers: list[int], trials: list[dict[str, int]]
) -> list[list[Any]]:
    """Returns the dtypes of the results, and their static shapes in each trial, which has numbers for symbols."""
    found: list[list[Any]] = []
    for trial in trials:

        def number(size: Any, trial: dict[str, int] = trial) -> int:
            return trial[str(size)] if isinstance(size, torch.SymInt) else size

        with Graph().as_default():
            given = [placeholder(_dtype(each.dtype), [number(size) for size in each.shape]) for each in tensors]
            call = _call_of(text, given, [number(each) for each in numbers])
            made = call.definition(*call.args, **call.attrs)
        outputs = flattened(made if isinstance(made, tuple) else [made])
        if not found:
            found.append([torch_dtype(each.dtype) for each in outputs])
        found.append([each.static_shape.dims for each in outputs])
    return found


def _dtype(dtype: torch.dtype) -> Any:
    return as_dtype(str(dtype).removeprefix("torch."))


def _differentiable(text: str) -> bool:
    definition = _op(text)[0]
    return definition.differentiable and definition.gradient_fn is not None


@torch.library.custom_op("stoker::run_gradient", mutates_args=())
def run_gradient(
    tensors: list[torch.Tensor], gradients: list[torch.Tensor], numbers: list[int], text: str
) -> list[torch.Tensor]:
    """Computes TensorFlow's gradient of a kernel. The gradient of an integer is zero."""
    found = _call_of(text, tensors, numbers).gradients(tensors, gradients)
    return [torch.zeros_like(t) if g is None else g.clone() for t, g in zip(tensors, found)]


@run_gradient.register_fake
def _(tensors: list[torch.Tensor], gradients: list[torch.Tensor], numbers: list[int], text: str) -> list[torch.Tensor]:
    return [torch.empty_like(tensor) for tensor in tensors]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, ctx.numbers, ctx.text = inputs
    ctx.save_for_backward(*tensors)
    ctx.shapes = [(each.shape, each.dtype, each.device) for each in output]


def _backward(ctx: Any, gradients: list[Any]) -> Any:
    tensors = list(ctx.saved_tensors)
    rest = (None if ctx.numbers else [], None)  # torch takes an empty list for one of tensors
    if not _differentiable(ctx.text):
        return [None] * len(tensors), *rest
    whole = [
        torch.zeros(shape, dtype=dtype, device=device) if gradient is None else gradient
        for gradient, (shape, dtype, device) in zip(gradients, ctx.shapes)
    ]
    found = torch.ops.stoker.run_gradient(tensors, whole, ctx.numbers, ctx.text)
    return [g if t.is_floating_point() else None for t, g in zip(tensors, found)], *rest


run_op.register_autograd(_backward, setup_context=_keep)
