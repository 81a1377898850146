"""tf.test: the assertions accept what is right and refuse what is not, with numbers."""

from __future__ import annotations

import os
import unittest

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


@pytest.fixture
def case():
    """A TestCase in the middle of a test."""
    test = tf.test.TestCase("assertAllClose")
    test.setUp()
    yield test
    test.tearDown()


def test_values_of_tensors_structures_and_arrays(case):
    """Tensors are evaluated; dictionaries, sequences and namedtuples are compared part by part."""
    with case.cached_session():
        c = tf.constant([1.0, 2.0])
        case.assertAllClose(c, [1.0, 2.0 + 1e-7])
        case.assertAllClose({"a": [c, 3.0]}, {"a": [[1.0, 2.0], 3.0]})
        case.assertAllClose([[1.0], [1.0, 2.0]], [np.array([1.0]), np.array([1.0, 2.0])])
        case.assertAllEqual(c, [1, 2])
        case.assertAllEqual([np.nan], [np.nan])
        case.assertShapeEqual(np.zeros([2]), c)
        case.assertDTypeEqual(c, np.float32)
        case.assertAllInRange(c, 1, 2)
        case.assertAllInSet(c, [1, 2, 3])
        case.assertNotAllClose(c, [1.0, 2.1])
        case.assertNotAllEqual(c, [1.0, 2.1])
        assert case.evaluate({"x": c})["x"].tolist() == [1, 2]
    case.assertAllCloseAccordingToType(np.float16([1.0]), np.float16([1.0005]))
    case.assertProtoEquals('node { name: "x" }', tf.GraphDef(node=[tf.NodeDef(name="x")]))
    case.assertDeviceEqual("/cpu:0", "/device:CPU:0")
    case.assertItemsEqual([1, 2], [2, 1])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda t: t.assertAllClose([1.0, 2.0], [1.0, 2.1]), r"not close rhs = \[2\.1\]"),
        (lambda t: t.assertAllClose([1.0], [np.nan]), "not close"),
        (lambda t: t.assertAllClose({"a": [1.0]}, {"a": [2.0]}), r"a\[a\] is different from b\[a\]"),
        (lambda t: t.assertAllClose({"a": 1.0}, {"b": 1.0}), "mismatched keys"),
        (lambda t: t.assertAllClose({"a": 1.0}, [1.0]), "non-dict"),
        (lambda t: t.assertAllEqual([1, 2], [1, 3]), r"not equal rhs = \[3\]"),
        (lambda t: t.assertAllEqual([1, 2], [1, 2, 3]), r"expected \(2,\), got \(3,\)"),
        (lambda t: t.assertShapeEqual(np.zeros([2, 3]), tf.zeros([3, 2])), "not equal"),
        (lambda t: t.assertNear(1.0, 1.5, 0.1), r"1\.000000 != 1\.500000"),
        (lambda t: t.assertArrayNear([1.0], [1.5], 0.1), r"1\.000000 != 1\.500000"),
        (lambda t: t.assertAllInRange([1, 5], 0, 3), r"\[1\] : 5"),
        (lambda t: t.assertAllInSet([1, 5], [1]), r"not in the set \[1\]: \[5\]"),
        (lambda t: t.assertAllGreater([1, 5], 1), "not greater than 1"),
        (lambda t: t.assertAllLess([1, 5], 5), "not less than 5"),
        (lambda t: t.assertNotAllClose([1.0], [1.0]), "close at all elements"),
        (lambda t: t.assertNotAllEqual([1.0], [1.0]), "equal at all elements"),
        (lambda t: t.assertDeviceEqual("/cpu:0", "/gpu:0"), "CPU:0 and /device:GPU:0 are not equal"),
    ],
)
def test_differences_are_told(case, check, message):
    """Each assertion fails with what was found."""
    with pytest.raises(AssertionError, match=message):
        check(case)


def test_errors_of_runs(case):
    """assertRaisesOpError looks at the message; another one is an AssertionError."""
    bad = tf.check_numerics(tf.constant(np.nan), "bad")
    with case.session() as session:
        with case.assertRaisesOpError("bad"):
            session.run(bad)
        with case.assertRaisesWithPredicateMatch(tf.errors.OpError, lambda error: error.op is bad.op):
            session.run(bad)
        with pytest.raises(AssertionError, match="bad"), case.assertRaisesOpError("good"):
            session.run(bad)
        with pytest.raises(AssertionError, match="not raised"), case.assertRaisesOpError("good"):
            pass


def test_sessions_and_seeds(case):
    """One cached session in a test; random ops, `random` and NumPy start from fixed seeds, with TensorFlow's numbers."""
    with case.cached_session() as one, case.cached_session() as two, case.test_session() as three:
        assert one is two is three and tf.get_default_session() is one
        np.testing.assert_allclose(one.run(tf.random_uniform([2])), [0.10086262, 0.9701668], rtol=1e-6)
    assert np.random.rand() == 0.18463433217903202
    with pytest.raises(ValueError, match="first call"), case.cached_session(graph=tf.Graph()):
        pass
    with case.session(graph=tf.Graph()) as other:
        assert other is not one


def test_temporary_folders_and_threads(case):
    """A folder for each test; a thread's exception fails the test at join; a thread must be joined."""
    assert case.get_temp_dir() == case.get_temp_dir() and os.path.isdir(case.get_temp_dir())
    thread = case.checkedThread(lambda: 1 // 0)
    thread.start()
    with pytest.raises(AssertionError, match="division"):
        thread.join()
    forgotten = case.checkedThread(lambda: None)
    forgotten.start()
    forgotten._thread.join()
    with pytest.raises(AssertionError, match="not joined"):
        forgotten.check_termination()
    case._threads.clear()


def test_test_session_is_not_a_test():
    """The runner takes the method for a test by its name; it skips itself."""
    result = unittest.TestResult()
    tf.test.TestCase("test_session").run(result)
    assert len(result.skipped) == 1 and not result.errors


def test_gradients_are_checked():
    """Both Jacobians of a right gradient agree; a wrong one shows."""
    with tf.Session():
        x = tf.constant([1.0, 2.0])
        theory, numeric = tf.test.compute_gradient(x, [2], x * x, [2], x_init_value=np.array([1.0, 3.0]))
        np.testing.assert_allclose(theory, [[2, 0], [0, 6]])
        np.testing.assert_allclose(numeric, theory, atol=1e-2)
        assert tf.test.compute_gradient_error(x, [2], tf.tanh(x), [2]) < 1e-2
        wrong = tf.stop_gradient(x) * x
        assert tf.test.compute_gradient_error(x, [2], wrong, [2], x_init_value=np.array([1.0, 2.0])) > 0.5
        pairs = tf.test.compute_gradient([x, wrong], [[2], [2]], x + wrong, [2])
        assert len(pairs) == 2


def test_graphs_are_compared():
    """assert_equal_graph_def looks at nodes, not at their order."""

    def graph(value):
        with tf.Graph().as_default() as made:
            tf.constant(value, name="q")
            tf.no_op(name="n")
        return made.as_graph_def()

    turned = tf.GraphDef(node=list(reversed(graph(1.0).node)))
    tf.test.assert_equal_graph_def(graph(1.0), turned)
    with pytest.raises(AssertionError, match="Node named 'q' has attr 'value'"):
        tf.test.assert_equal_graph_def(graph(1.0), graph(2.0))
    with pytest.raises(AssertionError, match="expected node 'n'"):
        tf.test.assert_equal_graph_def(tf.GraphDef(node=[graph(1.0).node[0]]), graph(1.0))
    with pytest.raises(TypeError):
        tf.test.assert_equal_graph_def(1, 2)


def test_benchmarks_measure_and_report(capsys):
    """run_op_benchmark runs an op and prints an entry; classes are found by tf.test.main."""

    class Products(tf.test.Benchmark):
        def benchmark_product(self):
            with tf.Session() as session:
                return self.run_op_benchmark(session, tf.matmul(tf.ones([4, 4]), tf.ones([4, 4])), min_iters=3, mbs=1)

    found = Products().benchmark_product()
    assert found["iters"] == 3 and found["wall_time"] > 0 and found["throughput"] > 0
    assert '"iters": 3' in capsys.readouterr().out
    with pytest.raises(SystemExit):
        tf.test.main(["prog", "--benchmarks=Products"])
    assert "Products.benchmark_product" in capsys.readouterr().out
    assert not Products.is_abstract() and tf.test.Benchmark.is_abstract()


def test_gradients_against_differences_in_eager_mode(eager):
    """tf.test.compute_gradient of 2.x gives the Jacobian twice: a row for each result, a column for each argument."""
    x, y = tf2.constant([[1.0, 2.0]], tf.float64), tf2.constant([[1.0], [3.0]], tf.float64)
    taped, measured = tf2.test.compute_gradient(tf2.linalg.matmul, [x, y])
    for found in (taped, measured):
        np.testing.assert_allclose(found[0], [[1, 3]], atol=1e-6)
        np.testing.assert_allclose(found[1], [[1, 2]], atol=1e-6)
    (matrix,), _ = tf2.test.compute_gradient(lambda z: z * (2 + 1j), [tf2.constant([1 + 1j], tf.complex128)])
    np.testing.assert_allclose(matrix, [[2, -1], [1, 2]])
    with pytest.raises(ValueError, match="must be a list or tuple"):
        tf2.test.compute_gradient(lambda z: z, 3.0)
    with pytest.raises(AssertionError, match="unsupported type int32"):
        tf2.test.compute_gradient(lambda z: z, [tf2.constant([1])])
