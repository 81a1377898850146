"""One side of a comparison: builds a workload, then runs it in the slices that run.py asks for.

    side.py MODULE WORKLOAD SOURCE [processor]

Reads one line for each slice, its length in seconds, and answers with the number of items, the seconds that passed and the
processor seconds of all threads. A last line of output holds the unit, the peak of the process's memory, and its memory before the
workload was built, in megabytes.
"""

import importlib
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # RNN cells of TensorFlow 2.21 need tf_keras


def answer(kind, *values):
    print(kind, json.dumps(values), flush=True)


def in_slices(work, items, seconds=2.0, warm=3):
    """Stands in for the workloads' own `_rate`: the slices come from outside."""
    for _ in range(max(warm, 3)):
        work()
    answer("READY")
    best = 0.0
    for line in sys.stdin:
        length = float(line)
        if not length:
            break
        count, used, begun = 0, time.process_time(), time.perf_counter()
        until = begun + length
        while not count or time.perf_counter() < until:
            work()
            count += 1
        elapsed = time.perf_counter() - begun
        answer("SLICE", count * items, elapsed, time.process_time() - used)
        best = max(best, count * items / elapsed)
    return best


def megabytes(field):
    """A field of the process's memory figures (VmHWM: the peak, VmRSS: what is in use)."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))
    except OSError:  # not Linux
        return 0.0


def main():
    module, workload, source = sys.argv[1:4]
    if sys.argv[4:] == ["processor"]:
        os.environ.update(OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1")
    start = time.perf_counter()
    tf = importlib.import_module(module)
    imported = time.perf_counter() - start
    if hasattr(tf, "disable_v2_behavior"):
        tf.disable_v2_behavior()
    if workload == "import_seconds":
        answer("RESULT", 1 / imported, "imports/s", megabytes("VmHWM"), 0.0)
        return
    workloads = importlib.import_module(source)
    for each in importlib.import_module("sets").MODULES:
        each._rate = in_slices
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.constant(1.0) + 1.0)  # loads whatever is loaded on first use
    before = megabytes("VmRSS")
    rate, unit = workloads.ALL[workload](tf)
    answer("RESULT", rate, unit, megabytes("VmHWM"), before)


main()
