"""Summaries of fixed values as TensorFlow writes them: python summaries.py > summaries.json, with TensorFlow 1.15.

`build(tf)` is also what the test runs.
"""

import json

import numpy as np


def build(tf):
    """{name of a case: its summary tensor} in the default graph."""
    random = np.random.RandomState(0)
    with tf.name_scope("scope"):
        scalars = {
            "scalar": tf.summary.scalar("loss", tf.constant(3.0)),
            "scalar of integers in a family": tf.summary.scalar("my loss: #1", tf.constant(3), family="fam"),
            "scalar of NaN": tf.summary.scalar("/nan", tf.constant(float("nan"))),
            "scalar of half precision": tf.summary.scalar("half", tf.constant(0.1, tf.float16)),
        }
    histograms = {
        "histogram": tf.summary.histogram("h", tf.constant([1.0, 2.0, 3.0, -1.0, 0.0, 0.0, 5.5])),
        "histogram of nothing": tf.summary.histogram("empty", tf.constant([], tf.float32)),
        "histogram of integers": tf.summary.histogram("int", tf.constant([[1, 2], [3, 1000]])),
        "histogram of random numbers": tf.summary.histogram("r", tf.constant(random.randn(300).astype(np.float32))),
        "histogram of small and large": tf.summary.histogram("sl", tf.constant([1e-13, 1e-12, -1e-12, 1e25, -1e25])),
    }
    signed = np.linspace(-1, 1, 2 * 3 * 4 * 3).reshape(2, 3, 4, 3)
    positive = np.linspace(0, 3, 2 * 3 * 4).reshape(2, 3, 4, 1)
    holes = np.where(random.rand(1, 5, 5, 3) < 0.2, np.nan, random.randn(1, 5, 5, 3))
    images = {
        "image": tf.summary.image("im", tf.constant(signed.astype(np.float32))),
        "image of one": tf.summary.image("im1", tf.constant(positive.astype(np.float32)), max_outputs=1),
        "image of bytes": tf.summary.image("im2", tf.constant(np.arange(96).reshape(2, 3, 4, 4), tf.uint8), family="g"),
        "image of doubles": tf.summary.image("im3", tf.constant(signed)),
        "image of halves": tf.summary.image("im4", tf.constant(signed.astype(np.float16))),
        "image with holes": tf.summary.image("im5", tf.constant(holes.astype(np.float32))),
        "image of zeros": tf.summary.image("im6", tf.zeros([1, 2, 2, 1])),
        "large image": tf.summary.image("im7", tf.constant(random.randint(0, 255, [1, 100, 100, 3]), tf.uint8)),
        "no image": tf.summary.image("im8", tf.zeros([0, 2, 2, 1])),
    }
    sound = np.linspace(-1.2, 1.2, 20).astype(np.float32)
    others = {
        "audio": tf.summary.audio("au", tf.constant(sound.reshape(2, 5, 2)), 44100.0),
        "audio of one channel": tf.summary.audio("au1", tf.constant(sound.reshape(2, 10)), 8000, max_outputs=1),
        "text": tf.summary.text("tx", tf.constant(["hello", "w"])),
        "tensor": tf.summary.tensor_summary(
            "ts", tf.constant([1.0, 2.0]), summary_description="about", display_name="shown", family="f"
        ),
    }
    cases = {**scalars, **histograms, **images, **others}
    cases["merge"] = tf.summary.merge([cases["scalar"], cases["text"]])
    cases["merge_all in a scope"] = tf.summary.merge_all(scope="scope/", name="merged")
    return cases


if __name__ == "__main__":
    import tensorflow as tf

    cases = build(tf)
    with tf.Session() as session:
        found = {name: [tensor.name, session.run(tensor).hex()] for name, tensor in cases.items()}
    print(json.dumps(found, indent=1))
