"""Ten published-style models from a checkpoint to a torch module to torch.export: outputs and a training step equal TensorFlow's to 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import stoker
import stoker.compat.v1 as tf
from tests.interop.models import MODELS

_RATE = 0.1


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_model(make, tmp_path):
    """The module of a checkpoint computes, trains and exports as the graph does."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = make()
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates):
            train = tf.train.GradientDescentOptimizer(_RATE).minimize(model.loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            prefix = tf.train.Saver().save(session, str(tmp_path / "model"))
            feeds = {tensor: model.feeds[name] for name, tensor in model.inputs.items()}
            expected = session.run([model.output, model.loss], feeds)
            session.run(train, feeds)
            variables = {v.op.name: v for v in tf.global_variables()}
            trained = session.run(variables)
    names = {name: tensor.name for name, tensor in model.inputs.items()}
    module = stoker.to_torch(prefix, names, [model.output.name, model.loss.name])
    given = tuple(torch.tensor(value) for value in model.feeds.values())
    program = torch.export.export(module.eval(), given).module()
    for run in (module, program):
        for value, result in zip(expected, run(*given)):
            np.testing.assert_allclose(result.detach(), value, rtol=1e-5, atol=1e-5)
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), _RATE)
    module(*given)[1].backward()
    optimizer.step()
    used = {module.variable_names[key]: value for key, value in module.state_dict().items()}
    assert {v.op.name for v in variables.values() if v.trainable} <= used.keys()
    for name, value in used.items():
        np.testing.assert_allclose(value, trained[name], rtol=1e-5, atol=1e-5, err_msg=name)
