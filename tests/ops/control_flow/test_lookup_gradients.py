"""Gradients of tables that are looked up inside of loops, branches and functions: slices where TensorFlow has them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "control_flow"
sys.path.insert(0, str(GOLDEN))
import lookup_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "lookups.json").read_text())
# Rows from several places come in the order in which TensorFlow meets them in one flat graph.
OTHER_ORDER = ("looked_up_outside_too", "loop_in_a_loop", "fed_back", "both_branches")
IDS = [1, 2, 1]
TABLE = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.fixture
def older_control_flow():
    """Control flow of 1.x, put back to what was chosen before."""
    chosen = tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    yield
    if chosen:
        tf.enable_control_flow_v2()


def _rows(indices, values):
    """Slices without their order."""
    return sorted(zip(np.asarray(indices).tolist(), np.round(np.asarray(values, float), 4).tolist()))


@pytest.mark.parametrize("name", [name for name in RECORDED if not name.startswith("trained/")])
def test_gradients_are_slices_where_tensorflows_are(older_control_flow, name):
    """The kind of the gradient, its rows, their order and the global norm are TensorFlow's."""
    version, case, kind = name.split("/")
    if version == "v2":
        tf.enable_control_flow_v2()
    norm, found = lookup_cases.gradients_of(tf, case, kind == "resource")
    tf.disable_control_flow_v2()
    assert norm == pytest.approx(RECORDED[name]["norm"], rel=1e-5)
    for expected, gradient in zip(RECORDED[name]["gradients"], found, strict=True):
        if expected is None:
            assert gradient is None
        elif not isinstance(expected, dict):
            assert isinstance(gradient, np.ndarray)
            np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)
        elif case in OTHER_ORDER:
            indices, values = gradient
            wanted = _rows(expected["indices"], expected["values"])
            assert [row for row, _ in _rows(indices, values)] == [row for row, _ in wanted]
            np.testing.assert_allclose(
                [value for _, value in _rows(indices, values)], [value for _, value in wanted], atol=1e-3
            )
        else:
            indices, values = gradient
            assert indices.tolist() == expected["indices"]
            np.testing.assert_allclose(values, expected["values"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("trained/")])
def test_training_moves_the_rows_that_tensorflow_moves(older_control_flow, name):
    """Twenty clipped steps give TensorFlow's losses and table: rows with a gradient of zero count as used."""
    _, case, optimizer, kind = name.split("/")
    losses, table = lookup_cases.trained(tf, lookup_cases.CASES[case], optimizer, kind == "resource")
    np.testing.assert_allclose(losses, RECORDED[name]["losses"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(table, RECORDED[name]["table"], rtol=1e-5, atol=1e-5)


def test_a_loop_that_never_runs_leaves_a_row_of_zeros(older_control_flow):
    """The gradient is slices all the same, of the table's shape."""
    table = tf.get_variable("table", initializer=TABLE)
    total = tf.while_loop(lambda i, _: i < 0, lambda i, s: (i + 1, s + tf.gather(table, i)[0]), [0, 1.0])[1]
    (g,) = tf.gradients(total, table)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, dense = session.run([g, tf.convert_to_tensor(g)])
    assert found.indices.tolist() == [0] and found.dense_shape.tolist() == [5, 3]
    np.testing.assert_array_equal(found.values, np.zeros([1, 3]))
    np.testing.assert_array_equal(dense, np.zeros_like(TABLE))


@pytest.mark.parametrize("resource", [False, True])
def test_second_derivatives_of_rows_that_a_loop_looked_up(older_control_flow, resource):
    """The values of the slices can be differentiated again, against differences."""
    table = tf.get_variable("table", initializer=TABLE / 10, use_resource=resource)
    ids = tf.constant([1, 2, 1, 4])

    def body(i, total):
        row = tf.gather(table, ids[i])
        return i + 1, total * tf.reduce_sum(row) + tf.reduce_sum(tf.sin(row))

    total = tf.while_loop(lambda i, _: i < 4, body, [0, 1.0])[1]
    (first,) = tf.gradients(total, table)
    weights = np.cos(np.arange(15, dtype=np.float32)).reshape(5, 3)
    assert isinstance(first, tf.IndexedSlices)
    product = tf.reduce_sum(tf.convert_to_tensor(first) * weights)
    (second,) = tf.gradients(product, table)
    value = tf.placeholder(tf.float32, [5, 3])
    assign = tf.assign(table, value)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(tf.convert_to_tensor(second))
        expected = np.zeros_like(TABLE)
        for place in np.ndindex(5, 3):
            moved = []
            for step in (1e-2, -1e-2):
                there = (TABLE / 10).copy()
                there[place] += step
                session.run(assign, {value: there})
                moved.append(session.run(product))
            expected[place] = (moved[0] - moved[1]) / 2e-2
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("call", ["outside", "inside"])
@pytest.mark.parametrize(
    ("program", "indices"),
    [("plain", IDS), ("taken", IDS), ("not_taken", [0, 1, 2, 3, 4]), ("mixed", [0, 1, 2, 3, 4]), ("loop", None)],
)
def test_tapes_see_slices_through_functions_and_branches(eager, program, indices, call):
    """In 2.x a function or branch that looks rows up has slices for gradients; a loop has a dense one."""
    table = tf2.Variable(TABLE)
    yes, no = tf2.constant(True), tf2.constant(False)

    def look():
        return tf2.reduce_sum(tf2.gather(table, IDS))

    def loop():
        return tf2.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + tf2.gather(table, i)[0]), (0, 0.0))[1]

    programs = {
        "plain": look,
        "taken": lambda: tf2.cond(yes, look, lambda: 0.0),
        "not_taken": lambda: tf2.cond(no, look, lambda: 0.0),
        "mixed": lambda: tf2.cond(no, look, lambda: tf2.reduce_sum(table)),
        "loop": loop,
    }

    if call == "outside":
        function = tf2.function(programs[program])
        with tf2.GradientTape() as tape:
            y = function()
        gradient = tape.gradient(y, table)
    else:

        @tf2.function
        def differentiated():
            with tf2.GradientTape() as tape:
                y = programs[program]()
            return tape.gradient(y, table)

        gradient = differentiated()
    assert isinstance(gradient, tf2.IndexedSlices) == (indices is not None)
    if indices is not None:
        assert gradient.indices.numpy().tolist() == indices
        assert gradient.dense_shape.numpy().tolist() == [5, 3]


def test_slices_from_loops_are_read_from_a_graph_of_1_x(older_control_flow):
    """A loop of 1.x that was read from a GraphDef is differentiated as one that was built here."""
    graph_def = tf.GraphDef.FromString(
        (GOLDEN.parent / "graphs" / "interop" / "tensorflow1" / "lookups_of_resource_in_a_loop.pb").read_bytes()
    )
    tf.import_graph_def(graph_def, name="")
    graph = tf.get_default_graph()
    (g,) = tf.gradients(graph.get_tensor_by_name("while/Exit_1:0"), graph.get_tensor_by_name("table:0"))
    assert isinstance(g, tf.IndexedSlices)
    with tf.Session() as session:
        session.run("init")
        assert session.run(g.indices).tolist() == [0, 4, 1, 2, 2, 1, 2]
