"""The ps/worker and sync-replicas programs of TensorFlow's documents, as one parameter server and two workers, under each library.

    python scripts/distributed_curves.py --tf1 PYTHON --tf2 PYTHON [--steps 30]

In `async` the workers make their steps in turns, so the result is determined. In `sync` both make each step at once, and the mean of their
gradients is applied. The losses of both workers are compared with those of stoker: equal in all bits, or the largest relative
difference. Mixed clusters, with one library for the parameter server and another for the workers, run the same programs.

The kernels of two libraries, and of two versions of TensorFlow, round differently, so two more comparisons separate a cluster from its kernels. The
`exact` programs train a support vector machine whose numbers are multiples of 1/1024: no sum rounds, in whatever order, and all losses must
be equal in all bits. And each library's cluster is compared with one process of that library that does the same without servers.

This file is also the program that the children run, under any of the interpreters.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportOptionalIterable=false

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


OPTIMIZERS = {
    "async": lambda tf: tf.train.AdagradOptimizer(0.1),
    "async_adam": lambda tf: tf.train.AdamOptimizer(0.01),
    "async_exact": lambda tf: tf.train.GradientDescentOptimizer(0.5),
    "sync": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "sync_momentum": lambda tf: tf.train.MomentumOptimizer(0.05, 0.9),
    "sync_exact": lambda tf: tf.train.GradientDescentOptimizer(0.5),
}


def model(tf, program):
    """Returns the placeholders of a batch, and the loss."""
    x, y = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.int64, [None])
    if program.endswith("exact"):
        w = tf.get_variable("w", [20, 5], initializer=tf.zeros_initializer())
        b = tf.get_variable("b", [5], initializer=tf.zeros_initializer())
        margins = tf.nn.xw_plus_b(x, w, b) * (2.0 * tf.one_hot(y, 5) - 1.0)
        return (x, y), tf.reduce_mean(tf.reduce_sum(tf.nn.relu(1.0 - margins), 1))
    w1 = tf.get_variable("w1", [20, 16], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=1))
    b1 = tf.get_variable("b1", [16], initializer=tf.zeros_initializer())
    w2 = tf.get_variable("w2", [16, 5], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=2))
    b2 = tf.get_variable("b2", [5], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2, b2)
    return (x, y), tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def batch_of(program, random):
    import numpy as np

    batch = random.standard_normal((32, 20)).astype(np.float32)
    if program.endswith("exact"):
        batch = np.rint(batch)
    return batch, np.abs(batch[:, :5]).argmax(1)


def report(loss):
    import numpy as np

    print(json.dumps(np.float32(loss).tobytes().hex()), flush=True)


def child(module, program, cluster, job, index):
    import numpy as np

    tf = load(module)
    index, cluster = int(index), tf.train.ClusterSpec(json.loads(cluster))
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    print("ready", flush=True)
    if job == "ps":
        server.join()
    worker = "/job:worker/task:%d" % index
    hooks = []
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        inputs, loss = model(tf, program)
        step = tf.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[program](tf)
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
            report(session.run([loss, train], dict(zip(inputs, batch_of(program, random))))[0])
        os._exit(0)


def alone(module, program):
    """The same losses from one process without servers."""
    import numpy as np

    tf = load(module)
    inputs, loss = model(tf, program)
    optimizer = OPTIMIZERS[program](tf)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    kept = [tf.placeholder(tf.float32, variable.shape) for variable in variables]
    mean = [(mine + other) / 2.0 for mine, other in zip(gradients, kept)]
    train, average = [optimizer.apply_gradients(zip(each, variables)) for each in (gradients, mean)]
    randoms = [np.random.RandomState(index) for index in range(2)]
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        session.run(tf.global_variables_initializer())
        print("ready", flush=True)
        for number, _ in enumerate(sys.stdin):
            feeds = [dict(zip(inputs, batch_of(program, random))) for random in randoms]
            if program.startswith("sync"):
                # The losses are runs of their own: a synchronous worker sends its gradients first, and stoker sums a loss that it
                # computes alone in another order than one that it computes together with its gradients.
                losses = [session.run(loss, feed) for feed in feeds]
                others = dict(zip(kept, session.run(gradients, feeds[0])))
                if (
                    number != 1
                ):  # the first step takes the initial tokens, of step 0, so the gradients of the second one are stale
                    session.run(average, {**feeds[1], **others})
            else:
                losses = [session.run([loss, train], feed)[0] for feed in feeds]
            for found in losses:
                report(found)


class Task:
    def __init__(self, role, python, module, *arguments):
        environment = dict(os.environ, PYTHONPATH=ROOT, CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore")
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), role, module, *arguments],
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
    tasks = [Task("child", *ps, program, cluster, "ps", "0")]
    tasks += [Task("child", *workers, program, cluster, "worker", str(index)) for index in range(2)]
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
            losses.append([loss_of(text) for text in found])
        return np.array(losses)
    finally:
        watchdog.cancel()
        for task in tasks:
            task.process.kill()
        for task in tasks:
            task.process.wait()


def curves_alone(program, steps, kind):
    """Returns the same losses from one process."""
    import numpy as np

    task = Task("alone", *kind, program)
    try:
        task.line()
        losses = []
        for _ in range(steps):
            task.go()
            losses.append([loss_of(task.line()) for _ in range(2)])
        return np.array(losses)
    finally:
        task.process.kill()
        task.process.wait()


def loss_of(text):
    import numpy as np

    return np.frombuffer(bytes.fromhex(json.loads(text)), np.float32)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", help="an interpreter with TensorFlow 1.15")
    parser.add_argument("--tf2", help="an interpreter with TensorFlow 2")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--programs", default=",".join(OPTIMIZERS))
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
        compare("stoker alone", expected, curves_alone, program, args.steps, kinds["stoker"])
        others = [name for name in kinds if name != "stoker"]
        for name in others:
            found = compare(name, expected, curves, program, args.steps, kinds[name], kinds[name])
            if found is not None:
                label = "%s alone, against its cluster" % name
                compare(label, found, curves_alone, program, args.steps, kinds[name])
        mixed = [pair for name in others for pair in (("stoker", name), (name, "stoker"))] if args.mixed else []
        for ps, workers in mixed:
            label = "ps %s, workers %s" % (ps, workers)
            compare(label, expected, curves, program, args.steps, kinds[ps], kinds[workers])


def compare(label, expected, make, *arguments):
    """Prints how the losses that `make(*arguments)` returns differ from those expected, and returns them."""
    import numpy as np

    try:
        found = make(*arguments)
    except RuntimeError as error:
        print("  %s: failed: %s" % (label, str(error)[-300:]), flush=True)
        return None
    same = int((found == expected).all(1).sum())
    worst = float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-30)))
    text = "  %-32s %d of %d steps equal in all bits, largest relative difference %.1e"
    print(text % (label, same, len(expected), worst), flush=True)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        alone(*sys.argv[2:])
    elif sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        main()
