"""Kills the tasks of a training program at random moments and cuts its network, and checks that training goes on.

    python scripts/distributed_faults.py [--faults 20] [--seed 0]
    sudo python scripts/distributed_faults.py --network [--delay 20] [--loss 2]

The program is `tests/distributed/program.py`: a parameter server and two workers as processes, with a checkpoint every ten steps. After each fault
both workers must make steps again within `--patience` seconds, and the number of the step must show that nothing before the last checkpoint
was lost: after the loss of a worker it goes on, after that of the chief or the parameter server it goes on from the last checkpoint
or later.

With `--network` the parameter server is in a network namespace of its own. Its packets pass through this program, which delays and drops them, so
TCP sees a real network with loss. Two more faults are then possible: a short cut that TCP bridges, and one that is longer than
the time after which a silent peer counts as lost. This needs Linux, root and /dev/net/tun.
"""

from __future__ import annotations

import argparse
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.distributed.ports import free_ports  # noqa: E402

PROGRAM = ROOT / "tests" / "distributed" / "program.py"
_MOST_AHEAD = 20  # steps that a worker is asked for in advance
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class Network:
    """Two namespaces whose packets pass through this process. `cut` drops all of them."""

    ADDRESSES = ("10.199.7.1", "10.199.7.2")

    def __init__(self, delay: float, loss: float, seed: int) -> None:
        self.delay, self.loss, self.is_cut = delay, loss, False
        self._random = random.Random(seed)
        self.names = [f"stoker{os.getpid()}{side}" for side in "ab"]
        self.passed = self.dropped = 0
        self._devices = []
        for name, own, other in zip(self.names, self.ADDRESSES, reversed(self.ADDRESSES)):
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            interface = f"st{len(self._devices)}{os.getpid() % 100000}"
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", interface.encode(), _IFF_TUN | _IFF_NO_PI))
            self._devices.append(device)
            _ip("netns", "add", name)
            _ip("link", "set", interface, "netns", name)
            _ip("-n", name, "addr", "add", own, "peer", other, "dev", interface)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", interface, "up")
        self._stop = False
        self._relay = threading.Thread(target=self._forward, daemon=True)
        self._relay.start()

    def _forward(self) -> None:
        waiting: list[tuple[float, int, int, bytes]] = []
        count = 0
        while not self._stop:
            timeout = min(0.1, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.1
            for device in select.select(self._devices, [], [], timeout)[0]:
                packet = os.read(device, 65536)
                if self.is_cut or self._random.random() < self.loss:
                    self.dropped += 1
                    continue
                count += 1
                target = self._devices[1 - self._devices.index(device)]
                heapq.heappush(waiting, (time.monotonic() + self.delay, count, target, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(waiting)
                try:
                    os.write(target, packet)
                    self.passed += 1
                except OSError:  # a full or missing device drops packets, as networks do
                    self.dropped += 1

    def close(self) -> None:
        self._stop = True
        self._relay.join()
        for device in self._devices:
            os.close(device)
        for name in self.names:
            _ip("netns", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Task:
    """A process of the program. A worker makes steps without end; `steps` holds their numbers with the time of each."""

    def __init__(self, command: list[str], arguments: list[str]) -> None:
        self._process = subprocess.Popen(
            [*command, sys.executable, "-m", "stoker", "run", str(PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if not os.environ.get("VERBOSE") else None,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
        )
        self.steps: list[tuple[float, int]] = []
        self.serving, self.last = threading.Event(), ""
        threading.Thread(target=self._read, daemon=True).start()
        if self._process.stderr is not None:
            self.log = ""
            threading.Thread(target=self._read_log, daemon=True).start()
        if "--job_name=worker" in arguments:
            threading.Thread(target=self._drive, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.last = line.strip()
            if line.startswith("step "):
                self.steps.append((time.monotonic(), int(line.split()[1])))
            elif line.startswith("serving"):
                self.serving.set()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log = (self.log + line)[-20000:]

    def _drive(self) -> None:
        assert self._process.stdin is not None
        try:
            lines = 0
            while not self._stopping:
                if lines - len(self.steps) < _MOST_AHEAD:  # the worker makes all steps it was asked for before it ends
                    self._process.stdin.write("\n")
                    self._process.stdin.flush()
                    lines += 1
                time.sleep(0.02)
            self._process.stdin.close()
        except (OSError, ValueError):
            pass

    _stopping = False

    def finish(self, patience: float) -> int:
        self._stopping = True
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # its log then ends with what all threads wait for
            self._process.wait()
            time.sleep(1.0)
            raise SystemExit(f"FAILED: a worker did not end in {patience} s; its log ends with:\n{self.log}") from None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def step_after(self, moment: float, patience: float, *, at_least: int = 1) -> tuple[float, int]:
        """Returns the time and number of a step after a moment."""
        limit = time.monotonic() + patience
        while time.monotonic() < limit:
            later = [step for step in self.steps if step[0] > moment]
            if len(later) >= at_least:
                return later[at_least - 1]
            if self.has_ended:
                break
            time.sleep(0.02)
        state = f"ended with {self._process.returncode}" if self.has_ended else f"made no step in {patience} s"
        raise SystemExit(f"FAILED: a worker {state}; its log ends with:\n{self.log}")


def saved_step(folder: str) -> int:
    """Returns the step of the last checkpoint, 0 if there is none."""
    try:
        text = Path(folder, "checkpoint").read_text()
    except FileNotFoundError:
        return 0
    return int(text.split('"')[1].rsplit("-", 1)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", action="store_true", help="the parameter server is behind a network with faults")
    parser.add_argument("--delay", type=float, default=20.0, help="milliseconds in each direction")
    parser.add_argument("--loss", type=float, default=2.0, help="percent of packets")
    parser.add_argument("--patience", type=float, default=240.0, help="seconds until training must go on")
    args = parser.parse_args()
    choose = random.Random(args.seed)
    kinds = ["kill worker", "kill chief", "kill ps"]
    if args.network:
        kinds += ["cut for 5 s", "cut for 45 s"]
    counts, longest = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:  # the tasks end before the folder
        network = None
        near, far, prefixes = "127.0.0.1", "127.0.0.1", ([], [])
        if args.network:
            network = Network(args.delay / 1000, args.loss / 100, args.seed)
            stack.callback(network.close)
            near, far = network.ADDRESSES
            prefixes = tuple(["ip", "netns", "exec", name] for name in network.names)
        ports = free_ports(3)
        hosts = [f"{far}:{ports[0]}", f"{near}:{ports[1]}", f"{near}:{ports[2]}"]
        flags = [f"--ps_hosts={hosts[0]}", f"--worker_hosts={hosts[1]},{hosts[2]}", f"--checkpoint_dir={folder}"]
        tasks: dict[str, Task] = {}
        stack.callback(lambda: [task.kill() for task in tasks.values()])

        def start(name: str) -> None:
            job, index = ("ps", 0) if name == "ps" else ("worker", int(name == "worker"))
            prefix = prefixes[1] if name == "ps" else prefixes[0]
            tasks[name] = Task(prefix, [*flags, f"--job_name={job}", f"--task_index={index}"])

        for name in ("ps", "chief", "worker"):
            start(name)
        for number in range(args.faults):
            began = time.monotonic()
            tasks["chief"].step_after(began, args.patience, at_least=choose.randrange(2, 25))
            tasks["worker"].step_after(began, args.patience)
            time.sleep(choose.random() * 0.1)
            kind = kinds[number % len(kinds)] if number < len(kinds) else choose.choice(kinds)
            reached = tasks["chief"].steps[-1][1]
            moment = time.monotonic()
            if kind.startswith("kill"):
                name = kind.split()[1]
                tasks[name].kill()
                saved = saved_step(folder)
                moment = time.monotonic()
                time.sleep(choose.random() * 2)
                start(name)
            else:
                assert network is not None
                network.is_cut = True
                time.sleep(float(kind.split()[2]))
                network.is_cut = False
                saved = saved_step(folder)
            when, step = tasks["chief"].step_after(moment, args.patience, at_least=2)
            tasks["worker"].step_after(moment, args.patience)
            # The step's number may be read before the step is counted, so the first step from a checkpoint may show that of the checkpoint.
            least = reached + 1 if kind in ("kill worker", "cut for 5 s") else saved
            if step < least:
                raise SystemExit(f"FAILED: {kind}: step {step} after {reached}, the checkpoint was {saved}")
            counts[kind] += 1
            longest[kind] = max(longest[kind], when - moment)
            print(
                f"{number + 1}: {kind} at step {reached}, saved {saved}: step {step} after {when - moment:.1f} s",
                flush=True,
            )
        codes = [tasks[name].finish(args.patience) for name in ("worker", "chief")]
        print(f"workers ended with {codes}; last line of the chief: {tasks['chief'].last!r}")
        if network is not None:
            print(f"packets passed {network.passed:,d}, dropped {network.dropped:,d}")
        for kind in kinds:
            print(f"{kind}: {counts[kind]} times, longest recovery {longest[kind]:.1f} s")


if __name__ == "__main__":
    main()
