"""Finds processors that do not share a core: `python benchmarks/cores.py [--choose N]`.

A virtual machine often does not say which of its processors are hardware threads of one core. This program multiplies matrices on each processor by
itself and on each pair at once. Two that slow each other down share a core. It prints the milliseconds of a product on each processor and the
pairs that share one; with `--choose N`, only the numbers of the N fastest processors that share none, for `taskset -c`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from itertools import combinations

import torch

SIZE = 512
SHARED = (
    1.35  # two hardware threads of a core have its arithmetic units for half of the time; this is nearer to 1 than to 2
)


def seconds_of(processors: tuple[int, ...], products: int) -> list[float]:
    """The median seconds of a product on each of some processors, which multiply at the same time."""
    found = [0.0] * len(processors)
    ready = threading.Barrier(len(processors))

    def multiply(number: int) -> None:
        os.sched_setaffinity(0, {processors[number]})  # of this thread
        a, b, out = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE), torch.empty(SIZE, SIZE)
        torch.mm(a, b, out=out)
        ready.wait()
        times = []
        for _ in range(products):
            started = time.perf_counter()
            torch.mm(a, b, out=out)
            times.append(time.perf_counter() - started)
        found[number] = statistics.median(times)

    threads = [threading.Thread(target=multiply, args=(number,)) for number in range(len(processors))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", type=int, metavar="N")
    parser.add_argument("--products", type=int, default=8, help="products of each measurement")
    args = parser.parse_args()
    torch.set_num_threads(1)
    processors = sorted(os.sched_getaffinity(0))
    alone = {each: seconds_of((each,), args.products)[0] for each in processors}
    shared: set[tuple[int, int]] = set()
    for pair in combinations(processors, 2):
        if max(t / alone[each] for t, each in zip(seconds_of(pair, args.products), pair)) > SHARED:
            # Once more, because another program may have been in the way.
            if max(t / alone[each] for t, each in zip(seconds_of(pair, 3 * args.products), pair)) > SHARED:
                shared.add(pair)
    if args.choose is None:
        print("ms of a product by processor:", {each: round(alone[each] * 1e3, 2) for each in processors})
        print("share a core:", sorted(shared) or "none")
        return
    chosen: list[int] = []
    for each in sorted(processors, key=lambda each: alone[each]):
        if len(chosen) < args.choose and not any((min(each, one), max(each, one)) in shared for one in chosen):
            chosen.append(each)
    print(",".join(map(str, sorted(chosen))))


if __name__ == "__main__":
    main()
