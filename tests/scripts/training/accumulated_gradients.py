"""Gradients of several workers gathered in accumulators, dense and sparse, and a step queue with priorities."""

import argparse
import threading

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()
WORKERS = 3

rng = np.random.RandomState(8)
table = tf.get_variable("table", initializer=tf.constant(rng.randn(10, 4).astype(np.float32)))
w = tf.get_variable("w", initializer=tf.constant(rng.randn(4, 1).astype(np.float32)))
step = tf.train.get_or_create_global_step()
ids = tf.placeholder(tf.int64, [None])
target = tf.placeholder(tf.float32, [None, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(table, ids), w) - target))
table_grad, w_grad = tf.gradients(loss, [table, w])
print(type(table_grad).__name__, w_grad.shape)

dense = tf.ConditionalAccumulator(tf.float32, shape=[4, 1], shared_name="w_grad", reduction_type="MEAN")
sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[10, 4], name="table_grad")
push = tf.group(
    dense.apply_grad(w_grad, local_step=step), sparse.apply_indexed_slices_grad(table_grad, local_step=step)
)
with tf.control_dependencies([push]):
    pushed = tf.identity(loss)
mean_w, mean_table = dense.take_grad(WORKERS), sparse.take_indexed_slices_grad(WORKERS)
optimizer = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)
apply_op = optimizer.apply_gradients([(mean_table, table), (mean_w, w)], global_step=step)
advance = tf.group(dense.set_global_step(step), sparse.set_global_step(step))
counts = [dense.num_accumulated(), sparse.num_accumulated()]
order = tf.PriorityQueue(10, [tf.string], [[]], name="order")
name, rank = tf.placeholder(tf.string, []), tf.placeholder(tf.int64, [])
put, get, size = order.enqueue([rank, name]), order.dequeue(), order.size()
print(dense.name, sparse.name, dense.dtype, mean_table.dense_shape is not None, order.dtypes, order.names)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    batches = [(rng.randint(0, 10, size=6), rng.rand(6, 1)) for _ in range(12)]
    for number in range(4):
        coord = tf.train.Coordinator()
        losses = [None] * WORKERS

        def work(index, coord=coord, losses=losses, number=number):
            with coord.stop_on_exception():
                keys, values = batches[number * WORKERS + index]
                losses[index] = sess.run(pushed, {ids: keys, target: values})
                sess.run(put, {name: "worker %d" % index, rank: 1000 * losses[index]})

        threads = [threading.Thread(target=work, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        coord.join(threads)
        print(
            "round %d: %s, gathered %s"
            % (number, " ".join("%.4f" % value for value in losses), [int(n) for n in sess.run(counts)])
        )
        sess.run(apply_op)
        sess.run(advance)
        print("  lowest loss first:", [sess.run(get)[1].decode() for _ in range(sess.run(size))])
    print("norms %.4f %.4f" % tuple(sess.run([tf.norm(table), tf.norm(w)])))
    # Gradients of an older step are dropped.
    late = dense.apply_grad(np.ones([4, 1], np.float32), local_step=1)
    sess.run(late)
    print("after a late one", [int(n) for n in sess.run(counts)])
    try:
        dense.apply_grad(np.ones([2, 2], np.float32), local_step=9)
    except ValueError as error:
        print("ValueError", error)
    for title, op in {
        "take none": dense.take_grad(0),
        "empty": sparse.apply_grad(
            tf.placeholder_with_default(np.zeros([0], np.int64), [None]), np.zeros([0, 4], np.float32), local_step=9
        ),
        "index": sparse.apply_grad([11], np.ones([1, 4], np.float32), grad_shape=[12, 4], local_step=9),
    }.items():
        try:
            sess.run(op)
            print(title, "ok", [int(n) for n in sess.run(counts)])
        except tf.errors.OpError as error:
            print(title, type(error).__name__, error.message.split("\n")[0][:70])
