"""All programs of this folder: what `programs.py` and the files named after it (`more_programs.py`, ...) hold.

`run.py --module sets` compares all but those of `programs.py`.
"""

import importlib
import pathlib
import time

import programs
import workloads

EAGER = ("eager_tape", "function_loop")  # they change the mode of the process and come last
SETS = [importlib.import_module(path.stem) for path in sorted(pathlib.Path(__file__).parent.glob("*programs.py"))]
MODULES = [workloads, *SETS]
PROGRAMS = {name: program for each in SETS for name, program in each.ALL.items()}
PROGRAMS.update({name: PROGRAMS.pop(name) for name in EAGER})
ALL = {name: program for name, program in PROGRAMS.items() if name not in programs.ALL}


def measure_for(seconds, settle=0.0):
    """Lets every program and workload run for this long, after as many seconds as it may `settle`. Returns the function that they measure with."""
    rate = workloads._rate

    def timed(work, items, seconds=seconds, warm=12):
        end = time.perf_counter() + settle
        while time.perf_counter() < end:
            work()
        return rate(work, items, seconds, max(warm, 12))

    for each in MODULES:
        each._rate = timed
    return timed
