#!/usr/bin/env python3
"""Run workloads side by side under two implementations and print the ratio of each.

    run.py --peer PYTHON[:MODULE] --ours PYTHON[:MODULE] [--module workloads|programs] [--rounds 3] [--json FILE] [WORKLOAD ...]

PYTHON is an interpreter that can import MODULE (peer default: tensorflow.compat.v1, ours: stoker.compat.v1).
Both sides of one workload run alternately in one session of this script; the ratio is ours / peer (more is better).

`--busy N` runs N other processes that only compute, beside both sides. `--processor` gives each side one thread and counts the
processor time of the process instead of the time that passes: the figures then hardly depend on what else the machine does.
"""

import argparse
import importlib
import json
import math
import os
import subprocess
import sys

CHILD = """
import importlib, json, os, sys, time
module, workload, folder, source, processor = sys.argv[1:6]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # RNN cells of TensorFlow 2.21 need tf_keras
if processor:
    os.environ.update(OMP_NUM_THREADS="1", TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1")
sys.path.insert(0, folder)
start = time.perf_counter()
tf = importlib.import_module(module)
imported = time.perf_counter() - start
if hasattr(tf, "disable_v2_behavior"): tf.disable_v2_behavior()
workloads = importlib.import_module(source)

def processor_rate(work, items, seconds=2.0, warm=3):
    for _ in range(warm): work()
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun, until, count = time.process_time(), time.perf_counter() + 0.1, 0
        while not count or time.perf_counter() < until:
            work()
            count += 1
        best = max(best, count * items / (time.process_time() - begun))
    return best

if processor:
    importlib.import_module("workloads")._rate = workloads._rate = processor_rate
if workload == "import_seconds": print("RESULT", json.dumps([1 / imported, "imports/s"]))
else: print("RESULT", json.dumps(workloads.ALL[workload](tf)))
"""


def side(text, module):
    python, _, name = text.partition(":")
    return python, name or module


def measure(python, module, workload, folder, source, processor, limit):
    command = [python, "-c", CHILD, module, workload, folder, source, "yes" if processor else ""]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, "no answer in %d s" % limit
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:]), ""
    return None, (done.stderr.strip().splitlines() or ["no output"])[-1][:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--json")
    parser.add_argument("--module", default="workloads", help="workloads (parts) or programs (whole training steps)")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside both sides")
    parser.add_argument("--processor", action="store_true", help="one thread, processor time")
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
    try:
        compare(args)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def compare(args):
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, folder)
    parts = ["import_seconds"] if args.module == "workloads" else []
    names = args.workloads or [*parts, *importlib.import_module(args.module).ALL]
    peer, ours = side(args.peer, "tensorflow.compat.v1"), side(args.ours, "stoker.compat.v1")
    rows, logs = {}, []
    print("%-28s %14s %14s %8s" % ("workload", "peer", "ours", "ratio"))
    for name in names:
        best = {"peer": 0.0, "ours": 0.0}
        unit, why = "", ""
        for _ in range(args.rounds):
            for key, who in (("peer", peer), ("ours", ours)):
                got, error = measure(*who, name, folder, args.module, args.processor, args.limit)
                if got:
                    best[key], unit = max(best[key], got[0]), got[1]
                else:
                    why = "%s: %s" % (key, error)
        ratio = best["ours"] / best["peer"] if best["peer"] and best["ours"] else 0.0
        rows[name] = {"peer": best["peer"], "ours": best["ours"], "unit": unit, "ratio": ratio, "error": why}
        if ratio:
            logs.append(math.log(ratio))
        print("%-28s %14.1f %14.1f %8.2f  %s %s" % (name, best["peer"], best["ours"], ratio, unit, why), flush=True)
    mean = math.exp(sum(logs) / len(logs)) if logs else 0.0
    slower = sorted(n for n, r in rows.items() if r["ratio"] < 1.0)
    print(
        "geometric mean %.2f over %d of %d; behind the peer or failing: %s"
        % (mean, len(logs), len(names), ", ".join(slower) or "none")
    )
    if args.json:
        with open(args.json, "w") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()
