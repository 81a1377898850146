"""The kernels that update distinct rows on a GPU, run by a C++ compiler instead of NVRTC."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch

from stoker._src.ops.math import sorting
from stoker._src.ops.support import table_rows
from stoker._src.ops.training import updates_cuda
from tests.runtime.plan.gpu import emulated_gpu

pytestmark = pytest.mark.skipif(
    emulated_gpu.COMPILER is None or table_rows.updates is None, reason="needs a C++ compiler and the C extensions"
)
RULES = {
    "ADAGRAD": (0.1,),
    "MOMENTUM": (0.1, 0.9, False),
    "NESTEROV": (0.1, 0.9, True),
    "RMS_PROP": (0.1, 0.9, 0.5, 1e-3),
    "FTRL": (1.0, 0.1, 0.02, 0.01, 0.2, 1.0),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_rows_equal_those_of_the_cpu(name, on_device, kind):
    """The rule of a GPU gives the numbers of the native loop, and leaves rows out of range alone."""
    random = np.random.RandomState(0)
    count, width = 70, 9
    slots = 2 if name in ("RMS_PROP", "FTRL") else 1
    ours = [torch.from_numpy(np.abs(random.randn(100, width)).astype("f")) for _ in range(1 + slots)]
    theirs = [table.clone() for table in ours]
    grad = torch.from_numpy(random.randn(count, width).astype("f"))
    rows = torch.from_numpy(random.permutation(100)[:count]).to(kind)
    rule = getattr(table_rows.updates, "MOMENTUM" if name == "NESTEROV" else name)
    assert table_rows.update(rule, RULES[name], theirs, grad[:60].clone(), rows[:60].clone())
    rows[60:] = torch.tensor([-1, 100, -5, 101, 200, -1, -1, 100, -1, -1])
    numbers, rate = RULES[name], None
    if on_device:
        numbers, rate = (7.0, *numbers[1:]), torch.tensor(numbers[0])
    updates_cuda.launch(emulated_gpu.compiled(updates_cuda.SOURCE, "rows"), rule, numbers, rate, ours, grad, rows)
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@hypothesis.given(st.lists(st.integers(-3, 40), max_size=60), st.booleans(), st.booleans())
@hypothesis.settings(max_examples=40)
def test_distinct_elements_of_one_block(numbers, wide, wide_result):
    """The kernel for a few elements gives what sorting gives."""
    x = torch.tensor(numbers, dtype=torch.int64 if wide else torch.int32)
    kind = torch.int64 if wide_result else torch.int32
    run = emulated_gpu.compiled(sorting.DISTINCT_SOURCE, "distinct")
    found = sorting.distinct_by_one_block(run, x, kind, 1)
    for one, other in zip(found, sorting.ascending_padded(x, kind)):
        assert one.dtype == other.dtype and one.tolist() == other.tolist()
