"""Accuracy of quantized models: twelve networks, trained on data made here, in floating point and in integers.

    python scripts/check_lite_accuracy.py [--tf2 PYTHON] [--keep FOLDER] [--only NAME,NAME] [--steps N]

Each network of tests/lite/models.py is trained for a minute or less on a task that it can learn but not perfectly. The model is converted in floating
point, with weights in 8 bits ("dynamic") and in 16 ("half") and, with a representative dataset, in 8 bits, also without any floating point where it can
be done ("strict"); all run on LiteRT over the same test set. A TensorFlow 2 converts the same SavedModel with the same
samples: its accuracy, and size and latency of both conversions, are printed beside ours. The exit status is 1 where our integer model is more
than 1% less accurate than the float model.

Both models answer the same questions, so the difference of their scores ("change") is known better than either score: its standard error, printed
behind it, is about a tenth of a percent with 10,000 questions, and 1% is no accident of the sample.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
WIDTH, BATCH, SAMPLES, TESTS = 8, 50, 100, 10_000
KINDS = ("float", "int8", "strict", "dynamic", "half")


# ---- data: each function makes inputs and what is to be found in them ---------------------------------------------------


def gratings(random, count, size=32, classes=10):
    """Images of waves; the class is the direction, and noise makes neighbours hard to tell apart."""
    wanted = random.randint(0, classes, count)
    rows, columns = np.mgrid[:size, :size] / size
    angle = (wanted * np.pi / classes)[:, None, None] + random.randn(count, 1, 1) * 0.07
    phase = random.uniform(0, 2 * np.pi, [count, 1, 1])
    waves = np.sin(20 * (np.cos(angle) * rows + np.sin(angle) * columns) + phase)
    tint = random.uniform(0.3, 1, [count, 1, 1, 3])
    return [(waves[..., None] * tint + 0.6 * random.randn(count, size, size, 3)).astype(np.float32)], wanted


def walks(random, count, steps=12, channels=4):
    """Sequences; the class is the channel, of three, that comes first to a sum of one half."""
    x = random.randn(count, steps, channels).astype(np.float32)
    sums = np.cumsum(x[:, :, :3], 1).max(1)
    return [x], sums.argmax(1)


def tokens(random, count, steps=6, channels=8):
    """Sequences of vectors; the class of each vector is where its sum with the mean of all is largest."""
    x = random.randn(count, steps, channels).astype(np.float32)
    return [x], (x + 2 * x.mean(1, keepdims=True)).argmax(-1)


def clicks(random, count):
    """Three identifiers and five numbers; the answer is drawn by a logistic model with crosses."""
    table = np.random.RandomState(5).randn(3, 50)
    ids, numbers = random.randint(0, 50, [count, 3]).astype(np.int32), random.randn(count, 5).astype(np.float32)
    first, second, third = (table[n][ids[:, n]] for n in range(3))
    return [ids, numbers], (first + second * third + numbers @ [1, -1, 0.5, 0, 0.2] > 0).astype(int)


def squares(random, count, size=16):
    """Images with one bright square; its box is to be found."""
    x = 0.4 * random.randn(count, size, size, 3)
    centre = random.uniform(0.25, 0.75, [count, 2])
    half = random.uniform(0.09, 0.12, [count, 1]) * np.ones([1, 2])
    boxes = np.concatenate([centre - half, centre + half], 1)
    at = (np.arange(size) + 0.5) / size
    inside = [(at >= boxes[:, d, None]) & (at <= boxes[:, d + 2, None]) for d in range(2)]
    x += 1.5 * (inside[0][:, :, None] & inside[1][:, None, :])[..., None]
    return [x.astype(np.float32)], boxes.astype(np.float32)


def shapes(random, count, size=16):
    """Images with a disc and a bar of other brightness; the class of each pixel is to be found."""
    rows, columns = np.mgrid[:size, :size]
    centre = random.uniform(4, 12, [2, count, 1, 1])
    disc = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < 12
    bar = np.abs(rows - random.uniform(2, 14, [count, 1, 1])) < 1.5
    wanted = np.where(disc, 1, np.where(bar & (columns >= 0), 2, 0))
    levels = np.array([[0, 0, 0], [1, 0.2, 0], [0, 0.4, 0.8]])
    return [(levels[wanted] + 0.4 * random.randn(count, size, size, 3)).astype(np.float32)], wanted


def chirps(random, count):
    """Spectrograms of 20 frames by 10 bands; the class is how the tone moves."""
    wanted = random.randint(0, 4, count)
    at = np.arange(20) / 20
    paths = np.stack([9 * at, 9 - 9 * at, 4.5 + 4 * np.sin(6 * at), 4.5 + 0 * at])
    path = paths[wanted] + random.randn(count, 1)
    x = np.exp(-((np.arange(10) - path[..., None]) ** 2)) + 0.45 * random.randn(count, 20, 10)
    return [x.reshape(count, 200).astype(np.float32)], wanted


def pictures(random, count):
    """Smooth images of 16 by 16, and their means over 2 by 2 pixels to restore them from."""
    rows, columns = np.mgrid[:16, :16] / 16
    wave = random.uniform(-6, 6, [2, count, 1, 1, 3])
    x = 0.8 * np.sin(wave[0] * rows[..., None] + wave[1] * columns[..., None] + random.uniform(0, 6, [count, 1, 1, 3]))
    small = x.reshape(count, 8, 2, 8, 2, 3).mean((2, 4))
    return [small.astype(np.float32)], x.astype(np.float32)


def sentences(random, count):
    """Twelve words of a hundred; the class is that of most of them, and pairs in the wrong order turn it."""
    ids = random.randint(0, 100, [count, 12]).astype(np.int32)
    votes = np.stack([(ids % 4 == k).sum(1) for k in range(3)], 1) + 1.5 * ((np.diff(ids, axis=1) == 1).sum(1))[:, None]
    return [ids], (votes + [0, 0.1, 0.2]).argmax(1)


# ---- tasks ----------------------------------------------------------------------------------------------------------


def classes(tf, outputs, wanted, from_probabilities):
    found = outputs[-1]
    if from_probabilities:
        found = tf.math.log(found + 1e-7)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=found))


def box_loss(tf, outputs, wanted):
    boxes, scores = outputs
    boxes, scores = tf.reshape(boxes, [BATCH, -1, 4]), tf.reshape(scores, [BATCH, -1])
    truth = wanted[:, None, :]
    anchors = np.stack(np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8), indexing="ij"), -1).reshape(1, -1, 2)
    off = tf.reduce_max(tf.abs((truth[..., :2] + truth[..., 2:]) / 2 - anchors.astype(np.float32)), -1)
    near = tf.cast(off < 0.1, tf.float32)
    scoring = -tf.reduce_mean(near * tf.math.log(scores + 1e-6) * 5 + (1 - near) * tf.math.log(1 - scores + 1e-6))
    return scoring + 20 * tf.reduce_mean(near[..., None] * tf.abs(boxes - truth))


def overlap(boxes, truth):
    low, high = np.maximum(boxes[:2], truth[:2]), np.minimum(boxes[2:], truth[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(boxes[2:] - boxes[:2]) + np.prod(truth[2:] - truth[:2]) - shared)


def hits(found, wanted):
    """Whether the best box covers the true one."""
    boxes, scores = found
    return float(len(scores) > 0 and overlap(boxes[np.argmax(scores)], wanted) > 0.5)


def right(found, wanted):
    return float(np.mean(found[-1].argmax(-1).reshape(np.shape(wanted)) == wanted))


def signal(found, wanted):
    """The squared error of a picture."""
    return float(np.mean((found[0][0] - wanted) ** 2))


def fused_lstm(tf, x, width=4):
    """An LSTM by tf.lite.experimental.nn, which becomes the fused builtin."""
    from tests.lite.models import _Layers

    layers = _Layers(tf)
    cell = tf.lite.experimental.nn.TFLiteLSTMCell(2 * width, name="cell")
    outputs, _ = tf.lite.experimental.nn.dynamic_rnn(cell, tf.transpose(x, [1, 0, 2]), dtype=tf.float32)
    return layers.dense(outputs[-1], 3)


class Task:
    def __init__(self, data, loss="logits", score=right, rate=3e-3, steps=300, build=None, train=None):
        self.data, self.loss, self.score, self.rate, self.steps = data, loss, score, rate, steps
        self.build, self.train = build, train


TASKS = {
    "mobilenet_v1": Task(gratings, "probabilities"),
    "mobilenet_v2": Task(gratings),
    "resnet": Task(gratings),
    "fused_lstm": Task(walks, steps=800, rate=1e-2, build=fused_lstm),
    "lstm": Task(walks, steps=800, rate=1e-2),
    "gru": Task(walks, steps=800, rate=1e-2),
    "transformer": Task(tokens, steps=1000),
    "wide_and_deep": Task(clicks, "click", steps=2000, rate=1e-2),
    "detection": Task(squares, "boxes", hits, steps=800, rate=1e-2),
    "unet": Task(shapes, "probabilities", steps=300),
    "speech": Task(chirps, "probabilities", steps=200),
    "super_resolution": Task(pictures, "picture", signal, steps=500),
    "text_cnn": Task(sentences, "probabilities", steps=2000),
}


def clicked(found, wanted):
    return float((found[0].ravel()[0] > 0.5) == wanted)


TASKS["wide_and_deep"].score = clicked


# ---- stoker ---------------------------------------------------------------------------------------------------------


def loss_of(tf, task, outputs, wanted):
    if task.loss == "picture":
        return tf.reduce_mean((outputs[0] - wanted) ** 2)
    if task.loss == "boxes":
        return box_loss(tf, outputs, wanted)
    if task.loss == "click":
        p = tf.reshape(outputs[0], [-1])
        y = tf.cast(wanted, tf.float32)
        return -tf.reduce_mean(y * tf.math.log(p + 1e-6) + (1 - y) * tf.math.log(1 - p + 1e-6))
    return classes(tf, outputs, wanted, task.loss == "probabilities")


def norm(layers, x, statistics):
    """Batch normalization: of the batch in training, which is a batch of more than one, else with the statistics of training."""
    tf, channels = layers.tf, int(x.shape[-1])
    scale, offset = layers.variable(channels, around=1.0), layers.variable(channels)
    mean, variance = layers.variable(channels), layers.variable(channels, around=1.0)
    if int(x.shape[0]) == 1:
        return tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]
    y, *found = tf.nn.fused_batch_norm(x, scale, offset)
    statistics.extend(zip((mean, variance), found))
    return y


def settle(session, statistics, feeds):
    """Gives the variables of batch normalization the averages over some batches."""
    if statistics:
        found = [session.run([value for _, value in statistics], each) for each in feeds]
        for (variable, _), values in zip(statistics, zip(*found)):
            variable.load(np.mean(values, 0), session)


def make(name, task, folder, steps):
    """Trains a network and writes its SavedModel, its float and integer conversions, the samples and the test set."""
    import stoker.compat.v1 as tf
    from tests.lite import models

    build = task.build or models.NETWORKS[name].build
    train_build = models.detection_boxes if name == "detection" else build
    random = np.random.RandomState(0)
    graph = tf.Graph()
    statistics = []
    models._Layers.norm = lambda layers, x: norm(layers, x, statistics)
    tf.enable_control_flow_v2()
    with graph.as_default(), tf.Session(graph=graph) as session:
        arrays, wanted = task.data(random, 4000)
        feeds = [tf.placeholder(a.dtype, [BATCH, *a.shape[1:]]) for a in arrays]
        target = tf.placeholder(
            tf.float32 if np.asarray(wanted).dtype.kind == "f" else tf.int64, [BATCH, *wanted.shape[1:]]
        )
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            outputs = tf.nest.flatten(train_build(tf, *feeds, width=WIDTH))
        loss = loss_of(tf, task, outputs, target)
        step = tf.train.AdamOptimizer(
            tf.train.cosine_decay(task.rate, tf.train.get_or_create_global_step(), steps)
        ).minimize(loss, global_step=tf.train.get_global_step())
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            chosen = random.randint(0, 4000, BATCH)
            last, _ = session.run(
                [loss, step], dict(zip([*feeds, target], [*(a[chosen] for a in arrays), wanted[chosen]]))
            )
        settle(
            session, statistics, [dict(zip(feeds, [a[i * BATCH : (i + 1) * BATCH] for a in arrays])) for i in range(20)]
        )
        inputs = [tf.placeholder(a.dtype, [1, *a.shape[1:]], name=f"in_{i}") for i, a in enumerate(arrays)]
        with tf.variable_scope("net", reuse=True):
            found = tf.nest.flatten(build(tf, *inputs, width=WIDTH))
        outputs = [tf.identity(each, name=f"out_{i}") for i, each in enumerate(found)]
        place = folder / name
        place.mkdir(exist_ok=True)
        names = {each.op.name: each for each in inputs}, {each.op.name: each for each in outputs}
        shutil.rmtree(place / "saved", ignore_errors=True)
        tf.saved_model.simple_save(session, str(place / "saved"), *names)
        test, truth = task.data(np.random.RandomState(1), TESTS)
        np.savez(place / "samples.npz", *[a[:SAMPLES] for a in arrays])
        np.savez(place / "test.npz", *test)
        np.save(place / "truth.npy", truth)
    return float(last)


def convert(place):
    """Writes the model in floating point, in integers, and with weights in 8 bits. Returns the kinds that there are."""
    import stoker.compat.v1 as tf

    samples = arrays_of(place / "samples.npz")
    for kind in KINDS:
        converter = tf.lite.TFLiteConverter.from_saved_model(str(place / "saved"))
        ask(tf, converter, kind, samples)
        (place / f"{kind}.tflite").unlink(missing_ok=True)
        try:
            (place / f"{kind}.tflite").write_bytes(converter.convert())
        except ValueError as error:
            if kind != "strict" or "Full integer quantization is not possible" not in str(error):
                raise
    return [kind for kind in KINDS if (place / f"{kind}.tflite").exists()]


def ask(tf, converter, kind, samples):
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "half":
        converter.target_spec.supported_types = [tf.float16]
    if kind == "strict":
        converter.target_spec.supported_ops = {tf.lite.OpsSet.TFLITE_BUILTINS_INT8}
    if kind in ("int8", "strict"):
        names = [f"in_{n}" for n in range(len(samples))]
        converter.representative_dataset = lambda: (
            {name: a[i : i + 1] for name, a in zip(names, samples)} for i in range(SAMPLES)
        )


# ---- both -----------------------------------------------------------------------------------------------------------


def arrays_of(path):
    with np.load(path) as file:
        return [file[f"arr_{i}"] for i in range(len(file.files))]


def results(interpreter, arrays):
    details = sorted(interpreter.get_input_details(), key=lambda each: each["name"])
    for detail, value in zip(details, arrays):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [
        interpreter.get_tensor(each["index"])
        for each in sorted(interpreter.get_output_details(), key=lambda each: each["name"])
    ]


def score_each(make_interpreter, data, task, place):
    """The score of each question of the test set."""
    interpreter = make_interpreter(model_content=data)
    interpreter.allocate_tensors()
    test, truth = arrays_of(place / "test.npz"), np.load(place / "truth.npy")
    scores = []
    for i in range(len(truth)):
        if hasattr(interpreter, "reset_all_variables"):
            interpreter.reset_all_variables()
        scores.append(task.score(results(interpreter, [a[i : i + 1] for a in test]), truth[i]))
    return np.array(scores)


def accuracy(scores, task):
    score = float(np.mean(scores))
    # The error of a picture as decibels, of which 40 count as perfect.
    return -10 * np.log10(score) / 40 if task.score is signal else score


def change(scores, reference, task):
    """How much more accurate `scores` are than those of the float model on the same questions, and the standard error of that."""
    found = accuracy(scores, task) - accuracy(reference, task)
    if task.score is signal:
        # The derivative of the decibels.
        each = (scores / scores.mean() - reference / reference.mean()) * 10 / 40 / np.log(10)
    else:
        each = scores - reference
    return found, float(each.std() / np.sqrt(len(each)))


def under_tensorflow(folder, names):
    """Converts each SavedModel, and measures both conversions on this TensorFlow's interpreter."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    report = {}
    for name in names:
        for kind in KINDS:
            if not (folder / name / f"{kind}.tflite").exists():
                continue
            # In a process of its own: its converter, or a model that it makes, may crash.
            with tempfile.NamedTemporaryFile(suffix=".json") as target:
                child = os.fork()
                if child == 0:
                    try:
                        entry = theirs(tf, folder / name, TASKS[name], kind)
                    except Exception as error:
                        entry = str(error).strip().splitlines()[-1][:120]
                    Path(target.name).write_text(json.dumps(entry))
                    os._exit(0)
                os.waitpid(child, 0)
                report.setdefault(name, {})[kind] = json.loads(Path(target.name).read_text() or '"crashes"')
    return report


def theirs(tf, place, task, kind):
    samples = arrays_of(place / "samples.npz")
    converter = tf.lite.TFLiteConverter.from_saved_model(str(place / "saved"))
    ask(tf, converter, kind, samples)
    data = converter.convert()
    (place / f"theirs_{kind}.tflite").write_bytes(data)
    ours = (place / f"{kind}.tflite").read_bytes()
    score = accuracy(score_each(tf.lite.Interpreter, data, task, place), task)
    return [score, len(data), *latencies(tf, [ours, data], [a[:1] for a in samples])]


def latencies(tf, models, arrays, rounds=40):
    """The least processor time of a call of each model; the models take turns, so that a busy machine slows all of them."""
    running = []
    for data in models:
        interpreter = tf.lite.Interpreter(model_content=data, num_threads=1)
        interpreter.allocate_tensors()
        results(interpreter, arrays)
        running.append(interpreter)
    best = [1e9] * len(models)
    for _ in range(rounds):
        for position, interpreter in enumerate(running):
            start = time.process_time()
            for _ in range(20):
                interpreter.invoke()
            best[position] = min(best[position], (time.process_time() - start) / 20)
    return best


def main():
    parser = argparse.ArgumentParser(description="Accuracy of quantized models.")
    parser.add_argument("--tf2", default="tf2/bin/python")
    parser.add_argument("--keep", help="a folder for the files; networks that are there are not trained again")
    parser.add_argument("--only", default=",".join(TASKS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.only.split(",")
    if args.inside:
        folder, target = map(Path, args.inside)
        target.write_text(json.dumps(under_tensorflow(folder, names)))
        return 0
    sys.path.insert(0, str(ROOT))
    import stoker.compat.v1 as tf

    folder = Path(args.keep or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    ours = {}
    for name in names:
        start = time.time()
        place = folder / name
        loss = 0.0 if (place / "saved").exists() else make(name, TASKS[name], folder, args.steps or TASKS[name].steps)
        ours[name] = {
            kind: score_each(tf.lite.Interpreter, (place / f"{kind}.tflite").read_bytes(), TASKS[name], place)
            for kind in convert(place)
        }
        found = {kind: round(float(accuracy(scores, TASKS[name])), 4) for kind, scores in ours[name].items()}
        print(f"  {name}: loss {loss:.3f}, accuracy {found}, {time.time() - start:.0f} s", flush=True)
    theirs = {}
    if Path(args.tf2).exists():
        with tempfile.NamedTemporaryFile(suffix=".json") as target:
            sys.stdout.flush()
            subprocess.run(
                [args.tf2, __file__, "--only", ",".join(names), "--inside", str(folder), target.name],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            theirs = json.loads(Path(target.name).read_text())
    failed = False
    print(
        f"{'':18}{'kind':9}{'ours':>8}{'change':>9}{'error':>8}{'theirs':>8}{'bytes':>9}{'theirs':>9}{'ratio':>6}{'us':>9}{'theirs':>9}{'ratio':>6}"
    )
    for name in names:
        for kind, scores in ours[name].items():
            size = (folder / name / f"{kind}.tflite").stat().st_size
            difference, error = change(scores, ours[name]["float"], TASKS[name])
            failed |= difference < -0.01
            entry = theirs.get(name, {}).get(kind)
            line = f"{name:18}{kind:9}{accuracy(scores, TASKS[name]):8.4f}{difference:+9.4f}{error:8.4f}"
            if isinstance(entry, list):
                found, length, fast, slow = entry
                line += f"{found:8.4f}{size:9}{length:9}{size / length:6.2f}{fast * 1e6:9.1f}{slow * 1e6:9.1f}{fast / slow:6.2f}"
            else:
                line += f"        {size:9} {entry or ''}"
            print(line)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
