"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

from stoker._src.ops.math.gamma_derivative import gamma_derivative

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("alpha", "sample", "expected"),
    [
        (0.5, 40.0, 5.608062),
        (3.0, 40.0, 2.934762),
        (40.0, 40.0, 1.004181),
        (1e3, 1.01e3, 1.005150930),
        (1e6, 1.01e6, 1.004983584),
        (3.0, np.inf, 0.0),
        (np.inf, 3.0, 0.0),
        (0.0, 3.0, np.nan),
        (3.0, 0.0, 0.0),
    ],
)
def test_gamma_numbers_change_with_their_parameter(alpha, sample, expected):
    """Also in the upper tail, where the series of the distribution function cancels, and for large parameters."""
    found = gamma_derivative(*torch.tensor([[alpha], [sample]], dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), [expected], rtol=1e-5)
