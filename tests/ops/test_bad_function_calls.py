"""Bad calls of public functions: TensorFlow's error, in the phase in which TensorFlow finds it."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import stoker as tf

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))

from bad_functions import make  # noqa: E402

sys.path.remove(str(GOLDEN))
EXPECTED = json.loads((GOLDEN / "bad_functions" / "tensorflow.json").read_text())


@pytest.mark.parametrize("part", range(8))
def test_calls(part, eager):
    """A function with one argument put wrong: the class and the phase are TensorFlow's, in graphs and eagerly."""
    differing = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in make.CALLS[part::8]:
            if (found := make.outcomes(tf, text)) != EXPECTED[text]:
                differing[text] = (found, EXPECTED[text])
    assert not differing, "\n".join(f"{text}: {found}, not {wanted}" for text, (found, wanted) in differing.items())


def test_tensors_decide_the_dtype_of_the_values_beside_them(eager):
    """In eager mode an array takes the dtype of a tensor that comes later, and text is refused for it."""
    single = tf.constant([1.0, 2.0])
    assert tf.maximum(np.float64([1.5, 1.5]), single).dtype == tf.float32
    assert tf.concat([np.int64([1]), single], 0).dtype == tf.float32
    with pytest.raises(TypeError):
        tf.maximum("text", single)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.add(np.float64([1.5, 1.5]), single)


def test_sums_do_not_broadcast_when_shapes_are_fed():
    """Terms of different shapes are refused, also where a compiled step adds them."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(tf.float32), v1.placeholder(tf.float32)
        total = tf.add_n([x, y])
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(total, {x: np.ones((2, 3)), y: np.ones((1, 3))})


def test_strings_are_looked_up_by_batches(eager):
    """Strings have no kernel of torch's: they are taken all the same."""
    found = tf.gather([["a", "b"], ["c", "d"]], [[1], [0]], axis=1, batch_dims=1)
    np.testing.assert_array_equal(found.numpy(), [[b"b"], [b"c"]])
