"""Small graphs, written once against the 1.x API, for travelling between stoker and TensorFlow as GraphDefs.

Each function takes the module to build with and returns the runs to make, in order: (fetches, feeds). The code keeps to
Python 3.7, TensorFlow 1.15's newest.
"""

import numpy as np


def _data(*shape, **options):
    """Numbers that look random and are the same everywhere."""
    start = options.get("start", 1)
    count = int(np.prod(shape))
    values = np.sin(np.arange(start, start + count, dtype=np.float64) * 1.7 + 0.3)
    return values.reshape(shape).astype(np.float32)


def forward_mlp(tf):
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    hidden = tf.nn.relu(tf.matmul(x, tf.constant(_data(4, 8))) + tf.constant(_data(8)), name="hidden")
    logits = tf.nn.bias_add(tf.matmul(hidden, _data(8, 3)), _data(3), name="logits")
    guess = tf.argmax(logits, axis=1, name="guess")
    return [([tf.nn.softmax(logits), guess, tf.nn.log_softmax(logits)], {x: _data(5, 4)})]


def convolutions(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 2], name="x")
    h = tf.nn.conv2d(x, tf.constant(_data(3, 3, 2, 4)), strides=[1, 1, 1, 1], padding="SAME")
    h = tf.nn.max_pool(tf.nn.relu(h), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    h = tf.nn.depthwise_conv2d(h, tf.constant(_data(3, 3, 4, 1)), strides=[1, 1, 1, 1], padding="SAME")
    scale, offset = tf.constant(np.ones(4, np.float32)), tf.constant(np.zeros(4, np.float32))
    h, mean, variance = tf.nn.fused_batch_norm(h, scale, offset)
    h = tf.nn.avg_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(h, [tf.shape(h)[0], -1])
    (gradient,) = tf.gradients(tf.reduce_sum(tf.square(flat)), [x])
    return [([flat, mean, variance, gradient], {x: _data(2, 8, 8, 2)})]


def _regression(tf, optimizer, use_resource):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.get_variable("w", initializer=tf.constant(_data(3, 1)), use_resource=use_resource)
    b = tf.get_variable("b", initializer=tf.zeros([1]), use_resource=use_resource)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=step)
    init = tf.global_variables_initializer()
    feeds = {x: _data(6, 3), y: _data(6, 1, start=50)}
    runs = [([init], {})]
    runs += [([train, loss], feeds) for _ in range(3)]
    return runs + [([loss, w, b, step], feeds)]


def sgd_of_references(tf):
    return _regression(tf, tf.train.GradientDescentOptimizer(0.1), False)


def sgd_of_resources(tf):
    return _regression(tf, tf.train.GradientDescentOptimizer(0.1), True)


def momentum_of_references(tf):
    return _regression(tf, tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), False)


def momentum_of_resources(tf):
    return _regression(tf, tf.train.MomentumOptimizer(0.1, 0.9), True)


def adam_of_references(tf):
    return _regression(tf, tf.train.AdamOptimizer(0.05), False)


def adam_of_resources(tf):
    return _regression(tf, tf.train.AdamOptimizer(0.05), True)


def rmsprop_of_resources(tf):
    return _regression(tf, tf.train.RMSPropOptimizer(0.05), True)


def adagrad_of_references(tf):
    return _regression(tf, tf.train.AdagradOptimizer(0.05), False)


def ftrl_of_references(tf):
    return _regression(tf, tf.train.FtrlOptimizer(0.05), False)


def decayed_sgd(tf):
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.5, step, 2, 0.5, staircase=True)
    return _regression(tf, tf.train.GradientDescentOptimizer(rate), False) + [([rate], {})]


def conditional(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 0, lambda: tf.square(x), lambda: -3.0 * x, name="choice")
    (gradient,) = tf.gradients(y, [x])
    return [([y, gradient], {x: np.float32(value)}) for value in (2.0, -2.0)]


def conditional_update(tf):
    count = tf.get_variable("count", initializer=tf.constant(10.0), use_resource=True)
    go = tf.placeholder(tf.bool, [], name="go")
    after = tf.cond(go, lambda: tf.identity(count.assign_add(1.0)), lambda: tf.identity(count.read_value()))
    init = tf.global_variables_initializer()
    return [([init], {}), ([after], {go: True}), ([after], {go: False}), ([count], {})]


def loop(tf):
    n = tf.placeholder(tf.int32, [], name="n")
    _, total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + tf.cast(i, tf.float32)), [0, 0.5])
    return [([total], {n: np.int32(value)}) for value in (0, 1, 7)]


def loop_gradient(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    w = tf.constant(_data(3, 3))

    def body(i, h):
        return i + 1, tf.tanh(tf.linalg.matvec(w, h))

    _, h = tf.while_loop(lambda i, h: i < 4, body, [0, x])
    (gradient,) = tf.gradients(tf.reduce_sum(h), [x])
    return [([h, gradient], {x: _data(3)})]


def loop_gradient_of_outer(tf):
    w = tf.get_variable("w", initializer=tf.constant(_data(2, 2)), use_resource=True)
    x = tf.constant(_data(1, 2))
    _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.matmul(h, w)), [0, x])
    (gradient,) = tf.gradients(tf.reduce_sum(tf.square(h)), [w])
    return [([tf.global_variables_initializer()], {}), ([h, gradient], {})]


def nested_control_flow(tf):
    n = tf.placeholder(tf.int32, [], name="n")

    def body(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s + tf.cast(i, tf.float32), lambda: s * 2.0)

    _, total = tf.while_loop(lambda i, s: i < n, body, [0, 1.0])
    return [([total], {n: np.int32(6)})]


def mapped(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.map_fn(lambda row: tf.reduce_sum(tf.square(row)), x)
    running = tf.scan(lambda before, row: before + row, x)
    folded = tf.foldl(lambda before, row: before * 0.5 + row, x)
    return [([y, running, folded], {x: _data(4, 2)})]


def embedding(tf, use_resource=False):
    table = tf.get_variable("table", initializer=tf.constant(_data(6, 3)), use_resource=use_resource)
    ids = tf.placeholder(tf.int64, [None], name="ids")
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(rows))
    (slices,) = tf.gradients(loss, [table])
    train = tf.train.AdagradOptimizer(0.5, initial_accumulator_value=0.1).minimize(loss)
    init = tf.global_variables_initializer()
    feeds = {ids: np.array([1, 4, 1], np.int64)}
    return [
        ([init], {}),
        ([slices.values, slices.indices, loss], feeds),
        ([train], feeds),
        ([table], {}),
        ([tf.convert_to_tensor(slices)], feeds),
    ]


def embedding_of_resource(tf):
    return embedding(tf, use_resource=True)


def sparse_adam(tf):
    table = tf.get_variable("table", initializer=tf.constant(_data(6, 3)), use_resource=False)
    ids = tf.placeholder(tf.int32, [None], name="ids")
    loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {ids: np.array([0, 5, 5], np.int32)}
    return [([tf.global_variables_initializer()], {}), ([train], feeds), ([train], feeds), ([table], {})]


def strings(tf):
    words = tf.placeholder(tf.string, [None], name="words")
    joined = tf.strings.join([words, tf.constant(["-x", "-y", "-z"])], separator="_")
    buckets = tf.string_to_hash_bucket_fast(words, 17)
    strong = tf.string_to_hash_bucket_strong(words, 17, key=[3, 5])
    swapped = tf.regex_replace(words, "[aeiou]", "*")
    short = tf.strings.substr(words, 0, 2)
    texts = tf.as_string(tf.constant([1.5, -2.0]), precision=2)
    numbers = tf.string_to_number(tf.constant(["3.25", "-1e3"]))
    lengths = tf.strings.length(words)
    one = tf.reduce_join(words, axis=0, separator=" ")
    feeds = {words: np.array([b"apple", b"banana", b"\xc3\xbcber"], object)}
    return [([joined, buckets, strong, swapped, short, texts, numbers, lengths, one], feeds)]


def defaults(tf):
    keep = tf.placeholder_with_default(np.float32(0.5), [], name="keep")
    shape = tf.placeholder_with_default(np.array([1.0, 2.0], np.float32), [None], name="row")
    out = keep * shape
    return [([out], {}), ([out], {keep: np.float32(2.0)}), ([out], {shape: np.array([4.0], np.float32)})]


def control_dependencies(tf):
    count = tf.Variable(0, name="count", use_resource=False)
    add = tf.assign_add(count, 5)
    with tf.control_dependencies([add]):
        seen = tf.identity(count.read_value(), name="seen")
        nothing = tf.no_op(name="nothing")
    with tf.control_dependencies([nothing]):
        check = tf.Assert(seen > 0, ["never", seen])
    both = tf.group(check, nothing, name="both")
    init = tf.global_variables_initializer()
    return [([init], {}), ([seen], {}), ([both], {}), ([count], {})]


def second_derivative(tf):
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.reduce_sum(tf.sigmoid(x) * tf.exp(-x) + tf.log(1.0 + tf.square(x)))
    (first,) = tf.gradients(y, [x])
    (second,) = tf.gradients(first, [x])
    return [([y, first, second], {x: _data(3)})]


def classifier_gradient(tf):
    x = tf.placeholder(tf.float32, [None, 5], name="x")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    w = tf.constant(_data(5, 4))
    logits = tf.matmul(x, w)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    dense = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(labels, 4), logits=logits)
    binary = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.one_hot(labels, 4), logits=logits)
    loss = tf.reduce_mean(sparse) + tf.reduce_sum(dense) + tf.reduce_mean(binary) + 0.1 * tf.nn.l2_loss(w)
    gradients = tf.gradients(loss, [x, w])
    return [([sparse, dense, loss] + gradients, {x: _data(3, 5), labels: np.array([0, 3, 2], np.int32)})]


def array_ops(tf):
    x = tf.placeholder(tf.float32, [4, 6], name="x")
    parts = tf.split(x, 3, axis=1)
    ragged = tf.split(x, [1, 2, 3], axis=1)
    sliced = x[1:3, ::2] + x[-2:, :3]
    gathered = tf.gather_nd(x, [[0, 1], [3, 5]])
    tiled = tf.tile(tf.expand_dims(x[0], 0), [2, 1])
    padded = tf.pad(x, [[1, 0], [0, 2]])
    picked = tf.boolean_mask(x, [True, False, True, False])
    stacked = tf.stack(tf.unstack(x, axis=1), axis=0)
    turned = tf.transpose(tf.reverse(x, [0]), [1, 0])
    top, where = tf.nn.top_k(x, 2)
    summed = tf.unsorted_segment_sum(x, [0, 1, 0, 1], 2)
    masked = tf.where(x > 0, x, tf.zeros_like(x))
    fetched = [
        parts[1],
        ragged[2],
        sliced,
        gathered,
        tiled,
        padded,
        picked,
        stacked,
        turned,
        top,
        where,
        summed,
        masked,
    ]
    (gradient,) = tf.gradients([tf.reduce_sum(t) for t in (parts[0], sliced, gathered, picked, top, masked)], [x])
    return [(fetched + [gradient], {x: _data(4, 6)})]


def clipped_training(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=tf.constant(_data(2, 2)), use_resource=True)
    loss = tf.reduce_sum(tf.pow(tf.matmul(x, w), 4))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
    clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
    train = optimizer.apply_gradients([(g, v) for g, (_, v) in zip(clipped, pairs)])
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([train]):
        update = average.apply([w])
    init = tf.global_variables_initializer()
    feeds = {x: _data(3, 2)}
    return [([init], {}), ([norm], feeds), ([update], feeds), ([w, average.average(w)], {})]


def seeded_random(tf):
    tf.set_random_seed(7)
    uniform = tf.random_uniform([3], seed=1)
    normal = tf.random_normal([2, 2], seed=2)
    truncated = tf.truncated_normal([4], seed=3)
    whole = tf.random_uniform([5], maxval=100, dtype=tf.int32, seed=4)
    return [([uniform, normal, truncated, whole], {})]


def queue(tf):
    q = tf.FIFOQueue(5, [tf.float32, tf.string], shapes=[[2], []], name="queue")
    put = q.enqueue_many([_data(3, 2), tf.constant(["a", "b", "c"])])
    take = q.dequeue()
    return [([put], {}), ([q.size()], {}), (list(take), {}), (list(q.dequeue_many(2)), {}), ([q.close()], {})]


def _needs_references(function):
    """Marks a program that updates reference variables inside of branches: TensorFlow's functional control flow refuses it."""
    function.needs_references = True
    return function


@_needs_references
def averages_in_a_branch(tf):
    x, training = tf.placeholder(tf.float32, [None, 3], name="x"), tf.placeholder(tf.bool, [], name="training")
    offset = tf.Variable(tf.zeros([3]), name="offset")
    mean, variance = tf.nn.moments(x, [0])
    averages = tf.train.ExponentialMovingAverage(decay=0.5)

    def update():
        with tf.control_dependencies([averages.apply([mean, variance])]):
            return tf.identity(mean), tf.identity(variance)

    chosen = tf.cond(training, update, lambda: (averages.average(mean), averages.average(variance)))
    y = tf.nn.batch_normalization(x, chosen[0], chosen[1], offset, None, 1e-3)
    loss = tf.reduce_sum(tf.square(y - 0.5))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    runs = [([tf.global_variables_initializer()], {})]
    for scale, is_training in ((1, True), (2, True), (1, False)):
        runs += [([loss], {x: _data(4, 3) * scale, training: is_training})]
        runs += [([train], {x: _data(4, 3) * scale, training: is_training})]
    return runs + [([offset, averages.average(mean)], {})]


@_needs_references
def updates_in_a_loop(tf):
    n = tf.placeholder(tf.int32, [], name="n")
    by_reference, by_handle = tf.Variable(0.0, name="r"), tf.Variable(1.0, name="h", use_resource=True)

    def body(i, total):
        updated = tf.assign_add(by_reference, tf.cast(i, tf.float32) + 1.0)
        with tf.control_dependencies([updated, by_handle.assign_add(0.5, read_value=False)]):
            return i + 1, total * 2.0 + updated

    _, total = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.constant(1.0)], parallel_iterations=1)
    runs = [([tf.global_variables_initializer()], {})]
    return runs + [([total], {n: count}) for count in (3, 0, 2)] + [([by_reference, by_handle], {})]


@_needs_references
def updates_in_nested_control_flow(tf):
    n = tf.placeholder(tf.int32, [], name="n")
    v = tf.Variable(np.zeros(3, np.float32), name="v")

    def body(i):
        even = tf.equal(i % 2, 0)
        updated = tf.cond(even, lambda: tf.scatter_add(v, [i], [1.0]), lambda: tf.scatter_sub(v, [i], [0.5]))
        with tf.control_dependencies([updated]):
            return i + 1

    def walk():
        with tf.control_dependencies([tf.identity(tf.while_loop(lambda i: i < 3, body, [0], parallel_iterations=1))]):
            return v * 1.0

    y = tf.cond(n > 0, walk, lambda: v * 10.0)
    return [([tf.global_variables_initializer()], {})] + [([y], {n: count}) for count in (1, 2, 0)]


@_needs_references
def gradients_applied_now_and_then(tf):
    x, go = tf.placeholder(tf.float32, [None, 3], name="x"), tf.placeholder(tf.bool, [], name="go")
    w = tf.Variable(np.ones((3, 1), np.float32), name="w")
    gathered = tf.Variable(np.zeros((3, 1), np.float32), name="gathered", trainable=False)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    optimizer = tf.train.AdamOptimizer(0.1)

    def apply():
        with tf.control_dependencies([optimizer.apply_gradients([(gathered.read_value() / 2.0, w)])]):
            return tf.assign(gathered, tf.zeros_like(gathered)).op

    with tf.control_dependencies([tf.assign_add(gathered, tf.gradients(loss, w)[0])]):
        step = tf.cond(go, apply, tf.no_op)
    runs = [([tf.global_variables_initializer()], {})]
    for now in (False, True, False, True):
        runs += [([step], {x: _data(4, 3), go: now}), ([loss], {x: _data(4, 3)})]
    return runs + [([w, gathered], {})]


def growing_array(tf):
    x, n = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.int32, [], name="n")
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
    _, _, array = tf.while_loop(
        lambda i, h, a: i < n, lambda i, h, a: (i + 1, tf.tanh(h * 2.0), a.write(i, h * h)), [0, x, array]
    )
    rows = array.stack()
    (gradient,) = tf.gradients(tf.reduce_sum(rows), [x])
    return [([rows, gradient], {x: _data(2), n: count}) for count in (1, 4)]


def numbered_branches(tf):
    x, k = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.int32, [], name="k")
    y = tf.switch_case(k, [lambda: x * 2.0, lambda: tf.exp(x)], default=lambda: tf.square(x))
    (gradient,) = tf.gradients(y, [x])
    return [([y, gradient], {x: _data(2), k: number}) for number in (0, 1, 5)]


def rows_beyond_every_sequence(tf):
    """The loop ends with the longest sequence: rows after it are read and were never written."""
    x, lengths = tf.placeholder(tf.float32, [3, None, 2], name="x"), tf.placeholder(tf.int32, [3], name="lengths")
    with tf.variable_scope("cells", initializer=tf.constant_initializer(0.2)):
        outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, lengths, dtype=tf.float32)
    (gradient,) = tf.gradients(tf.reduce_sum(outputs * outputs) + tf.reduce_sum(state), [x])
    runs = [([tf.global_variables_initializer()], {})]
    return runs + [
        ([outputs, gradient], {x: _data(3, 4, 2), lengths: np.int32(each)}) for each in ([4, 2, 1], [1, 2, 1])
    ]


def effects_nobody_waits_for(tf):
    """Of a branch or a loop's body only what its results need runs."""
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def branch():
        v.assign_add(100.0)
        with tf.control_dependencies([v.assign_add(x, read_value=False)]):
            return tf.identity(v.read_value())

    def body(i):
        v.assign_add(1000.0)
        with tf.control_dependencies([v.assign_sub(0.25, read_value=False)]):
            return i + 1

    y = tf.cond(x > 0, branch, lambda: x)
    steps = tf.while_loop(lambda i: i < 3, body, [0])
    runs = [([tf.global_variables_initializer()], {}), ([y], {x: np.float32(2)}), ([y], {x: np.float32(-1)})]
    return runs + [([tf.identity(steps)], {}), ([y], {x: np.float32(1)})]


def sums_of_looked_up_rows(tf):
    table = tf.Variable(_data(5, 2), name="table")
    ids = tf.SparseTensor(np.array([[0, 0], [0, 1], [2, 0]], np.int64), np.array([1, 2, 1], np.int64), [3, 4])
    found = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    scaled = tf.matmul(found, tf.matrix_set_diag(tf.matrix_diag([2.0, 3.0]), [4.0, 5.0]))
    loss = tf.reduce_sum(tf.square(scaled)) + tf.trace(tf.matmul(found, found, transpose_a=True))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return [([tf.global_variables_initializer()], {})] + [([loss], {}), ([train], {})] * 2 + [([table, found], {})]


def _lookups(tf, use_resource):
    """Slices out of a loop and out of a branch; momentum moves the rows that they name."""
    table = tf.get_variable("table", initializer=tf.constant(_data(6, 2)), use_resource=use_resource)
    ids = tf.constant([[1, 2], [2, 2], [4, 1]])

    def body(i, total):
        return i + 1, total * 0.5 + tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids[i])))

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    chosen = tf.cond(total > 1000.0, lambda: tf.gather(table, [5]), lambda: tf.gather(table, [4]) * 2.0)
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    pairs = optimizer.compute_gradients(total + tf.reduce_sum(chosen))
    clipped, norm = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 1.0)
    train = optimizer.apply_gradients(list(zip(clipped, [variable for _, variable in pairs])))
    return [([tf.global_variables_initializer()], {})] + [([norm], {}), ([train], {})] * 3 + [([table], {})]


def lookups_in_a_loop(tf):
    return _lookups(tf, False)


def lookups_of_resource_in_a_loop(tf):
    return _lookups(tf, True)


PROGRAMS = {
    function.__name__: function
    for function in (
        forward_mlp,
        convolutions,
        sgd_of_references,
        sgd_of_resources,
        momentum_of_references,
        momentum_of_resources,
        adam_of_references,
        adam_of_resources,
        rmsprop_of_resources,
        adagrad_of_references,
        ftrl_of_references,
        decayed_sgd,
        conditional,
        conditional_update,
        loop,
        loop_gradient,
        loop_gradient_of_outer,
        nested_control_flow,
        mapped,
        embedding,
        embedding_of_resource,
        sparse_adam,
        strings,
        defaults,
        control_dependencies,
        second_derivative,
        classifier_gradient,
        array_ops,
        clipped_training,
        seeded_random,
        queue,
        averages_in_a_branch,
        updates_in_a_loop,
        updates_in_nested_control_flow,
        gradients_applied_now_and_then,
        growing_array,
        numbered_branches,
        rows_beyond_every_sequence,
        effects_nobody_waits_for,
        sums_of_looked_up_rows,
        lookups_in_a_loop,
        lookups_of_resource_in_a_loop,
    )
}
