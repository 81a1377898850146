"""Writes the programs' graphs with what their runs give, and runs written graphs again somewhere else.

    python travel.py write MODULE FOLDER [--control-flow v1|v2] [--only NAME,...]
    python travel.py check MODULE FOLDER

MODULE is `stoker` or `tensorflow`: what the interpreter that runs this file has. `write` makes NAME.pb (a binary GraphDef) and
NAME.npz (feeds and results) for each program; `check` imports each graph, makes the same runs and prints a JSON object:
NAME -> "" or what differs. tests/graph/interchange/test_graphs_of_tensorflow.py reads what `write tensorflow` made in three ways:

    tensorflow1               TensorFlow 1.15.5
    tensorflow1_functional    TensorFlow 1.15.5, --control-flow v2 (what differs from 2.21's)
    tensorflow2               TensorFlow 2.21, --control-flow v2 (a part of the programs)

The code keeps to Python 3.7, TensorFlow 1.15's newest.
"""

import argparse
import glob
import json
import os
import sys
import traceback

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

TOLERANCE = 2e-5


def api(module):
    """The 1.x names of `module`, with graphs and 1.x behaviour."""
    if module == "stoker":
        import stoker.compat.v1 as tf

        return tf
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    return tf


def _name(item):
    """What finds a fetch again in the imported graph."""
    if hasattr(item, "read_value") or type(item).__name__.endswith("Variable"):
        # The value of a variable: for a reference its own tensor, for a resource a read of it.
        return item._graph_element.name if hasattr(item, "_graph_element") else item._as_graph_element().name
    return item.name


def write(tf, folder, names, programs):
    """Builds each program, runs it, and writes the graph and the values. Returns NAME -> "" or what failed."""
    report = {}
    os.makedirs(folder, exist_ok=True)
    for name in names:
        try:
            with tf.Graph().as_default() as graph:
                runs = programs[name](tf)
                arrays, plan = {}, []
                with tf.Session(graph=graph) as session:
                    for number, (fetches, feeds) in enumerate(runs):
                        values = session.run(list(fetches), feeds)
                        entry = {"fetches": [_name(fetch) for fetch in fetches], "feeds": [key.name for key in feeds]}
                        plan.append(entry)
                        for position, value in enumerate(feeds.values()):
                            arrays["feed_%d_%d" % (number, position)] = _portable(value)
                        for position, value in enumerate(values):
                            if value is not None:
                                arrays["value_%d_%d" % (number, position)] = _portable(value)
                text = graph.as_graph_def().SerializeToString(deterministic=True)
            with open(os.path.join(folder, name + ".pb"), "wb") as file:
                file.write(text)
            np.savez_compressed(os.path.join(folder, name + ".npz"), plan=np.array(json.dumps(plan)), **arrays)
            report[name] = ""
        except Exception as error:
            report[name] = _describe(error)
    return report


def _portable(value):
    """An array that needs no pickle: strings as fixed-length bytes, marked by their kind."""
    array = np.asarray(value)
    return array.astype("S") if array.dtype == object else array


def _describe(error):
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    where = [line.strip().splitlines()[0] for line in lines if "File" in line][-1:]
    return "%s: %s %s" % (type(error).__name__, str(error)[:600], where)


def check_one(tf, path):
    """Imports one written graph and makes its runs: "" or what differs."""
    with open(path, "rb") as file:
        graph_def = tf.GraphDef.FromString(file.read())
    stored = np.load(path[:-3] + ".npz")
    plan = json.loads(str(stored["plan"]))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.Session(graph=graph) as session:
            for number, entry in enumerate(plan):
                feeds = {}
                for position, key in enumerate(entry["feeds"]):
                    value = stored["feed_%d_%d" % (number, position)]
                    feeds[key] = value.astype(object) if value.dtype.kind == "S" else value
                values = session.run(entry["fetches"], feeds)
                for position, value in enumerate(values):
                    key = "value_%d_%d" % (number, position)
                    if key in stored.files:
                        found = difference(stored[key], _portable(value))
                        if found:
                            return "run %d, %s: %s" % (number, entry["fetches"][position], found)
    return ""


def difference(expected, found):
    """How two arrays differ, or "". Whole numbers and strings must be equal; floats close."""
    if expected.shape != found.shape:
        return "shape %s instead of %s" % (found.shape, expected.shape)
    if expected.dtype.kind in "SU" or found.dtype.kind in "SU":
        return "" if (expected == found).all() else "%r instead of %r" % (found, expected)
    if expected.dtype != found.dtype:
        return "dtype %s instead of %s" % (found.dtype, expected.dtype)
    if expected.dtype.kind in "iub":
        return "" if (expected == found).all() else "%s instead of %s" % (found, expected)
    if np.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return ""
    return "off by %.3g: %s instead of %s" % (np.abs(found - expected).max(), found, expected)


def check(tf, folder):
    """Checks every graph of a folder. Returns NAME -> "" or what differs."""
    report = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.pb"))):
        name = os.path.basename(path)[:-3]
        try:
            report[name] = check_one(tf, path)
        except Exception as error:
            report[name] = _describe(error)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("module", choices=("stoker", "tensorflow"))
    parser.add_argument("folder")
    parser.add_argument("--control-flow", choices=("v1", "v2"), default="v1")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    tf = api(args.module)
    if args.action == "check":
        report = check(tf, args.folder)
    else:
        from interop_programs import PROGRAMS

        names = args.only.split(",") if args.only else list(PROGRAMS)
        if args.control_flow == "v2":
            tf.enable_control_flow_v2()
            names = [name for name in names if not hasattr(PROGRAMS[name], "needs_references")]
        report = write(tf, args.folder, names, PROGRAMS)
    json.dump(report, sys.stdout, indent=1)
    print()
    return 1 if any(report.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
