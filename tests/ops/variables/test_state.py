"""Ops on variables: scattering, counting, reports, protos, in graph and eager mode."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.ops.variables import scatter_ops, state_ops

START = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS = [1, 3, 1]
UPDATES = np.array([[2, 3, 4], [1, 2, 3], [5, 1, 2]], np.float32)


def _scattered(kind, start, rows, updates):
    """What scattering row by row does."""
    result = start.copy()
    for row, update in zip(rows, updates):
        old = result[row]
        result[row] = {
            "update": lambda a, b: b,
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": lambda a, b: a / b if start.dtype.kind == "f" else np.trunc(a / b).astype(start.dtype),
            "min": np.minimum,
            "max": np.maximum,
        }[kind](old, update)
    return result


KINDS = ["update", "add", "sub", "mul", "div", "min", "max"]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scatter_changes_rows_in_order(kind, use_resource):
    """tf.scatter_* applies each update to its row; repeated rows are met one after the other."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    changed = getattr(tf, f"scatter_{kind}")(variable, ROWS, UPDATES)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = _scattered(kind, START, ROWS, UPDATES)
        np.testing.assert_allclose(session.run(changed), expected, rtol=1e-6)
        np.testing.assert_allclose(session.run(variable), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int32", "int64", "float64", "complex64", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_scatter_of_every_dtype(kind, dtype):
    """Scattering is right for small, unsigned and complex numbers, also above the signed range."""
    start, updates = START.astype(dtype), UPDATES.astype(dtype)
    if dtype.startswith("uint"):
        start = start + np.array(np.iinfo(dtype).max - 100).astype(dtype)
    if dtype == "complex64" and kind in ("min", "max"):
        pytest.skip("complex numbers have no order")
    variable = tf.get_variable("v", initializer=tf.constant(start), use_resource=True)
    changed = getattr(tf, f"scatter_{kind}")(variable, ROWS, tf.constant(updates))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(changed)
        assert found.dtype == start.dtype
        if kind == "div" and dtype.startswith("uint"):
            expected = start.copy()
            for row, update in zip(ROWS, updates):
                expected[row] //= update
        elif kind == "div" and dtype == "complex64":
            expected = start.copy()
            for row, update in zip(ROWS, updates):
                expected[row] = expected[row] / update
        else:
            expected = _scattered(kind, start, ROWS, updates)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
def test_scatter_with_one_number_for_all(use_resource):
    """A scalar update serves every index, and indices may have any rank."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    changed = tf.scatter_add(variable, [[0], [2]], 10.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = START.copy()
        expected[[0, 2]] += 10
        np.testing.assert_array_equal(session.run(changed), expected)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    ("indices", "updates", "text"),
    [
        ([4], np.ones([1, 3]), r"indices\[0\] = 4 is not in \[0, 4\)"),
        ([[1, -1]], np.ones([1, 2, 3]), r"indices\[0,1\] = -1 is not in \[0, 4\)"),
        ([1], np.ones([1, 2]), "updates.shape = indices.shape"),
    ],
)
def test_scatter_refuses_bad_input(use_resource, indices, updates, text):
    """An index outside, or updates of another shape, raise InvalidArgumentError and change nothing."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    at, by = tf.placeholder(tf.int32), tf.placeholder(tf.float32)
    changed = tf.scatter_update(variable, at, by)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(changed, {at: indices, by: updates})
        np.testing.assert_array_equal(session.run(variable), START)


@pytest.mark.parametrize("use_resource", [False, True])
def test_scatter_before_initialization(use_resource):
    """Scattering into a variable without a value raises FailedPreconditionError."""
    variable = tf.get_variable("v", [2], use_resource=use_resource)
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
        session.run(tf.scatter_add(variable, [0], [1.0]))


@pytest.mark.parametrize("use_resource", [False, True])
def test_scatter_nd_at_coordinates(use_resource):
    """scatter_nd_* reach elements and slices; coordinates that meet add up."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.scatter_nd_update(variable, [[0, 1], [2, 2]], [7.0, 8.0]))
        session.run(tf.scatter_nd_add(variable, [[1], [1]], UPDATES[:2]))
        session.run(variable.scatter_nd_sub([[3, 0]], [1.0]))
        session.run(variable.scatter_nd_max([[3, 1]], [100.0]))
        session.run(variable.scatter_nd_min([[3, 2]], [-1.0]))
        expected = START.copy()
        expected[0, 1], expected[2, 2] = 7, 8
        expected[1] += UPDATES[0] + UPDATES[1]
        expected[3] = [8, 100, -1]
        np.testing.assert_array_equal(session.run(variable), expected)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into shape"):
            session.run(tf.scatter_nd_update(variable, tf.constant([[0, 3]]), [7.0]))
        with pytest.raises(ValueError, match="equal rank"):
            tf.scatter_nd_update(variable, tf.constant([[0]]), [7.0])


@pytest.mark.parametrize("use_resource", [False, True])
def test_methods_take_indexed_slices(use_resource):
    """Variable.scatter_* take IndexedSlices and nothing else."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    slices = tf.IndexedSlices(tf.constant(UPDATES), tf.constant(ROWS))
    with tf.Session() as session:
        for kind in KINDS:
            session.run(tf.global_variables_initializer())
            found = session.run(getattr(variable, f"scatter_{kind}")(slices))
            np.testing.assert_allclose(found, _scattered(kind, START, ROWS, UPDATES), rtol=1e-6)
    with pytest.raises(TypeError, match="IndexedSlices"):
        variable.scatter_add(UPDATES)
    with pytest.raises(TypeError, match="IndexedSlices"):
        variable.batch_scatter_update(UPDATES)


@pytest.mark.parametrize("use_resource", [False, True])
def test_batch_scatter_update(use_resource):
    """batch_scatter_update sets an element of each batch."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    changed = tf.batch_scatter_update(variable, [[0], [1], [2], [0]], [[1.0], [2.0], [3.0], [4.0]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = START.copy()
        expected[range(4), [0, 1, 2, 0]] = [1, 2, 3, 4]
        np.testing.assert_array_equal(session.run(changed), expected)


def test_strings_are_scattered():
    """A variable of strings takes new rows."""
    variable = tf.get_variable("s", initializer=tf.constant(["a", "b", "c"]), use_resource=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.scatter_update(variable, [1], ["x"])).tolist() == [b"a", b"x", b"c"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_count_up_to(use_resource):
    """count_up_to returns the count before, and raises OutOfRangeError at the limit without counting on."""
    counter = tf.get_variable("c", initializer=0, use_resource=use_resource)
    ticket = counter.count_up_to(2)
    assert ticket.dtype == tf.int32
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert [session.run(ticket), session.run(tf.count_up_to(counter, 5))] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
            session.run(ticket)
        assert session.run(counter) == 2


def test_sparse_read_and_gather_nd():
    """Resource variables give rows and elements without reading the rest, and their gradient is IndexedSlices."""
    variable = tf.get_variable("v", initializer=START, use_resource=True)
    rows, elements = variable.sparse_read([2, 0, 2]), variable.gather_nd([[1, 1], [3, 2]])
    assert rows.shape.as_list() == [3, 3] and elements.shape.as_list() == [2]
    (gradient,) = tf.gradients(rows * 2.0, variable)
    assert isinstance(gradient, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(rows), START[[2, 0, 2]])
        assert session.run(elements).tolist() == [4, 11]
        found = session.run(gradient)
        assert found.indices.tolist() == [2, 0, 2] and found.values.tolist() == [[2.0] * 3] * 3
        assert found.dense_shape.tolist() == [4, 3]
        dense = session.run(tf.gradients(elements, variable)[0])
        dense = dense if isinstance(dense, np.ndarray) else None
        assert dense is not None and dense[1, 1] == dense[3, 2] == 1 and dense.sum() == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="4"):
            session.run(variable.sparse_read(tf.placeholder_with_default([4], [1])))


@pytest.mark.parametrize("use_resource", [False, True])
def test_slices_are_assigned(use_resource):
    """`variable[...].assign(value)` changes that part."""
    variable = tf.get_variable("v", initializer=START, use_resource=use_resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(variable[1:3, 0].assign([50.0, 60.0]))
        expected = START.copy()
        expected[1:3, 0] = [50, 60]
        np.testing.assert_array_equal(session.run(variable), expected)


def test_assignments_chain():
    """What assign returns for a resource variable is a variable again: reading it waits for the update."""
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    first = variable.assign(5.0)
    assert first.op.type == "AssignVariableOp" and first.name == "AssignVariableOp"
    total = first.assign_add(2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(first) == 5
        with tf.control_dependencies([first]):
            following = variable.assign_add(2.0)
        assert session.run(following) == 7
        assert session.run(total) in (7, 9)
        assert session.run(first + 1.0) == 6


@pytest.mark.parametrize("use_resource", [False, True])
def test_uninitialized_variables_are_reported(use_resource):
    """report_uninitialized_variables names what has no value; assert_variables_initialized fails until all have one."""
    first = tf.get_variable("a", [2], use_resource=use_resource)
    second = tf.get_variable("b", [2], use_resource=use_resource)
    tf.get_variable(
        "local", [1], use_resource=use_resource, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False
    )
    report, check, flag = (
        tf.report_uninitialized_variables(),
        tf.assert_variables_initialized(),
        tf.is_variable_initialized(first),
    )
    with tf.Session() as session:
        assert session.run(report).tolist() == [b"a", b"b", b"local"]
        assert not session.run(flag)
        session.run(first.initializer)
        assert session.run(report).tolist() == [b"b", b"local"] and session.run(flag)
        assert session.run(tf.report_uninitialized_variables([second])).tolist() == [b"b"]
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(check)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(check)
        assert session.run(report).shape == (0,)


def test_reports_of_no_variables():
    """Without variables the report is an empty vector of strings and there is nothing to assert."""
    with tf.Session() as session:
        assert session.run(tf.report_uninitialized_variables()).shape == (0,)
    assert tf.assert_variables_initialized() is None


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_survive_as_protos(use_resource):
    """to_proto names the ops of a variable; from_proto finds them again, under an import scope too."""
    with tf.variable_scope("net"):
        made = tf.get_variable(
            "w", [2, 2], initializer=tf.ones_initializer(), trainable=False, use_resource=use_resource
        )
    proto = made.to_proto()
    assert proto.variable_name == "net/w:0" and proto.initializer_name == "net/w/Assign"
    assert proto.is_resource == use_resource and not proto.trainable
    assert proto.initial_value_name == "net/w/Initializer/ones:0"
    assert made.to_proto("other") is None and made.to_proto("net").variable_name == "w:0"
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="copy")
        found = tf.Variable.from_proto(proto, import_scope="copy")
        assert found.name == "copy/net/w:0" and found.shape.as_list() == [2, 2] and not found.trainable
        session.run(found.initializer)
        assert session.run(found.read_value()).tolist() == [[1, 1], [1, 1]]


def test_slice_info_survives_as_proto():
    """The slices of a partitioned variable keep their place in the whole."""
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        pieces = list(tf.get_variable("w", [4, 2]))
    proto = pieces[1].to_proto()
    info = proto.save_slice_info_def
    assert (info.full_name, list(info.full_shape), list(info.var_offset), list(info.var_shape)) == (
        "p/w",
        [4, 2],
        [2, 0],
        [2, 2],
    )
    assert tf.Variable.from_proto(proto)._get_save_slice_info().spec == pieces[1]._get_save_slice_info().spec


def test_old_variable_op_and_temporary_variables():
    """Graphs with the first form of the variable op, and with temporary variables, run."""
    old = state_ops.VARIABLE(shape=[], dtype=tf.float32, name="old")
    assert old.shape.ndims is None
    temporary = state_ops.TEMPORARY_VARIABLE(shape=[2], dtype=tf.float32, var_name="t")
    total = state_ops.DESTROY_TEMPORARY_VARIABLE(
        tf.assign_add(tf.assign(temporary, [1.0, 2.0]), [1.0, 1.0]), var_name="t"
    )
    with tf.Session() as session:
        assert session.run(tf.assign(old, [1.0, 2.0], validate_shape=False)).tolist() == [1, 2]
        assert session.run(total).tolist() == [2, 3]
        assert session.run(total).tolist() == [2, 3]


def test_destroyed_resources_are_empty():
    """DestroyResourceOp takes a variable's value away; destroying twice is an error only when asked."""
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    destroy = state_ops.DESTROY_RESOURCE_OP(variable.handle)
    strict = state_ops.DESTROY_RESOURCE_OP(variable.handle, ignore_lookup_error=False)
    size = scatter_ops.VARIABLE_SHAPE(variable.handle)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(size).tolist() == []
        session.run([destroy])
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(variable)
        session.run(destroy)
        with pytest.raises(tf.errors.NotFoundError, match="v does not exist"):
            session.run(strict)


def test_eager_variables_scatter(eager):
    """The same methods work at once in eager mode, and the tape sees sparse reads."""
    variable = tf2.Variable(START, name="w")
    assert variable.name == "w:0" and variable.trainable and variable.shape == (4, 3)
    variable.scatter_add(tf2.IndexedSlices(tf2.constant(UPDATES), tf2.constant(ROWS)))
    np.testing.assert_array_equal(variable.numpy(), _scattered("add", START, ROWS, UPDATES))
    variable.scatter_nd_update([[0, 0]], [9.0])
    assert variable.numpy()[0, 0] == 9 and variable.sparse_read([0]).numpy()[0, 0] == 9
    assert variable.gather_nd([[0, 0]]).numpy().tolist() == [9]
    variable[0, 1].assign(4.0)
    assert variable.numpy()[0, 1] == 4
    counter = tf2.Variable(0)
    assert counter.count_up_to(1).numpy() == 0
    with pytest.raises(tf.errors.OutOfRangeError):
        counter.count_up_to(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        variable.scatter_update(tf2.IndexedSlices(tf2.constant([[1.0, 2, 3]]), tf2.constant([9])))


def test_fetched_references_show_the_end_of_the_step():
    """Whatever updates a run makes, all fetches of a 1.x variable (and of what its updates return) see their end."""
    v, step = tf.Variable(1.0), tf.Variable(0, trainable=False)
    first = tf.assign_add(v, 1.0)
    with tf.control_dependencies([first]):
        second = tf.assign_add(v, 10.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(v * 2.0, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([first, v, v.value(), second]) == [12.0] * 4
        assert session.run([step, train, v.value() + 0.0])[0] == 1
        kept, _ = session.run([v, first])
        session.run(first)
        assert kept == np.float32(12.8)


def test_create_partitioned_variables():
    """Slices of a whole under its name; reused on request; bad slicings name both lists."""
    with tf.Graph().as_default(), tf.Session() as session:
        whole = np.arange(10, dtype=np.float32).reshape(5, 2)
        parts = tf.create_partitioned_variables([5, 2], [2, 1], whole, name="table")
        assert [part.op.name for part in parts] == ["table/part_0", "table/part_1"]
        again = tf.create_partitioned_variables([5, 2], [2, 1], whole, name="table", reuse=True)
        assert all(a is b for a, b in zip(parts, again))
        unnamed = tf.create_partitioned_variables([2], [1], tf.zeros_initializer(), trainable=False)
        assert unnamed[0].op.name == "PartitionedVariable/part_0"
        assert tf.trainable_variables() == parts
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(np.concatenate(session.run(parts)), whole)
        with pytest.raises(ValueError, match="already exists"):
            tf.create_partitioned_variables([5, 2], [2, 1], whole, name="table")
        with pytest.raises(ValueError, match=r"shape: \[4, 2\], slicing: \[3\]"):
            tf.create_partitioned_variables([4, 2], [3], tf.zeros_initializer())
        with pytest.raises(ValueError, match="along one dimension"):
            tf.create_partitioned_variables([4, 2], [2, 2], tf.zeros_initializer())
