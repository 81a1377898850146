#!/usr/bin/env python3
"""Write benchmark results as Markdown tables.

    report.py OUT.md TITLE=RESULTS.json [TITLE=RESULTS.json ...]

The files come from `run.py --json`. The table says when and on which machine it was made.
"""

import datetime
import json
import math
import os
import platform
import sys


def machine():
    """The processor, its cores, and the load of the machine."""
    model = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(rows):
    counts = sorted({count for row in rows.values() for count in row["busy"]}, key=int)
    heads = ["program", "TensorFlow", "stoker", "ratio", *[f"{count} busy" for count in counts[1:]]]
    heads += ["peak MB, TensorFlow", "stoker", "added MB, TensorFlow", "stoker"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, row in rows.items():
        cells = [name, number(row["peer"]), number(row["ours"])]
        cells += [f"{row['busy'][count]['ratio']:.2f}" for count in counts]
        cells += [number(each) for pair in ("peak", "added") for each in row[pair]]
        lines.append("| " + " | ".join(cells) + " |")
    means = []
    for count in counts:
        ratios = [row["busy"][count]["ratio"] for row in rows.values() if row["busy"][count]["ratio"]]
        means.append(f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "")
    lines.append("| geometric mean | | | " + " | ".join(means) + " | | | | |")
    return lines


def main():
    out, *given = sys.argv[1:]
    lines = [f"Made on {datetime.date.today():%d %B %Y}: {machine()}. Items or steps per second, and MB of memory.", ""]
    lines += [
        '"Busy" is the ratio beside other processes that compute on and off. "Peak" is the most memory that the process used, "added" what the',
        "program added to what the process used after it had loaded the library and run its first op.",
        "",
    ]
    for each in given:
        title, _, path = each.partition("=")
        with open(path) as file:
            lines += [f"## {title}", "", *table(json.load(file)), ""]
    with open(out, "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
