"""Critical sections."""

import threading

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError


def test_critical_section_excludes_other_runs():
    """Two runs that read, compute and write in one section never lose an update."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        total = tf.get_variable("total", initializer=0, use_resource=True)
        section = tf.CriticalSection(name="section")

        def add_one():
            slow = tf.py_func(lambda x: x + 1, [total.read_value()], tf.int32)
            slow.set_shape([])
            return total.assign(slow)

        update = section.execute(add_one)
        session.run(total.initializer)
        failures = []

        def work():
            try:
                for _ in range(20):
                    session.run(update)
            except Exception as error:  # reported below
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert session.run(total) == 60
        assert [op.type for op in graph.get_operations() if "Mutex" in op.type] == [
            "MutexV2",
            "MutexLock",
            "ConsumeMutexLock",
        ]


def test_critical_section_is_left_when_it_fails():
    """A section whose function fails when run can be entered again."""
    with tf.Graph().as_default(), tf.Session() as session:
        section = tf.CriticalSection()
        bad = section.execute(
            lambda: tf.debugging.check_numerics(tf.constant(np.nan) + tf.placeholder_with_default(0.0, []), "bad")
        )
        good = section.execute(lambda: tf.constant(2.0) * 3.0)
        with pytest.raises(InvalidArgumentError) as caught:
            session.run(bad)
        assert caught
        assert session.run(good) == 6.0
        assert session.run([good, good]) == [6.0, 6.0]


def test_critical_section_refuses_what_would_deadlock():
    """Entering a section again, or sharing a resource with another that wants it alone, is a ValueError."""
    with tf.Graph().as_default():
        first, second, third = tf.CriticalSection(), tf.CriticalSection(), tf.CriticalSection(shared_name="third")
        variable = tf.get_variable("v", initializer=1.0, use_resource=True)
        other = tf.get_variable("w", initializer=1.0, use_resource=True)
        first.execute(lambda: variable.assign_add(1.0))
        with pytest.raises(ValueError, match="already running"):
            first.execute(lambda: first.execute(variable.read_value))
        with pytest.raises(ValueError, match="exclusive resource access"):
            second.execute(lambda: variable.assign_add(1.0))
        second.execute(other.read_value, exclusive_resource_access=False)
        third.execute(other.read_value, exclusive_resource_access=False)
        assert (first.name, second.name) == ("CriticalSection", "CriticalSection_1")
        with pytest.raises(ValueError, match="not supported"):
            tf.CriticalSection(critical_section_def=1)
        assert tf.get_collection("critical_sections") == [first, second, third]


def test_critical_section_in_functions_and_at_once(eager):
    """Sections work at once and in functions; an exception leaves them."""
    section, variable = tf2.CriticalSection(), tf2.Variable(1.0)

    @tf2.function
    def add():
        return section.execute(lambda: variable.assign_add(2.0))

    def fail():
        raise KeyError("no")

    assert float(section.execute(lambda: variable.assign_add(1.0))) == 2.0
    with pytest.raises(KeyError):
        section.execute(fail)
    assert [float(add()), float(add())] == [4.0, 6.0]
