"""`SyncReplicasOptimizer` with parameter servers: the program of the documents, on servers in this process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import stoker.compat.v1 as tf
from tests.distributed.clusters import servers
from tests.golden.distributed import cases

RECORDED = json.loads((Path(cases.__file__).parent / "values.json").read_text())


def test_losses_in_a_cluster_are_tensorflows():
    """Two workers and two parameter servers give the losses that TensorFlow 1.15 gave, with dense and sparse gradients."""
    with servers(ps=2, worker=2) as started:
        found = cases.train_in_cluster(tf, [started["worker", i].target for i in range(2)])
    np.testing.assert_allclose(found, RECORDED["cluster"], rtol=1e-5)
