"""Random numbers that a GPU makes, with a C++ compiler in the place of NVRTC: those of the host, and the same position afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stoker._src.ops.random.bits import choices, cuda, fills
from stoker._src.ops.random.bits.philox import PhiloxState
from tests.runtime.plan.gpu import emulated_gpu

pytestmark = pytest.mark.skipif(emulated_gpu.COMPILER is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """The device's numbers are made here."""
    source = cuda._SOURCE.replace("RESERVED", str(cuda.RESERVED_PER_OUTPUT))
    kernels = {name: emulated_gpu.compiled(source, name) for name in (*cuda._PER_THREAD, "advance")}
    monkeypatch.setattr(cuda, "_kernels", lambda: kernels)
    monkeypatch.setattr(
        cuda, "_moved", lambda device, words: torch.from_numpy(np.array(words, np.uint64).view(np.int64).copy())
    )


def _states():
    return PhiloxState(3, 5), PhiloxState(3, 5)


@pytest.mark.parametrize("name", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [[1], [7, 3], [0, 2], [1030]])
def test_plain_numbers(name, shape):
    """Uniform and normal numbers, of several executions."""
    ours, theirs = _states()
    for _ in range(3):
        found = cuda.filled(name, ours, shape, torch.device("cpu"))
        count = int(np.prod(shape))
        wanted = getattr(fills, name)(theirs.reserve_outputs(count), count, torch.float32).reshape(shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("batch", "classes", "samples"), [(1, 5, 1), (4, 3, 7), (33, 200, 1), (2, 1, 6), (3, 4, 0)])
def test_classes(batch, classes, samples):
    """Multinomial numbers of several executions; classes without weight are never drawn."""
    ours, theirs = _states()
    logits = torch.from_numpy(np.random.RandomState(0).randn(batch, classes).astype("f") * 3)
    if classes > 3:
        logits[:, 1], logits[0, 2] = -np.inf, np.nan
    for _ in range(3):
        found = cuda.categorical(ours, logits, samples)
        stream = theirs.reserve(choices.categorical_reserve(batch, samples))
        assert found.tolist() == choices.categorical(stream, logits.numpy(), samples).tolist()


def test_a_row_without_classes_to_draw():
    """Gives the number of classes, as on the host."""
    ours, _ = _states()
    assert cuda.categorical(ours, torch.full([2, 3], -np.inf), 2).tolist() == [[3, 3], [3, 3]]
