"""Distributed sessions between stoker and TensorFlow, live: every pairing of client, master and parameter server.

    python scripts/distributed_interop.py --tf1 .venvs/tf1/bin/python --tf2 .venvs/tf2/bin/python

Each cell runs the same program: a client drives a server, or a cluster of one parameter server and one worker trains. The values must equal
those of a session without a server. A cell is "ok" or the first line of the error. With `--bench`, it also times a training step and a pull of a
variable of 100 MB where all tasks are stoker's, and where all are TensorFlow's.

This file is also the program that the children run, under any of the interpreters.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.distributed.ports import free_ports

STOKER = "stoker"


# -- what the children run (Python 3.7 and later) ------------------------------------------------------------------


def load(kind):
    if kind == STOKER:
        import stoker.compat.v1 as tf
    else:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


def serve(tf, cluster, job, index):
    server = tf.train.Server(tf.train.ClusterSpec(cluster), job, index)
    print(server.target, flush=True)
    server.join()


def arithmetic(tf, session, np):
    x = tf.placeholder(tf.float32, [None])
    y, z = session.run([x * 2, tf.reduce_sum(x)], {x: [1, 2, 3]})
    return [y.tolist(), float(z)]


def variables(tf, session, np):
    plain = tf.get_variable("plain", [3], initializer=tf.ones_initializer(), use_resource=False)
    handle = tf.get_variable("handle", [3], initializer=tf.ones_initializer(), use_resource=True)
    session.run(tf.global_variables_initializer())
    session.run([plain.assign_add([1.0, 2.0, 3.0]), handle.assign_add([1.0, 2.0, 3.0])])
    session.run(tf.scatter_add(plain, [0], [5.0]))
    return [session.run(plain).tolist(), session.run(handle).tolist()]


def training(tf, session, np):
    return train(tf, session, np, "", "")


def train(tf, session, np, ps, worker, optimizer="AdamOptimizer"):
    random = np.random.RandomState(0)
    features, labels = random.rand(32, 8).astype("f"), random.rand(32, 1).astype("f")
    with tf.device(ps):
        w1 = tf.get_variable("w1", initializer=tf.constant(random.randn(8, 16).astype("f") * 0.3), use_resource=True)
        b1 = tf.get_variable("b1", [16], initializer=tf.zeros_initializer(), use_resource=False)
        w2 = tf.get_variable("w2", initializer=tf.constant(random.randn(16, 1).astype("f") * 0.3), use_resource=False)
        step = tf.train.get_or_create_global_step()
    with tf.device(worker):
        x, t = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) - t))
    op = getattr(tf.train, optimizer)(0.05).minimize(loss, global_step=step)
    session.run(tf.global_variables_initializer())
    losses = [float(session.run([op, loss], {x: features, t: labels})[1]) for _ in range(10)]
    return [losses, int(session.run(step))]


def strings(tf, session, np):
    values = session.run(tf.string_join([tf.constant(["a", "b"]), tf.as_string(tf.range(2))]))
    return [value.decode() for value in values]


def queues(tf, session, np):
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    session.run(queue.enqueue_many([[1, 2, 3]]))
    return [
        int(session.run(queue.dequeue())),
        session.run(queue.dequeue_many(2)).tolist(),
        int(session.run(queue.size())),
    ]


def tables(tf, session, np):
    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    session.run(tf.tables_initializer())
    return session.run(table.lookup(tf.constant(["b", "x"]))).tolist()


def branches(tf, session, np):
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: x * 2, lambda: x - 1)
    return [float(session.run(y, {x: value})) for value in (3, -3)]


def loops(tf, session, np):
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, 1.0])
    slope = tf.gradients(y, x)[0]
    return [float(value) for value in session.run([y, slope], {x: 2.0})]


def errors(tf, session, np):
    x = tf.placeholder(tf.float32, [None])
    wrong = tf.reshape(x, [3], name="wrong")
    found = []
    try:
        session.run(wrong, {x: [1, 2]})
    except tf.errors.InvalidArgumentError as error:
        found.append(getattr(error.op, "name", None))
    unset = tf.get_variable("unset", [], use_resource=False)
    try:
        session.run(unset)
    except tf.errors.FailedPreconditionError:
        found.append("unset")
    return found


def deadlines(tf, session, np):
    queue = tf.FIFOQueue(1, tf.float32)
    try:
        session.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=500))
    except tf.errors.DeadlineExceededError:
        return "late"


def partial_runs(tf, session, np):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    half = a * 2
    whole = half + b
    handle = session.partial_run_setup([half, whole], [a, b])
    return [float(session.partial_run(handle, half, {a: 3})), float(session.partial_run(handle, whole, {b: 1}))]


def callables(tf, session, np):
    a = tf.placeholder(tf.float32, [2])
    return session.make_callable(a + 1, [a])(np.float32([1, 2])).tolist()


def devices(tf, session, np):
    return any(device.name.endswith("/task:0/device:CPU:0") for device in session.list_devices())


def traces(tf, session, np):
    metadata = tf.RunMetadata()
    x = tf.constant([1.0, 2.0]) * tf.random.uniform([2])
    session.run(x, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return len(metadata.step_stats.dev_stats) > 0


CLIENT = [arithmetic, variables, training, strings, queues, tables, branches, loops, errors, deadlines, partial_runs]
CLIENT += [callables, devices, traces]


def ps_training(tf, session, np):
    return train(tf, session, np, "/job:ps/task:0", "/job:worker/task:0")


def ps_momentum(tf, session, np):
    return train(tf, session, np, "/job:ps/task:0", "/job:worker/task:0", "GradientDescentOptimizer")


def ps_embedding(tf, session, np):
    with tf.device("/job:ps/task:0"):
        table = tf.get_variable("table", [50, 4], initializer=tf.ones_initializer(), use_resource=True)
    with tf.device("/job:worker/task:0"):
        ids = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
    op = tf.train.AdagradOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    return [float(session.run([op, loss], {ids: [1, 3, 3]})[1]) for _ in range(5)]


def ps_queue(tf, session, np):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.float32, shapes=[[2]])
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [2])
        push = queue.enqueue(x * 2)
        y = queue.dequeue() + 1
    session.run(push, {x: [1, 2]})
    return session.run(y).tolist()


def ps_control(tf, session, np):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("counted", [], initializer=tf.zeros_initializer(), use_resource=False)
        add = v.assign_add(1.0)
    with tf.device("/job:worker/task:0"), tf.control_dependencies([add]):
        y = tf.constant(5.0) * 2
    with tf.device("/job:ps/task:0"), tf.control_dependencies([y]):
        z = v.read_value() if hasattr(v, "read_value") else tf.identity(v)
    session.run(v.initializer)
    return [float(value) for value in session.run([y, z])]


def ps_accumulator(tf, session, np):
    with tf.device("/job:ps/task:0"):
        accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2])
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [2])
        push = accumulator.apply_grad(x * 2, local_step=1)
        y = accumulator.take_grad(1) + 1
    session.run(push, {x: [1, 2]})
    return session.run(y).tolist()


def ps_branch(tf, session, np):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("branching", [], initializer=tf.ones_initializer(), use_resource=False)
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [])
        y = tf.cond(x > 0, lambda: x * v, lambda: x - v)
    session.run(v.initializer)
    return [float(session.run(y, {x: value})) for value in (3, -3)]


def ps_divided_update(tf, session, np):
    with tf.device("/job:ps/task:0"):
        plain = tf.get_variable("divided_plain", [], initializer=tf.ones_initializer(), use_resource=False)
        handle = tf.get_variable("divided_handle", [], initializer=tf.ones_initializer(), use_resource=True)
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [])
        y = tf.cond(x > 0, lambda: plain * x, lambda: tf.identity(plain))
        z = tf.cond(x > 0, lambda: handle.assign_add(x), lambda: handle.assign_sub(x * 2))
    session.run([plain.initializer, handle.initializer])
    return [[float(each) for each in session.run([y, z], {x: value})] for value in (3, -3, 2, -1)]


def ps_divided_ops(tf, session, np):
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [])

        def there():
            with tf.device("/job:ps/task:0"):
                return tf.cond(x > 10, lambda: x * 100.0, lambda: x * 10.0)

        def looping():
            with tf.device("/job:ps/task:0"):
                return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 3.0), [tf.constant(0), -x])[1]

        y = tf.cond(x > 0, there, looping)
    return [float(session.run(y, {x: value})) for value in (3, -3, 11)]


def ps_divided_training(tf, session, np):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("divided_v", [], initializer=tf.ones_initializer(), use_resource=False)
        w = tf.get_variable("divided_w", [], initializer=tf.ones_initializer(), use_resource=True)
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [])
        with tf.control_dependencies([tf.Assert(x < 100, [x])]):
            y = tf.cond(x > 0, lambda: x * v * v, lambda: x - v * w)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(y)
    session.run(tf.global_variables_initializer())
    results = []
    for value in (3, -3, 1, 2, -1):
        session.run(train, {x: value})
        results.append([float(each) for each in session.run([v, w])])
    return results


CLUSTER = [
    ps_training, ps_momentum, ps_embedding, ps_queue, ps_control, ps_accumulator, ps_branch, ps_divided_update, ps_divided_ops,
    ps_divided_training,
]  # fmt: skip


def run(tf, target, names):
    """Runs scenarios in graphs and sessions of their own, and prints each result as a line of JSON."""
    import numpy as np

    config = tf.ConfigProto(operation_timeout_in_ms=20000)
    for name in names:
        try:
            with tf.Graph().as_default(), tf.Session(target, config=config) as session:
                result = {"name": name, "result": globals()[name](tf, session, np)}
        except Exception as error:
            result = {"name": name, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


def bench(tf, target):
    """Times a training step with the variables on a parameter server, and the pull of a variable of 100 MB."""
    import numpy as np

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            weights = [
                (tf.get_variable(f"w{i}", [a, b]), tf.get_variable(f"b{i}", [b], initializer=tf.zeros_initializer()))
                for i, (a, b) in enumerate([(784, 256), (256, 256), (256, 10)])
            ]
            step = tf.train.get_or_create_global_step()
            large = tf.get_variable("large", [25 << 20], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            x, t = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
            h = x
            for w, b in weights[:-1]:
                h = tf.nn.relu(tf.matmul(h, w) + b)
            h = tf.matmul(h, weights[-1][0]) + weights[-1][1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=h))
            pulled = tf.reduce_max(tf.identity(large))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        batch = np.random.rand(64, 784).astype("f"), np.random.randint(0, 10, 64)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())

            def timed(function, seconds):
                for _ in range(3):
                    function()
                times, end = [], time.perf_counter() + seconds
                while time.perf_counter() < end or len(times) < 5:
                    begin = time.perf_counter()
                    function()
                    times.append(time.perf_counter() - begin)
                return sorted(times)[len(times) // 2]

            result = {
                "step": timed(lambda: session.run([train_op, loss], {x: batch[0], t: batch[1]}), 4),
                "fetch": timed(lambda: session.run(large), 4),
                "pull": timed(lambda: session.run(pulled), 4),
            }
    print(json.dumps({"name": "bench", "result": result}), flush=True)


def child(arguments):
    kind, role = arguments[:2]
    tf = load(kind)
    if role == "serve":
        serve(tf, json.loads(arguments[2]), arguments[3], int(arguments[4]))
    elif role == "run":
        run(tf, arguments[2], arguments[3:])
    elif role == "both":  # a worker that is also the client, as in a program of the documents
        cluster = json.loads(arguments[2])
        server = tf.train.Server(tf.train.ClusterSpec(cluster), arguments[3], int(arguments[4]))
        run(tf, server.target, arguments[5:])
    elif role == "bench":
        cluster = json.loads(arguments[2])
        server = tf.train.Server(tf.train.ClusterSpec(cluster), "worker", 0)
        bench(tf, server.target)


# -- the parent ----------------------------------------------------------------------------------------------------


class Children:
    """Processes that are killed at the end."""

    def __init__(self, interpreters):
        self.interpreters = interpreters
        self.running = []

    def start(self, kind, *arguments):
        environment = dict(os.environ, PYTHONPATH=os.getcwd() if kind == STOKER else "", CUDA_VISIBLE_DEVICES="")
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        process = subprocess.Popen(
            [self.interpreters[kind], os.path.abspath(__file__), "child", kind, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        process.errors = errors
        self.running.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()
            process.errors.close()


def results_of(process, names, timeout):
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    found = {}
    for line in output.splitlines():
        if line.startswith("{"):
            item = json.loads(line)
            found[item["name"]] = item
    process.errors.seek(0)
    last = (process.errors.read().strip().splitlines() or [""])[-1]
    for name in names:
        found.setdefault(name, {"name": name, "error": f"no answer ({last[:160]})"})
    return found


def close_to(found, expected):
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close_to, found, expected))
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return abs(found - expected) <= 1e-4 * max(1.0, abs(expected))
    return found == expected


def cell(item, expected):
    if "error" in item:
        return " ".join(item["error"].split())[:150]
    return "ok" if close_to(item["result"], expected["result"]) else f"{item['result']} instead of {expected['result']}"


def main(arguments):
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", help="an interpreter with TensorFlow 1.15")
    parser.add_argument("--tf2", help="an interpreter with TensorFlow 2")
    parser.add_argument("--stoker", default=sys.executable, help="an interpreter with stoker")
    parser.add_argument("--only", default="", help="pairings to run, for example tf1-stoker,stoker-tf2")
    parser.add_argument("--bench", action="store_true", help="also time stoker's and TensorFlow's own clusters")
    options = parser.parse_args(arguments)
    interpreters = {STOKER: options.stoker, "tf1": options.tf1, "tf2": options.tf2}
    kinds = [kind for kind, path in interpreters.items() if path]
    only = [pair for pair in options.only.split(",") if pair]
    failed = 0

    def expected_of(names):
        with Children(interpreters) as children:
            return results_of(children.start(STOKER, "run", "", *names), names, 120)

    def pairs():
        for first in kinds:
            for second in kinds:
                if STOKER in (first, second) and (not only or f"{first}-{second}" in only):
                    yield first, second

    names = [function.__name__ for function in CLIENT]
    expected = expected_of(names)
    for client, server in pairs():
        with Children(interpreters) as children:
            port = free_ports(1)[0]
            cluster = json.dumps({"local": [f"127.0.0.1:{port}"]})
            serving = children.start(server, "serve", cluster, "local", "0")
            target = serving.stdout.readline().strip()
            found = results_of(children.start(client, "run", target, *names), names, 240)
        print(f"\nclient {client}, server {server}")
        for name in names:
            text = cell(found[name], expected[name])
            failed += text != "ok"
            print(f"  {name:16} {text}")

    names = [function.__name__ for function in CLUSTER]
    with Children(interpreters) as children:
        cluster = {"ps": [f"127.0.0.1:{free_ports(1)[0]}"], "worker": [f"127.0.0.1:{free_ports(1)[0]}"]}
        children.start(STOKER, "serve", json.dumps(cluster), "ps", "0")
        expected = results_of(children.start(STOKER, "both", json.dumps(cluster), "worker", "0", *names), names, 240)
    for worker, ps in pairs():
        with Children(interpreters) as children:
            ports = free_ports(2)
            cluster = json.dumps({"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]})
            children.start(ps, "serve", cluster, "ps", "0")
            found = results_of(children.start(worker, "both", cluster, "worker", "0", *names), names, 240)
        print(f"\nworker and master {worker}, parameter server {ps}")
        for name in names:
            text = cell(found[name], expected[name])
            failed += text != "ok"
            print(f"  {name:16} {text}")

    if options.bench:
        times = {}
        for kind in kinds:
            with Children(interpreters) as children:
                ports = free_ports(2)
                cluster = json.dumps({"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]})
                children.start(kind, "serve", cluster, "ps", "0")
                found = results_of(children.start(kind, "bench", cluster), ["bench"], 300)["bench"]
            times[kind] = found.get("result")
            print(f"\n{kind}: {found.get('result') or found.get('error')}")
        for kind in kinds:
            if kind != STOKER and times[kind] and times[STOKER]:
                ratios = {name: round(times[kind][name] / times[STOKER][name], 2) for name in times[kind]}
                print(f"times faster than {kind}: {ratios}")
    print(f"\n{failed} cells differ")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
