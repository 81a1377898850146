"""tf.logging, tf.flags, tf.resource_loader, tf.sysconfig and versions."""

from __future__ import annotations

import logging
import os
import re

import pytest
from absl import flags as absl_flags

import stoker as tf2
import stoker.compat.v1 as tf


@pytest.fixture
def lines():
    """What the logger "tensorflow" writes, at the verbosity it starts with."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(f"{record.levelname}:{record.filename}:{record.getMessage()}")

    logger, handler = tf.get_logger(), Keep()
    logger.addHandler(handler)
    tf.logging.set_verbosity(tf.logging.WARN)
    yield found
    logger.removeHandler(handler)
    tf.logging.set_verbosity(tf.logging.WARN)


def test_levels_and_verbosity(lines):
    """Warnings are shown from the start, information after set_verbosity; the file is the caller's."""
    tf.logging.info("hidden")
    tf.logging.warn("w %d", 1)
    tf.logging.warning("w %d", 2)
    tf.logging.set_verbosity("INFO")
    assert tf.logging.get_verbosity() == tf.logging.INFO == 20
    tf.logging.info("i %s", "x")
    tf.logging.log(tf.logging.ERROR, "e")
    tf.logging.vlog(1, "hidden")
    tf.logging.debug("hidden")
    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.logging.error("hidden")
    tf.logging.TaskLevelStatusMessage("hidden")
    tf.logging.fatal("f")
    tf.logging.flush()
    assert lines == [
        "WARNING:test_program.py:w 1",
        "WARNING:test_program.py:w 2",
        "INFO:test_program.py:i x",
        "ERROR:test_program.py:e",
        "CRITICAL:test_program.py:f",
    ]


def test_lines_that_count_or_filter(lines):
    """log_first_n and log_every_n count by the place of the call."""
    for i in range(5):
        tf.logging.log_first_n(tf.logging.ERROR, "first %d", 2, i)
        tf.logging.log_every_n(tf.logging.ERROR, "every %d", 2, i)
        tf.logging.log_if(tf.logging.ERROR, "if %d", i == 4, i)
    assert [line.split(":")[-1] for line in lines] == [
        "first 0", "every 0", "first 1", "every 2", "every 4", "if 4",
    ]  # fmt: skip


def test_flags_are_parsed_when_first_read(monkeypatch):
    """Reading a flag parses sys.argv; old keyword names work; setting and asking for names does not parse."""
    monkeypatch.setattr("sys.argv", ["prog", "--interop_steps=7"])
    values = absl_flags.FlagValues()
    proxy = type(tf.flags.FLAGS)(values)
    tf.flags.DEFINE_integer("interop_steps", 5, "steps", flag_values=values)
    tf.flags.DEFINE_string(flag_name="interop_name", default_value="x", docstring="name", flag_values=values)
    assert "interop_steps" in proxy and not proxy.is_parsed()
    assert proxy.interop_steps == 7 and proxy.interop_name == "x" and proxy.is_parsed()
    proxy.interop_name = "y"
    assert proxy.interop_name == "y" and proxy["interop_name"].value == "y"
    assert proxy.flag_values_dict() == {"interop_steps": 7, "interop_name": "y"}
    with pytest.raises(AttributeError):
        _ = proxy.nothing
    delattr(proxy, "interop_steps")
    assert sorted(proxy) == ["interop_name"] and len(proxy) == 1
    assert tf.app.flags.FLAGS is tf.flags.FLAGS and tf.flags.DEFINE_bool is not None


def test_unknown_flags_are_an_error_when_read(monkeypatch):
    """As in TensorFlow, reading a flag with an unknown one on the command line raises."""
    monkeypatch.setattr("sys.argv", ["prog", "--unknown=7"])
    values = absl_flags.FlagValues()
    tf.flags.DEFINE_integer("interop_n", 5, "n", flag_values=values)
    with pytest.raises(tf.flags.UnrecognizedFlagError):
        _ = type(tf.flags.FLAGS)(values).interop_n


def test_app_run_exits_with_what_main_returns(monkeypatch):
    """main gets what is left of the command line, undefined flags too."""
    seen = []
    with pytest.raises(SystemExit) as caught:
        tf.app.run(main=lambda argv: seen.extend(argv) or 4, argv=["prog", "a", "--undefined=1"])
    assert caught.value.code == 4 and seen == ["prog", "a", "--undefined=1"]


def test_versions():
    """Programs read versions to choose a path: 1.x names answer 1.15, 2.x names 2.x."""
    assert re.fullmatch(r"1\.15\.\d+", tf.__version__) and tf.VERSION == tf.version.VERSION == tf.__version__
    assert re.fullmatch(r"2\.\d+\.\d+", tf2.__version__) and tf2.__version__ == tf2.version.VERSION
    assert [tf.version.GRAPH_DEF_VERSION, tf.GRAPH_DEF_VERSION] == [134, 134]
    assert isinstance(tf.GIT_VERSION, str) and isinstance(tf.COMPILER_VERSION, str)


def test_files_beside_the_program():
    """Paths are relative to the file that asks."""
    here = os.path.dirname(os.path.abspath(__file__))
    assert tf.resource_loader.get_data_files_path() == here
    assert tf.resource_loader.get_path_to_datafile("x.txt") == os.path.join(here, "x.txt")
    assert tf.resource_loader.readahead_file_path("x") == "x"
    assert b"stoker" in tf.resource_loader.load_resource("__init__.py")
    assert os.path.isdir(tf.sysconfig.get_lib()) and tf.sysconfig.get_include().startswith(tf.sysconfig.get_lib())
    assert all(flag.startswith("-") for flag in tf.sysconfig.get_compile_flags() + tf.sysconfig.get_link_flags())


def test_libraries_of_cpp_ops_are_refused():
    """What cannot work says so, and what to do instead."""
    for load in (tf.load_op_library, tf.load_library, tf.load_file_system_library):
        with pytest.raises(NotImplementedError, match=r"ops\.so.*py_func"):
            load("ops.so")
