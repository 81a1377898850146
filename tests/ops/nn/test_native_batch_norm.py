"""The native loops of batch normalization against torch's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.nn import batch_norm

pytestmark = pytest.mark.skipif(batch_norm._native is None, reason="built without a compiler")


def _normalized(arrays, **options):
    """The results of fused_batch_norm, and the gradients of a weighted sum of y."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        x, scale, offset, mean, variance, weights = (tf.constant(array) for array in arrays)
        results = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, **options)
        return session.run([*results, *tf.gradients(results[0] * weights, [x, scale, offset])])


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 8, 31, 32, 70])),
    is_training=st.booleans(),
    factor=st.sampled_from([1.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_any_shape(sizes, is_training, factor, seed):
    """Few and many channels, a single row, training and inference: the same values, statistics and gradients."""
    random = np.random.RandomState(seed)
    vectors = [random.rand(sizes[-1]) + 0.5 for _ in range(4)]
    arrays = [each.astype("f") for each in (random.randn(*sizes) * 2 + 3, *vectors, random.randn(*sizes))]
    options = {"is_training": is_training, "exponential_avg_factor": factor, "epsilon": 0.01}
    native = _normalized(arrays, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_norm, "_native", None)
        plain = _normalized(arrays, **options)
    for a, b in zip(native, plain):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-4)


def test_results_do_not_depend_on_the_number_of_threads():
    """Tensors that threads share are summed in the same blocks by any number of them."""
    random = np.random.RandomState(0)
    x = random.randn(8, 40, 40, 7).astype("f")
    vectors = [random.rand(7).astype("f") for _ in range(4)]
    found = []
    for threads in (1, 2, 3):
        with tf.Graph().as_default():
            config = tf.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=threads)
            with tf.Session(config=config) as session:
                scale, offset, mean, variance = map(tf.constant, vectors)
                results = tf.nn.fused_batch_norm(tf.constant(x), scale, offset, mean, variance, is_training=True)
                found.append(
                    session.run(
                        [*results, *tf.gradients(results[0] ** 2, tf.get_default_graph().get_tensor_by_name("Const:0"))]
                    )
                )
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)
