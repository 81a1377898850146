"""What generated programs call. It runs under stoker and under TensorFlow: `tf`, `F` and `N` (the float dtype) come from the side."""

# ruff: noqa: F821

import contextlib

import numpy as np

KINDS = ("grid", "normal", "ties", "special", "large")


def data(seed, shape, kind="normal", dtype="f"):
    """An array. `grid` and `ties` hold numbers whose sums are exact."""
    r = np.random.RandomState(seed)
    if dtype == "b":
        return np.asarray(r.rand(*shape) > 0.5)
    if dtype in ("i", "l"):
        limit = 2 if kind == "ties" else 2**30 if kind == "large" else 6
        return np.asarray(r.randint(-limit, limit + 1, shape)).astype({"i": "int32", "l": "int64"}[dtype])
    if kind == "ties":
        x = r.randint(-1, 2, shape).astype("float64")
    elif kind == "grid":
        x = r.randint(-8, 9, shape) / 4.0
    elif kind == "large":
        x = r.randn(*shape) * 10.0 ** r.randint(-6, 7, shape)
    else:
        x = r.randn(*shape)
    if kind == "special" and np.size(x):
        x = np.array(x)
        flat = x.reshape(-1)
        for value in (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-18, 1e12, 1e18):
            flat[r.randint(flat.size)] = value if r.rand() < 0.6 else r.randn()
    return np.asarray(x).astype(N if dtype == "f" else "float64")


def grads(y, xs):
    """Gradients as dense tensors; zeros where there is none."""
    found = tf.gradients(y, xs)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, xs)]


def norm(x, scale, offset):
    """Layer normalization of the last axis."""
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 0.1) * scale + offset


def loop_array(x, count, f, start):
    """A loop that reads rows of `x` and writes a TensorArray."""
    source = tf.TensorArray(x.dtype, tf.shape(x)[0]).unstack(x)
    out = tf.TensorArray(start.dtype, size=0, dynamic_size=True)

    def body(i, a, out):
        a = f(a, source.read(i))
        return i + 1, a, out.write(i, a)

    _, last, out = tf.while_loop(lambda i, a, o: i < count, body, (0, start, out))
    return last, out.stack()


def until(x, limit, f):
    """A loop whose number of iterations depends on data."""
    size = lambda a: tf.reduce_sum(tf.abs(a))  # noqa: E731
    return tf.while_loop(lambda i, a: tf.logical_and(i < 7, size(a) > limit), lambda i, a: (i + 1, f(a)), (0, x))


def rnn(scope, cell, units, seed, x, sequence_length=None):
    """A recurrent layer."""
    with tf.variable_scope(scope, initializer=tf.random_uniform_initializer(-0.4, 0.4, seed=seed)):
        made = getattr(tf.nn.rnn_cell, cell)(units)
        return tf.nn.dynamic_rnn(made, x, sequence_length=sequence_length, dtype=F)[0]


def train(loss, optimizer, clip):
    """A training step, with clipped gradients or without."""
    if not tf.trainable_variables():
        return loss, tf.no_op()
    pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
    if not pairs:
        return loss, tf.no_op()
    if clip:
        found, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
        pairs = list(zip(found, [v for _, v in pairs]))
    return loss, optimizer.apply_gradients(pairs)


def unrolled(x, count, f, how):
    """A loop in Python over the second axis."""
    state, out = x[:, 0], []
    for i in range(count):
        state = f(state, x[:, i])
        out.append(state)
    if how == "sum":
        return tf.add_n(out)
    if how == "stack":
        return tf.stack(out, 1)
    return tf.concat(out, 1) if how == "concat" else state


def distinct(i, y, name):
    """Rows summed by their number."""
    found, places = tf.unique(i)
    return getattr(tf, f"unsorted_segment_{name}")(y, places, tf.size(found))


def bags(table, i, size, combiner, weighted=False):
    """A lookup of bags of rows; every row of `i` has its first number."""
    keep = tf.concat([tf.ones_like(i[:, :1], tf.bool), i[:, 1:] > 0], 1)
    places = tf.where(keep)
    values = tf.floormod(tf.gather_nd(i, places), size)
    shape = tf.cast(tf.shape(i), tf.int64)
    sparse = tf.SparseTensor(places, values, shape)
    weights = tf.SparseTensor(places, tf.cast(values + 1, table.dtype) * 0.25, shape) if weighted else None
    return tf.nn.embedding_lookup_sparse(table, sparse, weights, combiner=combiner)


def layer(scope, seed, make):
    """A layer whose weights are known."""
    with tf.variable_scope(scope, initializer=tf.random_uniform_initializer(-0.4, 0.4, seed=seed)):
        return make()


def batch_norm(x, training):
    """Batch normalization whose averages are updated before its result is used."""
    size = x.shape[-1].value if hasattr(x.shape[-1], "value") else x.shape[-1]
    axes = list(range(len(x.shape) - 1))
    gamma = tf.get_variable("gamma", [size])
    mean = tf.get_variable("mean", [size], trainable=False, use_resource=True)
    variance = tf.get_variable("variance", initializer=np.ones([size], N), trainable=False, use_resource=True)

    def of_batch():
        m, v = tf.nn.moments(x, axes)
        updates = [mean.assign_sub(0.1 * (mean - m)), variance.assign_sub(0.1 * (variance - v))]
        with tf.control_dependencies(updates):
            return tf.identity(m), tf.identity(v)

    kept = lambda: (mean.read_value(), variance.read_value())  # noqa: E731
    if isinstance(training, bool):
        m, v = of_batch() if training else kept()
    else:
        m, v = tf.cond(training, of_batch, kept)
    return tf.nn.batch_normalization(x, m, v, 0.5, gamma, 0.1)


def both_ways(scope, cell, units, seed, x, lengths=None):
    """A network in both directions: its outputs and a final state."""
    with tf.variable_scope(scope, initializer=tf.random_uniform_initializer(-0.4, 0.4, seed=seed)):
        cells = [getattr(tf.nn.rnn_cell, cell)(units) for _ in range(2)]
        outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, sequence_length=lengths, dtype=F)
        return tf.concat(outputs, 2), tf.nest.flatten(states)[-1]


def slices(*x):
    return tf.data.Dataset.from_tensor_slices(x if len(x) > 1 else x[0])


def drain(dataset, passes):
    """All elements, in order."""
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    flat = tf.nest.flatten(element)
    for _ in range(passes):
        session.run(iterator.initializer)
        for _ in range(400):
            try:
                record(session.run(flat))
            except tf.errors.OutOfRangeError:
                record([np.array(-1)])
                break
            except tf.errors.InvalidArgumentError:
                record([np.array(-2)])


def checked(x, most):
    """Refuses large numbers."""
    with tf.control_dependencies([tf.assert_less_equal(tf.reduce_sum(x), tf.constant(most, x.dtype))]):
        return tf.identity(x) + 1


def shaped(x, shape):
    x.set_shape(shape)
    return x


def walk(f, f_graph, values, variables, rate, second):
    """Results and gradients, eagerly and of a function in a graph; then the variables take a step."""
    for function in (f, f_graph):
        given = [tf.constant(x) for x in values]
        sources = [x for x in given if x.dtype.is_floating] + [v for v in variables if v.dtype.is_floating]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                floats, others = function(*given, *variables)
                loss = tf.add_n(
                    [
                        tf.reduce_sum(tf.square(tf.clip_by_value(tf.convert_to_tensor(x), -100.0, 100.0))) * 0.125
                        for x in floats
                    ]
                )
            found = tape.gradient(loss, sources)
            found = [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, sources)]
            total = tf.add_n([tf.reduce_sum(tf.tanh(g)) for g in found])
        record([x.numpy() for x in [*map(tf.convert_to_tensor, [*floats, *others]), *found]])
        if second:
            again = outer.gradient(total, sources)
            record(
                [
                    x.numpy()
                    for x in (
                        tf.zeros_like(s) if g is None else tf.convert_to_tensor(g) for g, s in zip(again, sources)
                    )
                ]
            )
    for v, g in zip(reversed(variables), reversed(found)):
        v.assign_sub(rate * tf.clip_by_value(g, -1.0, 1.0))


def laid(x, how):
    """The same array in another layout."""
    if how == "F" and x.ndim:
        return np.asfortranarray(x)
    if how == "R":
        return x[::-1].copy()[::-1] if x.ndim else x
    if how == "S" and x.ndim:
        wide = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), 77).astype(x.dtype)
        wide[..., 1::2] = x
        return wide[..., 1::2]
    if how == "U":
        buffer = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype) if x.nbytes else x.copy()
        buffer = buffer.reshape(x.shape)
        buffer[...] = x
        return buffer
    if how == "O":
        x = np.broadcast_to(x[..., :1], x.shape) if x.ndim and x.shape[-1] else x
    return x


def change_in_loop(name, start, f, x, count, decay, keep):
    """A loop that reads and changes a variable; its last value and what the last iteration made."""
    v = tf.get_variable(name, initializer=start, use_resource=True, trainable=False)

    def body(i, a):
        made = f(v.read_value(), a)
        with tf.control_dependencies([made]):
            change = v.assign(v.read_value() * decay + made) if keep else v.assign_sub((v.read_value() - made) * decay)
        with tf.control_dependencies([change]):
            return i + 1, tf.clip_by_value(v.read_value() * 0.5 + made, -8.0, 8.0)

    _, last = tf.while_loop(lambda i, a: i < count, body, (0, x), parallel_iterations=1)
    with tf.control_dependencies([last]):
        return tf.clip_by_value(v.read_value(), -16.0, 16.0), last


def change_if(flag, name, start, f, x, decay):
    """A branch that changes a variable."""
    v = tf.get_variable(name, initializer=start, use_resource=True, trainable=False)
    before = v.read_value()

    def change():
        with tf.control_dependencies([v.assign(before * decay + f(before, x))]):
            return v.read_value() * 0.5

    with tf.control_dependencies([before]):
        made = tf.cond(flag, change, lambda: before + x)
    with tf.control_dependencies([made]):
        return tf.clip_by_value(v.read_value(), -16.0, 16.0), tf.clip_by_value(made, -16.0, 16.0)


def queue(columns, f, epochs, threads, size, smaller, shapes, capacity, shuffled):
    """Records that a queue runner takes from arrays, maps, and puts into batches."""
    taken = tf.train.slice_input_producer(columns, num_epochs=epochs, shuffle=False, capacity=capacity)
    made = f(*taken)
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    for each, shape in zip(made, shapes):
        each.set_shape(shape)
    if shuffled == "join":
        batch = tf.train.batch_join([made], size, capacity=capacity + size, allow_smaller_final_batch=smaller)
    elif shuffled == "pad":
        batch = tf.train.batch(
            made, size, capacity=capacity + size, allow_smaller_final_batch=smaller, dynamic_pad=True
        )
    else:
        batch = tf.train.batch(made, size, capacity=capacity + size, allow_smaller_final_batch=smaller)
    batch = batch if isinstance(batch, list) else [batch]
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    try:
        for _ in range(300):
            record(session.run(batch))
    except tf.errors.OutOfRangeError:
        record([np.array(-1)])
    coordinator.request_stop()
    with contextlib.suppress(tf.errors.OutOfRangeError):
        coordinator.join(threads, stop_grace_period_secs=20)


def serialized(seed, count, kinds):
    """Serialized examples with such features, some of which are missing."""
    r = np.random.RandomState(seed)
    words = [b"", b"a", b"ab", b"c", b"none", b"x", b"longer than sixteen bytes", "\u00e9\u4e2d".encode()]
    made = []
    for _ in range(count):
        example = tf.train.Example()
        for name, dtype, shape, width, _ in kinds:
            size = width if shape in ("fixed", "several") else r.randint(0, 4)
            if shape != "several" and r.rand() < 0.15:
                continue
            feature = example.features.feature[name]
            if dtype == "string":
                feature.bytes_list.value.extend(words[k] for k in r.randint(0, len(words), size))
            elif dtype == "int64":
                feature.int64_list.value.extend(int(k) for k in r.randint(-5, 50, size))
            else:
                feature.float_list.value.extend(float(k) / 4 for k in r.randint(-8, 9, size))
        made.append(example.SerializeToString())
    return np.array(made, object)
