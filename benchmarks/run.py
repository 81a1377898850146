#!/usr/bin/env python3
"""Run workloads side by side under two implementations and print the ratio of each.

    run.py --peer PYTHON[:MODULE] --ours PYTHON[:MODULE] [--rounds 3] [--json FILE] [WORKLOAD ...]

PYTHON is an interpreter that can import MODULE (peer default: tensorflow.compat.v1, ours: stoker.compat.v1).
Both sides of one workload run alternately in one session of this script; the ratio is ours / peer (more is better).
"""

import argparse
import json
import math
import subprocess
import sys

CHILD = """
import importlib, json, os, sys, time
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, sys.argv[3])
start = time.perf_counter()
tf = importlib.import_module(sys.argv[1])
imported = time.perf_counter() - start
if hasattr(tf, "disable_v2_behavior"): tf.disable_v2_behavior()
import workloads
if sys.argv[2] == "import_seconds": print("RESULT", json.dumps([1 / imported, "imports/s"]))
else: print("RESULT", json.dumps(workloads.ALL[sys.argv[2]](tf)))
"""


def side(text, module):
    python, _, name = text.partition(":")
    return python, name or module


def measure(python, module, workload, folder, limit):
    try:
        done = subprocess.run(
            [python, "-c", CHILD, module, workload, folder], capture_output=True, text=True, timeout=limit
        )
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
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, folder)
    import workloads

    names = args.workloads or ["import_seconds", *workloads.ALL]
    peer, ours = side(args.peer, "tensorflow.compat.v1"), side(args.ours, "stoker.compat.v1")
    rows, logs = {}, []
    print("%-28s %14s %14s %8s" % ("workload", "peer", "ours", "ratio"))
    for name in names:
        best = {"peer": 0.0, "ours": 0.0}
        unit, why = "", ""
        for _ in range(args.rounds):
            for key, who in (("peer", peer), ("ours", ours)):
                got, error = measure(*who, name, folder, args.limit)
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
