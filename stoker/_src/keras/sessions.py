"""The session in which Keras runs graphs, and the values of variables there."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.graph import context, scopes
from stoker._src.keras.learning_phase import reset_learning_phase
from stoker._src.ops.array import constants
from stoker._src.ops.variables import reports, variable_functions
from stoker._src.runtime import session as runtime_session

_local = threading.local()
_manual = False  # whether the program initializes variables itself


def set_manual_initialization(value: bool) -> None:
    global _manual
    _manual = value


@export(v1="keras.backend.get_session")
def get_session(op_input_list: Any = ()) -> Any:
    """The default session, or else the one that Keras opened. Variables that have no value yet are initialized.

    Raises:
        RuntimeError: in eager mode there are no sessions.
    """
    if context.executing_eagerly():
        raise RuntimeError("`get_session` is not available when executing eagerly.")
    session = _session()
    if not _manual:
        _initialize(session)
    return session


def _session() -> Any:
    default = runtime_session.get_default_session()
    if default is not None:
        return default
    graph = context.get_default_graph()
    mine = getattr(_local, "session", None)
    if mine is None or mine.graph is not graph:
        mine = _local.session = runtime_session.Session(graph=graph)
    return mine


@export(v1="keras.backend.set_session")
def set_session(session: Any) -> None:
    """Makes Keras use a session of the program."""
    _local.session = session


def close_session() -> None:
    _local.session = None
    reset_learning_phase()


def remember_variable(variable: Any) -> None:
    """Notes a variable of Keras: some are in no collection, and are initialized with the others."""
    graph: Any = context.outermost_context()
    if graph is not None:
        if not hasattr(graph, "keras_variables"):
            graph.keras_variables = []
        graph.keras_variables.append(variable)


def _initialize(session: Any) -> None:
    """Initializes the variables that have no value in the session. A variable is asked once."""
    with session.graph.as_default():
        own = getattr(session.graph, "keras_variables", ())
        counts = len(variable_functions.global_variables()), len(own)
        if getattr(session, "_keras_counts", None) == counts:
            return
        known = getattr(session, "_keras_initialized", None)
        if known is None:
            known = session._keras_initialized = set()
        named = {id(each): each for each in [*variable_functions.global_variables(), *own]}
        candidates = [each for key, each in named.items() if key not in known]
        if candidates and session.graph.finalized:
            return
        session._keras_counts = counts
        if not candidates:
            return
        flags = session.run([reports.is_variable_initialized(each) for each in candidates])
        missing = [each for each, there in zip(candidates, flags) if not there]
        if missing:
            session.run([each.initializer for each in missing])
        known.update(map(id, candidates))


@export("keras.backend.get_value")
def get_value(x: Any) -> Any:
    """The value of a variable or tensor as an array."""
    if not hasattr(x, "dtype"):
        return x
    return x.numpy() if hasattr(x, "numpy") and _is_eager(x) else get_session().run(x)


def _is_eager(x: Any) -> bool:
    return context.executing_eagerly() or bool(getattr(x, "is_eager", False))


@export("keras.backend.set_value")
def set_value(x: Any, value: Any) -> None:
    """Assigns an array to a variable."""
    batch_set_value([(x, value)])


@export("keras.backend.batch_get_value")
def batch_get_value(tensors: Any) -> list[Any]:
    """The values of several variables."""
    if context.executing_eagerly():
        return [each.numpy() for each in tensors]
    return get_session().run(list(tensors)) if tensors else []


@export("keras.backend.batch_set_value")
def batch_set_value(tuples: Any) -> None:
    """Assigns arrays to several variables: (variable, array) pairs."""
    if context.executing_eagerly():
        for variable, value in tuples:
            variable.assign(np.asarray(value, variable.dtype.base_dtype.as_numpy_dtype))
        return
    if not tuples:
        return
    session = _session()
    _initialize(session)
    feeds, ops = {}, []
    for variable, value in tuples:
        assignment = getattr(variable, "_keras_assignment", None)
        if assignment is None:
            with variable.graph.as_default(), scopes.NameScope(None), scopes.control_dependencies(None):
                fed = constants.placeholder(variable.dtype.base_dtype, shape=np.shape(value))
                assignment = variable._keras_assignment = (fed, variable_functions.assign(variable, fed).op)
        feeds[assignment[0]] = np.asarray(value, variable.dtype.base_dtype.as_numpy_dtype)
        ops.append(assignment[1])
    session.run(ops, feeds)
