"""Writes *.npz beside this script: what TensorFlow gives for the cases of the modules here.

    python tests/golden/image/record.py            (under TensorFlow 2.21: resizing, colour, boxes, functions)
    python tests/golden/image/record.py one        (under TensorFlow 1.15: one)

A case is a function of the module `tf`. An array is kept for each output, the exception's class where TensorFlow raises.
"""

import importlib.util
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
OF_TWO = ("resizing", "colour", "boxes", "functions")


def load(name):
    """The module of cases called `name`."""
    spec = importlib.util.spec_from_file_location("image_" + name, str(HERE / (name + ".py")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def cases_of(name):
    """{label: function of tf} of a module of cases."""
    found = {}

    def case(label, function):
        assert label not in found, label
        found[label] = function

    load(name).cases(case)
    return found


def save(name, results):
    """One flat array for each dtype, and an index: thousands of small arrays would be mostly headers."""
    index, flat = {}, {}
    for label, result in results.items():
        if isinstance(result, str):
            index[label] = result
            continue
        index[label] = []
        for array in result:
            kind = array.dtype.name
            parts = flat.setdefault(kind, [])
            index[label].append([kind, list(array.shape)])
            parts.append(array.reshape(-1))
    with zipfile.ZipFile(str(HERE / (name + ".npz")), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for kind, parts in sorted(flat.items()):
            stream = io.BytesIO()
            np.save(stream, np.concatenate(parts))
            file.writestr(zipfile.ZipInfo(kind + ".npy"), stream.getvalue(), zipfile.ZIP_DEFLATED)
        file.writestr(zipfile.ZipInfo("index.json"), json.dumps(index, separators=(",", ":")), zipfile.ZIP_DEFLATED)


def read(name):
    """{label: arrays or the exception's class} as `save` wrote them."""
    with zipfile.ZipFile(str(HERE / (name + ".npz"))) as file:
        index = json.loads(file.read("index.json").decode())
        flat = {each[:-4]: np.load(io.BytesIO(file.read(each))) for each in file.namelist() if each.endswith(".npy")}
    places = dict.fromkeys(flat, 0)
    results = {}
    for label, entry in index.items():
        if isinstance(entry, str):
            results[label] = entry
            continue
        arrays = []
        for kind, shape in entry:
            count = int(np.prod(shape))
            arrays.append(flat[kind][places[kind] : places[kind] + count].reshape(shape))
            places[kind] += count
        results[label] = arrays
    return results


def main():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    for name in sys.argv[1:] or OF_TWO:
        results = {}
        for label, function in cases_of(name).items():
            try:
                if name == "one":
                    with tf.Graph().as_default(), tf.Session() as session:
                        results[label] = [np.asarray(each) for each in outputs(session.run(function(tf)))]
                else:
                    results[label] = [each.numpy() for each in outputs(function(tf))]
            except Exception as error:
                results[label] = type(error).__name__
        save(name, results)
        print(name, len(results), sum(isinstance(each, str) for each in results.values()))


if __name__ == "__main__":
    main()
