"""Many threads run one session with shared variables, queues and Python functions: no wrong value, no deadlock.

    python scripts/stress_threads.py [--seconds 60] [--threads 20]

Each thread repeats one kind of step and checks what it gets; at the end the totals must be what was done. Exits with 1 and
says what was wrong otherwise.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

import stoker.compat.v1 as tf

ROWS = 1000
_SOON = tf.RunOptions(timeout_in_ms=1000)


class Stress:
    """The graph, the session, and what each kind of thread does with them."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._build()
        self.session = tf.Session(graph=self.graph)
        self.session.run(self.initialize)
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self.stop = threading.Event()

    def _build(self) -> None:
        self.x = tf.placeholder(tf.float32, [None], name="x")
        self.count = tf.placeholder(tf.int32, [], name="count")
        self.reference = tf.Variable(0, name="reference", use_resource=False)
        self.resource = tf.Variable(0, name="resource", use_resource=True)
        # Every element is the same at all times: a reader that sees two numbers saw half of a write.
        self.uniform = tf.Variable(tf.zeros([ROWS]), name="uniform", use_resource=False)
        self.uniform_resource = tf.Variable(tf.zeros([ROWS]), name="uniform_resource", use_resource=True)
        self.add_reference = tf.assign_add(self.reference, 1, use_locking=True)
        self.add_resource = self.resource.assign_add(1)
        self.raise_uniform = [
            tf.assign_add(self.uniform, tf.ones([ROWS]), use_locking=True).op,
            self.uniform_resource.assign_add(tf.ones([ROWS])).op,
        ]
        # More elements than there is room for: the enqueue and the dequeue of one run need each other.
        self.pair = tf.FIFOQueue(2, [tf.int32], [[]])
        self.pair_step = [self.pair.enqueue_many([tf.range(4)]), self.pair.dequeue_many(4)]
        self.traffic = tf.FIFOQueue(3, [tf.float32], [[]])
        self.put, self.take = self.traffic.enqueue(tf.reduce_sum(self.x)), self.traffic.dequeue()
        self.last_put, self.last_take = self.traffic.enqueue(3.0), self.traffic.dequeue()
        self.left = self.traffic.size()
        self.branch = tf.cond(self.count > 5, lambda: self.count * 2, lambda: self.count - 1)
        self.loop = tf.while_loop(lambda i, s: i < self.count, lambda i, s: (i + 1, s + i), [0, 0])[1]
        self.python = tf.py_func(lambda value: value + np.float32(1), [self.x], tf.float32)
        self.python_write = tf.assign_add(
            self.reference, tf.py_func(lambda: np.int32(1), [], tf.int32, stateful=True), use_locking=True
        )
        self.half = tf.multiply(self.x, 2.0)
        self.whole = self.half + tf.cast(self.count, tf.float32)
        self.initialize = tf.global_variables_initializer()

    # -- kinds of threads ----------------------------------------------------------------------------------------

    def add(self) -> None:
        self.session.run([self.add_reference, self.add_resource])
        self._note("reference", "resource")

    def add_in_python(self) -> None:
        self.session.run(self.python_write)
        self._note("reference")

    def raise_all(self) -> None:
        self.session.run(self.raise_uniform)
        self._note("uniform")

    def read_all(self) -> None:
        for value in self.session.run([self.uniform, self.uniform_resource]):
            self._check(value.min() == value.max(), f"half of a write: {value.min()} and {value.max()}")

    def read_growing(self) -> None:
        first = self.session.run([self.reference, self.resource])
        second = self.session.run([self.reference, self.resource])
        self._check(all(a <= b for a, b in zip(first, second)), f"a counter went back: {first}, then {second}")

    def both_ends(self) -> None:
        _, taken = self.session.run(self.pair_step)
        self._check(len(taken) == 4, f"took {taken}")
        self._note("pairs", times=int(taken.sum()))
        self._note("pair steps")

    def put_one(self) -> None:
        self.session.run(self.put, {self.x: np.array([1.0, 2.0], np.float32)})
        self._note("put")

    def take_one(self) -> None:
        value = self.session.run(self.take, options=tf.RunOptions(timeout_in_ms=20000))
        self._check(value == 3.0, f"took {value} instead of 3")
        self._note("taken")

    def feed(self) -> None:
        value = np.random.random_sample(7).astype(np.float32)
        found, called = self.session.run([self.half, self.python], {self.x: value})
        self._check(np.array_equal(found, value * 2), "a feed of another thread")
        self._check(np.array_equal(called, value + np.float32(1)), "a Python function got another thread's value")

    def control(self) -> None:
        n = int(np.random.randint(0, 12))
        branch, total = self.session.run([self.branch, self.loop], {self.count: n})
        self._check(branch == (n * 2 if n > 5 else n - 1), f"cond of {n} gave {branch}")
        self._check(total == n * (n - 1) // 2, f"loop of {n} gave {total}")

    def in_pieces(self) -> None:
        handle = self.session.partial_run_setup([self.half, self.whole], [self.x, self.count])
        half = self.session.partial_run(handle, self.half, {self.x: np.array([3.0], np.float32)})
        whole = self.session.partial_run(handle, self.whole, {self.count: 4})
        self._check(half == [6.0] and whole == [10.0], f"in pieces: {half}, {whole}")

    def open_and_close(self) -> None:
        """A session of its own is closed while another thread waits in it."""
        session = tf.Session(graph=self.graph)
        outcome: list[str] = []

        def wait() -> None:
            try:
                session.run(self.take)
                outcome.append("a value")
            except (tf.errors.CancelledError, RuntimeError):
                outcome.append("cancelled")

        waiting = threading.Thread(target=wait)
        waiting.start()
        session.close()
        waiting.join(30)
        self._check(outcome == ["cancelled"], f"a closed session gave {outcome or 'nothing'}")

    # -- the run -------------------------------------------------------------------------------------------------

    def _note(self, *names: str, times: int = 1) -> None:
        with self._lock:
            for name in names:
                self.done[name] += times

    def _check(self, right: bool, problem: str) -> None:
        if not right:
            with self._lock:
                self.problems.append(problem)
            self.stop.set()

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self.stop.is_set():
            try:
                step()
            except BaseException as error:
                self._check(False, f"{step.__name__}: {type(error).__name__}: {error}")
                return
            self._note(step.__name__)

    def run(self, seconds: float, threads: int) -> list[str]:
        """Runs for that long; what went wrong."""
        kinds = [
            self.add, self.add_in_python, self.raise_all, self.read_all, self.read_growing, self.both_ends, self.feed,
            self.control, self.in_pieces, self.open_and_close,
        ]  # fmt: skip
        workers = [threading.Thread(target=self._repeat, args=(kinds[i % len(kinds)],)) for i in range(threads)]
        workers += [threading.Thread(target=self._traffic, args=(step,)) for step in (self.put_one, self.take_one)]
        for worker in workers:
            worker.start()
        self.stop.wait(seconds)
        self.stop.set()
        deadline = time.monotonic() + 60
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        if any(worker.is_alive() for worker in workers):
            faulthandler.dump_traceback(all_threads=True)
            return [*self.problems, "threads do not end: a deadlock"]
        return self.problems + self._totals()

    def _traffic(self, step: Callable[[], None]) -> None:
        """Elements go one by one from a thread to another. Each helps the other out of its last wait."""
        self._repeat(step)
        try:
            self.session.run(self.last_put if step == self.put_one else self.last_take, options=_SOON)
            self._note("put" if step == self.put_one else "taken")
        except tf.errors.DeadlineExceededError:  # the other thread has ended: the queue is full, or empty
            pass

    def _totals(self) -> list[str]:
        values = self.session.run([self.reference, self.resource, self.uniform, self.uniform_resource])
        found = [value.flat[0] for value in values]
        wanted = [self.done[name] for name in ("reference", "resource", "uniform", "uniform")]
        wrong = [] if list(map(int, found)) == wanted else [f"totals {found} instead of {wanted}"]
        left = self.session.run(self.left)
        if self.done["put"] != self.done["taken"] + left:
            wrong.append(f"{self.done['put']} elements put, {self.done['taken']} taken, {left} left")
        if self.done["pairs"] != 6 * self.done["pair steps"]:
            wrong.append("the queue of pairs lost or invented elements")
        self.session.close()
        return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=20)
    args = parser.parse_args()
    stress = Stress()
    problems = stress.run(args.seconds, args.threads)
    for name, number in sorted(stress.done.items()):
        print(f"{name:<16}{number:>10}")
    for problem in problems[:10]:
        print(f"WRONG: {problem}")
    print("nothing wrong" if not problems else f"{len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
