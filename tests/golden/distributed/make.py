"""Records placements, graphs and losses of replicated training: run with TensorFlow 1.15's Python, from this folder."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import cases
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)


def all_cases(tf):
    found = {}
    for resource in (False, True):
        tf.enable_resource_variables() if resource else tf.disable_resource_variables()
        kind = "resource" if resource else "reference"
        found["placements, " + kind] = cases.placements(tf, resource)
        setter = tf.train.replica_device_setter(ps_tasks=2)
        found["graph, " + kind] = cases.sync_graph(tf, resource, setter)
        found["graph of few replicas, " + kind] = cases.sync_graph(tf, resource, None, replicas=3, total_num_replicas=1)
        found["training, " + kind] = cases.train(tf, resource)
    return found


if __name__ == "__main__":
    with open("values.json", "w") as out:
        json.dump(all_cases(tf), out, sort_keys=True)
