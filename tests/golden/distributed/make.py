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
    tf.disable_resource_variables()
    cluster = {"ps": ["localhost:23401", "localhost:23402"], "worker": ["localhost:23403", "localhost:23404"]}
    servers = {(job, i): tf.train.Server(cluster, job, i) for job in cluster for i in range(2)}
    found["cluster"] = cases.train_in_cluster(tf, [servers["worker", i].target for i in range(2)])
    return found


if __name__ == "__main__":
    with open("values.json", "w") as out:
        json.dump(all_cases(tf), out, sort_keys=True)
