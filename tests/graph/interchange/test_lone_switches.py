"""Switch nodes of imported graphs that lead to no Merge: one of their outputs has a value, and what depends on the other does not run."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.graph.interchange.test_hostile_graph_defs import T, const, graph_def, node

PREDICATE = node("p", "Placeholder", dtype="type: DT_BOOL", shape="shape { }")
SWITCH = const("c", 3.0) + PREDICATE + node("s", "Switch", "c", "p", T=T)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def runs(session, fetch, side):
    """What a run gives: the value, or the message of the InvalidArgumentError."""
    try:
        return session.run(fetch, {"p:0": side})
    except tf.errors.InvalidArgumentError as error:
        return error.message.splitlines()[0]


def test_a_lone_switch_stays(session):
    """The taken output has the value, the other one cannot be fetched, and the op itself runs in either case."""
    tf.import_graph_def(graph_def(SWITCH), name="")
    assert [op.type for op in session.graph.get_operations()] == ["Const", "Placeholder", "Switch"]
    assert runs(session, "s:1", True) == runs(session, "s:0", False) == 3.0
    assert runs(session, "s:0", True) == runs(session, "s:1", False) == "Retval[0] does not have value"
    assert runs(session, ["s:0", "s:1"], False) == "Retval[1] does not have value"
    assert runs(session, "s", True) is runs(session, "s", False) is None


def test_nodes_after_a_switch_run_on_their_side_only(session):
    """Data and control edges count, numbers that kernels read on the host among them; a fed output decides nothing."""
    text = (
        SWITCH
        + node("n", "Neg", "s:1", T=T)
        + node("m", "Mul", "n", "c", T=T)
        + node("waits", "Neg", "c", "^m", T=T)
        + node("waits_for_the_switch", "Neg", "c", "^s", T=T)
        + node("r", "Rank", "s:1", T=T)
        + node("axes", "Const", "^n", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } }")
        + node("sum", "Sum", "m", "axes", T=T, Tidx="type: DT_INT32", keep_dims="b: false")
    )  # fmt: skip
    tf.import_graph_def(graph_def(text), name="")
    for fetch, value in {"n:0": -3.0, "m:0": -9.0, "waits:0": -3.0, "r:0": 0, "sum:0": -9.0}.items():
        assert runs(session, fetch, True) == value
        assert runs(session, fetch, False) == "Retval[0] does not have value"
        assert runs(session, fetch.removesuffix(":0"), False) is None
    assert runs(session, "waits_for_the_switch:0", False) == -3.0
    assert session.run("m:0", {"p:0": False, "s:1": 5.0}) == -15.0


def test_effects_after_a_switch_happen_on_their_side_only(session):
    """A variable is written when the side of the write is taken."""
    variable = tf.Variable(1.0, use_resource=True)
    text = SWITCH + node("v", "Placeholder", dtype="type: DT_RESOURCE")
    text += node("w", "AssignVariableOp", "v", "s:1", dtype=T)
    tf.import_graph_def(graph_def(text), input_map={"v": variable.handle}, name="")
    session.run(variable.initializer)
    for side, value in ((False, 1.0), (True, 3.0)):
        session.run("w", {"p:0": side})
        assert session.run(variable) == value


def test_what_a_branch_does_not_return_stays_beside_the_branch(session):
    """The nodes that lead to the Merge become an If; the Switch they share with another node stays for that node."""
    text = (
        SWITCH
        + node("left", "Neg", "s", T=T)
        + node("right", "Square", "s:1", T=T)
        + node("merge", "Merge", "left", "right", T=T, N="i: 2")
        + node("unused", "Exp", "s:1", T=T)
        + node("inner", "Neg", "right", T=T)
    )
    tf.import_graph_def(graph_def(text), name="")
    assert runs(session, "merge:0", True) == 9.0 and runs(session, "merge:0", False) == -3.0
    np.testing.assert_allclose(runs(session, ["merge:0", "unused:0"], True), [9.0, np.exp(3.0)], rtol=1e-6)
    assert runs(session, "unused:0", False) == "Retval[0] does not have value"


def test_a_switch_goes_out_and_back(session):
    """A Switch and the nodes after it are written as they were read."""
    tf.import_graph_def(graph_def(SWITCH + node("n", "Neg", "s:1", T=T)), name="")
    written = session.graph.as_graph_def()
    assert [(each.name, each.op, list(each.input)) for each in written.node][2:] == [
        ("s", "Switch", ["c", "p"]),
        ("n", "Neg", ["s:1"]),
    ]
    tf.import_graph_def(written, name="again")
    assert session.run("again/n:0", {"again/p:0": True}) == -3.0


@pytest.mark.parametrize("groups", ["i: 1", 's: "loc:@c"', "list { i: 1 }", "list { f: 1 }", 'list { s: "\\377" }'])
def test_colocation_groups_are_strings(groups):
    """An attribute _class of another kind is an InvalidArgumentError that names the node."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="'a': attribute _class"):
        tf.import_graph_def(graph_def(const() + node("a", "Neg", "c", T=T, _class=groups)), name="")
