"""What tests of training sessions share: log lines, a small model, a clean cache of writers."""

from __future__ import annotations

import logging

import pytest

import stoker.compat.v1 as tf


@pytest.fixture(autouse=True)
def clean_writers():
    """Writers of event files are closed with the test."""
    yield
    tf.summary.FileWriterCache.clear()


@pytest.fixture
def log():
    """The lines that `tf.logging` wrote, from INFO on."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger, handler = tf.get_logger(), Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


class Model:
    """A variable that a step increases by one, beside the global step."""

    def __init__(self):
        self.step = tf.train.get_or_create_global_step()
        self.value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
        self.train = tf.group(tf.assign_add(self.step, 1), tf.assign_add(self.value, 1.0))


@pytest.fixture
def model():
    return Model()
