"""Steps on a cluster under TensorFlow's own gRPC and under stoker: `python benchmarks/cluster.py --against PYTHON[=MODULE]`.

Two parameter servers and a worker are processes on this machine, once for each side. Both sides are started first and measured in turns, so
that other load on the machine meets both. The same source runs on both sides. It prints steps per second by the best round, and
processor seconds per thousand steps of all processes of a side together.

    mlp           the MNIST program of TensorFlow's documents: 784-100-10, batches of 100, Adagrad, variables on one parameter server
    mlp_small     the same with 32-16-10 and batches of 16: what a step costs besides the arithmetic
    many_small    60 variables of 16 elements on two parameter servers
    pull          a variable of 100 MB is read by the worker
    fixed, variable, min_max
                  an embedding table of 200,000 x 64 in parts on two parameter servers (2, 4 and 2 parts); a step looks up and updates
                  1,000 rows, other ones in each of 64 steps
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from tests.distributed.ports import free_ports  # noqa: E402

WORKLOADS = {"mlp": 300, "mlp_small": 300, "many_small": 200, "pull": 8, "fixed": 100, "variable": 100, "min_max": 100}
_TABLE, _DEPTH, _ROWS = 200000, 64, 1000


# -- one side: runs under either library ---------------------------------------------------------------------------


def mlp(tf, np, hidden, inputs, batch):
    x, y = tf.placeholder(tf.float32, [None, inputs]), tf.placeholder(tf.float32, [None, 10])
    with tf.device(tf.train.replica_device_setter(ps_tasks=1)):
        w1 = tf.get_variable("w1", [inputs, hidden], initializer=tf.truncated_normal_initializer(stddev=0.05, seed=1))
        b1 = tf.get_variable("b1", [hidden], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [hidden, 10], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=2))
        b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2, b2)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=step)
    random = np.random.RandomState(0)
    feed = {x: random.rand(batch, inputs), y: np.eye(10)[random.randint(0, 10, batch)]}
    return [train, loss, step], {key: value.astype(np.float32) for key, value in feed.items()}


def many_small(tf, np):
    x = tf.placeholder(tf.float32, [16])
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        total = x
        for i in range(60):
            total = tf.tanh(total * tf.get_variable("v%d" % i, [16], initializer=tf.ones_initializer()))
        loss = tf.reduce_sum(total)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return [train, loss], {x: np.ones(16, np.float32)}


def pull(tf, np):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [25 * 1000 * 1000], initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:0"):
        return v[7] + tf.reduce_max(tf.identity(v)), {}


class Cycle:
    """A feed with another value in each step."""

    def __init__(self, values):
        self.values, self.at = values, 0

    def next(self):
        self.at = (self.at + 1) % len(self.values)
        return self.values[self.at]


def embedding(tf, np, partitioner):
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        ids = tf.placeholder(tf.int64, [_ROWS])
        table = tf.get_variable(
            "table", [_TABLE, _DEPTH], initializer=tf.ones_initializer(), partitioner=partitioner(tf)
        )
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        loss = tf.reduce_mean(tf.square(rows))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return [train, loss], {ids: Cycle(np.random.RandomState(0).randint(0, _TABLE, (64, _ROWS)))}


BUILD = {
    "mlp": lambda tf, np: mlp(tf, np, 100, 784, 100),
    "mlp_small": lambda tf, np: mlp(tf, np, 16, 32, 16),
    "many_small": many_small,
    "pull": pull,
    "fixed": lambda tf, np: embedding(tf, np, lambda tf: tf.fixed_size_partitioner(2)),
    "variable": lambda tf, np: embedding(
        tf, np, lambda tf: tf.variable_axis_size_partitioner(_TABLE * _DEPTH * 4 // 4)
    ),
    "min_max": lambda tf, np: embedding(tf, np, lambda tf: tf.min_max_variable_partitioner(max_partitions=2)),
}


def fed(values):
    return [value.next() if isinstance(value, Cycle) else value for value in values]


def side(args):
    """A task. A worker reads workloads and numbers of steps from its input and prints the seconds they take."""
    import numpy as np

    tf = importlib.import_module(args.module)
    tf.logging.set_verbosity(tf.logging.ERROR)
    if hasattr(tf, "disable_v2_behavior"):
        tf.disable_v2_behavior()
    cluster = json.loads(args.cluster)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=0)
    server = tf.train.Server(cluster, job_name=args.job, task_index=args.task, config=config)
    if args.job == "ps":
        sys.stdin.read()  # ends with the driver
        os._exit(0)
    runs = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name, steps = line.split()
        if name not in runs:
            graph = tf.Graph()
            with graph.as_default():
                with tf.variable_scope(name):  # variables of all workloads are on the same servers
                    fetches, feed = BUILD[name](tf, np)
                session = tf.Session(server.target, config=config)
                session.run(tf.global_variables_initializer())
                run = session.make_callable(fetches, list(feed))
                values = list(feed.values())
                runs[name] = (run, values)
                for _ in range(20 if name != "pull" else 2):
                    run(*fed(values))
        run, values = runs[name]
        started, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(steps)):
            run(*fed(values))
        print(json.dumps([time.perf_counter() - started, time.process_time() - cpu]), flush=True)
    os._exit(0)


# -- the driver ------------------------------------------------------------------------------------------------------


def _cpu_seconds(process):
    with open("/proc/%d/stat" % process.pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Side:
    def __init__(self, python, module):
        self.name = module
        addresses = ["127.0.0.1:%d" % port for port in free_ports(3)]
        cluster = json.dumps({"ps": addresses[:2], "worker": addresses[2:]})
        environment = dict(os.environ, PYTHONPATH=ROOT, TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")
        environment.update(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        self.processes = []
        for job, task in (("ps", 0), ("ps", 1), ("worker", 0)):
            command = [python, __file__, "--job", job, "--task", str(task), "--cluster", cluster, "--module", module]
            self.processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if job == "worker" else subprocess.DEVNULL,
                    stderr=None if module.startswith("stoker") else subprocess.DEVNULL,
                    text=True,
                )
            )
        self.worker = self.processes[-1]
        assert self.worker.stdout is not None
        assert self.worker.stdout.readline() == "ready\n", self.name + " did not start"

    def measure(self, workload, steps):
        """Returns steps per second, and processor seconds of all processes per step."""
        before = [_cpu_seconds(each) for each in self.processes]
        assert self.worker.stdin is not None and self.worker.stdout is not None
        self.worker.stdin.write("%s %d\n" % (workload, steps))
        self.worker.stdin.flush()
        wall, _ = json.loads(self.worker.stdout.readline())
        cpu = sum(_cpu_seconds(each) - start for each, start in zip(self.processes, before))
        return steps / wall, cpu / steps

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", action="append", default=[], help="interpreter of TensorFlow, as PYTHON=MODULE")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the figures to this file")
    for hidden in ("--job", "--cluster", "--module"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--task", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        side(args)
        return
    sides = []
    figures = {}
    try:
        for text in args.against:
            python, _, module = text.partition("=")
            sides.append(Side(python, module or "tensorflow.compat.v1"))
        sides.append(Side(sys.executable, "stoker.compat.v1"))
        print("%-12s %s" % ("workload", "  ".join("steps/s  cpu ms  ratio" for _ in sides)))
        for name in args.workloads.split(","):
            for each in sides:
                each.measure(name, 1)  # builds, and warms up
            found = [[each.measure(name, WORKLOADS[name]) for each in sides] for _ in range(args.rounds)]
            best = [(max(r[i][0] for r in found), min(r[i][1] for r in found)) for i in range(len(sides))]
            figures[name] = best
            ours = best[-1][0]
            text = "  ".join("%7.1f %7.2f %6.2f" % (rate, cpu * 1e3, ours / rate) for rate, cpu in best)
            print("%-12s %s" % (name, text), flush=True)
    finally:
        for each in sides:
            each.close()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    main()
