"""Non-maximum suppression in one pass equals the one of NumPy."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.ops.image import suppression

pytestmark = pytest.mark.skipif(suppression._native is None, reason="the extension was not built")


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 40), st.integers(0, 12), st.sampled_from((0.0, 0.3, 0.5, 1.0)), st.booleans(), st.integers(0, 999)
)
def test_one_pass_chooses_the_same_boxes(count, most, threshold, odd, seed):
    """The chosen boxes and their order are NumPy's, also for equal scores, boxes without area and numbers that are not finite."""
    random = np.random.RandomState(seed)
    boxes = (random.randint(0, 8, (count, 4)) / np.float32(8)).astype(np.float32)
    if odd and count:
        boxes[random.randint(count), random.randint(4)] = random.choice([np.nan, np.inf, 3e38])
    scores = (random.randint(0, 6, count) / np.float32(6)).astype(np.float32)
    with np.errstate(all="ignore"):
        found = suppression._hard(scores, suppression._Boxes(boxes), most, threshold, 0.1)
        with mock.patch.object(suppression, "_native", None):
            expected = suppression._hard(scores, suppression._Boxes(boxes), most, threshold, 0.1)
    assert found == expected
