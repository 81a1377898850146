"""Graphs and SavedModels from stoker to TensorFlow and back, with real TensorFlows.

    python scripts/interop.py [--tf1 PYTHON] [--tf2 PYTHON] [--keep FOLDER] [--only graphs|models|programs] [--program NAME]...

Each program of tests/golden/graphs/interop/interop_programs.py is built on one side, written as a binary GraphDef, imported on the other
side with `import_graph_def(name="")`, run there with the same feeds, and the values compared. TensorFlow writes twice: with the
control flow of 1.x (Switch, Merge, Enter, ...) and with the functional one of 2.x. SavedModels of objects
(tests/golden/saved_model/journey.py) travel in the same way: they are loaded as objects, as objects that are saved once more, and into sessions. Then the programs of tests/scripts run under
stoker and under each TensorFlow, and what they print is compared: strictly with 1.15, and with 2.21 but for CHANGES. PYTHON is an interpreter that has that
TensorFlow; one that is not there is skipped. The exit status is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.scripts.compare import difference  # noqa: E402
from tests.scripts.events import described  # noqa: E402

TRAVEL = ROOT / "tests" / "golden" / "graphs" / "interop" / "travel.py"
MODELS = ROOT / "tests" / "golden" / "saved_model" / "journey.py"
OURS = (sys.executable, "stoker")


def travel(side: tuple[str, str], action: str, folder: Path, *options: str, program: Path = TRAVEL) -> dict[str, str]:
    """Runs one side: what failed or differs, by program."""
    python, module = side
    environment = dict(os.environ, PYTHONPATH=str(ROOT) if module == "stoker" else "")
    done = subprocess.run(
        [python, str(program), action, module, str(folder), *options],
        env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    start = done.stdout.rfind("\n{") + 1 if "\n{" in done.stdout else done.stdout.find("{")
    if start < 0 or "{" not in done.stdout:
        return {"(all)": f"{action} under {python} failed with status {done.returncode}: {done.stderr[-2000:]}"}
    return json.loads(done.stdout[start:])


# TensorFlow 2 has the 1.x names in a module of their own; a program written for 1.x gets that one. TensorFlow names event files by the
# second, and a writer that is opened twice within one second overwrites its first file: here it waits for the next second.
AS_1X = """
import glob, os, runpy, sys, time
import tensorflow as tf
if not tf.__version__.startswith("1."):
    tf = tf.compat.v1
    tf.disable_v2_behavior()
    sys.modules["tensorflow"] = tf
def in_a_second_of_its_own(method):
    def opened(self, *args, **kwargs):
        logdir = args[0] if args else kwargs["logdir"] if "logdir" in kwargs else self.get_logdir()
        while glob.glob(os.path.join(logdir, "*.tfevents.%d.*" % time.time())):
            time.sleep(0.05)
        return method(self, *args, **kwargs)
    return opened
for name in ("__init__", "reopen"):
    setattr(tf.summary.FileWriter, name, in_a_second_of_its_own(getattr(tf.summary.FileWriter, name)))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


TIME_LIMIT = 600  # seconds, for one program


class Change(NamedTuple):
    """Where TensorFlow 2.21 differs from 1.15, whose behaviour is stoker's: a pattern in what a program prints, what takes its place on both sides, and why."""

    program: str
    pattern: str
    replacement: str
    reason: str


CHANGES = (
    Change(
        "monitored_training",
        r"^Calling checkpoint listeners (before|after) saving checkpoint \d+\.\.\.\n",
        "",
        "CheckpointSaverHook logs the calls of its listeners, also where it has none.",
    ),
    Change(
        "accumulated_gradients",
        r"^(take none|index) InvalidArgumentError .*",
        r"\1 InvalidArgumentError",
        'Messages of failed runs start with the line "Graph execution error:" and a traceback; the program prints the first line.',
    ),
)


def printed(command: list[str], **environment: str) -> str:
    """What a program prints on standard output."""
    try:
        done = subprocess.run(
            command, env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"did not end in {TIME_LIMIT} seconds"
    return done.stdout if done.returncode == 0 else f"status {done.returncode}: {done.stderr[-1000:]}"


def run_program(command: list[str], path: Path, **environment: str) -> tuple[str, str]:
    """What a program prints, and the event files it writes."""
    if path.parent.name != "training":
        return printed([*command, str(path)], **environment), ""
    with tempfile.TemporaryDirectory() as logdir:
        text = printed([*command, str(path), "--logdir", logdir], **environment)
        return text, described(Path(logdir))


def _described(theirs: str, ours: str) -> str:
    """Where two texts differ, as lines with - for TensorFlow and + for stoker, or ""."""
    found = difference(theirs, ours)
    lines = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), lineterm="", n=0) if found else ()
    return "\n  ".join([found.partition("\n")[0], *itertools.islice(lines, 2, 42)]) if found else ""


def programs(peers: dict[str, str], names: set[str]) -> dict[str, dict[str, str]]:
    """Runs every script, or those of the given names, under stoker and each TensorFlow: what differs in output and event files, by program and peer."""
    table: dict[str, dict[str, str]] = {}
    scripts = ROOT / "tests" / "scripts"
    for path in [*sorted((scripts / "programs").glob("*.py")), *sorted((scripts / "training").glob("*.py"))]:
        if names and path.stem not in names:
            continue
        ours, our_events = run_program([sys.executable, "-m", "stoker", "run"], path, PYTHONPATH=str(ROOT))
        for name, python in peers.items():
            theirs, their_events = run_program(
                [python, "-c", AS_1X], path, PYTHONPATH="", TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1"
            )
            # A name that this TensorFlow has moved elsewhere says nothing.
            gone = [i for i, line in enumerate(theirs.splitlines()) if "AttributeError module 'tensorflow" in line]
            theirs, mine = (
                "\n".join(line for i, line in enumerate(text.splitlines()) if i not in gone) for text in (theirs, ours)
            )
            changes = [each for each in CHANGES if each.program == path.stem] if name == "tf2" else []
            for change in changes:
                theirs, mine = (
                    re.sub(change.pattern, change.replacement, text + "\n", flags=re.MULTILINE)
                    for text in (theirs, mine)
                )
                print(f"{path.stem}, {name}: not compared: {change.reason}", file=sys.stderr)
            found = _described(theirs, mine) or _described(their_events, our_events)
            table.setdefault(f"script {path.stem}", {})[f"stoker = {name}"] = found
            print(f"{path.stem}, {name}: {'differs' if found else 'same'}", file=sys.stderr, flush=True)
    return table


def journeys(peers: dict[str, str]) -> list[tuple[str, tuple[str, str], tuple[str, str], tuple[str, ...]]]:
    """(title, writer, reader, options of the writer)."""
    found = []
    for name, python in peers.items():
        theirs = (python, "tensorflow")
        found.append((f"stoker -> {name}", OURS, theirs, ()))
        found.append((f"{name} -> stoker", theirs, OURS, ()))
        found.append((f"{name} v2 -> stoker", theirs, OURS, ("--control-flow", "v2")))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", metavar="PYTHON", default=".venvs/tf1/bin/python", help="has TensorFlow 1.15")
    parser.add_argument("--tf2", metavar="PYTHON", default=".venvs/tf2/bin/python", help="has TensorFlow 2")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the written graphs there")
    parser.add_argument("--only", choices=("graphs", "models", "programs"), help="compare only these")
    parser.add_argument(
        "--program", metavar="NAME", action="append", default=[], help="compare only this program; may be repeated"
    )
    args = parser.parse_args()
    peers = {}
    for name in ("tf1", "tf2"):
        python = getattr(args, name)
        if shutil.which(python):
            peers[name] = python
        else:
            print(f"{name}: there is no {python}; skipped")
    if not peers:
        print("no TensorFlow to compare with")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(args.keep or temporary)
        table: dict[str, dict[str, str]] = {}
        titles = []
        for title, writer, reader, options in journeys(peers) if args.only in (None, "graphs") else ():
            titles.append(title)
            folder = base / title.replace(" -> ", "_to_").replace(" ", "_")
            written = travel(writer, "write", folder, *options)
            for name, failure in written.items():
                if failure:
                    table.setdefault(name, {})[title] = f"not written: {failure}"
            for name, failure in travel(reader, "check", folder).items():
                table.setdefault(name, {}).setdefault(title, failure)
        if args.only in (None, "models"):
            table.update(models(peers, base))
    if args.only in (None, "programs"):
        table.update(programs(peers, set(args.program)))
    titles = list(dict.fromkeys([*titles, *(title for row in table.values() for title in row)]))
    return report(table, titles)


def models(peers: dict[str, str], base: Path) -> dict[str, dict[str, str]]:
    """SavedModels of objects travel both ways with TensorFlow 2, and into sessions of both TensorFlows: what differs, by model and journey."""
    table: dict[str, dict[str, str]] = {}

    def note(title: str, results: dict[str, str]) -> None:
        for name, failure in results.items():
            table.setdefault(f"model {name}", {})[title] = failure

    ours = base / "models_of_stoker"
    note("written", {k: v for k, v in travel(OURS, "write", ours, program=MODELS).items() if v})
    note("stoker -> stoker", travel(OURS, "again", ours, program=MODELS))
    for name, python in peers.items():
        theirs = (python, "tensorflow")
        note(f"stoker -> {name}", travel(theirs, "session", ours, program=MODELS))
        if name != "tf2":  # TensorFlow 1.15 has no models of objects
            continue
        folder = base / f"models_of_{name}"
        note("written", {k: v for k, v in travel(theirs, "write", folder, program=MODELS).items() if v})
        note(f"stoker -> {name}", travel(theirs, "check", ours, program=MODELS))
        note(f"{name} -> stoker", travel(OURS, "check", folder, program=MODELS))
        note(f"{name} -> stoker", travel(OURS, "session", folder, program=MODELS))
        note(f"{name} -> stoker -> stoker", travel(OURS, "again", folder, program=MODELS))
    return table


def report(table: dict[str, dict[str, str]], titles: list[str]) -> int:
    """Prints the table and the differences below it; the exit status."""
    width = max(map(len, table))
    print(f"{'':{width}}  " + "  ".join(titles))
    for name, row in table.items():
        cells = ["-" if title not in row else "DIFFERS" if row[title] else "same" for title in titles]
        print(f"{name:{width}}  " + "  ".join(f"{cell:{len(title)}}" for cell, title in zip(cells, titles)))
    failures = [(name, title, text) for name, row in table.items() for title, text in row.items() if text]
    for name, title, text in failures:
        print(f"\n{name}, {title}:\n  {text}")
    print(f"\n{sum(len(row) for row in table.values()) - len(failures)} comparisons the same, {len(failures)} not")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
