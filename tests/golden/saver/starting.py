"""Variables that start with values of a checkpoint: python starting.py FOLDER. Recorded in starting.txt under TensorFlow 2.21."""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity("FATAL")
FOLDER = os.path.realpath(sys.argv[1])
os.makedirs(os.path.join(FOLDER, "ck"))
os.chdir(FOLDER)
ZEROS = tf.zeros_initializer()
VocabInfo = tf.train.VocabInfo


def write(name, words):
    with open(name, "w") as file:
        file.write("".join(word + "\n" for word in words))


write("old.txt", "abc")
write("new.txt", "cxay")
write("twice.txt", "aa")
with tf.Graph().as_default(), tf.Session() as session:
    with tf.variable_scope("old"):
        tf.get_variable("a", initializer=np.ones((2, 2), "f"))
        tf.get_variable("b", initializer=np.arange(4, dtype="f"))
        tf.get_variable("deep/c", initializer=np.float32(7))
        tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.constant_initializer(3.0))
    tf.get_variable("emb", initializer=np.arange(6, dtype="f").reshape(3, 2))
    tf.get_variable("cols", initializer=np.arange(6, dtype="f").reshape(2, 3))
    tf.get_variable("w", initializer=np.float32([1, 2]))
    tf.get_variable("fixed", initializer=np.float32(3), trainable=False)
    tf.get_variable("half", initializer=np.float64([2, 2]))
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, "ck/m", 1)


def show(label, make, start, nodes=False):
    """What variables start with, or the kind of error; with `nodes`, the nodes for that."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        made = make()
        before = len(graph.get_operations())
        try:
            start(*made)
            for op in graph.get_operations()[before:] if nodes else ():
                print("  ", op.name, op.type, op.device)
            session.run(tf.global_variables_initializer())
            print(label, "->", [session.run(tf.convert_to_tensor(variable)).tolist() for variable in made])
        except Exception as error:
            print(label, "!!", type(error).__name__)


def scope(name, resource, **shapes):
    partitions = shapes.pop("partitions", None)

    def make():
        partitioner = tf.fixed_size_partitioner(partitions) if partitions else None
        with tf.variable_scope(name, use_resource=resource, initializer=ZEROS, partitioner=partitioner):
            return [tf.get_variable(each, shape) for each, shape in sorted(shapes.items())]

    return make


def init(assignment_map, path="ck/m-1"):
    def start(*variables):
        made = assignment_map(*variables) if callable(assignment_map) else assignment_map
        tf.train.init_from_checkpoint(path, made)

    return start


for resource in (False, True):
    print("resource", resource)
    show("scope to scope", scope("new", resource, a=[2, 2], b=[4]), init({"old/": "new/"}), nodes=True)
    show("root", scope("old", resource, a=[2, 2], b=[4]), init({"/": "/"}))
    show("root to scope", scope("new/old", resource, a=[2, 2]), init({"/": "new/"}))
    show("scope below", scope("new/deep", resource, c=[]), init({"old/": "new/"}))
    show("name to name", scope("new", resource, x=[2, 2]), init({"old/a": "new/x"}))
    show("name to variable", scope("new", resource, x=[2, 2]), init(lambda x: {"old/a": x}))
    show("pairs", scope("new", resource, x=[2, 2], y=[4]), init(lambda x, y: [("old/a", x), ("old/b", y)]))
    show("folder", scope("new", resource, a=[2, 2]), init({"old/": "new/"}, "ck"))
    show("parts", scope("new", resource, p=[4, 2], partitions=2), init({"old/p": "new/p"}), nodes=True)
    show("other parts", scope("new", resource, p=[4, 2], partitions=3), init({"old/": "new/"}))
    show("list of parts", scope("new", resource, p=[4, 2], partitions=3), init(lambda p: {"old/p": list(p)}))
    show("whole of parts", scope("new", resource, p=[4, 2]), init({"old/p": "new/p"}))
    show("scope that is empty", scope("new", resource, a=[2, 2]), init({"old/": "nothing/"}))
    show("not saved", scope("new", resource, zz=[2, 2]), init({"old/zz": "new/zz"}))
    show("not there", scope("new", resource, x=[2, 2]), init({"old/a": "new/y"}))
    show("another shape", scope("new", resource, x=[3, 2]), init({"old/a": "new/x"}))
    show("another dtype", scope("new", resource, half=[2]), init({"half": "new/half"}))
    show("not all saved", scope("new", resource, a=[2, 2], extra=[1]), init({"old/": "new/"}))
    show("no scope saved", scope("new", resource, a=[2, 2]), init({"none/": "new/"}))
    show("scope to name", scope("new", resource, a=[2, 2]), init({"old/": "new/a"}))
    show("name to scope", scope("new", resource, a=[2, 2]), init({"old/a": "new/"}))
    show("without slashes", scope("new", resource, a=[2, 2]), init({"old": "new"}))
    show("a number", scope("new", resource, a=[2, 2]), init({"old/a": 3}))
    show("no map", scope("new", resource, a=[2, 2]), init(3))
    show("no checkpoint", scope("new", resource, a=[2, 2]), init({"old/": "new/"}, "zzz"))


def warm(*args, **kwargs):
    def start(*variables):
        tf.train.warm_start(
            "ck/m-1", *args, **{key: value() if callable(value) else value for key, value in kwargs.items()}
        )

    return start


def usual():
    variables = [tf.get_variable(name, shape, initializer=ZEROS) for name, shape in (("emb", [3, 2]), ("w", [2]))]
    return [*variables, tf.get_variable("fixed", [], initializer=ZEROS, trainable=False)]


def words(rows, **kwargs):
    shapes = (("emb", [rows, 2], kwargs), ("w", [2], {}))
    return lambda: [tf.get_variable(name, shape, initializer=ZEROS, **more) for name, shape, more in shapes]


def vocabulary(name="emb", **kwargs):
    new = dict(zip(("new_vocab", "new_vocab_size", "num_oov_buckets", "old_vocab"), ("new.txt", 4, 1, "old.txt")))
    return {"var_name_to_vocab_info": {name: VocabInfo(**{**new, **kwargs})}}


show("all", usual, warm(), nodes=True)
show("expression", usual, warm("w"))
show("expressions", usual, warm(["w", "fixed"]))
show("variables", usual, warm(vars_to_warm_start=lambda: [v for v in tf.global_variables() if v.name == "fixed:0"]))
show("none", usual, warm(None))
show("renamed", lambda: [tf.get_variable("q", [2], initializer=ZEROS)], warm(var_name_to_prev_var_name={"q": "w"}))
show(
    "parts",
    lambda: [tf.get_variable("emb", [3, 2], initializer=ZEROS, partitioner=tf.fixed_size_partitioner(2))],
    warm(),
)
show("words", words(5), warm(**vocabulary()), nodes=True)
show("words", words(6), warm(**vocabulary(num_oov_buckets=2, backup_initializer=tf.ones_initializer())))
show("fewer old words", words(5), warm(**vocabulary(old_vocab_size=2)))
show("words alone", words(5), warm(None, **vocabulary()))
show("words in parts", words(5, partitioner=tf.fixed_size_partitioner(2)), warm(".*emb", **vocabulary()))
show("handles", words(5, use_resource=True), warm(**vocabulary()))
show("columns", lambda: [tf.get_variable("cols", [2, 4], initializer=ZEROS)],
     warm(**vocabulary(name="cols", num_oov_buckets=0, axis=1)))  # fmt: skip
show("too many rows", words(7), warm(**vocabulary()))
show("no vocabulary", words(5), warm(**vocabulary(new_vocab="none.txt")))
show("words twice", words(5), warm(**vocabulary(old_vocab="twice.txt")))
show("unused name", usual, warm(var_name_to_prev_var_name={"zz": "w"}))
show("unused vocabulary", usual, warm(**vocabulary(name="zz")))
show("not saved", lambda: [tf.get_variable("unknown", [3], initializer=ZEROS)], warm())
show("another shape", lambda: [tf.get_variable("w", [3], initializer=ZEROS)], warm())
show("a number", usual, warm(3))
try:
    VocabInfo("a", 1, 2, "b", axis=2)
except ValueError as error:
    print(error)
print(VocabInfo("a", 1, 2, "b"))
