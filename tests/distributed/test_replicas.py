"""Training in two processes that `stoker launch` starts: collective ops, losses, checkpoints."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.distributed import replicas
from tests.distributed.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]


def launch(*arguments):
    """Runs `stoker launch` and returns its exit status and output. Nothing it started survives."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", "launch", *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=400)
        return process.returncode, output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """What two processes wrote, and the folder with their checkpoints."""
    folder = tmp_path_factory.mktemp("launched")
    status, output = launch("--workers", 2, Path(replicas.__file__), folder)
    assert status == 0, output
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)], folder


def test_processes_know_each_other(launched):
    """Each launched process knows how many there are."""
    assert [result["size"] for result in launched[0]] == [2, 2]


@pytest.mark.parametrize("mode", [0, 1], ids=["graph", "eager"])
def test_collective_ops(launched, mode):
    """Sums, means, extremes and products over processes, rows of different numbers, and the value of the first process."""
    expected = {
        "sum": [3, 6, 12],
        "mean": [1.5, 3, 6],
        "min": [1, 2, 4],
        "max": [2, 4, 8],
        "product": [2, 8, 32],
        "integer mean": 10,
        "rows": [[0, 0], [1, 1], [1, 1]],
        "no rows": [1, 1],
        "first": [5, 0],
    }
    for result in launched[0]:
        found = result["ops"][mode]
        assert {name: found[name] for name in expected} == expected


def test_gradients_of_collective_ops(launched):
    """The gradient of a sum is the sum of gradients; that of a gather are the own rows of the summed gradient."""
    found = [result["ops"][0] for result in launched[0]]
    # Both processes multiply the gathered rows by 1, 2, 3, 4.
    assert [each["gradient of gather"] for each in found] == [[[2], [4]], [[6], [8]]]
    assert [each["gradient of mean"] for each in found] == [[[1.5], [1.5]]] * 2


@pytest.mark.parametrize("kind", replicas.KINDS)
def test_losses_are_those_of_one_process(launched, kind):
    """Two processes with half of the batch each give the losses of one process with the whole batch, with dense and sparse gradients."""
    alone = replicas.train(kind, 5)
    for result in launched[0]:
        np.testing.assert_allclose([result["losses"][kind][step] for step in alone], list(alone.values()), rtol=1e-5)


def test_processes_without_a_common_seed_start_alike(launched):
    """The variables of the first process count: both report its losses, which a single process with its seed gives, too."""
    alone = replicas.train("wrap", 4, seed=10)
    for result in launched[0]:
        assert result["checkpointed"] == launched[0][0]["checkpointed"]
        np.testing.assert_allclose(list(result["checkpointed"].values()), list(alone.values()), rtol=1e-5)


def test_another_number_of_processes_resumes(launched, tmp_path):
    """The first process alone writes checkpoints. One process continues from them as if it had trained from the start."""
    saved = tmp_path / "checkpoints"
    shutil.copytree(launched[1] / "checkpoints", saved)
    assert sorted(path.name for path in saved.glob("model.ckpt-*.index")) == [
        "model.ckpt-0.index",
        "model.ckpt-4.index",
    ]
    assert len(list(saved.glob("events.*"))) == 1
    resumed = replicas.train("wrap", 7, saved, seed=99)
    alone = replicas.train("wrap", 7, seed=10)
    assert list(resumed) == ["4", "5", "6"]
    np.testing.assert_allclose(list(resumed.values()), [alone[step] for step in resumed], rtol=1e-5)


def test_strategy_in_several_processes(launched):
    """Reductions and gathers of a strategy span all processes; variables in its scope start with the values of the first process."""
    for result in launched[0]:
        assert result["strategy"] == {
            "replicas": 2,
            "reduce": [3, 9],
            "mean over the axis": pytest.approx(2 / 3),
            "all_reduce": [3, 9],
            "all_gather": [1, 3, 2, 6],
            "variable": [3],
        }


def test_a_dataset_is_divided(launched):
    """A loop over a dataset that a strategy divides has the losses of one process, also if batches are uneven."""
    alone = replicas.dataset_losses()
    for result in launched[0]:
        np.testing.assert_allclose(result["dataset"], alone, rtol=1e-5)


def test_estimators_train_together(launched, tmp_path):
    """An Estimator with a strategy averages the losses and gradients of the processes, and saves one series of checkpoints."""
    alone = replicas.estimator_losses(tmp_path)
    for result in launched[0]:
        np.testing.assert_allclose(result["estimator"], alone, rtol=1e-5)
    saved = [path.name for path in (launched[1] / "estimator").glob("model.ckpt-*.index")]
    assert sorted(saved) == ["model.ckpt-0.index", "model.ckpt-5.index"]


def test_keras_models_are_trained_together(launched):
    """Model.fit under a strategy has the losses, metrics and weights of one process, which the first one's seed decides."""
    alone = replicas.keras_losses(1)
    for result in launched[0]:
        for name, values in alone.items():
            np.testing.assert_allclose(result["keras"][name], values, rtol=1e-5)


RESTARTED = """
import os, signal, sys
import stoker
import stoker.compat.v1 as tf
from stoker._src.ops.collective import collectives

rank, attempt = stoker.distribute.rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
x = tf.placeholder(tf.float32, [1])
total, rows = collectives.all_reduce(x), collectives.all_gather(x)
with tf.Session() as session:
    session.run([total, rows], {x: [1.0]})
    if rank == 1 and attempt == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    found = session.run([total, rows], {x: [2.0]})
with open(f"{sys.argv[1]}/{rank} in attempt {attempt}", "w") as file:
    file.write(str([each.tolist() for each in found]))
"""


def test_killed_processes_start_again(tmp_path):
    """After kill -9 of one process all start again, and find each other instead of those that have ended."""
    (tmp_path / "program.py").write_text(RESTARTED)
    status, output = launch("--workers", 3, "--restarts", 2, tmp_path / "program.py", tmp_path)
    assert status == 0, output
    assert {path.name: path.read_text() for path in tmp_path.glob("* in attempt *")} == {
        f"{rank} in attempt 1": "[[6.0], [2.0, 2.0, 2.0]]" for rank in range(3)
    }


CLUSTER_OF_WORKERS = """
import json, os, sys
import numpy as np
import stoker.compat.v1 as tf

strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
X = np.random.RandomState(0).standard_normal((64, 4)).astype(np.float32)

def model_fn(features, labels, mode):
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    loss = tf.losses.mean_squared_error(labels, tf.matmul(features, w))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(input_context=None):
    data = tf.data.Dataset.from_tensor_slices((X, X.sum(1, keepdims=True)))
    if input_context is None:
        return data.batch(64)
    data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.repeat().batch(input_context.get_per_replica_batch_size(32))

config = tf.estimator.RunConfig(train_distribute=strategy, save_checkpoints_steps=10)
estimator = tf.estimator.Estimator(model_fn, sys.argv[1], config)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=20), tf.estimator.EvalSpec(input_fn, steps=1)
)
if config.task_type == "worker" and json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    print(json.dumps(estimator.get_variable_value("w").ravel().tolist()))
"""


TRAINED_TOGETHER = [1.2431867, 1.2616733, 1.2847893, 1.2804034]  # what one worker with the whole batch gives


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_tf_config_train_an_estimator(tmp_path, workers):
    """train_and_evaluate with a cluster of workers alone: they train together, and the first one evaluates and saves."""
    (tmp_path / "program.py").write_text(CLUSTER_OF_WORKERS)
    addresses = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    processes = []
    for index in range(workers):
        cluster = {"cluster": {"worker": addresses}} if workers > 1 else {}
        about = json.dumps({**cluster, "task": {"type": "worker", "index": index}})
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TF_CONFIG": about}
        command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "model")]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    try:
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * workers
    np.testing.assert_allclose(json.loads(outputs[0]), TRAINED_TOGETHER, rtol=1e-5)
    assert len(list((tmp_path / "model").glob("model.ckpt-*.index"))) == 3
