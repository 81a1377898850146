"""Values of tf.image against those that TensorFlow gave (tests/golden/image).

Geometry and integers must be equal; floats to 1e-5, halves to a few units in the last place.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "image"
_spec = importlib.util.spec_from_file_location("image_record", GOLDEN / "record.py")
assert _spec is not None and _spec.loader is not None
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)

# What TensorFlow's CPU kernels refuse and these do: halves, Tile of uint16, mirrored edges of an empty batch.
MORE_HERE = ("NotFoundError", "UnimplementedError", "InvalidArgumentError")
# Computed in float32 and scaled to 2**31 and more: the last bits of a float are hundreds of integers.
SCALED_UP = ("adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "rgb_to_grayscale")


def groups():
    found: dict[tuple[str, str], list[str]] = {}
    for name in (*record.OF_TWO, "one"):
        for label in record.cases_of(name):
            found.setdefault((name, label.split()[0]), []).append(label)
    return found


GROUPS = groups()


@functools.cache
def expected(name):
    return record.read(name)


def check(label, found, wanted):
    assert len(found) == len(wanted), label
    for value, reference in zip(found, wanted):
        assert value.dtype == reference.dtype, f"{label}: {value.dtype} instead of {reference.dtype}"
        assert value.shape == reference.shape, f"{label}: {value.shape} instead of {reference.shape}"
        if reference.dtype.kind != "f" and not (reference.dtype.itemsize > 2 and label.startswith(SCALED_UP)):
            np.testing.assert_array_equal(value, reference, err_msg=label)
            continue
        tolerance = {"float16": 2e-3}.get(reference.dtype.name, 1e-5)
        least = 1e-6 * np.iinfo(reference.dtype).max if reference.dtype.kind != "f" else tolerance
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(
                value.astype(np.float64), reference.astype(np.float64), rtol=tolerance, atol=least, err_msg=label
            )


def arrays(values):
    return [np.asarray(each) for each in record.outputs(values)]


def values_or_error(compute):
    try:
        return arrays(compute())
    except (ValueError, tf.errors.OpError) as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("name, group", [key for key in GROUPS if key[0] != "one"], ids="-".join)
def test_as_tensorflow_2(eager, name, group):
    """Eager values are TensorFlow 2.21's, for every case of the function."""
    cases = record.cases_of(name)
    for label in GROUPS[name, group]:
        wanted = expected(name)[label]
        found = values_or_error(lambda label=label: cases[label](tf))
        if isinstance(wanted, str):
            assert (not isinstance(found, str) and wanted in MORE_HERE) or found == wanted, (label, found, wanted)
        else:
            assert not isinstance(found, str), (label, found)
            check(label, found, wanted)


@pytest.mark.parametrize("group", [key[1] for key in GROUPS if key[0] == "one"])
def test_as_tensorflow_1(group):
    """Values of the 1.x forms, in graphs, are TensorFlow 1.15's."""
    cases = record.cases_of("one")
    for label in GROUPS["one", group]:
        wanted = expected("one")[label]
        with tf1.Graph().as_default(), tf1.Session() as session:
            found = values_or_error(lambda label=label, session=session: session.run(cases[label](tf1)))
        if isinstance(wanted, str):
            assert found == wanted, (label, found, wanted)
        else:
            assert not isinstance(found, str), (label, found)
            check(label, found, wanted)
