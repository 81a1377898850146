"""Small runs of a program with a GPU, on the host with copies of variables. There is no GPU here: the copies are what is tested."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.runtime import devices
from stoker._src.runtime.locks import Holding
from stoker._src.runtime.plan.gpu.on_host import BorrowingOnHost, Choice, OnHost, borrowed_variables, read_variables
from stoker._src.runtime.together import Together


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Variables are on the host, also where there is a GPU."""
    monkeypatch.setattr(devices, "usable_gpus", lambda: 0)


def _plan(session, fetches, feeds):
    plan = session._plan(fetches, feeds, None)
    return plan, [convert(value) for convert, value in zip(plan.converters, feeds.values())]


@pytest.mark.parametrize("resource", [False, True])
def test_copies_follow_the_variables(resource):
    """A run on the host sees what the last update wrote, and takes no copies while nothing is written."""
    x = tf.placeholder(tf.float32, [3])
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=resource)
    y, more = tf.tanh(x * v) + 1.0, tf.assign_add(v, [1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(v.initializer)
        plan, values = _plan(session, y, {x: np.ones(3, "f")})
        worker = session._runner._worker
        assert [
            state.name for state in read_variables(plan._planner(with_fused_loops=False).build(), worker.placement)
        ] == ["v"]
        on_host = OnHost(plan._planner, values, worker.variables_lock)
        (first,) = on_host(None, values)
        np.testing.assert_allclose(first.numpy(), np.tanh([1, 1, 1]) + 1, rtol=1e-6)
        (_, copied) = on_host._copies[0]
        kept = copied.value
        on_host(None, values)
        assert copied.value is kept
        session.run(more)
        (second,) = on_host(None, values)
        np.testing.assert_allclose(second.numpy(), np.tanh([2, 3, 4]) + 1, rtol=1e-6)


def test_runs_that_write_or_wait_do_not_run_on_copies():
    """Only plans that compute from feeds and variables can run on copies."""
    x = tf.placeholder(tf.float32, [3])
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    queue = tf.FIFOQueue(3, tf.float32, [[]])
    with tf.Session() as session:
        session.run(v.initializer)
        for fetch in (tf.assign_add(v, x), queue.dequeue()):
            plan, _ = _plan(session, fetch, {x: np.ones(3, "f")})
            assert (
                read_variables(plan._planner(with_fused_loops=False).build(), session._runner._worker.placement) is None
            )


class _Work:
    """What is run with one thread or several."""

    shares = is_trying = False

    def share(self):
        self.shares = True


@pytest.mark.parametrize("in_a_row", [1, 5])
def test_the_faster_way_is_kept(monkeypatch, in_a_row):
    """Both ways are measured in turns, then one is used. `session.explain` says so."""
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    for slow, expected in ((0.5, True), (1e-6, False)):
        used = []

        def run(kind, seconds, used=used):
            clock[0] += seconds
            used.append(kind)
            return (torch.zeros(1),)

        def on_host(holding, values, run=run):
            return run("host", 1e-4)

        on_host.in_a_row, on_host.take_waited, on_host.work = in_a_row, float, _Work()
        choice = Choice(on_host, Together(), writes=True)  # type: ignore[arg-type]
        for _ in range(60):
            choice.run(lambda run=run, slow=slow: run("gpu", slow), None, [])
        assert choice.chosen is expected and set(used[-5:]) == {"host" if expected else "gpu"}
        assert (choice.remark is not None) is expected


def test_both_ways_are_measured_again_when_the_host_becomes_slow(monkeypatch):
    """A host that has other work to do loses the step to the GPU."""
    clock, slow = [0.0], [1e-5]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def spend(seconds):
        clock[0] += seconds
        return (torch.zeros(1),)

    def on_host(holding, values):
        return spend(slow[0])

    on_host.in_a_row, on_host.take_waited, on_host.work = 5, float, _Work()
    choice = Choice(on_host, Together(), writes=True)  # type: ignore[arg-type]
    for _ in range(60):
        choice.run(lambda: spend(1e-4), None, [])
    assert choice.chosen is True
    slow[0] = 1e-3
    for _ in range(60):
        choice.run(lambda: spend(1e-4), None, [])
    assert choice.chosen is False


def test_interrupted_runs_do_not_decide(monkeypatch):
    """A single long run of the host does not count as long as it was, and a host that was slower is tried again later."""
    clock, slow, count = [0.0], [2e-4], [0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def spend(seconds):
        clock[0] += seconds
        return (torch.zeros(1),)

    def on_host(holding, values):
        count[0] += 1
        return spend(1.0 if count[0] == 5 else slow[0])

    on_host.in_a_row, on_host.take_waited, on_host.work = 1, float, _Work()
    choice = Choice(on_host, Together(), writes=True)  # type: ignore[arg-type]
    for _ in range(60):
        choice.run(lambda: spend(1e-4), None, [])
    assert choice.chosen is False
    slow[0], count[0] = 1e-5, 0
    for _ in range(1060):
        choice.run(lambda: spend(1e-4), None, [])
    assert choice.chosen is True


def _run_on(on_host, values, lock):
    """Runs a step that writes, as a session does."""
    holding = Holding(lock, writes=True, leaves_lent=True)
    holding.acquire()
    try:
        return on_host(holding, values)
    finally:
        holding.release()


def _training(resource):
    x = tf.placeholder(tf.float32, [4, 3])
    w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer(), use_resource=resource)
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    return x, w, loss, tf.train.AdamOptimizer(0.1).minimize(loss)


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_borrowed_and_given_back(resource):
    """A run that writes works on the host's memory, and the memory of the device holds what it has written afterwards."""
    x, w, loss, train = _training(resource)
    feed = {x: np.arange(12, dtype="f").reshape(4, 3) / 10}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = [session.run([loss, train], feed)[0] for _ in range(6)]
        weights = session.run(w)
        session.run(tf.global_variables_initializer())
        plan, values = _plan(session, [loss, train], feed)
        worker = session._runner._worker
        planner = plan._planner(with_fused_loops=False).build()
        states = borrowed_variables(planner, worker.placement, recorded=True)
        assert {state.name for state in states} == {"w", "w/Adam", "w/Adam_1", "beta1_power", "beta2_power"}
        memory = {state.name: state.value for state in states}
        on_host = BorrowingOnHost(plan._planner, values, worker.variables_lock, torch.device("cpu"))
        found = []
        for i in range(6):
            if i == 3:  # a run of another kind in between
                found.append(session.run([loss, train], feed)[0])
                continue
            found.append(float(_run_on(on_host, values, worker.variables_lock)[0]))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(session.run(w), weights, rtol=1e-6)
        assert all(state.value is memory[state.name] for state in states)


def test_variables_return_after_an_error():
    """A step that fails leaves the variables where they were, with what it had written."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(v, x)]):
        fails = tf.reshape(tf.boolean_mask(x, x > 0.0), [7])
    with tf.Session() as session:
        session.run(v.initializer)
        plan, values = _plan(session, fails, {x: np.ones(2, "f")})
        worker = session._runner._worker
        on_host = BorrowingOnHost(plan._planner, values, worker.variables_lock, torch.device("cpu"))
        state = next(state for state, _ in on_host._states)
        memory = state.value
        with pytest.raises(Exception, match="7"):
            _run_on(on_host, values, worker.variables_lock)
        assert session.run(v).tolist() == [1.0, 1.0]
        assert state.value is memory and memory.tolist() == [1.0, 1.0]


def _borrowing(session, fetches, feed):
    """Returns a function that runs a step on the host with the variables of a device, which is the host here, too."""
    plan, values = _plan(session, fetches, feed)
    lock = session._runner._worker.variables_lock
    on_host = BorrowingOnHost(plan._planner, values, lock, torch.device("cpu"))

    return lambda: _run_on(on_host, values, lock), lock


def test_variables_stay_on_the_host_between_its_steps():
    """Steps of the host that follow each other move nothing, also steps of different plans; a run of the device ends that."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    u = tf.get_variable("u", [2], initializer=tf.zeros_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, lock = _borrowing(session, [tf.assign_add(v, x), tf.assign_add(u, x)], {x: np.ones(2, "f")})
        second, _ = _borrowing(session, [tf.assign_add(v, 10.0 * x)], {x: np.ones(2, "f")})
        first()
        lent = lock.lent
        states = {loan.state.name: loan for loan in lent._loans.values()}
        on_host = {name: loan.state.value for name, loan in states.items()}
        assert lent.are_there and all(loan.value.tolist() == [0.0, 0.0] for loan in states.values())
        second()
        first()
        assert all(loan.state.value is on_host[name] for name, loan in states.items()) and lent.returns == 0
        assert session.run(v).tolist() == [12.0, 12.0]
        assert not lent.are_there and lent.returns == 1
        assert states["v"].value.tolist() == [12.0, 12.0] and states["u"].value.tolist() == [2.0, 2.0]
        second()
        assert session.run([v, u])[0].tolist() == [22.0, 22.0]


def test_variables_come_back_to_a_step_that_waited_for_python_code():
    """If a run of the device comes while a step of the host waits, the variables return to the host before the step goes on."""
    seen = []

    def look(value):
        seen.append((value.tolist(), session.run(v).tolist(), lock.lent.are_there))
        return value

    x = tf.placeholder(tf.float32, [2])
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(v, x)]):
        found = tf.py_func(look, [v.read_value()], tf.float32)
    with tf.control_dependencies([found]):
        more = tf.assign_add(v, found)
    with tf.Session() as session:
        session.run(v.initializer)
        run, lock = _borrowing(session, more, {x: np.ones(2, "f")})
        states = borrowed_variables(
            session._plan(more, {x: np.ones(2, "f")}, None)._planner().build(),
            session._runner._worker.placement,
            recorded=True,
        )
        assert [state.name for state in states] == ["v"]
        memory = states[0].value
        run()
        assert lock.lent.are_there and states[0].value is not memory
        assert seen == [([1.0, 1.0], [1.0, 1.0], False)]
        assert session.run(v).tolist() == [2.0, 2.0] and states[0].value is memory


def test_the_host_uses_its_copies_again_after_runs_that_only_read():
    """A run of the device that only reads leaves the host's copies as they are; after one that writes they are taken again."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    with tf.Session() as session:
        session.run(v.initializer)
        run, lock = _borrowing(session, tf.assign_add(v, x), {x: np.ones(2, "f")})
        run()
        transfers = []
        for transfer in lock.lent._transfers._known.values():
            transfer.to_host = lambda values, own=transfer.to_host: transfers.append(len(values)) or own(values)
        session.run(v)
        run()
        assert transfers == []
        session.run(tf.assign_add(v, [5.0, 5.0]))
        run()
        assert transfers == [1]
        assert session.run(v).tolist() == [8.0, 8.0]


def test_a_variable_gets_its_first_value_or_another_shape_on_the_host():
    """What a step of the host makes of a variable is what the device has afterwards, whatever its shape."""
    x = tf.placeholder(tf.float32, [None])
    v = tf.get_variable("v", initializer=tf.zeros([2]), validate_shape=False)
    grow = tf.assign(v, x, validate_shape=False)
    with tf.Session() as session:
        session.run(v.initializer)
        run, _ = _borrowing(session, grow, {x: np.arange(3, dtype="f")})
        run()
        assert session.run(v).tolist() == [0.0, 1.0, 2.0]
        run()
        assert session.run(tf.shape(v)).tolist() == [3]


@pytest.mark.parametrize("resource", [False, True])
def test_random_plans_of_host_and_device_give_the_same_losses(resource):
    """Steps taken by the host and by the device in any order train as the device alone does."""
    x, w, loss, train = _training(resource)
    feed = {x: np.arange(12, dtype="f").reshape(4, 3) / 10}
    order = np.random.RandomState(0).randint(0, 3, 24)
    found = []
    with tf.Session() as session:
        for borrows in (False, True):
            session.run(tf.global_variables_initializer())
            run, _ = _borrowing(session, [loss, train], feed)
            found.append(
                [
                    session.run(loss, feed)
                    if kind == 2
                    else float(run()[0] if borrows and kind == 1 else session.run([loss, train], feed)[0])
                    for kind in order
                ]
            )
            found[-1].append(session.run(w).tolist())
    np.testing.assert_array_equal(found[0][:-1], found[1][:-1])
    assert found[0][-1] == found[1][-1]


def test_a_step_of_the_device_pays_for_what_others_wait(monkeypatch):
    """A step that is a little faster on the device is left to the host if the next run has to fetch what it has written."""
    clock, waited = [0.0], [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def spend(seconds):
        clock[0] += seconds
        return (torch.zeros(1),)

    def take_waited():
        found, waited[0] = waited[0], 0.0
        return found

    def on_host(holding, values):
        return spend(1e-4)

    def on_gpu():
        waited[0] += 6e-5
        return spend(8e-5)

    on_host.in_a_row, on_host.take_waited, on_host.work = 5, take_waited, _Work()
    choice = Choice(on_host, Together(), writes=True)  # type: ignore[arg-type]
    for _ in range(60):
        choice.run(on_gpu, None, [])
    assert choice.chosen is True


class _Moving:
    """A program with a clock of its own: steps that read or write one variable, which is either on the host or on the device.

    A step that finds it on the other side moves it, which takes 50 microseconds. The device's steps that write hand back no result, so
    their time shows only when the next step waits for them.
    """

    def __init__(self, monkeypatch):
        self.now, self.where, self.pending, self.moves = 0.0, "device", 0.0, 0
        self.ran: list[str] = []
        self.together = Together()
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def step(self, *, writes, host, gpu):
        def spend(side, seconds):
            self.ran.append(side)
            if self.where != side and (writes or side == "host"):
                self.now += 50e-6 + self.pending
                self.pending, self.moves = 0.0, self.moves + 1
                self.where = side
            if side == "device" and writes:
                self.pending += seconds
                self.now += 5e-6
                self.where = "device"
            else:
                self.now += seconds + self.pending
                self.pending = 0.0
            return (torch.zeros(1),)

        def on_host(holding, values):
            return spend("host", host)

        on_host.in_a_row, on_host.take_waited, on_host.work = 5 if writes else 1, float, _Work()
        choice = Choice(on_host, self.together, writes=writes)  # type: ignore[arg-type]
        return lambda: choice.run(lambda: spend("device", gpu), None, []), choice


def test_steps_that_are_faster_together_run_together(monkeypatch):
    """Steps that would each stay on the device run on the host if all of them are faster there, and go back if they no longer are."""
    program = _Moving(monkeypatch)
    pull, first = program.step(writes=True, host=10e-6, gpu=12e-6)
    act, _ = program.step(writes=False, host=10e-6, gpu=30e-6)
    push, last = program.step(writes=True, host=30e-6, gpu=30e-6)

    def episode():
        for one in (pull, act, act, push):
            one()

    for _ in range(200):
        episode()
    assert program.together.on_host and not (first.chosen and last.chosen)
    program.ran, program.moves = [], 0
    began = program.now
    for _ in range(50):
        episode()
    assert set(program.ran) == {"host"} and program.moves == 0
    assert program.now - began == pytest.approx(50 * 60e-6)
    assert any("because the host runs all small steps" in (each.remark or "") for each in (first, last))


def test_steps_of_which_one_is_long_on_the_host_stay_apart(monkeypatch):
    """A program whose update takes much longer on the host leaves it on the device, and does not try otherwise for long."""
    program = _Moving(monkeypatch)
    act, _ = program.step(writes=False, host=10e-6, gpu=30e-6)
    update, decided = program.step(writes=True, host=900e-6, gpu=100e-6)
    for _ in range(100):
        act()
        update()
    program.ran = []
    for _ in range(100):
        act()
        update()
    assert decided.chosen is False and not program.together.on_host and program.together.trial is None
    assert program.ran.count("device") >= 100


def test_threads_of_both_sides_lose_no_update():
    """Steps of the host and of the device from many threads: every increment counts once, and readers see whole updates."""
    x = tf.placeholder(tf.float32, [2])
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    u = tf.get_variable("u", [2], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(v, x)]):
        both = tf.assign_add(u, x)
    pair = tf.stack([v.value(), u.value()])
    feed, torn = {x: np.ones(2, "f")}, []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        run, _ = _borrowing(session, both, feed)
        plan, values = _plan(session, pair * tf.reduce_sum(x) / 2.0, feed)
        lock = session._runner._worker.variables_lock
        reading = OnHost(plan._planner, values, lock)

        def read_on_host():
            lock.acquire_read()
            try:
                found = reading(None, values)[0].numpy().copy()
            finally:
                lock.release_read()
            torn.extend([found] if not (found == found[0, 0]).all() else [])

        kinds = [run, lambda: session.run(both, feed), lambda: session.run(pair), read_on_host] * 2
        threads = [threading.Thread(target=lambda kind=kind: [kind() for _ in range(150)]) for kind in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not torn
        assert session.run(pair).tolist() == [[600.0, 600.0], [600.0, 600.0]]
