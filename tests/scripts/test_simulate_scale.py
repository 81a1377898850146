"""The model of scripts/simulate_scale.py: it recovers what a run was made with, and its limits are right."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).resolve().parents[2] / "scripts" / "simulate_scale.py"


@pytest.fixture(scope="module")
def model():
    spec = importlib.util.spec_from_file_location("simulate_scale", _PATH)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["simulate_scale"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["simulate_scale"]


def test_fit_recovers_a_network(model):
    """Latency and bandwidth are found from all-reduce times that the model itself gives."""
    times = {str(size): model.ring(4, size, 50e-6, 2e9) for size in (1e3, 1e5, 1e7)}
    steps = list(np.exp(np.random.RandomState(0).standard_normal(400) * 0.05) * 0.2)
    job, network = model.fit(
        {"workers": 4, "alone": {"steps": steps, "bytes": 1e7}, "together": [{"all_reduce": times}]}
    )
    assert network.latency == pytest.approx(50e-6, rel=1e-6) and network.bandwidth == pytest.approx(2e9, rel=1e-6)
    assert job.compute == pytest.approx(0.2, rel=0.02) and job.spread == pytest.approx(0.05, rel=0.2)


def test_limits(model):
    """Without spread and communication every worker counts; a slower link, fewer servers and stragglers cost; backups help against those."""
    job, fast = model.Job(0.1, 0.0, 1e8), model.Network(0.0, 1e18, request=0.0)
    assert model.efficiency(job, 1000, fast) == pytest.approx(1.0)
    slow = model.Network(1e-5, 1e9)
    assert model.efficiency(job, 64, slow) < model.efficiency(job, 64, model.Network(1e-5, 1e10))
    assert model.step_time(job, 64, slow, servers=4) > model.step_time(job, 64, slow, servers=64)
    tired = model.Job(0.1, 0.01, 1e6, straggler_probability=0.01, straggler_factor=5.0)
    assert model.step_time(tired, 200, fast, servers=200, backups=10) < model.step_time(tired, 200, fast, servers=200)


def test_picture(model):
    """The picture has a line and a legend for each curve."""
    found = model.curves()
    drawn = model.svg(found)
    assert drawn.count("<polyline") == len(found) and all(name in drawn for name in found)
