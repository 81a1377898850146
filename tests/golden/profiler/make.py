"""Reports of TensorFlow's profiler: python make.py > reports.json, with TensorFlow 1.15."""

import json
import os
import tempfile

import tensorflow as tf
from cases import build, options, report

if __name__ == "__main__":
    build(tf)
    path = os.path.join(tempfile.mkdtemp(), "report")
    found = {}
    for title, (cmd, chosen) in options(tf).items():
        lines, root = report(tf, path, cmd, chosen)
        found[title] = {"lines": lines, "definitions": getattr(root, "total_definition_count", None)}
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="layer1/MatMul", float_ops=5, types=["mine"])
    chosen = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.float_operation())
    lines, _ = report(tf, path, "scope", chosen.with_accounted_types(["mine"]).build(), log)
    found["an op log"] = {"lines": lines}
    print(json.dumps(found, indent=1))
