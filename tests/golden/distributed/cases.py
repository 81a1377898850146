"""Programs of replicated training, the same for TensorFlow and for the tests. The code keeps to Python 3.7."""

import threading

import numpy as np

ROWS = np.random.RandomState(0).standard_normal((3, 4, 3)).astype(np.float32)
IDS = np.array([[0, 2], [2, 3], [1, 2]], np.int64)
STEPS = 5


# -- where ops are placed ----------------------------------------------------------------------------------------


def _devices(tf, setter, resource):
    with tf.Graph().as_default() as graph:
        with tf.device(setter):
            for name, inner in (
                ("a", None),
                ("b", "/cpu:0"),
                ("c", "/job:other"),
                ("d", "/task:3"),
                ("e", "/job:ps/task:7"),
            ):
                with tf.device("" if inner is None else inner):
                    tf.get_variable(name, [2], initializer=tf.zeros_initializer(), use_resource=resource)
            tf.no_op(name="plain")
            with tf.device("/gpu:0"):
                tf.no_op(name="on_gpu")
            with tf.device("/job:x/task:2/cpu:1"):
                tf.no_op(name="elsewhere")
            tf.FIFOQueue(2, tf.float32, name="queue")
            tf.ConditionalAccumulator(tf.float32, name="accumulator")
            tf.SparseConditionalAccumulator(tf.float32, name="sparse_accumulator")
            for kind, partitioner in enumerate(
                (
                    tf.fixed_size_partitioner(3),
                    tf.variable_axis_size_partitioner(16),
                    tf.min_max_variable_partitioner(2, min_slice_size=8),
                )
            ):
                table = tf.get_variable("p%d" % kind, [5, 2], partitioner=partitioner, use_resource=resource)
            looked_up = tf.nn.embedding_lookup(table, tf.constant([1, 4]), name="lookup")
            tf.train.AdamOptimizer().minimize(tf.reduce_sum(looked_up), var_list=list(table))
        types = ("VariableV2", "VarHandleOp", "NoOp", "FIFOQueueV2", "Assign", "AssignVariableOp", "ReadVariableOp")
        types += ("ResourceConditionalAccumulator", "SparseConditionalAccumulator")
        return {
            op.name: op.device
            for op in graph.get_operations()
            if op.type in types and not op.name.startswith("gradients/")
        }


SETTERS = {
    "two tasks": {"ps_tasks": 2},
    "not merged": {"ps_tasks": 2, "merge_devices": False},
    "no parameter servers": {"ps_tasks": 2, "ps_device": ""},
    "no worker": {"ps_tasks": 2, "worker_device": ""},
    "full devices": {"ps_tasks": 2, "worker_device": "/job:worker/task:1/cpu:0", "ps_device": "/job:ps/cpu:0"},
    "a task in the device": {"ps_tasks": 2, "ps_device": "/job:ps/task:5"},
    "other ops": {"ps_tasks": 2, "ps_ops": ["VariableV2", "FIFOQueueV2"]},
    "cluster": {"cluster": {"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1"]}, "ps_tasks": 9},
    "strategy": {"ps_tasks": 3, "ps_strategy": lambda op: len(op.name) % 3},
    "cluster of workers": {"cluster": {"worker": ["d:1"]}},
    "another job": {"cluster": {"state": ["d:1", "e:1"]}, "ps_device": "/job:state"},
}


def placements(tf, resource):
    return {name: _devices(tf, tf.train.replica_device_setter(**args), resource) for name, args in SETTERS.items()}


# -- the graph of synchronous replicas ---------------------------------------------------------------------------


def _optimizer(tf, averaged=None, replicas=2, **kwargs):
    if averaged is not None:
        kwargs.update(variable_averages=tf.train.ExponentialMovingAverage(0.5), variables_to_average=averaged)
    return tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.5), replicas, **kwargs)


def _model(tf, resource, x, ids):
    table = tf.get_variable("table", initializer=np.ones((4, 2), np.float32), use_resource=resource)
    w = tf.get_variable("w", initializer=np.full((3, 2), 0.5, np.float32), use_resource=resource)
    return [table, w], tf.reduce_mean(
        tf.square(tf.matmul(x, w) + tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 0) - 1.0)
    )


def sync_graph(tf, resource, setter, **kwargs):
    """The nodes that `SyncReplicasOptimizer` adds, as (type, name, device, control inputs), and the collections."""
    with tf.Graph().as_default() as graph, tf.device(setter):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 3])
        variables, loss = _model(tf, resource, x, tf.constant([1, 2]))
        optimizer = _optimizer(tf, **kwargs)
        pairs = optimizer.compute_gradients(loss)
        before = len(graph.get_operations())
        train = optimizer.apply_gradients(pairs, global_step=step)
        tokens = optimizer.get_init_tokens_op()
        runner = optimizer.get_chief_queue_runner()
        nodes = [
            [op.type, op.name, op.device, sorted(each.name for each in op.control_inputs)]
            for op in graph.get_operations()[before:]
            if "report_uninitialized_variables/" not in op.name and op.type != "Const"
        ]
        names = [
            train.op.name,
            tokens.name,
            optimizer.chief_init_op.name,
            optimizer.local_step_init_op.op.name,
            optimizer.ready_for_local_init_op.name,
            runner.name,
            runner.enqueue_ops[0].name,
            [each.name for each in optimizer.variables()],
            optimizer.get_slot_names(),
            optimizer.get_slot(variables[0], "momentum").name,
        ]
        collections = {
            key: [each.name for each in graph.get_collection(key)]
            for key in ("variables", "trainable_variables", "local_variables", "train_op")
        }
        return {"nodes": nodes, "names": names, "collections": collections}


# -- training ----------------------------------------------------------------------------------------------------


def train(tf, resource, replicas=3, **kwargs):
    """The losses and the final variables of replicas that are threads of one process; each hands in one gradient per step."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        x, ids = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int64, [None])
        variables, loss = _model(tf, resource, x, ids)
        averaged = variables if kwargs.pop("averaged", False) else None
        optimizer = _optimizer(tf, averaged, replicas, **kwargs)
        train_op = optimizer.minimize(loss, global_step=step)
        tokens = optimizer.get_init_tokens_op(0)
        runner = optimizer.get_chief_queue_runner()
        losses = np.zeros((STEPS, replicas))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(tf.local_variables_initializer())
            session.run(optimizer.chief_init_op)
            coordinator = tf.train.Coordinator()
            chief = runner.create_threads(session, coordinator, daemon=True, start=True)
            session.run(tokens)

            def replica(number, turn):
                feed = {x: ROWS[number], ids: IDS[number]}
                losses[turn, number] = session.run(loss, feed)
                session.run(train_op, feed)

            for turn in range(STEPS):
                threads = [threading.Thread(target=replica, args=(number, turn)) for number in range(replicas)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            # The chief updates the averages after it has handed out the tokens, and starts the next step after that.
            final = session.run([step] + variables)
            coordinator.request_stop()
            session.close()
            coordinator.join(chief, stop_grace_period_secs=60, ignore_live_threads=True)
        return {"losses": losses.tolist(), "final": [np.asarray(each).tolist() for each in final]}


def train_in_cluster(tf, targets):
    """The losses of two workers in a cluster with parameter servers, by the documents' program with a hook. `targets` are the workers' sessions'."""
    replicas, results, failed = 2, {}, []
    turns = threading.Barrier(replicas)

    def worker(number):
        try:
            with tf.Graph().as_default():
                place = "/job:worker/task:%d" % number
                with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=place)):
                    step = tf.train.get_or_create_global_step()
                    x, ids = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int64, [None])
                    _, loss = _model(tf, False, x, ids)
                    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.1), replicas)
                    train_op = optimizer.minimize(loss, global_step=step)
                    hook = optimizer.make_session_run_hook(number == 0, num_tokens=0)
                losses = []
                feed = {x: ROWS[number], ids: IDS[number]}
                with tf.train.MonitoredTrainingSession(
                    targets[number], is_chief=number == 0, hooks=[hook], stop_grace_period_secs=2
                ) as session:
                    for _ in range(STEPS):
                        turns.wait(120)  # each worker hands in one gradient for each update
                        losses.append(float(session.run([loss, train_op], feed)[0]))
                    turns.wait(120)
                    losses.append(int(session.run(step)))
                    turns.wait(120)  # nobody leaves before all have read the step
                results[number] = losses
        except Exception as error:
            failed.append(error)
            turns.abort()

    threads = [threading.Thread(target=worker, args=(number,), daemon=True) for number in range(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    if failed:
        raise failed[0]
    return [results[number] for number in range(replicas)]
