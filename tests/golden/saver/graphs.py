"""Prints the nodes that savers of many kinds make: python graphs.py. Recorded in graphs.txt under TensorFlow 2.21."""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity("ERROR")
# Of one version of TensorFlow alone.
HIDDEN = {"_has_manual_control_dependencies", "_output_shapes", "allow_missing_files", "validate_shape"}


def value_of(attr):
    kind = attr.WhichOneof("value")
    if kind == "tensor":
        return [text.decode() for text in attr.tensor.string_val] or list(attr.tensor.int_val)
    if kind == "list":
        return list(attr.list.type) or [text.decode() for text in attr.list.s]
    return str(getattr(attr, kind)).replace("\n", " ")


def show(label, make):
    with tf.Graph().as_default() as graph:
        try:
            saver = make()
        except (TypeError, ValueError) as error:
            print("##", label, type(error).__name__, error)
            return
        print("##", label)
        for node in graph.as_graph_def().node:
            if node.name.startswith(("save", "my", "outer/save")):
                attrs = sorted((key, value_of(node.attr[key])) for key in node.attr if key not in HIDDEN)
                print(node.name, node.op, sorted(node.input), attrs, node.device)
        described = saver.as_saver_def()
        if described is not None:
            names = described.filename_tensor_name, described.save_tensor_name, described.restore_op_name
            print(
                names,
                described.max_to_keep,
                described.sharded,
                described.keep_checkpoint_every_n_hours,
                described.version,
            )
        print(sorted(graph.get_all_collection_keys()))


def var(name, shape=(2,), resource=False, **kwargs):
    return tf.get_variable(name, shape, use_resource=resource, initializer=tf.zeros_initializer(), **kwargs)


def both():
    return var("a"), var("b", resource=True)


def saver_of_both(**kwargs):
    both()
    return tf.train.Saver(**kwargs)


def on_devices(**kwargs):
    with tf.device("/cpu:0"):
        var("a")
    with tf.device("/job:ps/task:1"):
        var("b")
    return tf.train.Saver(**kwargs)


def on_a_gpu():
    with tf.device("/gpu:0"):
        both()
    return tf.train.Saver()


def partitioned():
    return var("p", (4, 3), partitioner=tf.fixed_size_partitioner(2))


def deferred():
    var("a")
    saver = tf.train.Saver(defer_build=True)
    var("b")
    saver.build()
    return saver


def second():
    var("a")
    tf.train.Saver()
    return tf.train.Saver(filename="f")


def of_collections():
    var("a")
    tf.train.create_global_step()
    var("l", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    return tf.train.Saver()


def in_a_scope():
    with tf.name_scope("outer"):
        var("a")
        return tf.train.Saver()


show("plain", saver_of_both)
show("reshape", lambda: saver_of_both(reshape=True))
show("sequential", lambda: saver_of_both(restore_sequentially=True))
show("older format", lambda: saver_of_both(write_version=tf.train.SaverDef.V1))
show("older format, sharded", lambda: saver_of_both(write_version=tf.train.SaverDef.V1, sharded=True))
show("older format, two devices", lambda: on_devices(write_version=tf.train.SaverDef.V1, sharded=True, name="my"))
show("a GPU", on_a_gpu)
show("partitioned", lambda: partitioned() and tf.train.Saver())
show("partitioned, named", lambda: tf.train.Saver({"x": partitioned()}))
show("partitioned, listed", lambda: tf.train.Saver({"x": list(partitioned())}))
show(
    "named", lambda: tf.train.Saver(dict(zip("xy", both())), max_to_keep=3, keep_checkpoint_every_n_hours=2, name="my")
)
show("second", second)
show("collections", of_collections)
show("scope", in_a_scope)
show("reference", lambda: tf.train.Saver([var("a")._ref()]))
show("dtypes", lambda: tf.train.Saver([tf.Variable(1.0, dtype=tf.float64), tf.Variable("x")]))
show("deferred", deferred)
show("empty", lambda: tf.train.Saver(allow_empty=True))
show("nothing", tf.train.Saver)
show("twice", lambda: tf.train.Saver([var("a")] * 2))
show("two names", lambda: tf.train.Saver(dict.fromkeys("ab", var("a"))))
show("a number", lambda: tf.train.Saver(3))
show("a tensor", lambda: tf.train.Saver([tf.constant(1.0)]))
show("a number as name", lambda: tf.train.Saver({3: var("a")}))
show("a list of what is whole", lambda: tf.train.Saver({"x": [var("a")]}))
show("deferred with variables", lambda: tf.train.Saver([var("a")], defer_build=True))
