"""The ps/worker and sync-replicas programs of TensorFlow's documents, as one parameter server and two workers, under each library.

    python scripts/distributed_curves.py --tf1 PYTHON --tf2 PYTHON [--steps 30]

In `async` the workers make their steps in turns, so the result is determined. In `sync` both make each step at once, and the mean of their
gradients is applied. The losses of both workers are compared with those of stoker: equal in all bits, or the largest relative
difference. Mixed clusters, with one library for the parameter server and another for the workers, run the same programs.

This file is also the program that the children run, under any of the interpreters.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from tests.distributed.ports import free_ports  # noqa: E402

SECONDS = 600  # a guard against hangs


def load(module):
    import importlib

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    tf = importlib.import_module(module)
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


def child(module, program, cluster, job, index):
    import numpy as np

    tf = load(module)
    index, cluster = int(index), tf.train.ClusterSpec(json.loads(cluster))
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    print("ready", flush=True)
    if job == "ps":
        server.join()
    worker = "/job:worker/task:%d" % index
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        x, y = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.int64, [None])
        w1 = tf.get_variable("w1", [20, 16], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=1))
        b1 = tf.get_variable("b1", [16], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [16, 5], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=2))
        b2 = tf.get_variable("b2", [5], initializer=tf.zeros_initializer())
        logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2, b2)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = tf.train.get_or_create_global_step()
        optimizer = {
            "async": lambda: tf.train.AdagradOptimizer(0.1),
            "async_adam": lambda: tf.train.AdamOptimizer(0.01),
            "sync": lambda: tf.train.GradientDescentOptimizer(0.1),
            "sync_momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
        }[program]()
        hooks = []
        if program.startswith("sync"):
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
        train = optimizer.minimize(loss, global_step=step)
        if program.startswith("sync"):
            hooks.append(optimizer.make_session_run_hook(index == 0))
    random = np.random.RandomState(index)
    config = tf.ConfigProto(device_filters=["/job:ps", worker], intra_op_parallelism_threads=1)
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=index == 0, hooks=hooks, config=config, stop_grace_period_secs=1
    ) as session:
        print("ready", flush=True)
        for _ in sys.stdin:
            batch = random.standard_normal((32, 20)).astype(np.float32)
            labels = np.abs(batch[:, :5]).argmax(1)
            found = session.run([loss, train], {x: batch, y: labels})[0]
            print(json.dumps(np.float32(found).tobytes().hex()), flush=True)
        os._exit(0)


class Task:
    def __init__(self, python, module, *arguments):
        environment = dict(os.environ, PYTHONPATH=ROOT, CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore")
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), "child", module, *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = ""
        threading.Thread(target=self._read_log, daemon=True).start()

    def _read_log(self):
        for line in self.process.stderr:
            self.log = (self.log + line)[-3000:]

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(self.log)
        return text.strip()

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def curves(program, steps, ps, workers):
    """Returns the losses of both workers. `ps` and `workers` are (interpreter, module)."""
    import numpy as np

    addresses = ["127.0.0.1:%d" % port for port in free_ports(3)]
    cluster = json.dumps({"ps": addresses[:1], "worker": addresses[1:]})
    tasks = [Task(*ps, program, cluster, "ps", "0")]
    tasks += [Task(*workers, program, cluster, "worker", str(index)) for index in range(2)]
    watchdog = threading.Timer(SECONDS, lambda: [task.process.kill() for task in tasks])
    watchdog.start()
    try:
        for task in tasks:
            task.line()
        for task in tasks[1:]:
            task.line()  # its session is there
        losses = []
        for _ in range(steps):
            found = []
            if program.startswith("sync"):
                for task in tasks[1:]:
                    task.go()
                found = [task.line() for task in tasks[1:]]
            else:
                for task in tasks[1:]:
                    task.go()
                    found.append(task.line())
            losses.append([np.frombuffer(bytes.fromhex(json.loads(text)), np.float32)[0] for text in found])
        return np.array(losses)
    finally:
        watchdog.cancel()
        for task in tasks:
            task.process.kill()
        for task in tasks:
            task.process.wait()


def main():
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", help="an interpreter with TensorFlow 1.15")
    parser.add_argument("--tf2", help="an interpreter with TensorFlow 2")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--programs", default="async,async_adam,sync,sync_momentum")
    parser.add_argument("--mixed", action="store_true", help="also mixed clusters")
    args = parser.parse_args()
    kinds = {"stoker": (sys.executable, "stoker.compat.v1")}
    for name in ("tf1", "tf2"):
        if getattr(args, name):
            kinds[name] = (getattr(args, name), "tensorflow.compat.v1")
    for program in args.programs.split(","):
        expected = curves(program, args.steps, kinds["stoker"], kinds["stoker"])
        first, last = expected.mean(1)[[0, -1]]
        print(
            "%s: stoker's mean loss goes from %.6f to %.6f in %d steps" % (program, first, last, args.steps), flush=True
        )
        pairs = [(name, name) for name in kinds if name != "stoker"]
        if args.mixed:
            pairs += [pair for name in kinds if name != "stoker" for pair in (("stoker", name), (name, "stoker"))]
        for ps, workers in pairs:
            try:
                found = curves(program, args.steps, kinds[ps], kinds[workers])
            except RuntimeError as error:
                print("  ps %s, workers %s: failed: %s" % (ps, workers, str(error)[-300:]), flush=True)
                continue
            same = int((found == expected).all(1).sum())
            worst = float(np.max(np.abs(found - expected) / np.abs(expected)))
            print(
                "  ps %-6s workers %-6s %d of %d steps equal in all bits, largest relative difference %.1e"
                % (ps, workers, same, args.steps, worst),
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        main()
