"""`tf.test`: unittest for programs that use tensors."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock as mock  # public as tf.test.mock

import numpy as np
import torch
from absl.testing import absltest
from google.protobuf import text_format

from stoker._src.base import nest
from stoker._src.base.app import get_data_files_path, run
from stoker._src.base.devices import canonical_name
from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import TensorShape
from stoker._src.formats.protos import ConfigProto, RunMetadata, RunOptions
from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.session import Session
from stoker._src.runtime.trace import Timeline

SEED = 87654321
_NARROW = {"float32": "float", "complex64": "float", "float16": "half", "bfloat16": "bfloat16"}


class TestCase(absltest.TestCase):
    """unittest's TestCase with sessions, seeds and assertions about tensors.

    Every test starts with an empty default graph and fixed seeds for the graph, `random` and NumPy. Assertions that take arrays
    also take tensors, which are evaluated in the test's session.
    """

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[Any] = []
        self._folder: str | None = None
        self._cached: Session | None = None
        self._cached_for: tuple[Any, ...] = ()

    def setUp(self) -> None:
        super().setUp()
        random.seed(SEED)
        np.random.seed(SEED)
        context.reset_default_graph()
        context.get_default_graph().seed = SEED
        self._close_cached()

    def tearDown(self) -> None:
        for thread in self._threads:
            thread.check_termination()
        self._close_cached()
        super().tearDown()

    def _close_cached(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None

    def get_temp_dir(self) -> str:
        """Returns a folder for this test. It is empty at first, and the same at every call."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self._folder

    # -- sessions ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Session]:
        """Returns a session that is the default session inside the context and closed at the end."""
        with self._new_session(graph, config, force_gpu) as session, self._placed(session, use_gpu, force_gpu):
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Session]:
        """Returns the test's session, which is created at the first call. Variables keep their values between blocks.

        Raises:
            ValueError: the graph, config or `force_gpu` differs from that of the first call.
        """
        wanted = (graph, None if config is None else config.SerializeToString(), force_gpu)
        if self._cached is None:
            self._cached, self._cached_for = self._new_session(graph, config, force_gpu), wanted
        elif wanted[0] is not self._cached_for[0] or wanted[1:] != self._cached_for[1:]:
            raise ValueError(
                "The graph, config and force_gpu of cached_session() must be those of its first call in this test; "
                "maybe create a new session with self.session()?"
            )
        cached = self._cached
        with cached.graph.as_default(), cached.as_default(), self._placed(cached, use_gpu, force_gpu):
            yield cached

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Any:
        """Deprecated: `session` if a graph is given, else `cached_session`."""
        if self._testMethodName == "test_session":  # the runner takes this method for a test because of its name
            self.skipTest("Not a test.")
        chosen = self.cached_session if graph is None else self.session
        return chosen(graph, config, use_gpu, force_gpu)

    def _new_session(self, graph: Graph | None, config: Any, force_gpu: bool) -> Session:
        settings = ConfigProto()
        if config is not None:
            settings.CopyFrom(config)
        settings.allow_soft_placement = not force_gpu
        chosen: Graph = context.get_default_graph() if graph is None else graph
        if chosen.seed is None:
            chosen.seed = SEED
        return Session(graph=chosen, config=settings)

    @contextlib.contextmanager
    def _placed(self, session: Session, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
        if force_gpu:
            with session.graph.device(gpu_device_name() or "/device:GPU:0"):
                yield
        elif use_gpu:
            yield
        else:
            with session.graph.device("/device:CPU:0"):
                yield

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values of a structure of tensors, in graph or eager mode."""
        if context.executing_eagerly():
            return nest.map_structure(_eager_value, tensors)
        session = context.get_default_graph().default_session()
        if session is None:
            with self.cached_session() as session:
                return session.run(tensors)
        return session.run(tensors)

    def _value(self, item: Any) -> Any:
        """Returns `item` with the tensors in it evaluated."""
        if isinstance(item, (Tensor, SparseTensor, IndexedSlices)) or hasattr(item, "read_value"):
            return self.evaluate(item)
        if hasattr(item, "numpy") and callable(item.numpy):
            return item.numpy()
        return item

    def _array(self, item: Any) -> np.ndarray:
        item = self._value(item)
        if isinstance(item, (list, tuple)) and any(isinstance(part, Tensor) for part in item):
            item = [self._value(part) for part in item]
        return item if isinstance(item, np.ndarray) else np.array(item)

    # -- assertions about values ---------------------------------------------------------------------------------

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Asserts that two structures (dicts, sequences, namedtuples) of arrays agree: |a - b| <= atol + rtol * |b|."""
        self._close(a, b, rtol, atol, [], msg)

    def _close(self, a: Any, b: Any, rtol: float, atol: float, path: list[str], msg: str | None) -> None:
        a, b = _as_mapping(a), _as_mapping(b)
        where = "".join(f"[{part}]" for part in path)
        message = f"{msg}: " if msg else ""
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            self.fail(f"{message}Can't compare dict to non-dict, a{where} vs b{where}.")
        if isinstance(a, Mapping):
            self.assertCountEqual(a.keys(), b.keys(), f"{message}mismatched keys: a{where} and b{where}.")
            for key in a:
                self._close(a[key], b[key], rtol, atol, [*path, str(key)], msg)
            return
        if isinstance(a, (list, tuple)):
            try:
                left = self._array(a)
                self._array(b)
                ragged = left.dtype == object and left.ndim < 2
            except (ValueError, TypeError):
                ragged = True
            if ragged:
                self.assertLen(b, len(a), f"{message}Mismatched length: a{where} has {len(a)} items.")
                for i, (x, y) in enumerate(zip(a, b)):
                    self._close(x, y, rtol, atol, [*path, str(i)], msg)
                return
        self._arrays_close(
            self._array(a),
            self._array(b),
            rtol,
            atol,
            f"{message}Mismatched value: a{where} is different from b{where}.",
        )

    def _arrays_close(self, a: np.ndarray, b: np.ndarray, rtol: float, atol: float, message: str) -> None:
        if np.size(a) == 1 and np.size(b) == 1 and a.ndim != b.ndim:
            a, b = a.reshape(()), b.reshape(())
        self.assertEqual(a.shape, b.shape, f"{message} Shape mismatch: expected {a.shape}, got {b.shape}.")
        a, b = _wide(a), _wide(b)
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            away = np.abs(a - b)
            far = away > atol + rtol * np.abs(b)
            far |= np.isnan(a) != np.isnan(b)
            index = np.where(np.atleast_1d(far))
            lhs, rhs = np.atleast_1d(a)[index], np.atleast_1d(b)[index]
            self.fail(
                f"\nNot equal to tolerance rtol={rtol:g}, atol={atol:g}\n{message}\nnot close where = {index}\n"
                f"not close lhs = {lhs}\nnot close rhs = {rhs}\nnot close dif = {np.abs(lhs - rhs)}\n"
                f"not close tol = {atol + rtol * np.abs(rhs)}\ndtype = {a.dtype}, shape = {a.shape}"
            )

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Like `assertAllClose`, with the tolerances of the less precise of the two dtypes."""
        a, b = self._array(a), self._array(b)
        kinds = {_NARROW.get(str(x.dtype)) for x in (a, b)}
        for kind, looser_r, looser_a in (
            ("float", float_rtol, float_atol),
            ("half", half_rtol, half_atol),
            ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):
            if kind in kinds:
                rtol, atol = max(rtol, looser_r), max(atol, looser_a)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Asserts that two structures differ somewhere by more than the tolerances."""
        try:
            self.assertAllClose(a, b, rtol, atol, msg)
        except AssertionError:
            return
        raise AssertionError(f"The two values are close at all elements. {msg or ''}".rstrip())

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays have the same shape and elements. NaN equals NaN."""
        a, b = self._array(a), self._array(b)
        note = f" {msg}" if msg else ""
        if not (b.ndim <= 3 and b.size < 500):
            note = f"{note} (contents too large to show)"
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}.{note}")
        same = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b)))
        if not np.all(same):
            index = np.where(np.atleast_1d(np.logical_not(same)))
            self.fail(
                f"\nArrays are not equal\n{note}\nnot equal where = {index}\n"
                f"not equal lhs = {np.atleast_1d(a)[index]}\nnot equal rhs = {np.atleast_1d(b)[index]}"
            )

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays differ somewhere."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(f"The two values are equal at all elements. {msg or ''}".rstrip())

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Asserts that every element is greater than the target."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Asserts that every element is less than the target."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that every element is greater than or equal to the target."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Asserts that every element is less than or equal to the target."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Asserts that every element is in the set."""
        found = np.unique(self._array(target))
        outside = [item for item in found.tolist() if item not in expected_set]
        if outside:
            self.fail(f"{len(outside)} unique element(s) are not in the set {expected_set}: {outside}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Asserts that every element is in a range, whose bounds may be excluded."""
        values = self._array(target)
        if not (np.issubdtype(values.dtype, np.number) and values.dtype.kind != "c"):
            self.fail(
                f"The value of {target} does not have an ordered numeric type, instead it has type: {values.dtype}"
            )
        low = values <= lower_bound if open_lower_bound else values < lower_bound
        high = values >= upper_bound if open_upper_bound else values > upper_bound
        bad = np.argwhere(np.atleast_1d(low | high | np.isnan(values)))
        if len(bad):
            written = (
                f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}{')' if open_upper_bound else ']'}"
            )
            listed = "\n".join(f"  {list(map(int, at))} : {np.atleast_1d(values)[tuple(at)]}" for at in bad[:10])
            self.fail(
                f"{len(bad)} of the {values.size} element(s) are outside the range {written}. "
                f"Subscript(s) and value(s) of the offending elements:\n{listed}"
            )

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Asserts that |f1 - f2| <= err, or that both are the same infinity."""
        self.assertTrue(
            f1 == f2 or abs(f1 - f2) <= err, f"{f1:f} != {f2:f} +/- {err:f}{f' ({msg})' if msg is not None else ''}"
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Asserts that two sequences of numbers agree elementwise to within `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """Asserts that the Euclidean distance of two arrays is less than `err`."""
        self.assertLess(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)), err, msg)

    # -- other assertions ----------------------------------------------------------------------------------------

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Asserts that two arrays or tensors have the same shape."""
        self.assertAllEqual(_dims(input_a), _dims(input_b), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Asserts that the values have the dtype."""
        self.assertEqual(self._array(target).dtype, expected_dtype)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Asserts that two device names are equivalent."""
        one, other = canonical_name(device1), canonical_name(device2)
        self.assertEqual(one, other, f"Devices {one} and {other} are not equal. {msg or ''}")

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, validate_message: Any, msg: str | None = None
    ) -> None:
        """Asserts that a message equals another message, or one in text format."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            text = expected.decode() if isinstance(expected, bytes) else expected
            expected = text_format.Parse(text, type(validate_message)())
        if not hasattr(expected, "SerializeToString"):
            self.fail(f"Can't compare protos of type {type(expected)} and {type(validate_message)}.")
        self.assertMultiLineEqual(str(expected), str(validate_message), msg)

    def assertProtoEqualsVersion(
        self, expected: str, actual: Any, producer: int = 134, min_consumer: int = 0, msg: str | None = None
    ) -> None:
        """Asserts that a GraphDef equals one in text format, which omits the versions."""
        consumer = f" min_consumer: {min_consumer}" if min_consumer else ""
        self.assertProtoEquals(f"versions {{ producer: {producer}{consumer} }}\n{expected}", actual, msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Iterator[Any]:
        """Asserts that the block raises the exception, and that a regular expression or a predicate matches it."""
        wanted = expected_err_re_or_predicate
        try:
            yield
        except BaseException as error:
            if not isinstance(error, exception_type):
                raise
            text = f"{error.message}\n{error}" if isinstance(error, OpError) else str(error)
            fits = wanted(error) if callable(wanted) else re.search(wanted, text)
            if not fits:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
            return
        self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Like `assertRaisesWithPredicateMatch` for `tf.errors.OpError`."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(self, exception_type: Any = InvalidArgumentError) -> Any:
        """Asserts that the block raises an error about incompatible shapes."""
        return self.assertRaisesWithPredicateMatch(
            exception_type, r"(Incompatible|mismatched|[Dd]imensions|must have the same shape|inner dimensions)"
        )

    assertRaisesRegexp = absltest.TestCase.assertRaisesRegex
    assertItemsEqual: Any = absltest.TestCase.assertCountEqual

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> CheckedThread:
        """Returns a thread whose exception fails the test when it is joined. It must be joined."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread


class CheckedThread:
    """A thread that keeps its exception for `join`."""

    def __init__(self, testcase: TestCase, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> None:
        self._testcase, self._target, self._args, self._kwargs = testcase, target, args or (), kwargs or {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self._joined = False

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the thread, and fails the test if the thread raised an exception."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._testcase.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test if the thread was not joined."""
        if not self._joined:
            self._testcase.fail("A checked thread was not joined." + (" It is alive." if self.is_alive() else ""))


def _as_mapping(item: Any) -> Any:
    """Returns namedtuples and composite values as mappings by field, so that they are compared field by field."""
    if isinstance(item, (SparseTensorValue, IndexedSlicesValue)) or hasattr(item, "_asdict"):
        return item._asdict()
    return item


def _eager_value(item: Any) -> Any:
    return item.numpy() if hasattr(item, "numpy") else item


def _wide(array: np.ndarray) -> np.ndarray:
    """Converts arrays so that NumPy can subtract them: half precision to float32, booleans and unsigned numbers to signed."""
    if array.dtype.kind in "fc" and array.dtype.itemsize >= 4:
        return array
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    return array.astype(np.float32)


def _dims(item: Any) -> list[Any]:
    if not isinstance(item, (np.ndarray, np.generic, Tensor)) and not hasattr(item, "shape"):
        raise TypeError(f"input must be a Numpy array or a tensor, got {type(item)}")
    return TensorShape(item.shape).as_list()


class _BenchmarkRegistry(type):
    """Registers the benchmark classes of a program."""

    classes: list[type] = []

    def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
        super().__init__(name, bases, namespace)
        if bases:
            _BenchmarkRegistry.classes.append(cls)


class Benchmark(metaclass=_BenchmarkRegistry):
    """A class with `benchmark*` methods. `tf.test.main` runs them with `--benchmarks=REGEX`."""

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether this class has no benchmarks to run."""
        return cls is Benchmark

    def _get_name(self, overwrite_name: str | None = None) -> str:
        return f"{type(self).__name__}.{overwrite_name or self._running}"

    _running = "benchmark"

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Prints the measurements as one line of JSON."""
        entry = {
            "name": self._get_name(name), "iters": iters, "cpu_time": cpu_time, "wall_time": wall_time,
            "throughput": throughput, "extras": dict(extras or {}), "metrics": metrics,
        }  # fmt: skip
        print("entry " + json.dumps({key: value for key, value in entry.items() if value not in (None, {})}))

    def evaluate(self, tensors: Any) -> Any:
        """Returns the values of a structure of tensors, in the default session or eagerly."""
        if context.executing_eagerly():
            return nest.map_structure(_eager_value, tensors)
        session = context.get_default_graph().default_session()
        if session is None:
            session = Session()
        return session.run(tensors)

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: Mapping[str, Any] | None = None,
        mbs: int = 0,
    ) -> dict[str, Any]:
        """Runs an op `min_iters` times, after `burn_iters` uncounted runs, and reports the median time.

        Args:
            sess: the session.
            op_or_tensor, feed_dict: the op to run and its feeds.
            burn_iters, min_iters: the numbers of uncounted and of counted runs.
            store_trace: whether to add a traced run to the extras.
            store_memory_usage: whether to add the peak memory of a GPU to the extras.
            name: the name of the entry; the method's name by default.
            extras: additional values to report.
            mbs: megabytes that one run processes, for the throughput.

        Returns:
            The reported values.
        """
        target = op_or_tensor.op if isinstance(op_or_tensor, Tensor) else op_or_tensor
        for _ in range(burn_iters):
            sess.run(target, feed_dict)
        times = []
        for _ in range(min_iters):
            start = time.perf_counter()
            sess.run(target, feed_dict)
            times.append(time.perf_counter() - start)
        found = dict(extras or {})
        if store_trace:
            metadata = RunMetadata()
            sess.run(target, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
            found["full_trace_chrome_format"] = Timeline(metadata.step_stats).generate_chrome_trace_format()
        if store_memory_usage and torch.cuda.is_available():
            found["allocator_maximum_num_bytes_gpu"] = torch.cuda.max_memory_allocated()
        median = float(np.median(times)) if times else -1.0
        throughput = mbs / median if mbs and times else None
        self.report_benchmark(iters=min_iters, wall_time=median, throughput=throughput, extras=found, name=name)
        result: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": found,
            "name": self._get_name(name),
        }
        if throughput is not None:
            result["throughput"] = throughput
        return result


def _run_benchmarks(pattern: str) -> None:
    """Runs the benchmarks whose name (Class.method) matches the pattern; "all" or "." runs all of them."""
    wanted = re.compile(".*" if pattern == "all" else pattern)
    for cls in _BenchmarkRegistry.classes:
        for method in sorted(name for name in dir(cls) if name.startswith("benchmark")):
            if wanted.search(f"{cls.__name__}.{method}"):
                context.reset_default_graph()
                instance = cls()
                instance._running = method
                getattr(instance, method)()


# -- module-level functions ------------------------------------------------------------------------------------------


def main(argv: Any = None) -> None:
    """Parses the flags, runs the tests of the program, and exits with their status.

    With `--benchmarks=REGEX` on the command line, it runs the benchmarks instead.
    """
    arguments = list(sys.argv if argv is None else argv)
    chosen = [argument for argument in arguments if argument.startswith("--benchmarks=")]
    if chosen:
        pattern = chosen[0].partition("=")[2]
        run(main=lambda rest: _run_benchmarks(pattern), argv=[a for a in arguments if a not in chosen])
    run(main=lambda arguments: absltest.main(argv=arguments), argv=argv)


def get_temp_dir() -> str:
    """Returns a folder for files of this test program (`$TEST_TMPDIR`, or a temporary one)."""
    global _temp_dir
    if _temp_dir is None:
        _temp_dir = os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp(prefix="stoker_test_")
        os.makedirs(_temp_dir, exist_ok=True)
    return _temp_dir


_temp_dir: str | None = None


def test_src_dir_path(relative_path: str) -> str:
    """Returns a path relative to the caller's file (or to `$TEST_SRCDIR`, if a test runner sets it)."""
    base = os.environ.get("TEST_SRCDIR")
    return os.path.join(base if base else get_data_files_path(), relative_path)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether there is a GPU, of at least the given compute capability."""
    if not torch.cuda.is_available() or (cuda_only and torch.version.cuda is None):
        return False
    wanted = min_cuda_compute_capability or (0, 0)
    return any(torch.cuda.get_device_capability(i) >= tuple(wanted) for i in range(torch.cuda.device_count()))


def gpu_device_name() -> str:
    """Returns the name of the first GPU, or ""."""
    return "/device:GPU:0" if torch.cuda.is_available() else ""


def is_built_with_cuda() -> bool:
    """Whether PyTorch was built for CUDA."""
    return torch.version.cuda is not None


def is_built_with_rocm() -> bool:
    """Whether PyTorch was built for ROCm."""
    return torch.version.hip is not None


def is_built_with_gpu_support() -> bool:
    """Whether PyTorch was built with support for any GPU."""
    return is_built_with_cuda() or is_built_with_rocm()


def is_built_with_xla() -> bool:
    """Whether XLA is available. It never is."""
    return False


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Asserts that two GraphDefs have the same nodes. The order of nodes and of control inputs does not matter.

    Args:
        actual, expected: GraphDefs.
        checkpoint_v2: whether to ignore the generated names in checkpoint ops.
        hash_table_shared_name: whether to ignore the shared names of tables.

    Raises:
        AssertionError: the graphs differ; the message names the first node that does.
        TypeError: an argument is not a GraphDef.
    """
    for message in (actual, expected):
        if not hasattr(message, "node"):
            raise TypeError(f"Expected a GraphDef, got {type(message).__name__}.")
    found = {node.name: _normal(node, checkpoint_v2, hash_table_shared_name) for node in actual.node}
    wanted = {node.name: _normal(node, checkpoint_v2, hash_table_shared_name) for node in expected.node}
    for name in wanted:
        if name not in found:
            raise AssertionError(f"Did not find expected node '{name}'")
    for name, node in found.items():
        if name not in wanted:
            raise AssertionError(f"Found unexpected node '{name}'")
        other = wanted[name]
        for part in ("op", "device"):
            if getattr(node, part) != getattr(other, part):
                raise AssertionError(
                    f"Node named '{name}' has {part} {getattr(node, part)!r}, expected {getattr(other, part)!r}"
                )
        if list(node.input) != list(other.input):
            raise AssertionError(f"Node named '{name}' has inputs {list(node.input)}, expected {list(other.input)}")
        for key in sorted({*node.attr, *other.attr}):
            if key not in node.attr or key not in other.attr or node.attr[key] != other.attr[key]:
                raise AssertionError(
                    f"Node named '{name}' has attr '{key}' that does not match expected:\n{node.attr[key]}{other.attr[key]}"
                )


def _normal(node: Any, checkpoint_v2: bool, hash_table_shared_name: bool) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    controls = sorted(text for text in node.input if text.startswith("^"))
    copy.input[:] = [text for text in node.input if not text.startswith("^")] + controls
    if checkpoint_v2 and node.op in ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename"):
        copy.attr.clear()
    if checkpoint_v2 and node.op == "Const" and node.attr["value"].tensor.dtype == 7:
        # The names of temporary folders inside checkpoints are random.
        kept = [s for s in node.attr["value"].tensor.string_val if b"_temp_" not in s]
        copy.attr["value"].tensor.string_val[:] = kept
    if hash_table_shared_name and node.op in ("HashTable", "HashTableV2"):
        copy.attr["shared_name"].s = b""
    return copy


export("test.TestCase")(TestCase)
export("test.Benchmark")(Benchmark)
for _function in (
    main, get_temp_dir, test_src_dir_path, is_gpu_available, gpu_device_name, is_built_with_cuda, is_built_with_rocm,
    is_built_with_gpu_support, is_built_with_xla, assert_equal_graph_def,
):  # fmt: skip
    _name = _function.__name__
    both = _name not in ("get_temp_dir", "test_src_dir_path")
    export_constant(__name__, _name, *([f"test.{_name}"] if both else []), v1=() if both else f"test.{_name}")
export_constant(__name__, "mock", "test.mock")
