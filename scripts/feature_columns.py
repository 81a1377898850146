"""Random feature columns over random features: the same cases under two implementations, compared.

    python scripts/feature_columns.py run MODULE COUNT SEED OUT.json     # MODULE: stoker.compat.v1 or tensorflow.compat.v1
    python scripts/feature_columns.py compare OURS.json THEIRS.json ...

One process runs all cases. A case is a list of column constructions, features for them and a use (input_layer, linear_model, DenseFeatures,
SequenceFeatures); variables are set to the same numbers. The result of a case is the output and the shapes and names of variables, or the class of what was
raised. `compare` prints the cases that equal none of the others (TensorFlow 1.15 refuses ids of identity columns that are out of range,
2.x does not).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np

WORDS = ["a", "b", "c", "dd", "word", "", "Zürich", "long" * 30, "7", "-1"]


def random_numeric(rng, key):
    shape = rng.choice([1, 1, 2, 3, 0, -1], p=[0.4, 0.3, 0.15, 0.11, 0.02, 0.02])
    options = {"shape": int(shape)} if shape != 1 else {}
    if rng.rand() < 0.2:
        options["shape"] = [2, 2]
    if rng.rand() < 0.1:
        options["default_value"] = [1.5, 0, [1.0, 2.0], "x", 2][rng.randint(5)]
    if rng.rand() < 0.1:
        options["dtype"] = ["int64", "float64", "int32", "string", "float32"][rng.randint(5)]
    return ["numeric_column", [key], options]


def random_categorical(rng, key, vocabulary):
    kind = rng.randint(5)
    if kind == 0:
        options = {"dtype": "int64"} if rng.rand() < 0.4 else {}
        return [
            "categorical_column_with_hash_bucket",
            [key, int(rng.choice([2, 5, 17, 1, 0], p=[0.3, 0.3, 0.3, 0.08, 0.02]))],
            options,
        ]
    if kind == 1:
        options = (
            {"default_value": int(rng.choice([-1, 0, 1, 2, 6], p=[0.05, 0.4, 0.3, 0.2, 0.05]))}
            if rng.rand() < 0.5
            else {}
        )
        return [
            "categorical_column_with_identity",
            [key, int(rng.choice([3, 5, 10, 0], p=[0.28, 0.3, 0.4, 0.02]))],
            options,
        ]
    oov = {}
    if rng.rand() < 0.4:
        oov["num_oov_buckets"] = int(rng.choice([1, 3, -1], p=[0.48, 0.48, 0.04]))
    if rng.rand() < (0.05 if oov else 0.3):
        oov["default_value"] = int(rng.choice([-1, 0, 1]))
    if kind == 2:
        if rng.rand() < 0.5:
            oov["vocabulary_size"] = int(rng.choice([2, 4, 5, 9, 0], p=[0.3, 0.3, 0.3, 0.06, 0.04]))
        return ["categorical_column_with_vocabulary_file", [key, vocabulary], oov]
    if kind == 3:
        return ["categorical_column_with_vocabulary_list", [key, [1, 2, 5, 7][: rng.randint(1, 5)]], oov]
    words = ["a", "b", "c", "dd"][: rng.randint(1, 5)]
    if rng.rand() < 0.05:
        words = [words[0], words[0]]
    return ["categorical_column_with_vocabulary_list", [key, words], oov]


def random_feature(rng, rows, kind):
    """A feature as plain values: ["sparse", dtype, indices, values, shape] or ["dense", dtype, values]."""

    def values(count):
        if kind == "string":
            return [WORDS[i] for i in rng.randint(0, len(WORDS), count)]
        if kind == "float32":
            return [float(np.float32(x)) for x in rng.randn(count) * 2]
        return [int(x) for x in rng.randint(-2 if rng.rand() < 0.07 else 0, 7 if rng.rand() < 0.1 else 3, count)]

    if rng.rand() < 0.6:
        width = int(rng.randint(1, 4))
        places = [[i, j] for i in range(rows) for j in range(int(rng.randint(0, width + 1)))]
        return ["sparse", kind, places, values(len(places)), [rows, width]]
    width = int(rng.randint(1, 4))
    flat = values(rows * width)
    return ["dense", kind, [flat[i * width : (i + 1) * width] for i in range(rows)]]


def random_case(rng, vocabulary):
    rows = int(rng.randint(1, 5))
    features, columns = {}, []
    use = ["input_layer", "linear_model", "DenseFeatures", "SequenceFeatures"][rng.choice(4, p=[0.35, 0.35, 0.2, 0.1])]
    for number in range(rng.randint(1, 4)):
        key = f"f{number}"
        if use == "SequenceFeatures":
            if rng.rand() < 0.3:
                columns.append(["sequence_numeric_column", [key], {}])
                kind = "float32"
            else:
                inner = random_categorical(rng, key, vocabulary)
                inner[0] = f"sequence_{inner[0]}" if rng.rand() < 0.9 else inner[0]
                columns.append(wrap(rng, inner))
                kind = kind_of(inner)
            features[key] = random_feature(rng, rows, kind)
            continue
        if rng.rand() < 0.3:
            column = random_numeric(rng, key)
            width = column[2].get("shape", 1)
            size = int(np.prod(width)) if np.all(np.array(width) > 0) else 1
            dtype = ["float32", "float32", "int64"][rng.randint(3)]
            numbers = rng.randn(rows, size) * 2 if dtype == "float32" else rng.randint(-3, 4, (rows, size))
            feature = ["dense", dtype, np.float32(numbers).tolist() if dtype == "float32" else numbers.tolist()]
            if isinstance(width, list):
                feature[2] = np.array(feature[2]).reshape([rows, *width]).tolist()
            features[key] = feature if rng.rand() < 0.95 else random_feature(rng, rows, "float32")
            if rng.rand() < 0.4:
                column = [
                    "bucketized_column",
                    [column, [[-1.0, 0.0, 1.0], [0], [1.0, 0.5], []][rng.choice(4, p=[0.66, 0.3, 0.02, 0.02])]],
                    {},
                ]
                if rng.rand() < 0.3:
                    column = wrap(rng, column)
        else:
            column = random_categorical(rng, key, vocabulary)
            kind = kind_of(column)
            if rng.rand() < 0.02:
                kind = ["string", "int64", "float32"][rng.randint(3)]
            features[key] = random_feature(rng, rows, kind)
            if rng.rand() < 0.2:
                weight = f"{key}_w"
                column = ["weighted_categorical_column", [column, weight], {}]
                feature = features[key]
                if feature[0] == "sparse":
                    numbers = [float(np.float32(x)) for x in rng.randn(len(feature[3]))]
                    features[weight] = ["sparse", "float32", feature[2], numbers, feature[4]]
                else:
                    features[weight] = [
                        "dense",
                        "float32",
                        np.float32(rng.rand(rows, len(feature[2][0])) + 0.5).tolist(),
                    ]
            elif rng.rand() < 0.25:
                other = f"{key}_x"
                features[other] = random_feature(rng, rows, ["string", "int64"][rng.randint(2)])
                options = {"hash_key": int(rng.randint(0, 1000))} if rng.rand() < 0.3 else {}
                second = (
                    other
                    if rng.rand() < 0.7
                    else ["bucketized_column", [["numeric_column", [f"{key}_n"], {}], [0.0, 1.0]], {}]
                )
                if second is not other:
                    features[f"{key}_n"] = ["dense", "float32", np.float32(rng.randn(rows, 1)).tolist()]
                first = column if column[0] != "categorical_column_with_hash_bucket" or rng.rand() < 0.1 else key
                column = ["crossed_column", [[first, second], int(rng.choice([5, 30, 1]))], options]
            if use != "linear_model" and rng.rand() < 0.98:
                column = wrap(rng, column)
        columns.append(column)
    if rng.rand() < 0.03:
        features.pop(sorted(features)[0])
    options = {}
    if use == "linear_model":
        if rng.rand() < 0.3:
            options["units"] = int(rng.randint(1, 4))
        if rng.rand() < 0.5:
            options["sparse_combiner"] = ["mean", "sqrtn", "sum"][rng.randint(3)]
    return {
        "use": use,
        "columns": columns,
        "features": features,
        "options": options,
        "partitions": int(rng.rand() < 0.1) * 2,
    }


def kind_of(column):
    name, arguments, options = column
    if "identity" in name or options.get("dtype") == "int64":
        return "int64"
    if "list" in name:
        return "string" if isinstance(arguments[1][0], str) else "int64"
    return "string"


def wrap(rng, column):
    if rng.rand() < 0.4:
        return ["indicator_column", [column], {}]
    options = {}
    if rng.rand() < 0.5:
        options["combiner"] = ["mean", "sqrtn", "sum"][rng.randint(3)]
    if rng.rand() < 0.2:
        options["max_norm"] = 0.7
    return ["embedding_column", [column, int(rng.choice([1, 2, 3, 0], p=[0.3, 0.3, 0.38, 0.02]))], options]


def built(tf, spec):
    if isinstance(spec, str):
        return spec
    name, arguments, options = spec
    made = []
    for each in arguments:
        if (
            isinstance(each, list)
            and each
            and isinstance(each[0], str)
            and (each[0].endswith("column") or "_column_" in each[0])
        ):
            each = built(tf, each)
        elif name == "crossed_column" and isinstance(each, list):
            each = [built(tf, part) for part in each]
        made.append(each)
    options = dict(options)
    if "dtype" in options:
        options["dtype"] = getattr(tf, options["dtype"])
    return getattr(tf.feature_column, name)(*made, **options)


def feature_tensor(tf, feature):
    kind = getattr(tf, feature[1])
    if feature[0] == "sparse":
        values = np.array(feature[3], dtype=object if feature[1] == "string" else feature[1])
        places = np.array(feature[2], np.int64).reshape(-1, 2)
        return tf.SparseTensor(places, tf.constant(values, kind), np.array(feature[4], np.int64))
    return tf.constant(feature[2], kind)


def result_of(tf, case):
    with tf.Graph().as_default():
        columns = [built(tf, column) for column in case["columns"]]
        features = {key: feature_tensor(tf, feature) for key, feature in case["features"].items()}
        partitioner = tf.fixed_size_partitioner(case["partitions"]) if case["partitions"] else None
        with tf.variable_scope("scope", partitioner=partitioner):
            if case["use"] == "DenseFeatures":
                found = [tf.keras.layers.DenseFeatures(columns)(features)]
            elif case["use"] == "SequenceFeatures":
                found = list(tf.keras.experimental.SequenceFeatures(columns)(features))
            else:
                found = [getattr(tf.feature_column, case["use"])(features, columns, **case["options"])]
        variables = sorted(tf.global_variables(), key=lambda v: v.name)
        with tf.Session() as session:
            session.run(tf.tables_initializer())
            for variable in variables:
                size = int(np.prod(variable.shape.as_list()))
                variable.load(
                    (np.sin(np.arange(size) * 1.7 + len(variable.name)) * 0.8).reshape(variable.shape.as_list()),
                    session,
                )
            values = session.run(found)
    return {
        "values": [np.asarray(value, np.float64).tolist() for value in values],
        "variables": [[v.name, v.shape.as_list()] for v in variables],
        "shapes": [None if each.shape.rank is None else each.shape.as_list() for each in found],
    }


def run(module, count, seed, out):
    warnings.filterwarnings("ignore")
    tf = importlib.import_module(module)
    if module.startswith("tensorflow"):
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = os.path.join(folder, "words.txt")
        with open(vocabulary, "w", encoding="utf-8") as stream:
            stream.write("a\nb\nword\n7\ndd\n")
        results = []
        for number in range(count):
            case = random_case(np.random.RandomState(seed * 100_003 + number), vocabulary)
            try:
                result = result_of(tf, case)
            except Exception as error:
                result = {"raised": type(error).__name__, "message": str(error)[:300]}
            results.append({"case": json.loads(json.dumps(case).replace(vocabulary, "FILE")), "result": result})
    with open(out, "w", encoding="utf-8") as stream:
        json.dump(results, stream)


def same(ours, theirs):
    if "raised" in ours or "raised" in theirs:
        return ours.get("raised") == theirs.get("raised")
    if ours["variables"] != theirs["variables"] or len(ours["values"]) != len(theirs["values"]):
        return False
    return all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
        for a, b in zip(ours["values"], theirs["values"])
    )


def compare(first, *others):
    runs = []
    for path in (first, *others):
        with open(path, encoding="utf-8") as stream:
            runs.append(json.load(stream))
    differing = raised = 0
    for number, (mine, *theirs) in enumerate(zip(*runs)):
        assert all(mine["case"] == their["case"] for their in theirs), number
        raised += "raised" in theirs[0]["result"]
        if not any(same(mine["result"], their["result"]) for their in theirs):
            differing += 1
            print(f"-- case {number}: {json.dumps(mine['case'])}\n   ours   {str(mine['result'])[:400]}")
            for their in theirs:
                print(f"   theirs {str(their['result'])[:400]}")
    print(f"{len(runs[0])} cases, {raised} refused by TensorFlow, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(compare(*sys.argv[2:]))
