"""The runner of samples: inputs that depend on their own sample alone, and errors of exactly the class stated."""

import linecache

import numpy as np
import pytest

from stoker._src.base.errors import InvalidArgumentError, OpError
from tests.ops import samples
from tests.ops.samples import WHEN_BUILT, Sample, check_sample

TABLE = """
def helper(size):
    return f32(size)


SAMPLES = [
    Sample("Neg", [f32(2, 3)]),
    Sample("AddN", [[f32(2) for _ in range(3)]]),
    Sample(
        "AddV2",
        [
            f64(2, 2),
            f64(2, 2),
        ],
    ),
    Sample("Abs", [c128(2)]),
    Sample("Maximum", [helper(3), helper(3)]),
    Sample("Concat", [[helper(3) for _ in range(2)]]),
]
"""


def _table(text, name):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = dict(vars(samples))
    exec(compile(text, name, "exec"), space)
    return {sample.op: sample.inputs for sample in space["SAMPLES"]}


def test_inputs_do_not_depend_on_other_samples():
    """Without a sample, or with lines before it, the others have the same inputs."""
    whole = _table(TABLE, "<whole>")
    fewer = _table("\n# a comment" + TABLE.replace('    Sample("Neg", [f32(2, 3)]),\n', ""), "<fewer>")
    for op, inputs in fewer.items():
        np.testing.assert_equal(inputs, whole[op])


def test_inputs_of_one_sample_differ():
    """Two inputs of one sample, elements of a list and the parts of a complex number are different numbers, also through helpers."""
    found = _table(TABLE, "<differing>")
    assert not np.array_equal(*found["Maximum"])
    assert not np.array_equal(*found["Concat"][0])
    assert not np.array_equal(*found["AddV2"])
    assert len({tuple(each) for each in found["AddN"][0]}) == 3
    assert not np.array_equal(found["Abs"][0].real, found["Abs"][0].imag)


def test_an_error_of_another_class_is_not_accepted():
    """A class that is merely a base, or that only one of the modes raises, does not do."""
    inputs = [np.ones((2, 2)), np.ones((3, 2))]
    check_sample(Sample("MatMul", inputs, raises=(InvalidArgumentError, "2 and 3")))
    for kinds in (OpError, ValueError, WHEN_BUILT):
        with pytest.raises((AssertionError, InvalidArgumentError)):
            check_sample(Sample("MatMul", inputs, raises=(kinds, "2 and 3")))
