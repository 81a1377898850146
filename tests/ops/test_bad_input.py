"""Every op with bad input: TensorFlow's errors, never torch's or Python's own."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
from stoker._src.base.errors import OpError

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path[:0] = [str(SCRIPTS), str(SCRIPTS / "op_comparison")]

import bad_inputs  # noqa: E402
from op_comparison.hostile import describe, hostile_variants  # noqa: E402
from oracle import call, convert, flatten  # noqa: E402

LARGE = ("1048576", "2147483647", "1099511627776", "9223372036854775807", "4294967297")


def _calls():
    """A few bad calls of each op, without sizes that a run could try to serve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in bad_inputs.good_cases():
            if not case.graph:
                modest = [each for each in hostile_variants(case) if not any(size in each.kind for size in LARGE)]
                yield from bad_inputs.spread(modest, 6)


CALLS = list(_calls())


@pytest.mark.parametrize("part", range(8))
def test_bad_calls_end_in_tensorflow_errors(part, eager):
    """Whatever is wrong with a call: a value, or an error of TensorFlow's kind in our words."""
    failures = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CALLS[part::8]:
            try:
                inputs = {name: convert(tf, value) for name, value in case.inputs.items()}
                flatten(call(tf, case.op, inputs, dict(case.attrs)))
            except (OpError, ValueError, TypeError) as error:
                if any(word in str(error) for word in bad_inputs.FOREIGN):
                    failures.append(f"{describe(case)}: {type(error).__name__}: {error}")
            except Exception as error:
                failures.append(f"{describe(case)}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
