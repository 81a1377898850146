"""Writes checkpoints of both formats: python make.py FOLDER. TensorFlow 1.15 and 2.21 write the same bytes."""

import json
import os
import sys
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
folder = sys.argv[1]
os.makedirs(folder)
rng = np.random.RandomState(0)
DTYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64"]
DTYPES += ["uint8", "uint16", "bool", "complex64", "complex128"]
raw = tf.raw_ops


def save(session, name, tensors, specs=None):
    names = [each[0] for each in tensors]
    values = [each[1] for each in tensors]
    session.run(
        raw.SaveV2(
            prefix=os.path.join(folder, name),
            tensor_names=names,
            shape_and_slices=specs or [""] * len(names),
            tensors=values,
        )
    )


with tf.Graph().as_default(), tf.Session() as session:
    tensors = [(name, tf.constant((rng.rand(2, 3) * 100).astype(name))) for name in DTYPES]
    tensors.append(("a_bfloat16", tf.cast(tf.constant(np.arange(6, dtype="f") / 3), tf.bfloat16)))
    tensors.append(("a_qint8", tf.bitcast(tf.constant(np.array([1, -2], "i1")), tf.qint8)))
    tensors.append(("z_string", tf.constant([[b"a", b"bb"], [b"", b"x" * 300]])))
    tensors.append(("scalar", tf.constant(3.5)))
    tensors.append(("empty", tf.constant(np.zeros((0, 4), "f"))))
    tensors.append(("scope/a/long/name/to/share/prefixes_1", tf.constant(1.0)))
    tensors.append(("scope/a/long/name/to/share/prefixes_2", tf.constant(2.0)))
    save(session, "all", tensors)

    part = rng.rand(5, 4).astype("f")
    specs = ["5 4 0,3:-", "5 4 3,2:-", ""]
    save(session, "sliced", [("p", part[:3]), ("p", part[3:]), ("z", part)], specs)
    shards = []
    for i in range(2):
        shards.append(f"part{i}")
        save(session, shards[-1], [(f"a{i}", np.float32(i)), ("p", part[:2] + i)], ["", f"4 4 {2 * i},2:-"])
    paths = [os.path.join(folder, shard) for shard in shards]
    merged = os.path.join(folder, "merged")
    session.run(raw.MergeV2Checkpoints(checkpoint_prefixes=paths, destination_prefix=merged))

    old = [each for each in tensors if each[1].dtype.name not in ("bfloat16", "qint8", "float16", "uint16")]
    session.run(raw.Save(filename=folder + "/v1", tensor_names=[e[0] for e in old], data=[e[1] for e in old]))
    session.run(
        raw.SaveSlices(
            filename=folder + "/v1_sliced",
            tensor_names=["p", "p"],
            shapes_and_slices=specs[:2],
            data=[part[:3], part[3:]],
        )
    )

    # An index of several blocks is too large to keep; its digest is not.
    names = [f"some/scope/of/a/variable/number_{i:05d}" for i in range(15000)]
    save(session, "many", [(name, np.uint8(i % 256)) for i, name in enumerate(names)])
    digests = {}
    for ending in (".index", ".data-00000-of-00001"):
        path = os.path.join(folder, "many" + ending)
        with open(path, "rb") as source:
            digests["many" + ending] = zlib.crc32(source.read())
        os.remove(path)
    with open(os.path.join(folder, "digests.json"), "w") as sink:
        json.dump(digests, sink, sort_keys=True)
        sink.write("\n")

    # Values as uint8, so that NumPy alone can read them back.
    values = {}
    for name, tensor in tensors:
        key = name.replace("/", "|")
        if tensor.dtype == tf.string:
            continue
        bits = tf.bitcast(tensor, tf.uint16 if tensor.dtype == tf.bfloat16 else tf.int8) if name[:2] == "a_" else tensor
        values[key] = session.run(bits)
    np.savez(os.path.join(folder, "values.npz"), part=part, **values)
