"""Converted models under real TensorFlows.

    python scripts/check_lite.py [--tf1 PYTHON] [--tf2 PYTHON] [--width N] [--keep FOLDER] [--versions]

The graphs of tests/lite/cases.py and the networks of tests/lite/models.py are converted here, and a second time for the runtime of TensorFlow 1.15
(target_spec.min_runtime_version). Each TensorFlow's own interpreter then reads and runs its files, and its results are compared with the session's. TensorFlow 2 also converts the networks itself, from the SavedModels that stoker writes: size and
latency of both conversions, on its interpreter, are printed with their ratio. With --versions it converts the small graphs as well, and the versions
of builtins and the runtimes that it writes are compared with ours. Of the networks, TensorFlow 1.15 also reads the models that were not made for it, and
converts the frozen graphs itself where it can: both conversions run on its interpreter. PYTHON is an interpreter that has that TensorFlow; one that is not there is skipped.
The exit status is 1 where results differ, or where a TensorFlow cannot read a file that was made for it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


# ---- stoker ---------------------------------------------------------------------------------------------------------


def export(folder: Path, width: int) -> None:
    """Writes for each graph: the model, the inputs, the session's results, and the graph for TensorFlow."""
    sys.path.insert(0, str(ROOT))
    import stoker.compat.v1 as tf
    from tests.lite.cases import CASES, COMPOSED, VARIANTS
    from tests.lite.models import NETWORKS

    todo = [(case.label, case.build, case.inputs, case.random, False) for case in (*CASES, *COMPOSED, *VARIANTS)]
    todo += [
        (name, lambda tf, *given, net=net: net.build(tf, *given, width=width), net.inputs(), False, True)
        for name, net in NETWORKS.items()
    ]
    for label, build, arrays, random, is_network in todo:
        graph = tf.Graph()
        with graph.as_default(), tf.Session(graph=graph) as session:
            inputs = [
                tf.placeholder(tf.string if array.dtype == object else array.dtype, array.shape, name=f"in_{i}")
                for i, array in enumerate(arrays)
            ]
            outputs = [tf.identity(each, name=f"out_{i}") for i, each in enumerate(tf.nest.flatten(build(tf, *inputs)))]
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            expected = session.run(outputs, dict(zip(inputs, arrays)))
            model = tf.lite.TFLiteConverter.from_session(session, inputs, outputs).convert()
            place = folder / label
            place.mkdir()
            (place / "model.tflite").write_bytes(model)
            older = tf.lite.TFLiteConverter.from_session(session, inputs, outputs)
            older.target_spec.min_runtime_version = "1.15.0"
            refused = ""
            try:
                (place / "older.tflite").write_bytes(older.convert())
            except Exception as error:
                refused = str(error)
            frozen = tf.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), [each.op.name for each in outputs]
            )
            (place / "graph.pb").write_bytes(frozen.SerializeToString())
            if is_network:
                names = {each.op.name: each for each in inputs}, {each.op.name: each for each in outputs}
                tf.saved_model.simple_save(session, str(place / "saved"), *names)
        for kind, values in (("inputs", arrays), ("outputs", expected)):
            plain = [np.asarray(value, "S") if np.asarray(value).dtype == object else value for value in values]
            np.savez(place / f"{kind}.npz", *plain)
        (place / "facts.json").write_text(json.dumps({"random": random, "network": is_network, "refused": refused}))


# ---- TensorFlow -----------------------------------------------------------------------------------------------------


def arrays_of(path: Path) -> list:
    with np.load(path) as file:
        found = [file[f"arr_{i}"] for i in range(len(file.files))]
    return [value.astype(object) if value.dtype.kind == "S" else value for value in found]


def run_model(tf, data: bytes, inputs: list) -> list:
    interpreter = tf.lite.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    details = sorted(interpreter.get_input_details(), key=lambda detail: detail["name"])
    for detail, value in zip(details, inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    details = sorted(interpreter.get_output_details(), key=lambda detail: detail["name"])
    return [interpreter.get_tensor(detail["index"]) for detail in details]


def crashes(tf, data: bytes, inputs: list) -> bool:
    """Whether a child process that runs the model dies of a signal: 1.15 checks less than its successors."""
    child = os.fork()
    if child == 0:
        try:
            run_model(tf, data, inputs)
        except (ValueError, RuntimeError):
            pass
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def latencies(tf, models: list, inputs: list, rounds: int = 40) -> list:
    """The fastest call of each model; the models take turns, so that a busy machine slows all of them."""
    import time

    running = []
    for data in models:
        # 1.15 takes no number, and has one thread.
        threads = {} if tf.__version__.startswith("1") else {"num_threads": 1}
        interpreter = tf.lite.Interpreter(model_content=data, **threads)
        interpreter.allocate_tensors()
        details = sorted(interpreter.get_input_details(), key=lambda detail: detail["name"])
        for detail, value in zip(details, inputs):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        running.append(interpreter)
    best = [1e9] * len(models)
    for _ in range(rounds):
        for position, interpreter in enumerate(running):
            start = time.perf_counter()
            for _ in range(5):
                interpreter.invoke()
            best[position] = min(best[position], (time.perf_counter() - start) / 5)
    return best


def versions(data: bytes) -> dict:
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(data, 0)
    names = {code: name for name, code in vars(schema.BuiltinOperator).items() if not name.startswith("_")}
    found = {names[max(c.builtinCode, c.deprecatedBuiltinCode)]: c.version for c in model.operatorCodes}
    for entry in model.metadata or []:
        if entry.name == b"min_runtime_version":
            found["runtime"] = bytes(model.buffers[entry.buffer].data).split(b"\0")[0].decode()
    return found


def under_tensorflow(folder: Path, with_versions: bool) -> dict:
    """Runs the models under the TensorFlow of this process."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    second = tf.__version__.startswith("2")
    report: dict = {
        "version": tf.__version__,
        "equal": 0,
        "different": [],
        "unread": [],
        "refused": [],
        "equal_networks": 0,
        "networks": {},
        "versions": {},
    }
    for place in sorted(folder.iterdir()):
        facts = json.loads((place / "facts.json").read_text())
        if not second and facts["refused"]:
            report["refused"].append([place.name, facts["refused"]])
            continue
        data = (place / ("model.tflite" if second else "older.tflite")).read_bytes()
        inputs, expected = arrays_of(place / "inputs.npz"), arrays_of(place / "outputs.npz")
        if not second and crashes(tf, data, inputs):
            report["unread"].append([place.name, "the process crashes"])
            continue
        try:
            found = run_model(tf, data, inputs)
        except (ValueError, RuntimeError) as error:
            report["unread"].append([place.name, str(error).split("Registration")[0][:160]])
            continue
        same = len(found) == len(expected)
        for ours, theirs in zip(found, expected):
            same = same and ours.shape == theirs.shape
            if same and not facts["random"]:
                close = np.allclose(ours, theirs, 1e-5, 1e-5, equal_nan=True) if ours.dtype.kind in "fc" else None
                same = bool((ours == theirs).all()) if close is None else close
        if same:
            report["equal"] += 1
            report["equal_networks"] += facts["network"]
        else:
            report["different"].append(place.name)
        if not second and facts["network"]:
            report["networks"][place.name] = beside_first(tf, place, data, inputs)
        elif second and facts["network"]:
            theirs = tf.lite.TFLiteConverter.from_saved_model(str(place / "saved")).convert()
            times = latencies(tf, [data, theirs], inputs)
            report["networks"][place.name] = [len(data), len(theirs), *times, ""]
            report["versions"][place.name] = [versions(data), versions(theirs)]
        elif second and with_versions:
            report["versions"][place.name] = [versions(data), their_versions(tf, place)]
    return report


def beside_first(tf, place: Path, data: bytes, inputs: list) -> list:
    """Sizes and latencies of a network for 1.15 and of its own conversion, or why it has none; and why 1.15 does not read the model that was not made
    for it, or nothing."""
    try:
        run_model(tf, (place / "model.tflite").read_bytes(), inputs)
        unread = ""
    except (ValueError, RuntimeError) as error:
        unread = str(error).split("Registration")[0].split("Are you")[0].strip()
    try:
        theirs = own_converter(tf, place).convert()
    except Exception as error:
        reasons = [line for line in str(error).splitlines() if "not supported" in line]
        return ["; ".join(reasons)[-90:] or str(error)[-90:], unread]
    return [len(data), len(theirs), *latencies(tf, [data, theirs], inputs), unread]


def own_converter(tf, place: Path):
    """TensorFlow's converter of the frozen graph."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        definition = v1.GraphDef.FromString((place / "graph.pb").read_bytes())
        tf.import_graph_def(definition, name="")
        inputs = [op.outputs[0] for op in graph.get_operations() if op.name.startswith("in_") and "/" not in op.name]
        outputs = [op.outputs[0] for op in graph.get_operations() if op.name.startswith("out_") and "/" not in op.name]
        return v1.lite.TFLiteConverter(definition, inputs, outputs)


def their_versions(tf, place: Path) -> dict:
    """The versions in TensorFlow's own conversion of a small graph; none where it fails."""
    try:
        return versions(own_converter(tf, place).convert())
    except Exception as error:
        return {"error": str(error)[:80]}


# ---- both -----------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs converted models under real TensorFlows.")
    parser.add_argument("--tf1", default="tf1/bin/python")
    parser.add_argument("--tf2", default="tf2/bin/python")
    parser.add_argument("--width", type=int, default=4, help="channels of the networks")
    parser.add_argument("--versions", action="store_true")
    parser.add_argument("--keep", help="a new folder for the files")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        folder, target = map(Path, args.inside)
        target.write_text(json.dumps(under_tensorflow(folder, args.versions)))
        return 0
    folder = Path(args.keep or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    export(folder, args.width)
    failed = False
    for python in (args.tf1, args.tf2):
        if not Path(python).exists():
            print(f"{python}: not there, skipped")
            continue
        with tempfile.NamedTemporaryFile(suffix=".json") as target:
            command = [
                python,
                __file__,
                "--inside",
                str(folder),
                target.name,
                *(["--versions"] if args.versions else []),
            ]
            # 1.15's converter is a program beside its interpreter.
            environment = dict(os.environ, PATH=f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}")
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                print(done.stdout[-2000:], done.stderr[-4000:])
                return 1
            report = json.loads(Path(target.name).read_text())
        failed |= bool(report["different"] or report["unread"])
        show(report)
    return int(failed)


def show(report: dict) -> None:
    print(
        f"TensorFlow {report['version']}: {report['equal']} models read and run with equal results, {report['equal_networks']} of them networks"
    )
    print(f"  different: {report['different']}")
    print(f"  not read ({len(report['unread'])}):")
    for name, why in report["unread"]:
        print(f"    {name}: {why}")
    print(f"  not made for it, because its builtins do not suffice ({len(report['refused'])}):")
    for name, why in report["refused"]:
        print(f"    {name}: {' '.join(why.split(':', 1)[-1].split())[:160]}")
    for name, (*figures, unread) in report["networks"].items():
        line = f"  {name:18} its own converter refuses: {figures[0]}"
        if len(figures) == 4:
            size, their_size, time, their_time = figures
            line = f"  {name:18} size {size:8} / {their_size:8} = {size / their_size:.2f}   "
            line += f"latency {time * 1e6:8.1f} / {their_time * 1e6:8.1f} us = {time / their_time:.2f}"
        print(line + (f"   not read as it is: {unread}" if unread else ""))
    for name, (ours, theirs) in report["versions"].items():
        wrong = {code: (ours[code], theirs[code]) for code in ours if code in theirs and ours[code] != theirs[code]}
        if wrong:
            print(f"  versions of {name} (ours, theirs): {wrong}")


if __name__ == "__main__":
    sys.exit(main())
