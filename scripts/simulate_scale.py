"""Simulates synchronous training on many workers: stragglers, backup replicas, fan-in at parameter servers, link speed.

    python benchmarks/scaling.py --workers 4 --json docs/scale.json    measures a small run
    python scripts/simulate_scale.py docs/scale.json [--svg docs/scale.svg]

The model is fitted to the measured run, checked against it, and then asked about machines that are not here. Times are in seconds, sizes in bytes.

One step of n workers, each with its own compute time c * e^(s z), z normal (s from the measured spread), and with probability p times a straggler's factor:

    all-reduce (ring)       2 (n-1)/n * bytes / bandwidth + 2 (n-1) * latency
    all-reduce (two levels) the same inside of a machine, then a ring or a tree between the machines, whichever is faster
    parameter servers       each of m servers receives and sends n * bytes / m over its link, plus n requests
    overlap                 a message may leave during the backward pass, two thirds of the compute time; its last part cannot
    backup replicas         the step ends when the first k of n workers have handed in their gradients
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

GIGABIT = 1e9 / 8
_STEPS = 400  # simulated steps for each figure
_MESSAGE = 4 << 20  # bytes of a message (runtime/plan/background.py): what cannot overlap


@dataclass(frozen=True)
class Job:
    """A training job: its step in one worker, and what is sent."""

    compute: float  # seconds
    spread: float  # of the logarithm of the compute time
    size: float  # bytes of all gradients
    straggler_probability: float = 0.0
    straggler_factor: float = 1.0


@dataclass(frozen=True)
class Network:
    latency: float  # seconds of one message between two machines
    bandwidth: float  # bytes per second of one link
    per_machine: int = 1  # workers that share a machine and its link
    request: float = 20e-6  # seconds that a parameter server needs for one request


def fit(measured: dict) -> tuple[Job, Network]:
    """The job and the network of a measured run, by least squares over the all-reduces; small ones count as much as large ones."""
    n = measured["workers"]
    times = measured["together"][0]["all_reduce"]
    sizes, seconds = np.array([float(size) for size in times]), np.array(list(times.values()))
    columns = np.stack([np.full(len(sizes), 2.0 * (n - 1)), 2 * (n - 1) / n * sizes], 1)
    (latency, per_byte), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(sizes)), rcond=None)
    steps = np.log(measured["alone"]["steps"])
    spread = float(np.subtract(*np.percentile(steps, [75, 25])) / 1.35)  # robust against single slow steps
    job = Job(float(np.exp(np.median(steps))), spread, measured["alone"]["bytes"])
    return job, Network(float(max(latency, 1e-6)), float(1 / max(per_byte, 1e-12)))


def ring(n: int, size: float, latency: float, bandwidth: float) -> float:
    return 0.0 if n < 2 else 2 * (n - 1) / n * size / bandwidth + 2 * (n - 1) * latency


def all_reduce(n: int, size: float, network: Network, inside: Network | None) -> float:
    """The time of an all-reduce, by rings, or by a tree between machines if latency dominates."""
    g = min(network.per_machine, n)
    machines = math.ceil(n / g)
    local = ring(g, size, (inside or network).latency, (inside or network).bandwidth)
    tree = 2 * math.ceil(math.log2(max(machines, 2))) * (network.latency + size / network.bandwidth)
    between = min(ring(machines, size, network.latency, network.bandwidth), tree) if machines > 1 else 0.0
    return local + between


def exposed(job: Job, communication: float) -> float:
    """The part of the communication that a worker waits for. All but the last message can overlap with the backward pass."""
    last = communication * min(1.0, _MESSAGE / job.size)
    return last + max(0.0, communication - last - 2 / 3 * job.compute)


def computes(job: Job, n: int, random: np.random.RandomState) -> np.ndarray:
    times = job.compute * np.exp(job.spread * random.standard_normal((_STEPS, n)))
    slow = random.random_sample((_STEPS, n)) < job.straggler_probability
    return np.where(slow, times * job.straggler_factor, times)


def step_time(
    job: Job,
    n: int,
    network: Network,
    *,
    inside: Network | None = None,
    servers: int = 0,
    backups: int = 0,
    seed: int = 0,
) -> float:
    """The mean time of a step of n workers: with parameter servers if there are any, else with an all-reduce."""
    times = np.sort(computes(job, n, np.random.RandomState(seed)), axis=1)
    if not servers:
        return float(times[:, -1].mean() + exposed(job, all_reduce(n, job.size, network, inside)))
    traffic = n * job.size / servers / network.bandwidth + n * network.request
    return float(times[:, n - backups - 1].mean() + exposed(job, traffic) + traffic + 2 * network.latency)


def efficiency(job: Job, n: int, network: Network, **kwargs) -> float:
    """Examples per second, as a part of n times those of one worker. The gradients of backup replicas are not used."""
    useful = n - kwargs.get("backups", 0)
    mean = float(np.exp(job.spread**2 / 2)) * job.compute * (1 + job.straggler_probability * (job.straggler_factor - 1))
    return useful / n * mean / step_time(job, n, network, **kwargs)


# -- what the model says -----------------------------------------------------------------------------------------

WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
# A job of the size at which people ask for a thousand workers: a quarter of a second of a GPU, 100 million parameters.
LARGE = Job(compute=0.25, spread=0.03, size=400e6)
INSIDE = Network(latency=5e-6, bandwidth=200e9)  # GPUs of one machine
NETWORKS = {
    "10 Gb/s, 8 GPUs a machine": Network(30e-6, 10 * GIGABIT, 8),
    "100 Gb/s, 8 GPUs a machine": Network(15e-6, 100 * GIGABIT, 8),
    "400 Gb/s, 8 GPUs a machine": Network(10e-6, 400 * GIGABIT, 8),
}


def curves() -> dict[str, list[float]]:
    found = {
        name: [efficiency(LARGE, n, network, inside=INSIDE) for n in WORKERS] for name, network in NETWORKS.items()
    }
    link = Network(15e-6, 100 * GIGABIT)
    found["100 Gb/s, 1 server per 10 workers"] = [efficiency(LARGE, n, link, servers=max(1, n // 10)) for n in WORKERS]
    found["100 Gb/s, 1 server per worker"] = [efficiency(LARGE, n, link, servers=n) for n in WORKERS]
    return found


def stragglers() -> list[tuple[int, float, float]]:
    """(backups, step time, efficiency) for 1,000 workers of which one in 500 is four times slower in a step."""
    job = replace(LARGE, straggler_probability=0.002, straggler_factor=4.0)
    link = Network(15e-6, 100 * GIGABIT)
    return [
        (b, step_time(job, 1000, link, servers=1000, backups=b), efficiency(job, 1000, link, servers=1000, backups=b))
        for b in (0, 1, 2, 5, 10, 20, 50, 100)
    ]


_COLOURS = ["#9ecae1", "#3182bd", "#08306b", "#fd8d3c", "#a63603"]


def svg(found: dict[str, list[float]]) -> str:
    """Efficiency by the number of workers, which is on a logarithmic scale."""
    left, top, width, height = 60, 40, 480, 280

    def at(n: int, value: float) -> tuple[float, float]:
        return left + width * math.log(n) / math.log(1000), top + height * (1 - value)

    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 370" font-family="sans-serif" font-size="13">',
        '<rect width="860" height="370" fill="white"/>',
        f'<text x="{left}" y="22" font-size="15">Efficiency of a 100-million-parameter step, simulated</text>',
    ]
    for tick in range(0, 101, 25):
        _, y = at(1, tick / 100)
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick}%</text>')
    for n in (1, 4, 16, 64, 256, 1000):
        x, _ = at(n, 0)
        out.append(f'<text x="{x:.1f}" y="{top + height + 20}" text-anchor="middle">{n:,}</text>')
    out.append(f'<text x="{left + width / 2}" y="{top + height + 42}" text-anchor="middle">workers</text>')
    for values, colour in zip(found.values(), _COLOURS):
        points = " ".join("{:.1f},{:.1f}".format(*at(n, value)) for n, value in zip(WORKERS, values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
    for line, ((name, values), colour) in enumerate(zip(found.items(), _COLOURS)):
        y = top + 12 + 24 * line
        out.append(f'<line x1="560" x2="585" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2.5"/>')
        out.append(f'<text x="592" y="{y}">{name}: {values[-1]:.0%}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", help="the figures that benchmarks/scaling.py wrote")
    parser.add_argument("--svg", help="draw the curves into this file")
    args = parser.parse_args()
    measured = json.loads(Path(args.measured).read_text())
    job, network = fit(measured)
    n = measured["workers"]
    print(f"fitted: latency {network.latency * 1e6:.0f} us, bandwidth {network.bandwidth / 1e9:.2f} GB/s,", end=" ")
    print(f"step {job.compute * 1e3:.0f} ms, spread {job.spread:.1%}, gradients {job.size / 1e6:.1f} MB")
    for size, seconds in measured["together"][0]["all_reduce"].items():
        said = ring(n, float(size), network.latency, network.bandwidth)
        print(f"  all-reduce {int(size):>10,d} bytes: measured {seconds * 1e3:7.2f} ms, model {said * 1e3:7.2f} ms")
    found = float(np.median(measured["together"][0]["steps"]))
    print(f"  step of {n} workers: measured {found * 1e3:.0f} ms, model {step_time(job, n, network) * 1e3:.0f} ms")
    print("\nefficiency".ljust(38) + "".join(f"{n:>6,d}" for n in WORKERS))
    all_curves = curves()
    for name, values in all_curves.items():
        print(name.ljust(37) + "".join(f"{value:>6.0%}" for value in values))
    print("\n1,000 workers, stragglers 4x slower with probability 0.2%: backups, ms a step, efficiency")
    for backups, seconds, part in stragglers():
        print(f"{backups:6d} {seconds * 1e3:8.0f} {part:7.0%}")
    if args.svg:
        Path(args.svg).write_text(svg(all_curves))


if __name__ == "__main__":
    main()
