"""Classes of bad calls: TensorFlow's error, in the phase in which TensorFlow finds it."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import stoker as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "bad_op_calls"
sys.path.insert(0, str(GOLDEN))

import make  # noqa: E402

sys.path.remove(str(GOLDEN))
EXPECTED = json.loads((GOLDEN / "tensorflow.json").read_text())


@pytest.mark.parametrize("number", range(len(make.OPS)))
@pytest.mark.parametrize("mode", ["eager", "static", "unknown"])
def test_ops(number, mode, eager):
    """A bad call of an op gives TensorFlow's class, when the graph is built or when it runs as there, or a value."""
    op, inputs, attrs = make.OPS[number]
    with np.errstate(all="ignore"):
        found = make._op(tf, op, inputs, attrs, mode)
    assert found == EXPECTED[f"{number} {op}"][mode]


@pytest.mark.parametrize("text", make.FUNCTIONS)
def test_functions(text):
    """A bad call of a public function gives the class that TensorFlow's gives, or a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert make._function(tf, text) == EXPECTED[text]


@pytest.mark.parametrize("text", make.HANDLES)
def test_handles(text, eager):
    """A bad use of a list, array, stack, table, reader or staging area gives the class that TensorFlow gives."""
    assert make._eagerly(tf, text) == EXPECTED[text]


def test_a_kernel_without_a_name_runs_with_fed_numbers():
    """An op whose kernel is a lambda takes numbers whose rank is known only when it runs."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        handle = tf.raw_ops.ConditionalAccumulator(dtype=tf.float32, shape=[2])
        step, gradient = v1.placeholder(tf.int64, None), v1.placeholder(tf.float32, None)
        session.run(tf.raw_ops.AccumulatorSetGlobalStep(handle=handle, new_global_step=step), {step: 3})
        apply = tf.raw_ops.AccumulatorApplyGradient(handle=handle, local_step=step, gradient=gradient)
        session.run(apply, {step: 3, gradient: [1.0, 2.0]})
        assert session.run(tf.raw_ops.AccumulatorNumAccumulated(handle=handle)) == 1


def test_parts_of_one_key_share_a_place_in_a_staging_map(eager):
    """A map for one tuple takes all parts of that tuple."""
    kinds = {"dtypes": [tf.float32, tf.float32], "capacity": 1, "shared_name": "one place"}
    for index in (0, 1):
        tf.raw_ops.MapStage(key=7, indices=[index], values=[float(index)], **kinds)
    assert [part.numpy() for part in tf.raw_ops.MapUnstage(key=7, indices=[0, 1], **kinds)] == [0.0, 1.0]


def test_losses_and_updates_by_inputs():
    """A layer tells the losses and updates that follow from given inputs from those that follow from none."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x, other = tf.zeros([2, 3]), tf.ones([2, 3])
        layer = v1.layers.Dense(3, kernel_regularizer=tf.reduce_sum, activity_regularizer=tf.reduce_sum)
        layer(x)
        of_weights, of_outputs = layer.losses
        assert layer.get_losses_for(None) == [of_weights]
        assert layer.get_losses_for([x]) == [of_outputs]
        assert layer.get_losses_for([other]) == []
        norm = v1.layers.BatchNormalization()
        norm(x, training=True)
        assert norm.get_updates_for(None) == [] and norm.get_updates_for([other]) == []
        assert norm.get_updates_for([x]) == norm.updates and len(norm.updates) == 2


def test_a_bounded_normal_that_no_number_fits_ends(eager):
    """Parameters for which no sample is ever accepted are an error, not a loop without end."""
    with pytest.raises(tf.errors.InternalError, match="failed to accept a sample"):
        tf.raw_ops.StatelessParameterizedTruncatedNormal(
            shape=[4], seed=[1, 2], means=np.float32("nan"), stddevs=1.0, minvals=-1.0, maxvals=2.0
        )


def test_strings_fed_to_a_queue():
    """What is fed straight into a queue is kept, strings as well as numbers."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        queue = v1.FIFOQueue(3, [tf.string, tf.float32], [[], []])
        text, number = v1.placeholder(tf.string), v1.placeholder(tf.float32)
        session.run(queue.enqueue([text, number]), {text: "a", number: 2.0})
        assert session.run(queue.dequeue()) == [b"a", 2.0]


def test_queues_refuse_what_tensorflow_refuses(eager):
    """Batches need known shapes, waiting has no limit of time, and a padded queue has a shape for each component."""
    raw = tf.raw_ops
    loose = raw.FIFOQueueV2(component_types=[tf.float32], shared_name="loose")
    raw.QueueEnqueueV2(handle=loose, components=[1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="specified shapes"):
        raw.QueueDequeueManyV2(handle=loose, n=1, component_types=[tf.float32])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Timeout not supported"):
        raw.QueueDequeueV2(handle=loose, component_types=[tf.float32], timeout_ms=5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shapes must be provided for all components"):
        raw.PaddingFIFOQueueV2(component_types=[tf.float32], shared_name="padded")
