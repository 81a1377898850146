"""Several processes train one model: each computes the gradients of its own examples, and the mean of all updates every copy.

python -m stoker launch --workers 2 examples/replicas.py [--steps 200] [--checkpoints DIRECTORY]

The losses are those of one process with the whole batch: `--workers 1` prints the same numbers. With `--checkpoints`, a run that
ended or was interrupted goes on from there, with any number of workers.
"""

import argparse

import numpy as np
import tensorflow as tf

import stoker

BATCH = 64


def batch(step):
    """The examples of a step: points in ten dimensions, and a smooth function of them."""
    rng = np.random.RandomState(step)
    points = rng.uniform(-1, 1, [BATCH, 10]).astype(np.float32)
    return points, np.sin(3 * points[:, :1]) * points[:, 1:2] + points[:, 2:3] ** 2


def beside(session, fetch, feeds=None):
    """A value between two training steps. The hooks, which count steps, do not see this run."""
    return session.run_step_fn(lambda step_context: step_context.session.run(fetch, feeds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoints", help="a directory; without one nothing is saved")
    args = parser.parse_args()
    rank, size = stoker.distribute.rank(), stoker.distribute.size()
    if BATCH % size:
        raise SystemExit("A batch of %d cannot be divided among %d workers." % (BATCH, size))

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 10])
    y = tf.placeholder(tf.float32, [None, 1])
    hidden = tf.layers.dense(tf.layers.dense(x, 64, tf.nn.tanh), 64, tf.nn.tanh)
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.cosine_decay(0.01, step, args.steps)
    update = stoker.distribute.wrap(tf.train.AdamOptimizer(rate)).minimize(loss, global_step=step)

    hooks = [tf.train.StopAtStepHook(last_step=args.steps)]
    with tf.train.MonitoredTrainingSession(checkpoint_dir=args.checkpoints, hooks=hooks) as session:
        number = beside(session, step)
        while not session.should_stop():
            points, values = batch(number)
            if rank == 0 and number % max(1, args.steps // 10) == 0:
                print("step %4d  loss %.5f" % (number, beside(session, loss, {x: points, y: values})))
            # The worker's part of the batch. The gradients of the whole batch are the mean of those of the parts.
            session.run(update, {x: points[rank::size], y: values[rank::size]})
            number += 1


if __name__ == "__main__":
    main()
