"""The CTC loss of a recorded step: labels are checked on the host, and one kernel runs the forward-backward algorithm.

torch's own CUDA kernels take lengths as numbers of the host, so a recording would repeat the lengths of one batch.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.planning import Prepared
from stoker._src.ops.nn import ctc_kernels
from stoker._src.ops.support import cuda_kernels
from stoker._src.ops.support.device_checks import require

_THREADS = 128
_WIDTHS = 8  # rows of labels are padded to a multiple of this, so that few shapes occur
IGNORED = -1  # the number of labels of a sequence that does not count

# A block computes one sequence. `alpha` holds the logarithms of the probabilities of prefixes, and in the end of whole paths through each state.
SOURCE = r"""
typedef long long i64;

__device__ float add_logs(float a, float b) {
    float most = fmaxf(a, b);
    return most == __int_as_float(0xff800000) ? most : most + log1pf(expf(fminf(a, b) - most));
}

extern "C" __global__ void ctc(const float* logs, const i64* labels, const i64* counts, const i64* lengths, float* alphas,
                               float* betas, float* losses, float* gradient, int steps, int batch, int classes, int width, int blank) {
    const float never = __int_as_float(0xff800000);
    int sequence = blockIdx.x, count = (int)counts[sequence], length = (int)lengths[sequence];
    int states = 2 * count + 1, room = 2 * width + 1;
    const i64 *own = labels + (i64)sequence * width;
    float *alpha = alphas + (i64)sequence * steps * room, *beta = betas + (i64)sequence * 2 * room;
#define LOG(t, k) logs[((i64)(t) * batch + sequence) * classes + (k)]
#define EMITS(s) ((s) % 2 ? (int)own[(s) / 2] : blank)
#define SKIPS(s) ((s) % 2 && (s) > 1 && own[(s) / 2] != own[(s) / 2 - 1]) /* whether s can follow s - 2 */
    int live = count >= 0 && length > 0;
    for (int t = 0; live && t < length; t++) {
        for (int s = threadIdx.x; s < states; s += blockDim.x) {
            float sum = t == 0 ? (s < 2 ? 0.0f : never) : alpha[(t - 1) * room + s];
            if (t > 0 && s > 0) sum = add_logs(sum, alpha[(t - 1) * room + s - 1]);
            if (t > 0 && SKIPS(s)) sum = add_logs(sum, alpha[(t - 1) * room + s - 2]);
            alpha[t * room + s] = sum + LOG(t, EMITS(s));
        }
        __syncthreads();
    }
    float total = 0.0f;
    if (live) {
        total = alpha[(length - 1) * room + states - 1];
        if (states > 1) total = add_logs(total, alpha[(length - 1) * room + states - 2]);
    }
    __syncthreads();
    for (int t = length - 1; live && t >= 0; t--) {
        float *now = beta + (t % 2) * room, *next = beta + ((t + 1) % 2) * room;
        for (int s = threadIdx.x; s < states; s += blockDim.x) {
            float sum = never;
            if (t == length - 1) {
                if (s >= states - 2) sum = 0.0f;
            } else {
                sum = next[s] + LOG(t + 1, EMITS(s));
                if (s + 1 < states) sum = add_logs(sum, next[s + 1] + LOG(t + 1, EMITS(s + 1)));
                if (s + 2 < states && SKIPS(s + 2)) sum = add_logs(sum, next[s + 2] + LOG(t + 1, EMITS(s + 2)));
            }
            now[s] = sum;
            alpha[t * room + s] += sum;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < steps * classes; i += blockDim.x) {
        int t = i / classes, k = i % classes;
        gradient[((i64)t * batch + sequence) * classes + k] = live && t < length ? expf(LOG(t, k)) : 0.0f;
    }
    __syncthreads();
    for (int t = threadIdx.x; live && total != never && t < length; t += blockDim.x)
        for (int s = 0; s < states; s++) /* one thread adds all that concerns a step, so the order is fixed */
            gradient[((i64)t * batch + sequence) * classes + EMITS(s)] -= expf(alpha[t * room + s] - total);
    if (threadIdx.x == 0) losses[sequence] = live ? -total : 0.0f;
}
"""


def prepared(op: Any, shape: Shape, blank_is_first: bool) -> Prepared | None:
    """How a recorded step computes the loss of a node; None if it cannot."""
    if shape.rank != 3 or not op.attrs["ctc_merge_repeated"] or op._inputs[0].dtype.base_dtype.name != "float32":
        return None
    steps, batch, classes = shape
    if classes is None:
        return None
    blank = 0 if blank_is_first else classes - 1
    names = ("labels_indices", "labels_values", "sequence_length")

    def prepare(indices: Any, values: Any, lengths: list[int]) -> tuple[torch.Tensor, ...]:
        count = len(lengths) if batch is None else batch
        rows = ctc_kernels.checked_rows(
            ctc_kernels.label_rows(indices, values, count),
            lengths,
            classes,
            sys.maxsize if steps is None else steps,
            op.attrs["preprocess_collapse_repeated"],
            op.attrs["ignore_longer_outputs_than_inputs"],
            blank,
        )
        most = max((len(row) for row in rows if row is not None), default=0)
        labels = torch.zeros((count, -(-max(most, 1) // _WIDTHS) * _WIDTHS), dtype=torch.int64)
        for i, row in enumerate(rows):
            if row:
                labels[i, : len(row)] = torch.tensor(row)
        counts = torch.tensor([IGNORED if row is None else len(row) for row in rows], dtype=torch.int64)
        return labels, counts, torch.tensor(lengths, dtype=torch.int64)

    def kernel(
        inputs: torch.Tensor, labels: torch.Tensor, counts: torch.Tensor, lengths: torch.Tensor, **attributes: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        steps = inputs.shape[0]
        if len(counts) != inputs.shape[1]:
            raise InvalidArgumentError(
                None, None, f"len(sequence_length) != batch_size: {len(counts)} vs {inputs.shape[1]}"
            )
        if shape[0] is None:
            require(lengths <= steps, lambda: InvalidArgumentError(None, None, f"sequence_length <= {steps}"))
            lengths = lengths.clamp(max=steps)
        return loss_and_gradient(inputs, labels, counts, lengths, blank)

    return Prepared(names, prepare, 3, ("inputs",), kernel)


def loss_and_gradient(
    inputs: torch.Tensor, labels: torch.Tensor, counts: torch.Tensor, lengths: torch.Tensor, blank: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(The loss of each sequence, the gradient of the losses with respect to the logits [time, batch, classes])."""
    run = cuda_kernels.compiled(SOURCE, "ctc") if inputs.is_cuda else None
    if run is None:
        rows = [None if n == IGNORED else row[:n] for n, row in zip(counts.tolist(), labels.tolist())]
        return ctc_kernels.loss_and_gradient(inputs, rows, lengths.tolist(), True, blank)
    return launch(run, torch.log_softmax(inputs, 2).contiguous(), labels, counts, lengths, blank, _THREADS)


def launch(
    run: Any,
    logarithms: torch.Tensor,
    labels: torch.Tensor,
    counts: torch.Tensor,
    lengths: torch.Tensor,
    blank: int,
    threads: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    steps, batch, classes = logarithms.shape
    width = labels.shape[1]
    room = 2 * width + 1
    alphas, betas = logarithms.new_empty(batch * steps * room), logarithms.new_empty(batch * 2 * room)
    losses, gradient = logarithms.new_empty(batch), torch.empty_like(logarithms)
    if batch and classes:
        given = (logarithms, labels.contiguous(), counts, lengths, alphas, betas, losses, gradient)
        run((batch, 1, 1), (threads, 1, 1), (*given, steps, batch, classes, width, blank))
    return losses, gradient
