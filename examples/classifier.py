"""A small classifier, written as a plain TensorFlow 1 program: three spirals, two hidden layers, Adam.

python -m stoker run examples/classifier.py [--steps 1500]
"""

import argparse

import numpy as np
import tensorflow as tf
from tqdm import tqdm

CLASSES = 3


def spirals(points, seed):
    """Points on CLASSES interleaved spirals, with noise, and the spiral each belongs to."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, CLASSES, points)
    radius = rng.rand(points)
    angle = labels * 2 * np.pi / CLASSES + 4 * radius + rng.randn(points) * 0.15
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1).astype(np.float32), labels


def layer(x, units, name, activation=None):
    with tf.variable_scope(name):
        inputs = int(x.shape[1])
        w = tf.get_variable("w", [inputs, units], initializer=tf.glorot_uniform_initializer(seed=1))
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
        y = tf.matmul(x, w) + b
        return activation(y) if activation else y


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()

    x = tf.placeholder(tf.float32, [None, 2], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    hidden = layer(layer(x, 64, "hidden1", tf.nn.relu), 64, "hidden2", tf.nn.relu)
    logits = layer(hidden, CLASSES, "logits")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(3e-3).minimize(loss, global_step=step)

    train_x, train_y = spirals(3000, seed=0)
    test_x, test_y = spirals(1000, seed=1)
    rng = np.random.RandomState(2)
    rows = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        progress = tqdm(range(args.steps), unit="step")
        for i in progress:
            pick = rng.randint(0, len(train_x), args.batch)
            value, _ = session.run([loss, train], {x: train_x[pick], labels: train_y[pick]})
            if i % max(1, args.steps // 10) == 0 or i == args.steps - 1:
                rows.append((i + 1, value, *session.run([loss, accuracy], {x: test_x, labels: test_y})))
                progress.set_postfix(loss=f"{value:.3f}", accuracy=f"{rows[-1][3]:.3f}")
    print(f"\n{'step':>6} {'train loss':>11} {'test loss':>10} {'accuracy':>9}")
    for number, train_loss, test_loss, test_accuracy in rows:
        print(f"{number:>6} {train_loss:>11.4f} {test_loss:>10.4f} {test_accuracy:>9.3f}")


if __name__ == "__main__":
    main()
