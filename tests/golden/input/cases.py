"""Queue-based input pipelines, and the nodes and collections that they add to a graph; also run by TensorFlow (see make.py)."""


def cases(tf):
    """Calls by name; what each returns is not used."""
    train, const, placeholder = tf.train, tf.constant, tf.placeholder

    def sparse():
        return tf.SparseTensor(const([[0, 0], [1, 2]], tf.int64), const([1.0, 2.0]), const([2, 3], tf.int64))

    def in_scope():
        with tf.name_scope("outer"):
            return train.batch([const(1.0)], 2)

    def several():
        train.batch([const(1.0)], 2)
        train.batch([const(1.0)], 2)
        train.string_input_producer(["a"], num_epochs=1)
        train.string_input_producer(["b"], num_epochs=1)

    def seeds():
        tf.set_random_seed(3)
        train.shuffle_batch([const(1.0)], 4, 50, 10, seed=7)
        train.string_input_producer(["a"], seed=5)
        train.shuffle_batch([const(1.0)], 4, 50, 10)

    matrix = [[1.0, 2.0], [3.0, 4.0]]
    return {
        "strings": lambda: train.string_input_producer(["a", "b"]),
        "strings with everything": lambda: train.string_input_producer(
            ["a", "b"], num_epochs=2, shuffle=False, seed=3, capacity=5, shared_name="shared", name="files"
        ),
        "strings of a tensor": lambda: train.string_input_producer(const(["a", "b"])),
        "strings of matching files": lambda: train.string_input_producer(train.match_filenames_once("/nowhere/*")),
        "strings with a cancel op": lambda: train.string_input_producer(["a"], cancel_op=tf.no_op(name="cancel")),
        "range": lambda: train.range_input_producer(5, num_epochs=1),
        "range of a tensor": lambda: train.range_input_producer(placeholder(tf.int32, []), shuffle=False, name="r"),
        "slices": lambda: train.slice_input_producer([const(matrix), [1, 2]], num_epochs=1, shuffle=False),
        "slices of unknown size": lambda: train.slice_input_producer(
            [placeholder(tf.float32, [None, 3]), placeholder(tf.string)], seed=4, capacity=7, shared_name="z", name="rows"
        ),
        "rows": lambda: train.input_producer(const(matrix), shuffle=False),
        "rows with a summary": lambda: train.input_producer(
            placeholder(tf.float32), element_shape=[3], summary_name="full", num_epochs=3
        ),
        "rows with a name": lambda: train.input_producer([1.0, 2.0], name="rows", shuffle=False),
        "limited": lambda: train.limit_epochs(const([1.0]), 3),
        "limited with a name": lambda: train.limit_epochs(const([1.0]), 2, name="often"),
        "batch": lambda: train.batch([const(1.0), const([2, 3])], 4),
        "batch of Python values": lambda: train.batch([1.0, [1, 2]], 2),
        "batch of nested tensors": lambda: train.batch([[const(1.0), const(2.0)]], 2),
        "batch of a dictionary": lambda: train.batch(
            {"b": const(1.0), "a": const([1, 2])}, 4, num_threads=2, capacity=9, shared_name="s", name="named"
        ),
        "batch of many": lambda: train.batch([const([1.0, 2.0]), const([[2, 3], [4, 5]])], 4, enqueue_many=True),
        "batch with padding": lambda: train.batch([placeholder(tf.float32, [None]), const([2, 3])], 4, dynamic_pad=True),
        "batch that may be smaller": lambda: train.batch([const([2, 3])], 4, allow_smaller_final_batch=True),
        "batch with shapes": lambda: train.batch([placeholder(tf.float32)], 4, shapes=[[3]]),
        "batch of a size fed": lambda: train.batch([const([1.0, 2.0])], placeholder(tf.int32, [])),
        "batch in a scope": in_scope,
        "several": several,
        "join": lambda: train.batch_join([[const(1.0), const([2, 3])], [const(1.0), const([2, 3])]], 4),
        "join of dictionaries": lambda: train.batch_join(
            [{"b": const(1.0), "a": const([2, 3])}, {"a": const([2, 3]), "b": const(1.0)}],
            4, allow_smaller_final_batch=True, dynamic_pad=True,
        ),
        "join of many": lambda: train.batch_join([[const([1.0, 2.0])], [const([1.0])]], 4, enqueue_many=True),
        "join of partly known shapes": lambda: train.batch_join(
            [[placeholder(tf.float32, [None, 3])], [placeholder(tf.float32, [2, None])]], 4, dynamic_pad=True
        ),
        "shuffle": lambda: train.shuffle_batch([const(1.0), const([2, 3])], 4, 50, 10, seed=5, num_threads=2),
        "shuffle of many": lambda: train.shuffle_batch(
            {"a": const([1.0, 2.0])}, 4, 50, 10, enqueue_many=True, allow_smaller_final_batch=True, name="named"
        ),
        "shuffle join": lambda: train.shuffle_batch_join([[const(1.0)], [const(2.0)]], 4, 50, 10, seed=5),
        "seeds": seeds,
        "kept always": lambda: train.maybe_batch([const(1.0), const([2, 3])], True, 4),
        "kept never": lambda: train.maybe_batch([const(1.0)], False, 4),
        "kept by row": lambda: train.maybe_batch(
            [const([1.0, 2.0]), const([2, 3])], placeholder(tf.bool, [2]), 4, enqueue_many=True
        ),
        "kept by row, join": lambda: train.maybe_batch_join(
            [[const([1.0, 2.0])], [const([2.0, 3.0])]], placeholder(tf.bool, [2]), 4, enqueue_many=True
        ),
        "kept by row, shuffle join": lambda: train.maybe_shuffle_batch_join(
            [[const([1.0, 2.0])]], 4, 50, 10, placeholder(tf.bool, [None]), enqueue_many=True
        ),
        "sparse": lambda: train.batch([sparse(), const(1.0)], 4),
        "sparse alone": lambda: train.batch([tf.sparse_placeholder(tf.float32)], 4),
        "sparse twice": lambda: train.batch([sparse(), sparse(), const(1.0), const(2.0)], 4),
        "sparse, many": lambda: train.batch([sparse(), const([1.0, 2.0])], 4, enqueue_many=True),
        "sparse, join": lambda: train.batch_join([[sparse(), const(1.0)], [sparse(), const(1.0)]], 4),
        "sparse, join of many": lambda: train.batch_join([[sparse()], [sparse()]], 4, enqueue_many=True),
        "sparse, shuffle": lambda: train.shuffle_batch(
            {"s": sparse(), "d": const(1.0)}, 4, 50, 10, allow_smaller_final_batch=True
        ),
        "sparse, kept by row": lambda: train.maybe_batch(
            [sparse(), const([1.0, 2.0])], placeholder(tf.bool, [2]), 4, enqueue_many=True
        ),
        "sparse, padding": lambda: train.batch([sparse(), placeholder(tf.int32, [None])], 4, dynamic_pad=True),
    }  # fmt: skip


def described(tf, make):
    """The nodes and collections of a new graph in which `make` was called, as plain data."""
    with tf.Graph().as_default() as graph:
        make()
        nodes = [
            [op.name, op.type, [each.name for each in op.inputs], sorted(each.name for each in op.control_inputs)]
            + [[str(each.shape) for each in op.outputs]]
            for op in graph.get_operations()
        ]
        runners = [str(runner.to_proto()).split() for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)]
        local = [variable.name for variable in tf.local_variables()]
        summaries = [each.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
        return {"nodes": nodes, "runners": runners, "local variables": local, "summaries": summaries}
