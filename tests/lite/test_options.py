"""`tf.lite`'s option types and constants."""

from __future__ import annotations

import pytest

import stoker
import stoker.compat.v1 as tf


def test_enumerations_have_their_members_and_print_as_values():
    """Members print as their names do in TensorFlow, and both namespaces have the same classes."""
    assert [str(option) for option in tf.lite.OpsSet][:3] == [
        "TFLITE_BUILTINS",
        "SELECT_TF_OPS",
        "TFLITE_BUILTINS_INT8",
    ]
    assert repr(tf.lite.OpsSet.SELECT_TF_OPS) == "<OpsSet.SELECT_TF_OPS: 'SELECT_TF_OPS'>"
    assert tf.lite.OpsSet.get_options() == [option.value for option in tf.lite.OpsSet]
    assert [str(o) for o in tf.lite.Optimize][:3] == ["DEFAULT", "OPTIMIZE_FOR_SIZE", "OPTIMIZE_FOR_LATENCY"]
    assert stoker.lite.OpsSet is tf.lite.OpsSet and stoker.lite.Optimize is tf.lite.Optimize


def test_a_target_runs_builtins_unless_said_otherwise():
    """TargetSpec keeps what it is given; the default is a set of its own with the builtins."""
    spec = tf.lite.TargetSpec()
    assert spec.supported_ops == {tf.lite.OpsSet.TFLITE_BUILTINS} and spec.supported_types == set()
    spec.supported_ops.add(tf.lite.OpsSet.SELECT_TF_OPS)
    assert tf.lite.TargetSpec().supported_ops == {tf.lite.OpsSet.TFLITE_BUILTINS}
    ops = [tf.lite.OpsSet.SELECT_TF_OPS]
    assert tf.lite.TargetSpec(ops).supported_ops is ops
    assert repr(tf.lite.TargetSpec(ops, [tf.float16])) == (
        "TargetSpec(supported_ops=[<OpsSet.SELECT_TF_OPS: 'SELECT_TF_OPS'>], supported_types=[tf.float16])"
    )


def test_a_representative_dataset_keeps_its_generator():
    """The generator function is called by the converter, not before."""

    def samples():
        yield [1.0]

    assert list(tf.lite.RepresentativeDataset(samples).input_gen()) == [[1.0]]


def test_constants_are_those_of_tensorflow():
    """`tf.lite.constants` exists in 1.x only."""
    constants = tf.lite.constants
    assert (constants.TFLITE, constants.GRAPHVIZ_DOT) == (2, 3)
    assert tf.float32 == constants.FLOAT and tf.uint8 == constants.QUANTIZED_UINT8 and tf.int8 == constants.INT8
    assert tf.string == constants.STRING and tf.float16 == constants.FLOAT16 and tf.int64 == constants.INT64
    assert not hasattr(stoker.lite, "constants")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: setattr(c, "optimizations", [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]), "EXPERIMENTAL_SPARSITY"),
        (lambda c: setattr(c.target_spec, "experimental_supported_backends", ["GPU"]), "supported_backends"),
        (lambda c: c.target_spec.supported_ops.add(tf.lite.OpsSet.EXPERIMENTAL_STABLEHLO_OPS), "STABLEHLO"),
        (lambda c: setattr(c, "conversion_summary_dir", "here"), "conversion_summary_dir"),
    ],
)
def test_settings_without_an_implementation_are_refused(change, message):
    """What would change the result, and cannot be done, is an error and not ignored."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 2])
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [x * 2.0])
        change(converter)
        with pytest.raises(NotImplementedError, match=message):
            converter.convert()
