"""All programs of this folder: what `programs.py` and the files named after it (`more_programs.py`, ...) hold."""

import importlib
import pathlib

import workloads

EAGER = ("eager_tape", "function_loop")  # they change the mode of the process and come last
SETS = [importlib.import_module(path.stem) for path in sorted(pathlib.Path(__file__).parent.glob("*programs.py"))]
PROGRAMS = {name: program for each in SETS for name, program in each.ALL.items()}
PROGRAMS.update({name: PROGRAMS.pop(name) for name in EAGER})


def measure_for(seconds):
    """Lets every program and workload run for this long. Returns the function that they measure with."""
    rate = workloads._rate

    def timed(work, items, seconds=seconds, warm=12):
        return rate(work, items, seconds, max(warm, 12))

    for each in (workloads, *SETS):
        each._rate = timed
    return timed
