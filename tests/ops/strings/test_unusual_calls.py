"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np

import stoker.compat.v1 as tf
from tests.running import run


def test_text_of_what_is_no_number():
    """Zeros fill up numbers only, as C's printf does it."""
    found = run(tf.as_string([1.5, np.inf, -np.inf, np.nan], precision=1, width=6, fill="0"))
    assert found.tolist() == [b"0001.5", b"   inf", b"  -inf", b"   nan"]
