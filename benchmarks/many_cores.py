"""The programs and training workloads on the CPU with 1, 2, 4, 8 and 16 threads.

    python benchmarks/many_cores.py [--seconds S] [--threads N,...] [NAME ...]

Runs with different numbers of threads share the machine as long as each has cores of its own, then the next ones follow. Prints a table of items or steps
per second; a rate that is more than a tenth below the best with fewer threads is marked with an exclamation mark.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
WORKLOADS = (
    "mlp_sgd", "mlp_adam", "mlp_rmsprop_momentum", "many_small_variables_adam", "cnn_momentum", "lstm_while_loop",
    "embedding_adagrad", "attention_adam",
)  # fmt: skip
EAGER = ("eager_tape", "function_loop")  # they change the mode of the process and come last


def child(file, seconds, names):
    """Measures with the threads and cores that the parent has chosen."""
    import more_programs
    import programs
    import workloads

    import stoker.compat.v1 as tf

    rate = workloads._rate

    def timed(work, items, length=0.0, warm=12):
        return rate(work, items, seconds, max(warm, 12))

    for module in (workloads, programs, more_programs):
        module._rate = timed
    known = {**{name: workloads.ALL[name] for name in WORKLOADS}, **programs.ALL, **more_programs.ALL}
    chosen = [name for name in names or known if name not in EAGER]
    found = {}
    for name in [*chosen, *(name for name in EAGER if name in (names or known))]:
        found[name] = known[name](tf)[0]
        with open(file, "w") as out:
            json.dump(found, out)


def rows_of_cores(counts):
    """Returns lists of (threads, cores) that can run at the same time."""
    cores = sorted(os.sched_getaffinity(0))
    rows, free = [], []
    for count in counts:
        if count > len(free) or not rows:
            rows.append([])
            free = list(cores)
        rows[-1].append((count, set(free[:count])))
        free = free[count:]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.seconds, args.names)
        return
    counts = [n for n in map(int, args.threads.split(",")) if n <= len(os.sched_getaffinity(0))]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows_of_cores(counts):
            running = []
            for count, cores in row:
                file = os.path.join(folder, str(count))
                command = [sys.executable, __file__, "--child", file, "--seconds", str(args.seconds), *args.names]
                env = {**os.environ, "OMP_NUM_THREADS": str(count), "CUDA_VISIBLE_DEVICES": ""}
                start = lambda cores=cores: os.sched_setaffinity(0, cores)  # noqa: E731
                running.append((count, file, subprocess.Popen(command, env=env, preexec_fn=start)))
            for count, file, process in running:
                process.wait()
                with open(file) as given:
                    found[count] = json.load(given)
    print(f"| program | {' | '.join(map(str, counts))} |\n|---|{'---:|' * len(counts)}")
    for name in found[counts[0]]:
        rates = [found[count].get(name, 0.0) for count in counts]
        cells = [f"{rate:,.0f}" + (" !" if rate < 0.9 * max(rates[: i + 1]) else "") for i, rate in enumerate(rates)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
