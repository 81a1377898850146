"""The ps/worker program of TensorFlow's documents: one parameter server, any number of workers, asynchronous updates.

It is written for TensorFlow and runs under `python -m stoker run` and under TensorFlow 1.15 alike. A worker makes one step for each line of its
input.
"""

import argparse
import sys

import numpy as np
import tensorflow as tf  # pyright: ignore[reportMissingModuleSource]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--checkpoint_dir", required=True)
    flags = parser.parse_args()

    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
    if flags.job_name == "ps":
        print("serving", flush=True)
        server.join()
        return

    worker_device = "/job:worker/task:%d" % flags.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker_device, cluster=cluster)):
        features = tf.placeholder(tf.float32, [None, 4])
        labels = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", [4, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - labels))
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdagradOptimizer(0.5).minimize(loss, global_step=global_step)

    random = np.random.RandomState(flags.task_index)
    true_weights = np.array([[1.0], [2.0], [3.0], [4.0]])
    config = tf.ConfigProto(device_filters=["/job:ps", worker_device])
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=flags.task_index == 0,
        checkpoint_dir=flags.checkpoint_dir,
        save_checkpoint_secs=None,
        save_checkpoint_steps=10,
        save_summaries_steps=None,
        log_step_count_steps=None,
        config=config,
    ) as session:
        for _ in sys.stdin:
            batch = random.rand(16, 4)
            _, step, value = session.run(
                [train_op, global_step, loss], {features: batch, labels: batch.dot(true_weights)}
            )
            print("step %d loss %.6f" % (step, value), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
