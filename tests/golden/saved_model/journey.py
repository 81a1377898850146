"""SavedModels of objects that travel between stoker and TensorFlow 2.

python journey.py write MODULE FOLDER     saves every model and what it computes (MODULE is stoker or tensorflow)
python journey.py check MODULE FOLDER     loads every model, computes the same and compares
python journey.py again MODULE FOLDER     as check, for models that are loaded, saved and loaded once more
python journey.py session MODULE FOLDER   runs signatures in a 1.x session and compares with known values

Prints a JSON object: what went wrong for each model, empty where nothing did. The models in `objects_tf2` were written by TensorFlow 2.21.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import sys
import tempfile
import traceback

import numpy as np

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

Pair = collections.namedtuple("Pair", ["first", "second"])


def nested(tf, folder):
    """Containers, several traces of one function, default values, keyword-only arguments, nested results."""

    class Part(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable([1.0, 2.0])

    class Model(tf.Module):
        def __init__(self):
            super().__init__(name="model")
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
            self.frozen = tf.Variable(1.0, trainable=False)
            self.part = Part()
            self.listed = [self.part, tf.Variable(5), [tf.Variable(6)]]
            self.named = {"k": tf.Variable("text"), "other": self.part}
            self.pair = (tf.Variable(1), 2)
            self.constant = tf.constant([7.0, 8.0])

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def __call__(self, x):
            return tf.matmul(x, self.w) + self.frozen + self.constant

        @tf.function
        def several(self, x, training=False, *, scale=2.0):
            if training:
                return {"a": x * scale, "b": [x, self.part.v], "c": None}
            return Pair(x + self.part.v, (x,))

    model = Model()
    model.several(tf.constant([1.0, 2.0]))
    model.several(tf.constant([[1.0, 2.0]]), training=True)
    model.several(tf.constant([1, 2], tf.int32), training=True, scale=3)

    def observe(m):
        yield m(tf.constant([[1.0, 1.0], [0.5, 2.0]]))
        yield m(np.float32([[1.0, 1.0]]))
        yield m.several(tf.constant([1.0, 2.0]))
        yield m.several(tf.constant([[1.0, 2.0]]), True)["b"]
        yield m.several(tf.constant([3, 4]), training=True, scale=3)["a"]
        yield [m.listed[1], m.listed[2][0], m.listed[0].v, m.named["k"], m.named["other"].v, m.pair[0]]
        yield [int(m.w.trainable), int(m.frozen.trainable), int(m.part is m.listed[0])]
        yield m.signatures["serving_default"](x=tf.constant([[1.0, 1.0]])) if hasattr(m, "signatures") else {"output_0": m([[1.0, 1.0]])}  # fmt: skip

    return model, None, observe


def trained(tf, folder):
    """A module that goes on training after it was loaded: variables are trainable, and gradients flow through functions."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w1 = tf.Variable(np.float32(np.linspace(-1, 1, 12).reshape(3, 4)))
            self.w2 = tf.Variable(np.float32(np.linspace(1, -1, 4).reshape(4, 1)))
            self.steps = tf.Variable(0, trainable=False)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x):
            return tf.matmul(tf.tanh(tf.matmul(x, self.w1)), self.w2)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None, 1], tf.float32)])
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            variables = [self.w1, self.w2]
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign_sub(0.1 * gradient)
            self.steps.assign_add(1)
            return loss

    model = Model()
    x, y = tf.constant(np.float32(np.arange(12).reshape(4, 3) / 10)), tf.constant(np.float32([[1], [0], [1], [0]]))
    for _ in range(3):
        model.step(x, y)

    def observe(m):
        yield m(x)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((m(x) - y) ** 2)
            gradients = tape.gradient(loss, [m.w1, m.w2])
            yield loss, gradients
            m.w1.assign_sub(0.1 * gradients[0])
            m.w2.assign_sub(0.1 * gradients[1])
        yield [m.step(x, y) for _ in range(3)]
        yield m.w1, m.w2, m.steps

    return model, {"serving_default": model.__call__, "train": model.step}, observe


def control_flow(tf, folder):
    """Loops, branches, maps and functions that call functions, with variables captured on every level."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)
            self.count = tf.Variable(0, trainable=False)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def loop(self, n):
            total = tf.constant(0.0)
            while n > 0:
                if n % 2 == 0:
                    total += self.v
                else:
                    total += self.helper(total)
                n -= 1
                self.count.assign_add(1)
            return total

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def helper(self, x):
            return tf.cond(x > 3.0, lambda: x * self.v, lambda: x + 1.0)

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def mapped(self, x):
            return tf.map_fn(lambda row: tf.reduce_sum(row) * self.v, x)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32)])
        def switch(self, i, x):
            return tf.switch_case(i, [lambda: x, lambda: x * self.v, lambda: tf.reverse(x, [0])])

        @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
        def collected(self, x):
            array = tf.TensorArray(tf.float32, 3)
            for i in tf.range(3):
                array = array.write(i, x[i] * self.v)
            return array.stack()

    model = Model()

    def observe(m):
        yield [m.loop(tf.constant(n)) for n in (0, 1, 4, 5)]
        yield m.count, m.helper(1.0), m.helper(4.0)
        yield m.mapped(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
        yield [m.switch(tf.constant(i), tf.constant([1.0, 5.0])) for i in range(3)]
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(m.collected(tf.constant([1.0, 2.0, 3.0]))) + m.loop(tf.constant(5))
        yield y, tape.gradient(y, m.v)

    return model, {"loop": model.loop, "mapped": model.mapped}, observe


def tables(tf, folder):
    """Static tables from a file and from tensors, tables that change, vocabularies, and assets."""
    path = os.path.join(folder, "words.txt")
    with open(path, "w") as file:
        file.write("one\ntwo\nthree\n")

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            lookup = tf.lookup
            whole, line = lookup.TextFileIndex.WHOLE_LINE, lookup.TextFileIndex.LINE_NUMBER
            self.words = lookup.StaticHashTable(lookup.TextFileInitializer(path, tf.string, whole, tf.int64, line), -1)
            pairs = lookup.KeyValueTensorInitializer(["x", "y"], tf.constant([1.5, 2.5]))
            self.pairs = lookup.StaticHashTable(pairs, 0.0)
            self.vocabulary = lookup.StaticVocabularyTable(
                lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), 3
            )
            self.mutable = lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.dense = lookup.experimental.DenseHashTable(
                tf.int64, tf.float32, [0.0, 0.0], empty_key=-1, deleted_key=-2, initial_num_buckets=16
            )
            self.mutable.insert(["p", "q"], tf.constant([5, 6], tf.int64))
            self.dense.insert(tf.constant([3, 19, 35], tf.int64), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            self.file = tf.saved_model.Asset(path)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def find(self, keys):
            return {
                "words": self.words.lookup(keys),
                "pairs": self.pairs.lookup(keys),
                "vocabulary": self.vocabulary.lookup(keys),
                "mutable": self.mutable.lookup(keys),
            }

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def dense_rows(self, keys):
            return self.dense.lookup(keys)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)])
        def insert(self, keys, values):
            self.mutable.insert(keys, values)
            return self.mutable.size()

        @tf.function(input_signature=[])
        def contents(self):
            return tf.io.read_file(self.file.asset_path)

    model = Model()
    words = ["one", "three", "x", "b", "q", "none"]

    def observe(m):
        yield m.find(tf.constant(words))
        yield m.dense_rows(tf.constant([3, 4, 19, 35], tf.int64))
        yield m.insert(tf.constant(["none"]), tf.constant([9], tf.int64)), m.find(tf.constant(words))["mutable"]
        yield m.contents()

    return model, {"find": model.find, "contents": model.contents}, observe


def composites(tf, folder):
    """Sparse and ragged arguments and results, arguments in nested structures, and *args and **kwargs."""

    class Model(tf.Module):
        @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
        def dense(self, s):
            return tf.sparse.to_dense(s)

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32, 1)])
        def ragged(self, r):
            return r * 2.0

        @tf.function
        def many(self, *parts, **named):
            return tf.add_n(list(parts)) + named["extra"]["x"]

    model = Model()
    model.v = tf.Variable(1.0)
    extra = {"x": tf.constant([10.0])}
    model.many(tf.constant([1.0]), tf.constant([2.0]), extra=extra)

    def observe(m):
        yield m.dense(tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
        yield m.ragged(tf.ragged.constant([[1.0], [2.0, 3.0]])).flat_values
        yield m.many(tf.constant([1.0]), tf.constant([2.0]), extra=extra)

    return model, {"dense": model.dense, "ragged": model.ragged}, observe


def custom_gradient(tf, folder):
    """A function with a gradient of its own keeps it."""

    @tf.custom_gradient
    def odd(x):
        def grad(dy):
            return dy * 42.0 * x

        return x * 2.0, grad

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(3.0)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(self, x):
            return odd(x * self.v) + 1.0

    model = Model()

    def observe(m):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = m.f(x)
        yield y, tape.gradient(y, [x, m.v])

    return model, None, observe


def optimizer(tf, folder):
    """An optimizer of 1.x with slots, whose step is a function."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0], [2.0]])
            self.optimizer = tf.compat.v1.train.AdamOptimizer(0.1)

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.matmul(x, self.w) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, [self.w]), [self.w]))
            return loss

    model = Model()
    x = tf.constant([[1.0, 0.5], [0.2, -1.0]])
    for _ in range(3):
        model.step(x)

    def observe(m):
        yield [m.step(x) for _ in range(3)], m.w

    return model, None, observe


MODELS = {
    each.__name__: each for each in (nested, trained, control_flow, tables, composites, custom_gradient, optimizer)
}


def keras_models(tf):
    """Models of Keras, which only TensorFlow writes: loaded objects are called, and their signatures."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    dense = tf.keras.Sequential([layers.Dense(4, "relu", input_shape=(3,)), layers.Dropout(0.5), layers.Dense(2)])
    dense.compile("adam", "mse")
    dense.fit(np.ones((4, 3), np.float32), np.ones((4, 2), np.float32), verbose=0)
    image = tf.keras.Sequential(
        [
            layers.Conv2D(3, 3, input_shape=(8, 8, 2)),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPool2D(),
            layers.Flatten(),
            layers.Dense(2, "softmax"),
        ]
    )
    image.compile("sgd", "mse")
    image.fit(np.ones((2, 8, 8, 2), np.float32), np.ones((2, 2), np.float32), verbose=0)
    words = tf.keras.Sequential([layers.Embedding(10, 4, input_length=5), layers.LSTM(3), layers.Dense(1, "sigmoid")])
    words.build((None, 5))
    given = tf.keras.Input((4,), name="given")
    hidden = layers.LayerNormalization()(layers.Dense(4, "gelu")(given))
    functional = tf.keras.Model(given, {"out": layers.Dense(2)(layers.Add()([given, hidden]))})
    return {
        "keras_dense": (dense, np.float32(np.arange(6).reshape(2, 3))),
        "keras_image": (image, np.float32(np.arange(256).reshape(2, 8, 8, 2) / 256)),
        "keras_words": (words, np.int32([[1, 2, 3, 4, 5], [0, 9, 0, 9, 0]])),
        "keras_functional": (functional, np.float32(np.arange(8).reshape(2, 4))),
    }


def arrays(tf, values):
    """What was observed as a flat list of arrays."""
    found = []
    for value in values:
        for leaf in tf.nest.flatten(value, expand_composites=True):
            if leaf is not None:
                array = np.asarray(leaf.numpy() if hasattr(leaf, "numpy") else leaf)
                found.append(array.astype(str) if array.dtype == object or array.dtype.kind == "S" else array)
    return found


def save_arrays(path, values):
    np.savez(path, **{f"a{i:03}": value for i, value in enumerate(values)})


def difference(path, found):
    with np.load(path) as expected:
        wanted = [expected[key] for key in sorted(expected)]
    if len(wanted) != len(found):
        return f"{len(found)} values, expected {len(wanted)}"
    for i, (a, b) in enumerate(zip(wanted, found)):
        if a.dtype.kind != b.dtype.kind or a.shape != b.shape:
            return f"value {i}: {b!r}, expected {a!r}"
        same = np.array_equal(a, b) if a.dtype.kind in "USOb" else np.allclose(a, b, rtol=2e-5, atol=1e-6)
        if not same:
            return f"value {i}: {b!r}, expected {a!r}"
    return ""


def write(tf, folder):
    results = {}
    for name, build in MODELS.items():
        path = os.path.join(folder, name)
        try:
            with tempfile.TemporaryDirectory() as temporary:
                model, signatures, observe = build(tf, temporary)
                tf.saved_model.save(model, path, signatures=signatures)
                save_arrays(os.path.join(path, "expected.npz"), arrays(tf, observe(model)))
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc(limit=-4)
    if tf.__name__ == "tensorflow":
        for name, (model, x) in keras_models(tf).items():
            path = os.path.join(folder, name)
            tf.saved_model.save(model, path)
            values = [model(x, training=False), *model.get_weights()]
            save_arrays(os.path.join(path, "expected.npz"), arrays(tf, values))
            np.save(os.path.join(path, "given.npy"), x)
            results[name] = ""
    return results


def check(tf, folder, *, again=False):
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            try:
                loaded = tf.saved_model.load(path)
                if again:
                    copy = os.path.join(temporary, name)
                    tf.saved_model.save(loaded, copy)
                    loaded = tf.saved_model.load(copy)
                if name in MODELS:
                    _, _, observe = MODELS[name](tf, temporary)
                    found = arrays(tf, observe(loaded))
                else:
                    x = np.load(os.path.join(path, "given.npy"))
                    found = arrays(tf, [loaded(x, training=False), *loaded.variables])
                    signature = loaded.signatures["serving_default"]
                    (spec,) = signature.structured_input_signature[1].values()
                    called = signature(tf.cast(x, spec.dtype))
                    wrong = difference_of_signature(arrays(tf, [called]), found)
                    if wrong:
                        results[name] = wrong
                        continue
                results[name] = difference(os.path.join(path, "expected.npz"), found)
            except Exception:
                results[name] = traceback.format_exc(limit=-6)
    return results


# Signatures to run in a session: model, key, arguments, one of the results and its value.
IN_SESSIONS = [
    ("nested", "serving_default", {"x": [[1.0, 1.0]]}, "output_0", [[12.0, 15.0]]),
    ("tables", "find", {"keys": ["three", "x", "b", "q"]}, "words", [2, -1, -1, -1]),
    ("tables", "find", {"keys": ["three", "x", "b", "q"]}, "pairs", [0.0, 1.5, 0.0, 0.0]),
    ("tables", "find", {"keys": ["three", "x", "b", "q"]}, "mutable", [-1, -1, -1, 6]),
    ("control_flow", "loop", {"n": 5}, "output_0", 27.0),
    ("control_flow", "mapped", {"x": [[1.0, 2.0]]}, "output_0", [6.0]),
    ("composites", "dense", {"s": [[0, 1]], "s_1": [5.0], "s_2": [1, 3]}, "output_0", [[0.0, 5.0, 0.0]]),
]


def session(tf, folder):
    tf1 = importlib.import_module("stoker.compat.v1") if tf.__name__ == "stoker" else tf.compat.v1
    results = {}
    for name, key, given, result, expected in IN_SESSIONS:
        label = "session: " + name + " " + key + " " + result
        try:
            with tf1.Graph().as_default(), tf1.Session() as sess:
                meta = tf1.saved_model.load(sess, ["serve"], os.path.join(folder, name))
                signature = meta.signature_def[key]
                feeds = {signature.inputs[each].name: value for each, value in given.items()}
                found = sess.run(signature.outputs[result].name, feeds)
            results[label] = "" if np.allclose(found, expected) else repr(found)
        except Exception:
            results[label] = traceback.format_exc(limit=-4)
    return results


def difference_of_signature(signature, called):
    return "" if np.allclose(signature[0], called[0], rtol=2e-5, atol=1e-6) else "the signature gives other values"


def main():
    action, module, folder = sys.argv[1:]
    tf = importlib.import_module(module)
    os.makedirs(folder, exist_ok=True)
    actions = {"write": write, "session": session, "check": check}
    results = check(tf, folder, again=True) if action == "again" else actions[action](tf, folder)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
