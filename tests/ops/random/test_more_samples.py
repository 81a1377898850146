"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f64, i32, positive, samples

SEED, KEY, COUNTER, PHILOX = np.array([1, 2]), np.array([5], np.uint64), np.array([7, 0], np.uint64), np.int32(1)


SAMPLES = [
    Sample("StatelessRandomUniform", [[3], [1, 2]], reference=lambda *_: np.array([0.8440604, 0.19204533, 0.9962232], np.float32)),
    Sample("StatelessRandomNormal", [[3], [1, 2]], reference=lambda *_: np.array([0.5441101, 0.20738031, 0.07356432], np.float32)),
    Sample("StatelessRandomUniformInt", [[3], [1, 2], i32(low=0, high=1), np.int32(7)]),
    Sample("StatelessTruncatedNormal", [[3], [1, 2]]),
    Sample("StatelessRandomPoisson", [[3], [1, 2], np.float32(2)], {"dtype": "float32"}, gradient=False),
    Sample("StatelessRandomGammaV2", [[3], [1, 2], np.float64(2)], gradient=False),
    Sample("RandomGammaGrad", [positive(4), positive(4)], gradient=False),
    Sample("StatelessRandomGetKeyCounter", [SEED]),
    Sample("StatelessRandomGetKeyCounterAlg", [SEED]),
    Sample("StatelessRandomUniformV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomNormalV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessTruncatedNormalV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomUniformFullInt", [[2, 3], SEED]),
    Sample("StatelessRandomUniformFullIntV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomUniformIntV2", [[2, 3], KEY, COUNTER, PHILOX, np.int32(4), np.int32(5)], reference=lambda *_: np.full((2, 3), 4, np.int32)),
    Sample("StatelessRandomUniformIntV2", [[2], KEY, COUNTER, PHILOX, np.int32(5), np.int32(5)], raises=(InvalidArgumentError, "5")),
    Sample("StatelessMultinomial", [np.array([[0.0, -1e9], [-1e9, 0]]), np.int32(3), SEED], gradient=False, reference=lambda *_: np.array([[0] * 3, [1] * 3])),
    Sample("StatelessShuffle", [np.full(4, 2.0), KEY, COUNTER, PHILOX], gradient=False, reference=lambda x, *_: x),
    Sample("StatelessRandomGammaV3", [[4], KEY, COUNTER, PHILOX, positive()], gradient=False),
    Sample("StatelessRandomBinomial", [[3], SEED, np.float64(6), np.float64(1)], gradient=False, reference=lambda *_: np.array([6, 6, 6])),
    Sample("StatelessParameterizedTruncatedNormal", [[3], SEED, f64(), positive(), np.float64(-1), np.float64(2)], gradient=False),
    Sample("StatelessRandomUniformV2", [[-1], KEY, COUNTER, PHILOX], raises=(InvalidArgumentError, "-1|negative|>= 0")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
