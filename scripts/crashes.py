"""Kills a saving process at every call that changes a file, lets every such call fail, and checks that no checkpoint is lost.

python scripts/crashes.py [--stride N] [SCENARIO...]

See tests/train/checkpoints/crashes/saving.py for the scenarios and what is checked. The exit status is 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRASHES = ROOT / "tests" / "train" / "checkpoints" / "crashes"


def build(folder: str, compiler: str = "cc") -> str:
    """Compiles the shim. Returns its path."""
    library = os.path.join(folder, "shim.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, str(CRASHES / "shim.c"), "-ldl"], check=True)
    return library


def sweep(
    folder: str, library: str, stride: int, scenarios: list[str], timeout: float | None = None
) -> dict[str, dict]:
    """Runs the scenarios under the shim."""
    environment = {**os.environ, "LD_PRELOAD": library, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(CRASHES / "saving.py"), folder, str(stride), *scenarios]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stride", type=int, default=1, help="try every N-th call")
    parser.add_argument("scenarios", nargs="*", help="default: all")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        results = sweep(folder, build(folder), args.stride, args.scenarios)
    for name, counts in results.items():
        failures = counts.pop("failures")
        failed += len(failures)
        print(f"{name}: {', '.join(f'{value} {key}' for key, value in counts.items())}, {len(failures)} failures")
        for failure in failures:
            print(f"  {failure}")
    print(f"{sum(counts['cases'] for counts in results.values())} cases, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
