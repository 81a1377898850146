"""Lists the attributes that ops of TensorFlow 1.15 gained later, as the table `stoker/_src/graph/interchange/younger_attrs.py`.

    python scripts/younger_attrs.py --tf1 PYTHON --tf2 PYTHON > stoker/_src/graph/interchange/younger_attrs.py

PYTHON is an interpreter that has TensorFlow 1.15 or 2: each is asked for the attribute names of all its ops.
"""

from __future__ import annotations

import argparse
import json
import subprocess

ASK = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.framework import op_def_registry as registry
known = {}
get = registry.get if hasattr(registry, "get") else registry.get_registered_ops().get
for name in dir(tf.raw_ops):
    op = get(name)
    if op is not None:
        known[name] = [attr.name for attr in op.attr]
print("OPS" + json.dumps(known))
"""

HEAD = '''"""Attributes that TensorFlow 1.15 does not know, of ops that it knows. Written by scripts/younger_attrs.py.

A GraphDef that mentions an unknown attribute is refused, one that leaves out an attribute with a default is not: these are left
out where they hold their default, so that what 1.15 can run it can also read.
"""

YOUNGER_ATTRS: dict[str, frozenset[str]] = {'''


def ops_of(python: str) -> dict[str, list[str]]:
    done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout[done.stdout.index("OPS") + 3 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", required=True, metavar="PYTHON")
    parser.add_argument("--tf2", required=True, metavar="PYTHON")
    args = parser.parse_args()
    old, new = ops_of(args.tf1), ops_of(args.tf2)
    print(HEAD)
    for name in sorted(new):
        younger = sorted(set(new[name]) - set(old.get(name, new[name])))
        if younger:
            print(f"    {json.dumps(name)}: frozenset({{{', '.join(json.dumps(attr) for attr in younger)}}}),")
    print("}")


if __name__ == "__main__":
    main()
