#!/usr/bin/env python3
"""Run workloads side by side under two implementations and print the ratio of each.

    run.py --peer PYTHON[:MODULE] --ours PYTHON[:MODULE] [--module workloads|programs] [--busy 0,1,2] [--json FILE] [WORKLOAD ...]

PYTHON is an interpreter that can import MODULE (peer default: tensorflow.compat.v1, ours: stoker.compat.v1).
Both sides of one workload live at the same time and take turns in short slices; the ratio is ours / peer (more is better).
The table shows the best slice of each side and the peak of each process's memory.

`--busy 0,1,2` measures each workload on its own, then beside one and beside two other processes, which compute for a second, rest for a
third of one, and so on. There, the mean of all slices counts. `--processor` gives each side one thread and counts the processor time
of the process instead of the time that passes: the figures then hardly depend on what else the machine does.

report.py turns the JSON files into tables, plot.py into a picture.
"""

import argparse
import contextlib
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
        self._busy = 0
        self.unit, self.peak, self.before, self.result, self.error = "", 0.0, 0.0, 0.0, ""
        self.slices: dict[int, list[tuple[float, float]]] = {}  # by the number of busy processes: items and seconds
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
                self.slices.setdefault(self._busy, []).append((items, used if self.processor else elapsed))
            elif kind == "RESULT":
                self.result, self.unit, self.peak, self.before = json.loads(rest)
            if kind in ("READY", "SLICE", "RESULT"):
                return kind
        self._reader.join(1)
        self.error = "".join(self._errors[-1:]).strip()[:160] or "no output"
        return "END"

    def run(self, seconds, busy):
        self._busy = busy
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

    def rate(self, busy):
        """Items per second beside `busy` other processes: of the best slice on a quiet machine, else of all slices."""
        slices = self.slices.get(busy)
        if not slices:
            return self.result
        if busy:
            return sum(items for items, _ in slices) / sum(seconds for _, seconds in slices)
        return max(items / seconds for items, seconds in slices)


@contextlib.contextmanager
def busy_processes(count):
    """Other processes that compute on and off."""
    started = [subprocess.Popen([sys.executable, "-c", SPINNER]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


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
    parser.add_argument("--busy", default="0", help="numbers of processes that compute beside both sides, as in 0,1,2")
    parser.add_argument("--processor", action="store_true", help="one thread, processor time")
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    args.busy = [int(each) for each in args.busy.split(",")]
    rows = compare(args)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(rows, out, indent=1)


def compare(args):
    """Runs the workloads, prints a line for each, and returns the figures by name."""
    sys.path.insert(0, FOLDER)
    parts = ["import_seconds"] if args.module == "workloads" else []
    names = args.workloads or [*parts, *importlib.import_module(args.module).ALL]
    rows = {}
    beside = "".join("%9s" % f"{count} busy" for count in args.busy[1:])
    print("%-28s %12s %12s %7s%s %9s %9s" % ("workload", "peer", "ours", "ratio", beside, "peer MB", "ours MB"))
    for name in names:
        row = rows[name] = measure(name, args)
        beside = "".join("%9.2f" % row["busy"][str(count)]["ratio"] for count in args.busy[1:])
        print(
            "%-28s %12.1f %12.1f %7.2f%s %9.0f %9.0f  %s %s"
            % (name, row["peer"], row["ours"], row["ratio"], beside, *row["peak"], row["unit"], row["error"]),
            flush=True,
        )
    for count in args.busy:
        figures = {name: row["busy"][str(count)]["ratio"] for name, row in rows.items()}
        ratios = [ratio for ratio in figures.values() if ratio]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
        slower = sorted(name for name, ratio in figures.items() if ratio < 1.0)
        print(
            "%d busy: geometric mean %.2f over %d of %d; behind the peer or failing: %s"
            % (count, mean, len(ratios), len(names), ", ".join(slower) or "none")
        )
    return rows


def measure(name, args):
    """The figures of one workload: rates and ratios, the peaks of memory and what the workload added (peer, ours)."""
    sides = []
    try:
        for text, module in ((args.peer, "tensorflow.compat.v1"), (args.ours, "stoker.compat.v1")):
            sides.append(Side(*side(text, module), name, args))
        for count in args.busy:
            with busy_processes(count):
                for _ in range(max(1, round(args.rounds / args.slice))):
                    for each in sides:
                        each.run(args.slice, count)
    finally:
        for each in sides:
            each.end()
    by_count = {}
    for count in args.busy:
        peer, ours = (each.rate(count) for each in sides)
        by_count[str(count)] = {"peer": peer, "ours": ours, "ratio": ours / peer if peer and ours else 0.0}
    errors = [f"{who}: {each.error}" for who, each in zip(("peer", "ours"), sides) if each.error]
    return {
        **by_count[str(args.busy[0])],
        "busy": by_count,
        "unit": sides[-1].unit,
        "peak": [each.peak for each in sides],
        "added": [each.peak - each.before for each in sides],
        "error": "; ".join(errors),
    }


if __name__ == "__main__":
    main()
