"""Compares every Estimator of tests/golden/estimator/runs.py with what TensorFlow 1.15 recorded.

python scripts/estimator_runs.py [CASE ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import stoker.compat.v1 as tf  # noqa: E402
from tests.estimator import test_runs  # noqa: E402


def main(chosen: list[str]) -> int:
    """Returns 1 if a case differs."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    wrong = 0
    starts = test_runs.read_starts()
    for case in chosen or sorted(test_runs.EXPECTED):
        with tempfile.TemporaryDirectory() as folder:
            found, _ = test_runs.RUNS.run(tf, case, folder, starts[case])
        try:
            test_runs.same(json.loads(json.dumps(found)), test_runs.EXPECTED[case], case)
            print(f"{case}: as TensorFlow")
        except AssertionError as error:
            wrong += 1
            print(f"{case}: {error}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
