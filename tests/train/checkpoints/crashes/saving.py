"""Saves under a shim that kills the process, or lets a file call fail, and checks what is left.

python saving.py FOLDER STRIDE [SCENARIO...]     under LD_PRELOAD=shim.so

A scenario saves an old state, then a new one in a child process in which one file call goes wrong: the process is killed before or in the
middle of it, or the call fails with EIO or EACCES, or the disk is full from there on. Afterwards the old or the new state must be
there, bit for bit, and after one more save no temporary file. Every STRIDE-th call is tried. Prints a JSON object.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import struct
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.graph import context
from stoker._src.train.checkpoints import leftovers

tf1.logging.set_verbosity(tf1.logging.FATAL)

SHIM = ctypes.CDLL(None)
ACTIONS = {"kill before": 1, "kill in": 2, "EIO": 3, "EACCES": 4, "full": 5}
OLD, NEW, NEXT = 1, 2, 3
_TEMPORARY = re.compile(r".*\.tmp|.*_temp|.*\.tempstate.*|.*\.old|.*\.data-.*-of-0000[2-9]")


def values(state):
    return {"a": np.full(40, state, np.float32), "b": np.int64(state), "c": np.array([b"x" * state, b"y"], object)}


def state_of(found):
    """The state that these values belong to.

    Raises:
        AssertionError: they belong to none.
    """
    for state in (OLD, NEW, NEXT):
        if all(np.array_equal(found[name], value) for name, value in values(state).items()):
            return state
    raise AssertionError(f"the values of no state: {found}")


class NameBased:
    """`tf.train.Saver`, which deletes the older checkpoint, or overwrites it."""

    def __init__(self, overwrite=False, **options):
        self._overwrite = overwrite
        self.graph = tf1.Graph()
        with self.graph.as_default():
            self.variables = {
                "a": tf1.get_variable("a", [40]),
                "b": tf1.get_variable("b", [], tf.int64, tf1.zeros_initializer()),
                "c": tf1.get_variable("c", [2], tf.string, lambda shape, **_: tf.constant([b"", b""])),
            }
            self.saver = tf1.train.Saver(max_to_keep=1, **options)
            self.session = tf1.Session()

    def save(self, folder, state):
        with self.graph.as_default():
            for name, value in values(state).items():
                self.variables[name].load(value, self.session)
            latest = tf.train.latest_checkpoint(folder)
            self.saver._swept.clear()
            self.saver.recover_last_checkpoints([] if latest is None else [latest])
            self.saver.save(self.session, os.path.join(folder, "model"), None if self._overwrite else state)

    def load(self, folder):
        path = tf.train.latest_checkpoint(folder)
        assert path is not None, "there is no latest checkpoint"
        with self.graph.as_default():
            self.session.run([variable.initializer for variable in self.variables.values()])
            self.saver.restore(self.session, path)
            return self.session.run(self.variables)


class Objects:
    """`tf.train.Checkpoint`, with a CheckpointManager or without; or `write`, which overwrites."""

    def __init__(self, managed, overwrite=False):
        self._managed, self._overwrite = managed, overwrite

    def _objects(self, state):
        module = tf.Module()
        for name, value in values(state).items():
            setattr(module, name, tf.Variable(value))
        return module

    def save(self, folder, state):
        with context.enter_eager():
            checkpoint = tf.train.Checkpoint(self._objects(state))
            checkpoint.save_counter.assign(state - 1)
            if self._overwrite:
                checkpoint.write(os.path.join(folder, "ckpt"))
            elif self._managed:
                tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1).save()
            else:
                checkpoint.save(os.path.join(folder, "ckpt"))

    def load(self, folder):
        path = os.path.join(folder, "ckpt") if self._overwrite else tf.train.latest_checkpoint(folder)
        assert path is not None, "there is no latest checkpoint"
        with context.enter_eager():
            module = self._objects(NEXT)
            for variable in (module.a, module.b):
                variable.assign(tf.zeros_like(variable))
            tf.train.Checkpoint(module).restore(path).assert_existing_objects_matched()
            return {name: getattr(module, name).numpy() for name in "abc"}


class Model:
    """`tf.saved_model.save` over an older model."""

    def save(self, folder, state):
        with context.enter_eager():
            module = tf.Module()
            for name, value in values(state).items():
                setattr(module, name, tf.Variable(value))
            with open(os.path.join(os.path.dirname(folder), "asset.txt"), "w") as file:
                file.write(str(state))
            module.asset = tf.saved_model.Asset(os.path.join(os.path.dirname(folder), "asset.txt"))
            module.f = tf.function(lambda: module.b + state, input_signature=[])
            tf.saved_model.save(module, os.path.join(folder, "model"))

    def load(self, folder):
        with context.enter_eager():
            loaded = tf.saved_model.load(os.path.join(folder, "model"))
            found = {name: getattr(loaded, name).numpy() for name in "abc"}
            state = state_of(found)
            assert int(loaded.f()) == 2 * state, "variables and functions of two models"
            assert tf.io.read_file(loaded.asset.asset_path).numpy() == str(state).encode(), "an asset of another model"
            return found


class Built(NameBased):
    """`tf.saved_model.Builder`, which writes each model to a directory of its own. A broken one is removed, and written again."""

    def save(self, folder, state):
        path = os.path.join(folder, str(state))
        for name in os.listdir(folder):
            if not tf.saved_model.contains_saved_model(os.path.join(folder, name)):
                shutil.rmtree(os.path.join(folder, name))
        if os.path.exists(path):
            return
        with self.graph.as_default():
            for name, value in values(state).items():
                self.variables[name].load(value, self.session)
            builder = tf1.saved_model.Builder(path)
            builder.add_meta_graph_and_variables(self.session, ["serve"], clear_devices=True)
            builder.save()

    def load(self, folder):
        whole = [name for name in os.listdir(folder) if tf.saved_model.contains_saved_model(os.path.join(folder, name))]
        with tf1.Graph().as_default(), tf1.Session() as session:
            tf1.saved_model.load(session, ["serve"], os.path.join(folder, max(whole)))
            return session.run({name: f"{name}:0" for name in "abc"})


SCENARIOS = {
    "saver": lambda: NameBased(),
    "saver V1": lambda: NameBased(write_version=tf1.train.SaverDef.V1),
    "saver sharded": lambda: NameBased(sharded=True),
    "saver overwrites": lambda: NameBased(overwrite=True),
    "saver V1 overwrites": lambda: NameBased(overwrite=True, write_version=tf1.train.SaverDef.V1),
    "saver sharded overwrites": lambda: NameBased(overwrite=True, sharded=True),
    "checkpoint": lambda: Objects(False),
    "manager": lambda: Objects(True),
    "checkpoint overwrites": lambda: Objects(False, overwrite=True),
    "saved_model": Model,
    "builder": Built,
}


def in_child(folder, number, action, work):
    """Runs `work` in a child under the shim: (how it ended, how many calls it made)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(read)
            SHIM.shim_arm(os.fsencode(folder), ctypes.c_long(number), action)
            try:
                work()
                code = 0
            except (tf.errors.OpError, OSError):
                code = 1
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
                code = 2
            os.write(write, struct.pack("q", SHIM.shim_seen()))
        finally:
            os._exit(code)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read(8)
    seen = struct.unpack("q", told)[0] if len(told) == 8 else -1
    if os.WIFSIGNALED(status):
        return ("killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"), seen
    return {0: "saved", 1: "raised", 2: "raised another error"}.get(os.WEXITSTATUS(status), "ended"), seen


def temporary_files(folder):
    return [
        os.path.join(place, name)
        for place, folders, files in os.walk(folder)
        for name in folders + files
        if _TEMPORARY.fullmatch(name)
    ]


def run(scenario, base, stride):
    """Tries every call of a scenario: counts of what happened, and failures."""
    folder, template = os.path.join(base, "work"), os.path.join(base, "template")
    for each in (folder, template):
        shutil.rmtree(each, ignore_errors=True)
    os.makedirs(folder)
    scenario.save(folder, OLD)
    assert state_of(scenario.load(folder)) == OLD
    shutil.copytree(folder, template)
    ended, calls = in_child(folder, 0, 0, lambda: scenario.save(folder, NEW))
    assert ended == "saved", ended
    assert state_of(scenario.load(folder)) == NEW
    counts = {"calls": calls, "cases": 0, "old": 0, "new": 0, "killed": 0, "raised": 0, "saved": 0}
    failures = []
    for name, action in ACTIONS.items():
        for number in range(1 + action % stride, calls + 1, stride):
            shutil.rmtree(folder)
            shutil.copytree(template, folder)
            label = f"{name} at call {number} of {calls}"
            try:
                ended, _ = in_child(folder, number, action, lambda: scenario.save(folder, NEW))
                assert ended in ("killed", "raised", "saved"), ended
                counts[ended] += 1
                found = state_of(scenario.load(folder))
                assert found in (OLD, NEW)
                assert ended != "saved" or found == NEW, "it was saved, but the old state is there"
                counts["old" if found == OLD else "new"] += 1
                leftovers._PROGRAM_STARTED = time.time() + 1  # the next save is that of the next program
                scenario.save(folder, NEXT)
                assert state_of(scenario.load(folder)) == NEXT, "the next save is not there"
                left = temporary_files(folder)
                assert not left, f"temporary files stay: {left}"
            except Exception as error:
                failures.append(f"{label}: {type(error).__name__}: {str(error)[:300]}")
            counts["cases"] += 1
    return {**counts, "failures": failures}


def main():
    base, stride, *wanted = sys.argv[1:]
    base = os.path.realpath(base)
    results = {name: run(SCENARIOS[name](), base, int(stride)) for name in wanted or SCENARIOS}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
