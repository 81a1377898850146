"""`tf.logging`: the logger "tensorflow", its levels, and the calls that count or filter.

Lines go to standard error as `LEVEL:tensorflow:message`, and to the handlers of the root logger.
"""

from __future__ import annotations

import collections
import logging
import sys
from typing import Any

from stoker._src.base import forking
from stoker._src.base.export import export, export_constant

DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.FATAL
for _level in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
    export_constant(__name__, _level, v1=f"logging.{_level}")

_making = forking.lock()
_counts: collections.Counter[tuple[str, int]] = collections.Counter()
_OWN_FILE = __file__


class _Logger(logging.Logger):
    """Reports the caller's file and line, not those of the functions below."""

    def findCaller(self, stack_info: bool = False, stacklevel: int = 1) -> tuple[str, int, str, str | None]:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename in (_OWN_FILE, logging.__file__):
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None


class _StandardError(logging.StreamHandler):
    """Writes to the current `sys.stderr`, which a program may replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, stream: Any) -> None:
        raise AttributeError("this handler follows sys.stderr")


@export("get_logger")
def get_logger() -> logging.Logger:
    """The logger that `tf.logging` writes to."""
    logger = logging.Logger.manager.loggerDict.get("tensorflow")
    if isinstance(logger, logging.Logger):
        return logger
    with _making:
        kind = logging.getLoggerClass()
        try:
            logging.setLoggerClass(_Logger)
            logger = logging.getLogger("tensorflow")
        finally:
            logging.setLoggerClass(kind)
        logger.setLevel(WARN)
        if not logging.getLogger().handlers:  # a program that configured logging itself should not see lines twice
            handler = _StandardError()
            handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
            logger.addHandler(handler)
        return logger


@export(v1="logging.log")
def log(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a message at any level."""
    get_logger().log(level, msg, *args, **kwargs)


@export(v1="logging.debug")
def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a debug message."""
    get_logger().debug(msg, *args, **kwargs)


@export(v1="logging.info")
def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs an informational message. It is shown after `set_verbosity(tf.logging.INFO)`."""
    get_logger().info(msg, *args, **kwargs)


@export(v1=("logging.warn", "logging.warning"))
def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a warning."""
    get_logger().warning(msg, *args, **kwargs)


warn = warning


@export(v1="logging.error")
def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs an error."""
    get_logger().error(msg, *args, **kwargs)


@export(v1="logging.fatal")
def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a fatal error. The program continues."""
    get_logger().fatal(msg, *args, **kwargs)


@export(v1="logging.vlog")
def vlog(level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a message at a numbered level."""
    get_logger().log(level, msg, *args, **kwargs)


@export(v1="logging.TaskLevelStatusMessage")
def TaskLevelStatusMessage(msg: Any) -> None:
    """Logs a message that is shown at every verbosity."""
    error(msg)


@export(v1="logging.flush")
def flush() -> None:
    """Flushes the handlers."""
    for handler in get_logger().handlers:
        handler.flush()


def _count() -> int:
    """How often the calling line of the caller was executed before."""
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno)
    with _making:
        _counts[place] += 1
        return _counts[place] - 1


@export(v1="logging.log_every_n")
def log_every_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the message on the first call from a line, and on every `n`-th call after it."""
    log_if(level, msg, _count() % n == 0, *args)


@export(v1="logging.log_first_n")
def log_first_n(level: int, msg: Any, n: int, *args: Any) -> None:
    """Logs the message on the first `n` calls from a line."""
    log_if(level, msg, _count() < n, *args)


@export(v1="logging.log_if")
def log_if(level: int, msg: Any, condition: Any, *args: Any) -> None:
    """Logs the message if `condition` is true."""
    if condition:
        get_logger().log(level, msg, *args)


@export(v1="logging.get_verbosity")
def get_verbosity() -> int:
    """The lowest level that is logged."""
    return get_logger().getEffectiveLevel()


@export(v1="logging.set_verbosity")
def set_verbosity(v: int | str) -> None:
    """Sets the lowest level that is logged."""
    get_logger().setLevel(v)


# Created on import, as in TensorFlow: its own handler depends on the root logger's handlers at that time.
get_logger()
