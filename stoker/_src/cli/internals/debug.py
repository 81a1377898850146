"""`tensorflow.python.debug`: what programs import of TensorFlow's debugger. Its command line is missing."""

from __future__ import annotations

from typing import Any

import numpy as np


def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether a value has infinite numbers or NaNs; False for values that are no numbers."""
    if not isinstance(tensor, np.ndarray) or not np.issubdtype(tensor.dtype, np.inexact):
        return False
    return not bool(np.all(np.isfinite(tensor)))


class _Missing:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: stoker has no tfdbg. `session.explain` prints a step, tf.print and tf.debugging.check_numerics "
            "show values."
        )


class LocalCLIDebugWrapperSession(_Missing):
    """The debugger around a session."""


class TensorBoardDebugWrapperSession(_Missing):
    """The debugger around a session, in TensorBoard."""


class DumpingDebugWrapperSession(_Missing):
    """A session that writes all values."""


class LocalCLIDebugHook(_Missing):
    """The debugger as a hook."""


class TensorBoardDebugHook(_Missing):
    """The debugger as a hook, in TensorBoard."""


class DumpingDebugHook(_Missing):
    """A hook that writes all values."""
