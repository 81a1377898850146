"""Fuzzes the parsers and decoders with the targets of tests/fuzz.

    python scripts/fuzz.py --list
    python scripts/fuzz.py --target csv --seconds 60
    python scripts/fuzz.py --all --seconds 600 --findings findings --log fuzz.log

With atheris installed its coverage guides the search, else inputs are random changes of the seeds and the corpus. An
input that gives an exception the target does not expect, takes too long or too much memory is written to the findings'
folder as TARGET-WHAT-HASH, with a .txt beside it that tells how it failed; the search goes on with other inputs.

`--all` runs every target in a process of its own, all at once, starts those again that die (what killed them is in the
findings' folder), and writes one log. Exit status: 0 when nothing was found, 1 when something was.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import hashlib
import importlib.util
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
sys.path.insert(0, str(ROOT))
# Where atheris looks for new paths. The Python twins of the extension are among these, but for that of the row filters:
# atheris keeps the result of every comparison of two arrays, and the twin makes dozens of them for each input.
INSTRUMENTED = [
    "stoker._src.formats", "stoker._src.cli.inspect", "stoker._src.graph.interchange.importer", "stoker._src.ops.io.decoding",
    "stoker._src.ops.io.feature_specs", "stoker._src.ops.image.codecs", "stoker._src.ops.support.number_text",
    "stoker._src.ops.io.parsing", "stoker._src.ops.io.proto_messages", "stoker._src.ops.resources.readers",
    "stoker._src.ops.sparse.sparse_messages", "stoker._src.ops.strings.unicode", "stoker._src.ops.io.tensor_messages",
]  # fmt: skip
_UNINSTRUMENTED = "stoker._src.formats.images.filters"
_REPORT_EVERY = 30.0
_TURN = 120  # seconds after which --all starts a target anew: the fuzzer itself keeps some memory for every input


class Watch:
    """Runs a target on inputs, and writes down those that it fails, overlong or oversized ones included."""

    def __init__(self, name: str, run: Callable[[bytes], None], findings: Path, time_bound: float, memory_bound: int):
        self.name, self.run, self.findings = name, run, findings
        self.time_bound, self.memory_bound = time_bound, memory_bound
        self.room = sys.maxsize
        self.inputs = self.found = 0
        self.slowest = 0.0
        self.deadline = float("inf")
        self.started = self.reported = time.monotonic()
        self._known: set[str] = set()
        self._start = self._peak = _peak_memory()

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        before = time.process_time()
        try:
            self.run(data)
        except Exception as error:
            self._found(data, _place(error), traceback.format_exc())
        spent = time.process_time() - before
        self.slowest = max(self.slowest, spent)
        if spent > self.time_bound:
            self._found(data, "slow", f"{spent:.2f} s of processor time for {len(data)} bytes")
        peak = _peak_memory()
        if peak - self._peak > self.memory_bound:
            self._found(data, "memory", f"{peak - self._peak:,} bytes more than before for {len(data)} bytes")
        self._peak = peak
        now = time.monotonic()
        if now - self.reported > _REPORT_EVERY:
            self.report()
        if now > self.deadline or peak - self._start > self.room:
            self.report()
            if now <= self.deadline:
                print(
                    f"{self.name}: ends {self.deadline - now:.0f} s early, the fuzzer has filled its memory", flush=True
                )
            os._exit(self.found > 0)  # libFuzzer never comes back to its caller

    def _found(self, data: bytes, what: str, text: str) -> None:
        if what in self._known:
            return
        self._known.add(what)
        self.found += 1
        path = write_finding(self.findings, self.name, what.partition(" ")[0], data, text)
        print(f"{self.name}: FOUND {what}: {path}", flush=True)

    def report(self) -> None:
        self.reported = time.monotonic()
        rate = self.inputs / max(self.reported - self.started, 1e-9)
        print(
            f"{self.name}: {self.inputs:,} inputs, {rate:,.0f}/s, slowest {self.slowest:.2f} s, "
            f"{self._peak >> 20} MiB, {self.found} found",
            flush=True,
        )


def write_finding(folder: Path, name: str, what: str, data: bytes, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{what}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(text)
    return path


def _place(error: BaseException) -> str:
    """The error's class and where it came from: one finding for each is enough."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.lineno}"


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def changed(rng: random.Random, inputs: list[bytes]) -> bytes:
    """One of the inputs with a few bytes set, cut, put in, repeated, or joined with another input."""
    data = bytearray(rng.choice(inputs))
    for _ in range(rng.randrange(1, 6)):
        at, size = rng.randrange(len(data) + 1), rng.randrange(1, 9)
        what = rng.randrange(6)
        if what == 0:
            data[at : at + 1] = bytes([rng.choice([0, 1, 2, 10, 18, 26, 127, 128, 255, rng.randrange(256)])])
        elif what == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 2:
            del data[at : at + size]
        elif what == 3:
            data[at:at] = rng.randbytes(size)
        elif what == 4:
            data[at:at] = data[at : at + rng.randrange(1, 40)]
        else:
            other = rng.choice(inputs)
            data[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(data[:65536])


def uninstrumented() -> list[str]:
    """The other modules. atheris can only be told whole packages to look into, and what to leave out of them."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("stoker/**/*.py")]
    names = [name.removesuffix(".__init__") for name in names]
    wanted = tuple(f"{each}." for each in INSTRUMENTED)
    return [name for name in names if name == _UNINSTRUMENTED or not f"{name}.".startswith(wanted)]


def known_inputs(name: str, seeds: list[bytes], folder: Path) -> list[bytes]:
    files = [path for path in sorted((folder / name).glob("*")) if path.is_file()]
    return [*seeds, *(path.read_bytes() for path in files)]


def run_target(args: argparse.Namespace) -> int:
    atheris = None if args.random or importlib.util.find_spec("atheris") is None else __import__("atheris")
    with atheris.instrument_imports(["stoker"], uninstrumented()) if atheris else contextlib.nullcontext():
        from tests.fuzz import targets  # under the instrumentation

    name = args.target
    if name not in targets.TARGETS:
        print(f"no target {name!r}; there are {', '.join(sorted(targets.TARGETS))}", file=sys.stderr)
        return 2
    inputs = known_inputs(name, targets.SEEDS[name], args.corpus)
    run = targets.TARGETS[name]
    deadline = time.monotonic() + args.seconds
    with targets.small_limits():
        for data in inputs:  # what is loaded at first use is not an input's memory
            with contextlib.suppress(Exception):
                run(data)
        # Address space, beyond what is used already, for what would not even fit the memory.
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (args.rss_limit_mb << 20),) * 2)
        watch = Watch(name, run, args.findings, targets.TIME_BOUND, targets.MEMORY_BOUND)
        for data in inputs:
            watch(data)
        if atheris is None:
            rng = random.Random(args.seed)
            while time.monotonic() < deadline:
                watch(changed(rng, inputs))
            watch.report()
            return int(watch.found > 0)
        work = args.findings / "corpus" / name
        work.mkdir(parents=True, exist_ok=True)
        for data in inputs:
            (work / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        watch.deadline = deadline
        watch.room = args.rss_limit_mb << 19  # half: no input was too large, so the rest is what the fuzzer keeps
        options = [
            f"-max_total_time={args.seconds + 60}", f"-timeout={args.timeout}",
            f"-rss_limit_mb={(_peak_memory() >> 20) + args.rss_limit_mb}", f"-max_len={args.max_len}", "-verbosity=0", "-report_slow_units=100000",
            f"-seed={args.seed or random.randrange(1, 1 << 31)}", f"-artifact_prefix={args.findings}/{name}-died-",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *options, str(work)], watch)
        atheris.Fuzz()
    return int(watch.found > 0)


def run_all(args: argparse.Namespace) -> int:
    from tests.fuzz import targets

    names = sorted(targets.TARGETS)
    args.findings.mkdir(parents=True, exist_ok=True)
    with args.log.open("ab") as log, concurrent.futures.ThreadPoolExecutor(args.jobs or len(names)) as pool:
        deaths = sum(pool.map(lambda name: keep_running(name, args, log), names))
    found = sorted(path.name for path in args.findings.iterdir() if path.is_file() and path.suffix != ".txt")
    print(
        f"{len(names)} targets, {args.seconds} s each: {len(found)} findings in {args.findings}, {deaths} deaths, "
        f"log in {args.log}"
    )
    for line in found:
        print(f"  {line}")
    return int(bool(found) or deaths > 0)


def keep_running(name: str, args: argparse.Namespace, log: BinaryIO) -> int:
    """Runs a target in processes of its own until the time is up; how many of them died."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths}
    deadline = time.monotonic() + args.seconds
    deaths = turns = 0
    left = args.seconds
    while left >= min(10, args.seconds) and deaths < 20:
        turn = left if left < 2 * _TURN else _TURN
        command = [sys.executable, __file__, "--target", name, "--seconds", str(turn)]
        command += ["--seed", str(args.seed + turns)]
        turns += 1
        for option in ("findings", "corpus", "timeout", "rss_limit_mb", "max_len"):
            command += [f"--{option.replace('_', '-')}", str(getattr(args, option))]
        if args.random:
            command.append("--random")
        try:
            status = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, timeout=turn + args.timeout + 300, check=False
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = "timeout"
        if status not in (0, 1):
            deaths += 1
            log.write(f"{name}: DIED with status {status}\n".encode())
            log.flush()
        left = int(deadline - time.monotonic())
    return deaths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--target", metavar="NAME", help="fuzz one target")
    what.add_argument("--all", action="store_true", help="fuzz all targets at once")
    what.add_argument("--list", action="store_true", help="print the targets' names")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="how long (default: 60)")
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="inputs to start from, in a folder per target (default: the committed ones)")  # fmt: skip
    parser.add_argument("--findings", type=Path, default=Path("findings"), metavar="DIR", help="where findings go, and the inputs that reached something new (default: findings)")  # fmt: skip
    parser.add_argument("--log", type=Path, default=Path("fuzz.log"), metavar="FILE", help="the log of --all (default: fuzz.log)")  # fmt: skip
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="how many targets of --all at once (default: all)"
    )
    parser.add_argument("--timeout", type=int, default=20, metavar="S", help="seconds after which one input ends its process (default: 20)")  # fmt: skip
    parser.add_argument("--rss-limit-mb", type=int, default=1024, metavar="M", help="memory over the start's that ends a process (default: 1024)")  # fmt: skip
    parser.add_argument("--max-len", type=int, default=8192, metavar="N", help="longest input in bytes (default: 8192)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random changes")
    parser.add_argument("--random", action="store_true", help="random changes even where atheris is installed")
    args = parser.parse_args()
    if args.list:
        from tests.fuzz import targets

        print("\n".join(sorted(targets.TARGETS)))
        return 0
    return run_all(args) if args.all else run_target(args)


if __name__ == "__main__":
    sys.exit(main())
