"""Runs random programs under stoker, under its plain kernels and under TensorFlow, and compares the values.

    python scripts/fuzz_programs.py --seconds 600 [--kind graphs] [--peer PYTHON] [--seed 0] [--findings FOLDER]
    python scripts/fuzz_programs.py --only SEED [--kind graphs] [--peer PYTHON]

Kinds: `graphs` (sessions, loops, branches, gradients, optimizers, updates), `pipelines` (tf.data), `queues` (records of queue runners),
`eager` (tapes and tf.function), `examples` (parsing, hashing, feature columns). `--ours` may be an interpreter with AddressSanitizer.
A program is made from its seed. Some programs lower the limits from which mechanisms for large tensors are used. What differs beyond what rounding explains is made smaller and written to the findings' folder. Whether
rounding explains a difference is decided with the same program in float64, and in float64 with inputs that are changed in their last bits.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from differential import eager, examples, graphs, pipelines  # noqa: E402
from differential.judge import compare  # noqa: E402
from differential.program import Program, Run  # noqa: E402
from differential.side import receive, send  # noqa: E402

TOLERANCE = 2e-4
MOST_PROGRAMS = 400  # of one process


class Side:
    """A process that runs programs."""

    def __init__(self, name: str, python: str, options: list[str]) -> None:
        self.name, self._python, self._options = name, python, options
        self._process: Any = None
        self._count = 0

    def _start(self) -> None:
        self.close()
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""}
        if self.name == "plain":
            environment["STOKER_NO_NATIVE"] = "1"
        errors = open(Path(tempfile.gettempdir()) / f"fuzz_{os.getpid()}_{self.name}.log", "ab")  # noqa: SIM115
        self._process = subprocess.Popen([self._python, str(ROOT / "scripts" / "differential" / "side.py"), self.name, *self._options], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=errors, env=environment)  # fmt: skip
        self._count = 0
        assert receive(self._process.stdout) == "ready"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def run(self, program: Program, **options: Any) -> dict[str, Any]:
        if self._process is None or self._count >= MOST_PROGRAMS:
            self._start()
        self._count += 1
        send(
            self._process.stdin,
            {
                "source": program.source(),
                "limits": program.limits,
                "threads": program.threads,
                "eager": "eager" in self._options,
                **options,
            },
        )
        selector = selectors.DefaultSelector()
        selector.register(self._process.stdout, selectors.EVENT_READ)
        if not selector.select(120):
            self.close()
            return {"results": [], "error": "Timeout"}
        answer = receive(self._process.stdout)
        if answer is None:
            status = self._process.wait()
            self.close()
            return {"results": [], "error": f"died with {status}"}
        return answer


class Fuzzer:
    def __init__(self, ours: Side, plain: Side, peer: Side | None) -> None:
        self.ours, self.plain, self.peer = ours, plain, peer
        self.note = ""  # about a program that is ill-conditioned
        self.counts = {
            "programs": 0,
            "refused by all": 0,
            "ill-conditioned": 0,
            "peer": 0,
            "refused by the peer": 0,
            "findings": 0,
        }

    def verdict(self, program: Program, *, with_plain: bool = True) -> str | None:
        """What is wrong with our values; None if nothing is."""
        found, exact = self.ours.run(program), program.exact
        others = []
        if self.peer is not None and program.ordered and not program.special:
            self.counts["peer"] += 1
            others.append((self.peer.name, self.peer.run(program)))
        alike = others and compare(found, others[0][1], TOLERANCE, exact=exact)[0] <= 1
        if not others or (with_plain and (not alike or program.seed % 4 == 0)):
            others.append(("plain", self.plain.run(program)))
        bad = []
        for name, other in others:
            size, text = compare(found, other, TOLERANCE, exact=exact)
            if name == "tensorflow" and other["error"] and not found["error"]:
                self.counts["refused by the peer"] += 1  # among these are faults of its own
                continue
            if size > 1:
                bad.append((name, size, text, other))
        if found["error"] and not bad:
            self.counts["refused by all"] += 1
        if not bad:
            return None
        name, size, text, other = bad[0]
        if found["error"] != other["error"]:
            return f"{name}: {text}"
        # Rounding explains a difference if the other side, or small changes of the input, differ from the twin in float64 as much.
        if program.special and size == float("inf"):
            return f"{name}: {text}"
        twin = self.plain.run(program, double=True)
        if twin["error"] and not found["error"]:
            return f"{name}, without a twin: {text} ({size:.3g})" if size > 20 else None
        # A number that decides (a comparison, a place) may be decided by the last bits of any result on the way.
        scales = (3e-7, 3e-7, 3e-6, 3e-5) if size == float("inf") else (3e-7, 3e-7)
        noise = max(
            compare(self.plain.run(program, double=True, disturb=k, scale=s), twin, TOLERANCE)[0]
            for k, s in enumerate(scales, 1)
        )
        ours, theirs = compare(found, twin, TOLERANCE)[0], compare(other, twin, TOLERANCE)[0]
        figures = f"{name}: {text} (ours {ours:.3g}, theirs {theirs:.3g}, noise {noise:.3g})"
        if noise <= 0.3 and (exact or size > 20 * max(noise, 0.05)):
            if name == "plain" and theirs > ours:
                return f"{figures}; ours is right"
            return figures
        self.counts["ill-conditioned"] += 1
        self.note = figures
        return None

    def minimize(self, program: Program, seconds: float) -> tuple[Program, str]:
        end = time.monotonic() + seconds
        what = self.verdict(program) or "not again"
        kind = what.split(":")[0]

        def bad(candidate: Program) -> str | None:
            found = self.verdict(candidate, with_plain=kind == "plain")
            return (
                found
                if found is not None and found.split(":")[0] == kind and ("errors" in found) == ("errors" in what)
                else None
            )

        changed = True
        while changed and time.monotonic() < end:
            changed = False
            for candidate in self._smaller(program):
                if time.monotonic() > end:
                    break
                candidate = candidate.needed()
                found = bad(candidate)
                if found is not None:
                    program, what, changed = candidate, found, True
                    break
        return program, what

    @staticmethod
    def _smaller(program: Program) -> Any:
        replace = dataclasses.replace
        for i in range(len(program.runs)):
            if len(program.runs) > 1:
                yield replace(program, runs=program.runs[:i] + program.runs[i + 1 :])
        for i, run in enumerate(program.runs):
            if run.times > 1:
                yield replace(program, runs=(*program.runs[:i], replace(run, times=1), *program.runs[i + 1 :]))
            if len(run.fetches) > 1:
                for j in range(len(run.fetches)):
                    for kept in ((run.fetches[j],), run.fetches[:j] + run.fetches[j + 1 :]):
                        yield replace(
                            program, runs=(*program.runs[:i], Run(kept, run.feeds, run.times), *program.runs[i + 1 :])
                        )
        if program.limits:
            yield replace(program, limits=())
            for i in range(len(program.limits)):
                yield replace(program, limits=program.limits[:i] + program.limits[i + 1 :])
        for i, statement in enumerate(
            program.statements
        ):  # a value becomes a constant, or one of the values it is made of
            if (
                len(statement.names) == 1
                and statement.text.startswith(f"{statement.names[0]} = ")
                and "placeholder" not in statement.text
            ):
                for use in statement.uses:
                    if not use.startswith("f"):
                        text = dataclasses.replace(statement, text=f"{statement.names[0]} = {use}", uses=(use,))
                        if statement.text != text.text:
                            yield replace(
                                program, statements=(*program.statements[:i], text, *program.statements[i + 1 :])
                            )
            for use in statement.uses:
                for other in statement.uses:
                    if (
                        other != use
                        and statement.text.count(use)
                        and not statement.text.startswith("def")
                        and other[0] != "f"
                        and use[0] != "f"
                    ):
                        text = re.sub(rf"\b{use}\b", other, statement.text)
                        uses = tuple(u for u in statement.uses if u != use)
                        yield replace(
                            program,
                            statements=(
                                *program.statements[:i],
                                dataclasses.replace(statement, text=text, uses=uses),
                                *program.statements[i + 1 :],
                            ),
                        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python with TensorFlow")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--minimize", type=float, default=60, help="seconds to spend on each finding")
    parser.add_argument("--kind", choices=("graphs", "pipelines", "queues", "eager", "examples"), default="graphs")
    parser.add_argument("--ours", default=sys.executable)
    arguments = parser.parse_args()
    options = ["eager"] if arguments.kind == "eager" else []
    fuzzer = Fuzzer(
        Side("stoker", arguments.ours, options),
        Side("plain", sys.executable, options),
        Side("tensorflow", arguments.peer, options) if arguments.peer else None,
    )
    generate = {
        "graphs": graphs.generate,
        "pipelines": pipelines.generate,
        "queues": pipelines.generate_queue,
        "eager": eager.generate,
        "examples": examples.generate,
    }[arguments.kind]
    end, seed = time.monotonic() + arguments.seconds, arguments.seed
    seeds = iter(arguments.only) if arguments.only else iter(range(seed, seed + arguments.programs))
    try:
        for seed in seeds:
            if time.monotonic() > end and not arguments.only:
                break
            program = generate(seed)
            fuzzer.counts["programs"] += 1
            if arguments.only:
                print(program.source())
            fuzzer.note = ""
            what = fuzzer.verdict(program)
            if fuzzer.note:
                print(f"seed {seed} is ill-conditioned: {fuzzer.note}", flush=True)
            if fuzzer.counts["programs"] % 100 == 0:
                print(fuzzer.counts, flush=True)
            if what is None:
                continue
            fuzzer.counts["findings"] += 1
            print(f"seed {seed}: {what}", flush=True)
            small, what = fuzzer.minimize(program, arguments.minimize)
            text = f"# seed {seed}, exact={small.exact}, special={small.special}, threads={small.threads}, limits={small.limits}\n# {what}\n{small.source()}"
            print(text if arguments.only else f"  smaller: {what}", flush=True)
            if arguments.findings:
                arguments.findings.mkdir(parents=True, exist_ok=True)
                (arguments.findings / f"{seed}.py").write_text(text)
    finally:
        print(fuzzer.counts, f"last seed {seed}", flush=True)
        for side in (fuzzer.ours, fuzzer.plain, fuzzer.peer):
            if side is not None:
                side.close()
    return 1 if fuzzer.counts["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
