"""Graphs with 1.x control flow, as TensorFlow 1.15 wrote them (tests/golden/graphs), computed here."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "graphs"
RECORDED = json.loads((GOLDEN / "values.json").read_text())


@pytest.mark.parametrize("name", RECORDED["programs"])
def test_graph_of_tensorflow_1_gives_its_values(name):
    """Every program's graph, forward and training, gives what TensorFlow computed for each feed."""
    program = RECORDED["programs"][name]
    tf.import_graph_def(GraphDef.FromString((GOLDEN / f"{name}.pb").read_bytes()), name="")
    with tf.Session() as session:
        for feed, expected in zip(RECORDED["feeds"], program["values"]):
            if program["init"]:
                session.run(program["init"])
            found = session.run(program["fetches"], {"x:0": feed})
            for value, reference in zip(found, expected):
                np.testing.assert_allclose(value, np.array(reference, np.float32), rtol=2e-5, atol=1e-6)
