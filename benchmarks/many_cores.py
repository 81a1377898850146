"""The programs and training workloads on the CPU with 1, 2, 4, 8 and 16 threads.

    CUDA_VISIBLE_DEVICES= python benchmarks/many_cores.py [--seconds S] [--settle S] [--threads N,...] [--rounds R] [NAME ...]

One process measures a program with every number of threads in turn, since cores of a shared machine differ from each other and from minute to minute. Prints a
table of items or steps per second; a rate that is more than a tenth below the best with fewer threads is marked with an exclamation mark.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

import torch
import workloads
from sets import EAGER, PROGRAMS, measure_for

import stoker.compat.v1 as tf

WORKLOADS = (
    "mlp_sgd", "mlp_adam", "mlp_rmsprop_momentum", "many_small_variables_adam", "cnn_momentum", "lstm_while_loop",
    "embedding_adagrad", "attention_adam",
)  # fmt: skip
ALL = {**{name: workloads.ALL[name] for name in WORKLOADS}, **PROGRAMS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument(
        "--settle", type=float, default=0.5, help="time before it, in which steps find their number of threads"
    )
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured; the best counts")
    args = parser.parse_args()
    counts = [n for n in map(int, args.threads.split(",")) if n <= len(os.sched_getaffinity(0))]
    measure_for(args.seconds, args.settle)
    names = sorted(args.names or ALL, key=lambda name: name in EAGER)
    print(f"| program | {' | '.join(map(str, counts))} |\n|---|{'---:|' * len(counts)}", flush=True)
    for name in names:
        rates = [0.0] * len(counts)
        for _ in range(args.rounds):
            for i, count in enumerate(counts):
                torch.set_num_threads(count)
                rates[i] = max(rates[i], ALL[name](tf)[0])
        marks = [" !" if rate < 0.9 * max(rates[: i + 1]) else "" for i, rate in enumerate(rates)]
        print(f"| {name} | {' | '.join(f'{rate:,.0f}{mark}' for rate, mark in zip(rates, marks))} |", flush=True)


if __name__ == "__main__":
    main()
