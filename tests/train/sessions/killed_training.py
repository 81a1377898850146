"""A training program that may be killed at any moment and started again: python killed_training.py DIRECTORY STEPS.

It prints `step N` for each step, and at the end the threads and open files that are left and its parameters, both as JSON. Batches depend on the global step alone, so a program that goes on
from a checkpoint sees the same data as one that never stopped.
"""

import json
import os
import sys
import threading

import numpy as np

import stoker.compat.v1 as tf


def left(directory):
    """The threads besides the main one and the pool that syncs files, and the open files below a directory."""
    names = [thread.name for thread in threading.enumerate()]
    handles = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return {
        "threads": [name for name in names if name != threading.main_thread().name and not name.startswith("sync_")],
        "handles": [path for path in handles if path.startswith(os.path.realpath(directory))],
    }


def main(directory, steps):
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [None, 8])
    y = tf.placeholder(tf.float32, [None, 1])
    hidden = tf.layers.dense(x, 16, tf.nn.tanh)
    loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    variables = tf.trainable_variables()
    final = tf.train.FinalOpsHook({variable.op.name: variable for variable in variables})
    hooks = [tf.train.StopAtStepHook(last_step=steps), final]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=directory, hooks=hooks, save_checkpoint_steps=3, save_summaries_steps=2
    ) as session:
        number = session.run_step_fn(lambda step_context: int(step_context.session.run(step)))
        while number < steps and not session.should_stop():  # it may have been killed after the last step
            random = np.random.RandomState(number)
            batch = random.randn(32, 8).astype(np.float32)
            _, number = session.run([train, step], {x: batch, y: batch[:, :1] ** 2})
            number = int(number)
            print(f"step {number}", flush=True)
    tf.summary.FileWriterCache.clear()
    print(json.dumps(left(directory)))
    print(json.dumps({name: value.tolist() for name, value in final.final_ops_values.items()}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
