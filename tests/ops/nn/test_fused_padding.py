"""Convolutions fused with padding, of rewritten graphs."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f32, samples

IMAGE, FILTER = f32(1, 5, 6, 2), f32(3, 3, 2, 4)


PADDINGS = [[0, 0], [1, 2], [2, 1], [0, 0]]


def padded_convolution(x, paddings, w, mode):
    """A convolution of stride 2 over an image that is mirrored at its edges."""
    x = np.pad(x, paddings, mode)
    rows, columns = (x.shape[1] - 3) // 2 + 1, (x.shape[2] - 3) // 2 + 1
    result = np.zeros((1, rows, columns, w.shape[3]))
    for i in range(rows):
        for j in range(columns):
            result[0, i, j] = np.einsum("xyc,xyco->o", x[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3], w)
    return result


SAMPLES = [
    Sample("FusedPadConv2D", [IMAGE, PADDINGS, FILTER], {"mode": "REFLECT", "strides": [1, 2, 2, 1], "padding": "VALID"},
           reference=lambda x, p, w: padded_convolution(x, p, w, "reflect"), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("FusedPadConv2D", [IMAGE, PADDINGS, FILTER], {"mode": "SYMMETRIC", "strides": [1, 2, 2, 1], "padding": "VALID"},
           reference=lambda x, p, w: padded_convolution(x, p, w, "symmetric"), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("FusedPadConv2D", [IMAGE, [[0, 0], [9, 0], [0, 0], [0, 0]], FILTER], {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "VALID"},
           raises=(InvalidArgumentError, "dimension")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
