"""`CheckpointManager`: which checkpoints of a directory are kept, and what its state file says."""

from __future__ import annotations

import os

import pytest

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.graph import context


@pytest.fixture(autouse=True)
def eager():
    """Every test runs in eager mode."""
    with context.enter_eager():
        yield


def _names(paths):
    return [os.path.basename(path) for path in paths]


def _files(folder):
    return sorted(name.removesuffix(".index") for name in os.listdir(folder) if name.endswith(".index"))


def test_the_newest_are_kept(tmp_path):
    """The oldest are deleted as new ones come; a manager made later goes on where the directory is."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "logs", 2)
    assert (manager.latest_checkpoint, manager.checkpoints) == (None, [])
    for _ in range(4):
        path = manager.save()
    assert _names(manager.checkpoints) == _files(tmp_path / "logs") == ["ckpt-3", "ckpt-4"]
    assert manager.latest_checkpoint == path
    later = tf.train.CheckpointManager(checkpoint, tmp_path / "logs", 3, checkpoint_name="other")
    assert _names(later.checkpoints) == ["ckpt-3", "ckpt-4"]
    later.save()
    assert _files(tmp_path / "logs") == ["ckpt-3", "ckpt-4", "other-5"]
    lines = (tmp_path / "logs" / "checkpoint").read_text().splitlines()
    assert lines[:2] == ['model_checkpoint_path: "other-5"', 'all_model_checkpoint_paths: "ckpt-3"']
    assert sum(line.startswith("all_model_checkpoint_timestamps") for line in lines) == 3


def test_numbers_of_ones_own(tmp_path):
    """A number may be given as an integer or variable; the counter counts in any case."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), None)
    paths = [manager.save(checkpoint_number=100), manager.save(checkpoint_number=tf.Variable(7)), manager.save()]
    assert _names(paths) == _names(manager.checkpoints) == ["ckpt-100", "ckpt-7", "ckpt-3"]


def test_one_of_so_many_hours_stays_for_good(tmp_path):
    """A checkpoint that would be deleted stays, and is listed no more, if the last one that stayed is old enough."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 1, keep_checkpoint_every_n_hours=1.0)
    now = [manager._preserved]
    manager._clock = lambda: now[0]
    for _ in range(6):
        now[0] += 1800.0
        manager.save()
    # Made after 0.5, 1, 1.5, 2, 2.5 and 3 hours: those of 1 and 2 hours stay, and the last is the active one.
    assert _files(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6"]
    assert _names(manager.checkpoints) == ["ckpt-6"]


def test_intervals(tmp_path):
    """With an interval, a checkpoint is written only so many steps after the last, unless the check is turned off."""
    step = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 9, step_counter=step, checkpoint_interval=5)
    written = []
    for number in range(12):
        step.assign(number)
        if manager.save() is not None:
            written.append(number)
    assert written == [0, 5, 10]
    assert manager.save(check_interval=False) is not None
    assert manager.save(check_interval=False) is None  # this step has been saved
    assert manager.checkpoint_interval == 5
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        tf.train.CheckpointManager(checkpoint, str(tmp_path), 3, checkpoint_interval=5)


def test_restore_or_initialize(tmp_path):
    """The newest checkpoint is restored; where there is none, `init_fn` is called."""
    called = []
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 2, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None
    assert called == [1]
    path = manager.save()
    checkpoint.v.assign(5.0)
    assert manager.restore_or_initialize() == path
    assert checkpoint.v.numpy() == 1.0
    assert called == [1]


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_that_keeps_nothing(tmp_path, count):
    """At least one checkpoint is kept."""
    with pytest.raises(ValueError, match=f"Expected a positive integer or `None` for `max_to_keep`, got {count}"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), count)


def test_a_failed_save_is_not_listed(tmp_path):
    """A checkpoint that could not be written is not the newest, and nothing is deleted for it."""

    class Failing(tf.train.experimental.PythonState):
        broken = False

        def serialize(self):
            if self.broken:
                raise RuntimeError("broken")
            return b""

        def deserialize(self, string_value):
            pass

    checkpoint = tf.train.Checkpoint(state=Failing())
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), 1)
    manager.save()
    checkpoint.state.broken = True
    with pytest.raises(RuntimeError, match="broken"):
        manager.save()
    assert _names(manager.checkpoints) == _files(tmp_path) == ["ckpt-1"]
    assert os.path.basename(manager.latest_checkpoint) == "ckpt-1"


def test_managers_of_graphs(tmp_path):
    """In a graph the default session saves."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=1.0)
        checkpoint = tf1.train.Checkpoint(v=variable)
        manager = tf1.train.CheckpointManager(checkpoint, str(tmp_path), 1)
        session.run(tf1.global_variables_initializer())
        assert _names([manager.save(), manager.save()]) == ["ckpt-1", "ckpt-2"]
        assert _files(tmp_path) == ["ckpt-2"]
        variable.load(5.0, session)
        manager.restore_or_initialize()
        assert session.run(variable) == 1.0
