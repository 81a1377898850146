"""`tf.contrib.training.HParams`."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def _params():
    return tf.contrib.training.HParams(rate=0.1, n=3, name="a", flag=True, units=[8, 4])


def test_text_and_json_change_values():
    """Texts and JSON objects replace values and keep their types."""
    params = _params().parse("rate=0.5,n=7,flag=false,units=[1,2,3]")
    assert params.values() == {"rate": 0.5, "n": 7, "name": "a", "flag": False, "units": [1, 2, 3]}
    assert params.parse_json('{"rate": 2}').get("rate") == 2.0
    assert params.to_json(sort_keys=True) == '{"flag": false, "n": 7, "name": "a", "rate": 2.0, "units": [1, 2, 3]}'
    assert str(params) == "rate=2.0,n=7,name=a,flag=False,units=[1, 2, 3]"
    assert params.get("n") == 7 and params.get("other", 4) == 4 and "n" in params and "other" not in params


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda params: params.parse("n=1.5"), "Could not parse hparam 'n' of type 'int' with value '1.5' in n=1.5"),
        (lambda params: params.parse("x=1"), "Unknown hyperparameter type for x"),
        (lambda params: params.parse("units=5"), "Must pass a list for multi-valued parameter: units."),
        (lambda params: params.parse("rate=[1,2]"), "Must not pass a list for single-valued parameter: rate"),
        (
            lambda params: params.set_hparam("n", 2.5),
            "Could not cast hparam 'n' of type '<class 'int'>' from value 2.5",
        ),
        (lambda params: params.add_hparam("n", 3), "Hyperparameter name is reserved: n"),
        (lambda params: params.add_hparam("q", []), "Multi-valued hyperparameters cannot be empty: q"),
    ],
)
def test_values_of_another_type_are_refused(change, message):
    """The message is TensorFlow's."""
    with pytest.raises(ValueError) as caught:
        change(_params())
    assert str(caught.value) == message
