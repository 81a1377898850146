"""Wrong calls of tf.estimator fail as in TensorFlow 1.15, and TF_CONFIG means the same."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import stoker.compat.v1 as tf

FOLDER = Path(__file__).parent.parent / "golden" / "estimator"
EXPECTED = json.loads((FOLDER / "wrong_calls.json").read_text())


@pytest.fixture(scope="module")
def found():
    """The outcomes of all calls with stoker."""
    spec = importlib.util.spec_from_file_location("wrong_calls", FOLDER / "wrong_calls.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return json.loads(json.dumps(module.everything(tf)))


@pytest.mark.parametrize("group", ["spec", "config", "estimator", "tf_config"])
def test_wrong_calls_raise_the_same_exceptions(found, group):
    """Class and message of each exception are those of TensorFlow, and so are the properties that TF_CONFIG gives a RunConfig."""
    expected = {name: value for name, value in EXPECTED.items() if name.startswith(f"{group}/")}
    assert expected
    given = {name: found[name] for name in expected}
    # The script is not the main module here.
    assert json.loads(json.dumps(given).replace("'wrong_calls.", "'__main__.")) == expected


def test_strategies_of_experimental_distribute():
    """RunConfig takes both strategies from a DistributeConfig, once, and refuses a remote cluster by name."""
    strategy, config = tf.distribute.OneDeviceStrategy("/cpu:0"), tf.contrib.distribute.DistributeConfig
    both = tf.estimator.RunConfig(experimental_distribute=config(strategy, strategy))
    assert both.train_distribute is strategy and both.eval_distribute is strategy
    for name in ("train_distribute", "eval_distribute"):
        with pytest.raises(ValueError, match=f"Either `{name}` or`experimental_distribute.{name}` can be set"):
            tf.estimator.RunConfig(experimental_distribute=config(strategy, strategy), **{name: strategy})
    with pytest.raises(NotImplementedError, match="remote_cluster"):
        tf.estimator.RunConfig(experimental_distribute=config(remote_cluster={"worker": ["host:1"]}))
