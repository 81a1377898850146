"""CTC ops, and the `tf.nn` functions built on them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT, INT32, OpDefinition, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, gathering, joining, pads, ranges, scattering, selection, shaping, slicing
from stoker._src.ops.control_flow import functional_loops
from stoker._src.ops.math import arithmetic, comparison, reductions, scans, sorting
from stoker._src.ops.nn import ctc_cuda, ctc_kernels
from stoker._src.ops.nn.arguments import either, whole

_FLOATS = one_of(dtypes.float32, dtypes.float64, default=dtypes.float32)
_LOSS_ATTRS: dict[str, Any] = {
    "preprocess_collapse_repeated": False,
    "ctc_merge_repeated": True,
    "ignore_longer_outputs_than_inputs": False,
}

# ---- CTCLoss: the last class is the blank; CTCLossV2: the first is ----------------------------------------------

CTC_LOSS = define(
    "CTCLoss(inputs: rank=3 T, labels_indices: matrix int64, labels_values: vector int32, sequence_length: vector host int32) -> (loss: T, gradient: T)",
    **_LOSS_ATTRS,
    T=_FLOATS,
)
CTC_LOSS_V2 = define(
    "CTCLossV2(inputs: rank=3 float32, labels_indices: matrix int64, labels_values: vector int32, sequence_length: vector host int32) -> "
    "(loss: float32, gradient: float32)",
    **_LOSS_ATTRS,
)


def _register_loss(definition: OpDefinition, blank_is_first: bool) -> None:
    definition.planning.refuses = True
    definition.planning.prepares = lambda op, shape_of: ctc_cuda.prepared(op, shape_of(op._inputs[0]), blank_is_first)

    @definition.kernel
    def ctc_loss_kernel(
        inputs: torch.Tensor,
        labels_indices: torch.Tensor,
        labels_values: torch.Tensor,
        sequence_length: list[int],
        *,
        preprocess_collapse_repeated: bool,
        ctc_merge_repeated: bool,
        ignore_longer_outputs_than_inputs: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if inputs.dim() != 3:
            raise InvalidArgumentError(None, None, f"inputs is not a 3-Tensor: {list(inputs.shape)}")
        steps, batch, classes = inputs.shape
        blank = 0 if blank_is_first else classes - 1
        rows = ctc_kernels.label_rows(labels_indices, labels_values, batch)
        checked = ctc_kernels.checked_rows(
            rows,
            sequence_length,
            classes,
            steps,
            preprocess_collapse_repeated,
            ignore_longer_outputs_than_inputs,
            blank,
        )
        return ctc_kernels.loss_and_gradient(inputs, checked, sequence_length, ctc_merge_repeated, blank)

    @definition.shape
    def ctc_loss_shape(
        inputs: Shape, labels_indices: Shape, labels_values: Shape, sequence_length: Shape
    ) -> tuple[Shape, Shape]:
        inputs = inputs.of_rank(3)
        Shape((labels_indices.of_rank(2)[0],)).merge(labels_values.of_rank(1))
        batch = Shape((inputs[1],)).merge(sequence_length.of_rank(1))
        return batch, Shape((inputs[0], batch[0], inputs[2]))

    @definition.grad
    def ctc_loss_gradient(op: Operation, g_loss: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        # The gradient is already an output and cannot be differentiated again.
        kept = shaping.PREVENT_GRADIENT(
            op.outputs[1], message="The second derivative of ctc_loss is not defined: its gradient is computed with it."
        )
        return arithmetic.multiply(shaping.EXPAND_DIMS(g_loss, -1), kept), None, None, None


_register_loss(CTC_LOSS, False)
_register_loss(CTC_LOSS_V2, True)

# ---- decoders ---------------------------------------------------------------------------------------------------

CTC_GREEDY_DECODER = define(
    "CTCGreedyDecoder(inputs: T, sequence_length: host int32) -> "
    "(decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T)",
    merge_repeated=False,
    blank_index=INT32(-1),
    T=_FLOATS,
).not_differentiable()


@CTC_GREEDY_DECODER.kernel
def ctc_greedy_decoder_kernel(
    inputs: torch.Tensor, sequence_length: list[int], *, merge_repeated: bool, blank_index: int
) -> tuple[torch.Tensor, ...]:
    steps, batch, classes = ctc_kernels.checked_sizes(inputs)
    ctc_kernels.check_lengths(sequence_length, batch, steps)
    if not -classes <= blank_index < classes:
        raise InvalidArgumentError(
            None, None, f"blank_index expected to be between {-classes} and {classes - 1}, but received {blank_index}"
        )
    rows, scores = ctc_kernels.greedy_rows(inputs, sequence_length, merge_repeated, blank_index % classes)
    return (*ctc_kernels.sparse_rows(rows), scores)


@CTC_GREEDY_DECODER.shape
def ctc_greedy_decoder_shape(inputs: Shape, sequence_length: Shape) -> tuple[Shape, ...]:
    batch = Shape((inputs.of_rank(3)[1],)).merge(sequence_length.of_rank(1))
    return Shape((None, 2)), Shape((None,)), Shape((2,)), Shape((batch[0], 1))


CTC_BEAM_SEARCH_DECODER = define(
    "CTCBeamSearchDecoder(inputs: T, sequence_length: host int32) -> (decoded_indices: top_paths * int64, "
    "decoded_values: top_paths * int64, decoded_shape: top_paths * int64, log_probability: T)",
    beam_width=INT32(minimum=1),
    top_paths=INT(minimum=1),
    merge_repeated=True,
    T=_FLOATS,
).not_differentiable()


CTC_GREEDY_DECODER.planning.on_host = CTC_BEAM_SEARCH_DECODER.planning.on_host = True


@CTC_BEAM_SEARCH_DECODER.kernel
def ctc_beam_search_decoder_kernel(
    inputs: torch.Tensor, sequence_length: list[int], *, beam_width: int, top_paths: int, merge_repeated: bool
) -> tuple[Any, ...]:
    steps, batch, _ = ctc_kernels.checked_sizes(inputs)
    ctc_kernels.check_lengths(sequence_length, batch, steps)
    if top_paths > beam_width:
        raise InvalidArgumentError(None, None, "requested more paths than the beam width.")
    values = ctc_kernels.numpy_of(inputs)
    paths: list[list[list[int]]] = [[] for _ in range(top_paths)]
    scores: list[list[float]] = []
    for i, length in enumerate(sequence_length):
        rows, found = ctc_kernels.beam_rows(values[: max(length, 0), i], beam_width, top_paths)
        for path, row in zip(paths, rows):
            path.append(ctc_kernels.without_repetitions(row) if merge_repeated else row)
        scores.append(found)
    parts = [ctc_kernels.sparse_rows(path) for path in paths]
    probabilities = torch.tensor(scores, dtype=inputs.dtype, device=inputs.device).reshape(batch, top_paths)
    return [p[0] for p in parts], [p[1] for p in parts], [p[2] for p in parts], probabilities


@CTC_BEAM_SEARCH_DECODER.shape
def ctc_beam_search_decoder_shape(inputs: Shape, sequence_length: Shape, *, top_paths: int) -> tuple[Any, ...]:
    batch = Shape((inputs.of_rank(3)[1],)).merge(sequence_length.of_rank(1))
    return (
        [Shape((None, 2))] * top_paths,
        [Shape((None,))] * top_paths,
        [Shape((2,))] * top_paths,
        Shape((batch[0], top_paths)),
    )


# ---- public functions -------------------------------------------------------------------------------------------


@export(v1="nn.ctc_loss")
def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The CTC loss of each sequence, for sparse int32 `labels` [batch, time]. The last class of the logits is the blank.

    Raises:
        TypeError: `labels` is not a SparseTensor.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError(f"Expected argument `labels` to be a SparseTensor. Received labels={labels!r}")
    inputs = convert_to_tensor(either(inputs, "inputs", logits, "logits"))
    kind = inputs.dtype.base_dtype
    if kind in (dtypes.float16, dtypes.bfloat16):
        inputs = casting.cast(inputs, dtypes.float32)
    if not time_major:
        inputs = shaping.transpose(inputs, [1, 0, 2])
    losses = CTC_LOSS(
        inputs,
        labels.indices,
        labels.values,
        sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    ).loss
    return casting.cast(losses, kind)


def _blank_last(logits: Tensor, values: Tensor, blank: Any, classes: Any) -> tuple[Tensor, Tensor]:
    """Moves class `blank` of the logits to the end, and renumbers the labels."""
    order: Any
    if isinstance(classes, Tensor):
        blank = convert_to_tensor(blank)
        after = ranges.range(arithmetic.add(blank, 1), classes)
        order = joining.concat([ranges.range(blank), after, shaping.reshape(blank, [1])], 0)
    elif blank == classes - 1:
        return logits, values
    else:
        order = [i for i in range(classes) if i != blank] + [blank]
    moved = gathering.GATHER_V2(logits, order, 2)
    above = casting.cast(
        comparison.LESS(convert_to_tensor(blank, values.dtype.base_dtype), values), values.dtype.base_dtype
    )
    return moved, arithmetic.subtract(values, above)


@export(v1="nn.ctc_loss_v2", v2="nn.ctc_loss")
def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: Any = None,
    name: str | None = None,
) -> Tensor:
    """The CTC loss of each sequence, for dense labels [batch, time] with `label_length`, or sparse ones.

    `unique` (from `ctc_unique_labels`) is accepted and ignored. For dense labels the blank is class 0 unless
    `blank_index` is given. Dense labels that need more time steps than exist have a loss of 706.9 and no gradient.

    Raises:
        ValueError: `blank_index` is missing for sparse labels, or is out of range.
    """
    is_sparse = isinstance(labels, SparseTensor)
    # As in TensorFlow, the sparse form is one op without the given name.
    with nullcontext() if is_sparse else name_scope(name, "ctc_loss_dense", [labels, logits]):
        logits = convert_to_tensor(logits, name="logits")
        kind = logits.dtype.base_dtype
        if kind in (dtypes.float16, dtypes.bfloat16):
            logits = casting.cast(logits, dtypes.float32)
        if not logits_time_major:
            logits = shaping.transpose(logits, [1, 0, 2])
        if is_sparse and blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when labels is a SparseTensor.")
        classes: Any = logits.static_shape.of_rank(3)[2]
        if is_unknown := classes is None:
            classes = _size(logits, 2)
        blank: Any = 0 if blank_index is None else whole(blank_index, "blank_index")
        blank = blank + classes if blank < 0 else blank
        if not is_unknown and not 0 <= blank < classes:
            raise ValueError(
                f"Argument `blank_index` must be within num_classes: {blank_index} is not within {classes}."
            )
        if is_sparse:
            moved, numbered = _blank_last(logits, casting.cast(labels.values, dtypes.int32), blank, classes)
            return casting.cast(CTC_LOSS(moved, labels.indices, numbered, logit_length).loss, kind)
        labels = convert_to_tensor(labels, name="labels")
        rows, batch = labels.static_shape.of_rank(2)[0], logits.static_shape[1]
        if None not in (rows, batch) and rows != batch:
            raise context.invalid(f"Incompatible shapes: labels have {rows} rows, the logits a batch of {batch}.")
        if not labels.dtype.is_integer:
            raise TypeError(f"Labels are integers, not {labels.dtype!r}.")
        losses = _dense_loss(casting.cast(labels, dtypes.int32), logits, label_length, logit_length, blank)
        return shaping.identity(casting.cast(losses, kind), name="IdentityN")


_IMPOSSIBLE = 706.8936  # -log(1e-307), TensorFlow's loss if no path exists


def _dense_loss(labels: Tensor, logits: Tensor, label_length: Any, logit_length: Any, blank: Any) -> Tensor:
    """The losses of dense labels. Rows that the op refuses (no labels, or too few time steps) are replaced before and corrected after."""
    width, time = _size(labels, 1), _size(logits, 0)
    zero, one = convert_to_tensor(0), convert_to_tensor(1)
    counts = _lengths(label_length, "label_length")
    steps = arithmetic.minimum(_lengths(logit_length, "logit_length"), time)
    inside = comparison.LESS(ranges.RANGE(zero, width, one), shaping.EXPAND_DIMS(counts, 1))
    same = comparison.equal(labels[:, 1:], labels[:, :-1])
    repeated = comparison.LOGICAL_AND(same, inside[:, 1:])
    needed = arithmetic.add(counts, reductions.SUM(casting.cast(repeated, dtypes.int32), [1]))
    there = comparison.LOGICAL_AND(comparison.LESS(zero, counts), comparison.LESS_EQUAL(counts, width))
    fits = comparison.LOGICAL_AND(there, comparison.LESS_EQUAL(needed, steps))
    empty = comparison.equal(counts, zero)
    padded = pads.pad(labels, [[0, 0], [0, 1]])
    safe = selection.SELECT_V2(shaping.EXPAND_DIMS(fits, 1), padded, shaping.zeros_like(padded))
    indices, values = _sparse_labels(safe, selection.SELECT_V2(fits, counts, one))
    moved, numbered = _blank_last(logits, values, blank, logits.static_shape[2] or _size(logits, 2))
    losses = CTC_LOSS(moved, indices, numbered, selection.SELECT_V2(fits, steps, one)).loss
    dtype = logits.dtype.base_dtype
    blanks = arithmetic.subtract(reductions.reduce_logsumexp(logits, 2), gathering.GATHER_V2(logits, blank, 2))
    before = comparison.LESS(shaping.EXPAND_DIMS(ranges.RANGE(zero, time, one), 1), steps)
    of_blanks = reductions.SUM(arithmetic.multiply(blanks, casting.cast(before, dtype)), [0])
    impossible = convert_to_tensor(_IMPOSSIBLE, dtype)
    return selection.SELECT_V2(fits, losses, selection.SELECT_V2(empty, of_blanks, impossible))


def _lengths(given: Any, name: str) -> Tensor:
    lengths = convert_to_tensor(given, dtype_hint=dtypes.int32, name=name)
    if not lengths.dtype.is_integer:
        raise TypeError(f"Lengths are integers, not {lengths.dtype!r}: {name}")
    if lengths.static_shape.rank not in (1, None):
        raise context.invalid(f"Shape must be rank 1 but is rank {lengths.static_shape.rank}: {name}")
    return casting.cast(lengths, dtypes.int32)


def _size(x: Tensor, axis: int) -> Tensor:
    return shaping.reshape(slicing.SLICE(shaping.shape(x), [axis], [1]), [])


def _sparse_labels(labels: Any, label_length: Any) -> tuple[Tensor, Tensor]:
    """The first `label_length` labels of each row as (indices, values)."""
    labels = convert_to_tensor(labels, name="labels")
    lengths = convert_to_tensor(label_length, dtype_hint=dtypes.int32, name="label_length")
    width = casting.cast(_size(labels, 1), lengths.dtype.base_dtype)
    zero, one = (convert_to_tensor(number, lengths.dtype.base_dtype) for number in (0, 1))
    inside = comparison.LESS(ranges.RANGE(zero, width, one), shaping.EXPAND_DIMS(lengths, 1))
    indices = selection.WHERE(inside)
    return indices, gathering.GATHER_ND(labels, indices)


@export("nn.ctc_greedy_decoder")
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[Any], Tensor]:
    """Decodes the best path. Returns ([its labels as a SparseTensor], the negated sum of its logits [batch, 1])."""
    results = CTC_GREEDY_DECODER(
        inputs, sequence_length, merge_repeated=merge_repeated, blank_index=-1 if blank_index is None else blank_index
    )
    decoded = SparseTensor(results.decoded_indices, results.decoded_values, results.decoded_shape)
    return [decoded], results.log_probability


@export(v1="nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[Any], Tensor]:
    """Returns (the `top_paths` best labellings as SparseTensors, their log probabilities [batch, top_paths])."""
    results = CTC_BEAM_SEARCH_DECODER(
        inputs, sequence_length, beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated
    )
    parts = zip(results.decoded_indices, results.decoded_values, results.decoded_shape)
    return [SparseTensor(*part) for part in parts], results.log_probability


@export(v1="nn.ctc_beam_search_decoder_v2", v2="nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Tensor]:
    """Returns (the `top_paths` best labellings as SparseTensors, their log probabilities [batch, top_paths])."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


@export("nn.collapse_repeated")
def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Merges runs of equal labels. Returns (labels shifted left and padded with zeros, the new lengths)."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        lengths = convert_to_tensor(seq_length, dtype_hint=dtypes.int32, name="seq_length")
        sizes = shaping.shape(labels)
        first, rest, before = labels[:, :1], labels[:, 1:], labels[:, :-1]
        changes = joining.concat([shaping.FILL(shaping.shape(first), True), comparison.NOT_EQUAL(rest, before)], 1)
        position = ranges.RANGE(0, _size(labels, 1), 1)
        inside = comparison.LESS(casting.cast(position, lengths.dtype.base_dtype), shaping.EXPAND_DIMS(lengths, -1))
        kept = comparison.LOGICAL_AND(changes, inside)
        counts = reductions.SUM(casting.cast(kept, dtypes.int32), [1])
        # The position of each kept label is the number of kept labels before it.
        places = scans.CUMSUM(casting.cast(kept, dtypes.int32), 1) - 1
        indices = selection.WHERE(kept)
        columns = gathering.GATHER_ND(places, indices)
        rows = casting.cast(shaping.reshape(slicing.SLICE(indices, [0, 0], [-1, 1]), [-1]), dtypes.int32)
        target = joining.PACK([rows, columns], axis=1)
        width = shaping.reshape(reductions.MAX(counts, [0]), [1])
        shape = joining.concat([slicing.SLICE(sizes, [0], [1]), width], 0)
        collapsed = scattering.SCATTER_ND(target, gathering.GATHER_ND(labels, indices), shape)
        return shaping.identity(collapsed, name="Reshape_3"), casting.cast(counts, lengths.dtype.base_dtype)


@export("nn.ctc_unique_labels")
def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns (distinct labels of each row in order of first appearance, padded with zeros; the index of each label among them)."""
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = casting.cast(convert_to_tensor(labels, name="labels"), dtypes.int64)

        def of_row(row: Tensor) -> tuple[Tensor, Tensor]:
            unique, places = sorting.UNIQUE(row)
            missing = ranges.size(row) - ranges.size(unique)
            return pads.pad(unique, [[0, missing]]), places

        return tuple(functional_loops.map_fn(of_row, labels, dtype=(dtypes.int64, dtypes.int32)))
