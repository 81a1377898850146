#!/usr/bin/env python3
"""Run workloads side by side under two implementations and print the ratio of each.

    run.py --peer PYTHON[:MODULE] --ours PYTHON[:MODULE] [--module workloads|programs] [--rounds 3] [--json FILE] [WORKLOAD ...]

PYTHON is an interpreter that can import MODULE (peer default: tensorflow.compat.v1, ours: stoker.compat.v1).
Both sides of one workload live at the same time and take turns in short slices; the ratio is ours / peer (more is better).
The table shows the best slice of each side, and the peak of each process's memory.

`--busy N` runs N other processes beside both sides that compute for a second, rest for a third of one, and so on; the table then
shows the mean of all slices. `--processor` gives each side one thread and counts the processor time of the process instead of the
time that passes: the figures then hardly depend on what else the machine does.
"""

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import threading

FOLDER = os.path.dirname(os.path.abspath(__file__))
SPINNER = """
import time
while True:
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until: pass
    time.sleep(0.35)
"""


class Side:
    """A process that runs one workload slice by slice."""

    def __init__(self, python, module, workload, args):
        command = [python, "-P", os.path.join(FOLDER, "side.py"), module, workload, args.module]
        folders = [FOLDER, os.path.dirname(FOLDER), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [*command, "processor"] if args.processor else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folder for folder in folders if folder)},
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._asks, self._answers, self._complaints = self.process.stdin, self.process.stdout, self.process.stderr
        self.processor = args.processor
        self.unit, self.peak, self.before, self.result, self.error = "", 0.0, 0.0, 0.0, ""
        self.slices = []
        self._errors = []
        self._reader = threading.Thread(target=lambda: self._errors.extend(self._complaints), daemon=True)
        self._reader.start()
        self._guard = threading.Timer(args.limit, self.process.kill)
        self._guard.daemon = True
        self._guard.start()
        self.alive = self._answer() == "READY"

    def _answer(self):
        """Reads up to the next answer, and returns its kind."""
        for line in self._answers:
            kind, _, rest = line.partition(" ")
            if kind == "SLICE":
                items, elapsed, used = json.loads(rest)
                self.slices.append((items, used if self.processor else elapsed))
            elif kind == "RESULT":
                self.result, self.unit, self.peak, self.before = json.loads(rest)
            if kind in ("READY", "SLICE", "RESULT"):
                return kind
        self._reader.join(1)
        self.error = "".join(self._errors[-1:]).strip()[:160] or "no output"
        return "END"

    def run(self, seconds):
        if self.alive:
            self._ask(seconds)
            self.alive = self._answer() == "SLICE"

    def _ask(self, seconds):
        self._asks.write("%g\n" % seconds)
        self._asks.flush()

    def end(self):
        if self.alive:
            self._ask(0)
            self._answer()
        self._guard.cancel()
        self.process.kill()
        self.process.wait()
        for stream in (self._asks, self._answers, self._complaints):
            stream.close()

    def rate(self, *, mean):
        if not self.slices:
            return self.result
        if mean:
            return sum(items for items, _ in self.slices) / sum(seconds for _, seconds in self.slices)
        return max(items / seconds for items, seconds in self.slices)


def side(text, module):
    python, _, name = text.partition(":")
    return python, name or module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--rounds", type=int, default=3, help="seconds that each side of a workload runs for")
    parser.add_argument("--slice", type=float, default=0.25, help="seconds of one turn")
    parser.add_argument("--limit", type=int, default=180, help="seconds after which a side is given up")
    parser.add_argument("--json")
    parser.add_argument("--module", default="workloads", help="workloads (parts) or programs (whole training steps)")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside both sides")
    parser.add_argument("--processor", action="store_true", help="one thread, processor time")
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", SPINNER]) for _ in range(args.busy)]
    try:
        rows = compare(args)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    if args.json:
        with open(args.json, "w") as out:
            json.dump(rows, out, indent=1)


def compare(args):
    """Runs the workloads, prints a line for each, and returns the figures by name."""
    sys.path.insert(0, FOLDER)
    parts = ["import_seconds"] if args.module == "workloads" else []
    names = args.workloads or [*parts, *importlib.import_module(args.module).ALL]
    rows = {}
    print("%-28s %12s %12s %7s %9s %9s" % ("workload", "peer", "ours", "ratio", "peer MB", "ours MB"))
    for name in names:
        row = rows[name] = measure(name, args)
        print(
            "%-28s %12.1f %12.1f %7.2f %9.0f %9.0f  %s %s"
            % (name, row["peer"], row["ours"], row["ratio"], *row["peak"], row["unit"], row["error"]),
            flush=True,
        )
    ratios = [row["ratio"] for row in rows.values() if row["ratio"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
    slower = sorted(name for name, row in rows.items() if row["ratio"] < 1.0)
    print(
        "geometric mean %.2f over %d of %d; behind the peer or failing: %s"
        % (mean, len(ratios), len(names), ", ".join(slower) or "none")
    )
    return rows


def measure(name, args):
    """The figures of one workload: rates, their ratio, the peaks of memory and what the workload added (peer, ours)."""
    sides = []
    try:
        for text, module in ((args.peer, "tensorflow.compat.v1"), (args.ours, "stoker.compat.v1")):
            sides.append(Side(*side(text, module), name, args))
        for _ in range(max(1, round(args.rounds / args.slice))):
            for each in sides:
                each.run(args.slice)
    finally:
        for each in sides:
            each.end()
    peer, ours = (each.rate(mean=args.busy > 0) for each in sides)
    errors = [f"{who}: {each.error}" for who, each in zip(("peer", "ours"), sides) if each.error]
    return {
        "peer": peer,
        "ours": ours,
        "unit": sides[-1].unit,
        "ratio": ours / peer if peer and ours else 0.0,
        "peak": [each.peak for each in sides],
        "added": [each.peak - each.before for each in sides],
        "error": "; ".join(errors),
    }


if __name__ == "__main__":
    main()
