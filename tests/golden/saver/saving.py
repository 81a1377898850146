"""Saves, restores and looks at what lies in the folder: python saving.py FOLDER. Recorded in saving.txt under TensorFlow 2.21."""

import os
import shutil
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity("FATAL")
FOLDER = os.path.realpath(sys.argv[1])
os.makedirs(FOLDER)
os.chdir(FOLDER)
V1 = tf.train.SaverDef.V1


def show(label, call, kind_only=False):
    try:
        print(label, "->", repr(call()).replace(FOLDER, "FOLDER"))
    except Exception as error:
        said = "" if kind_only else str(error).replace(FOLDER, "FOLDER").splitlines()[0]
        print(label, "!!", type(error).__name__, said)


def files(folder="."):
    return sorted(os.listdir(folder))


def state(path="checkpoint"):
    with open(path) as file:
        return file.read()


def model(**kwargs):
    with tf.Graph().as_default() as graph:
        a = tf.get_variable("a", [2, 3], initializer=tf.constant_initializer(1.0))
        b = tf.get_variable("b", [], use_resource=True, initializer=tf.constant_initializer(2.0))
        step = tf.train.create_global_step()
        return graph, (a, b, step), tf.assign_add(step, 1), tf.train.Saver(**kwargs), tf.global_variables_initializer()


def values(session, variables):
    return [np.asarray(value).tolist() for value in session.run(list(variables))]


graph, (a, b, step), more, saver, initialize = model(max_to_keep=2)
with tf.Session(graph=graph) as session:
    session.run(initialize)
    for arguments in (("m",), ("m", 3), ("m", step)):
        show("save", lambda: saver.save(session, *arguments))  # noqa: B023
    session.run(more)
    show("a name as step", lambda: saver.save(session, "m", global_step="global_step:0"))
    show("files", files)
    show("state", state)
    show("the same again", lambda: saver.save(session, "m", global_step=0))
    show("state", state)
    show("no meta graph", lambda: saver.save(session, "m", 5, write_meta_graph=False))
    show("no state", lambda: saver.save(session, FOLDER + "/x", write_state=False))
    show("files", files)
    show("state", state)
    show("other names", lambda: saver.save(session, "y", latest_filename="lf", meta_graph_suffix="mg"))
    show("files", files)
    show("state", lambda: state("lf"))
    show("last", lambda: saver.last_checkpoints)
    show("a folder in the name", lambda: saver.save(session, "y", latest_filename="a/b"))
    show("the name of the state", lambda: saver.save(session, "checkpoint"))
    show("the name of the state", lambda: saver.save(session, "zz", latest_filename="zz"))
    show("with a step", lambda: saver.save(session, "checkpoint", global_step=1))
    show("no session", lambda: saver.save(None, "y"))
    show("no session", lambda: saver.save(3, "y"))
    show("no folder", lambda: saver.save(session, "no/such/y"))
    show("no name", lambda: saver.save(session, None), kind_only=True)
    show("no step", lambda: saver.save(session, "y", global_step="a"), kind_only=True)
    session.run(a.assign(np.full((2, 3), 9.0)))
    show("restore", lambda: saver.restore(session, "x"))
    show("values", lambda: values(session, (a, b, step)))
    for path in (None, "nothing", ""):
        show("restore", lambda: saver.restore(session, path))  # noqa: B023
    saver.set_last_checkpoints_with_time([("p", 1.0), ("q", 2.0)])
    show("last", lambda: saver.last_checkpoints)
    show("not a list", lambda: saver.set_last_checkpoints(("a",)), kind_only=True)
    show("not a list", lambda: saver.set_last_checkpoints_with_time("a"), kind_only=True)
    saver.recover_last_checkpoints(["y", "none", "m-0", "x"])
    show("last", lambda: saver.last_checkpoints)
with tf.Session(graph=graph) as session:
    show("restore the newest", lambda: saver.restore(session, tf.train.latest_checkpoint(".")))
    show("values", lambda: values(session, (a, b, step)))


def restored(shape, dtype=tf.float32, names=("a", "b", "global_step"), **kwargs):
    dtypes = {"a": dtype, "global_step": tf.int64}
    with tf.Graph().as_default(), tf.Session() as session:
        made = [tf.get_variable(name, shape if name == "a" else [], dtypes.get(name, tf.float32)) for name in names]
        tf.train.Saver(**kwargs).restore(session, "x")
        return values(session, made)


show("fewer", lambda: restored([2, 3], names=("a",)))
show("reshaped", lambda: restored([3, 2], reshape=True))
show("reshaped", lambda: restored([6], reshape=True))
show("another shape", lambda: restored([3, 2]), kind_only=True)
show("another size", lambda: restored([5], reshape=True), kind_only=True)
show("another dtype", lambda: restored([2, 3], tf.float64), kind_only=True)
show("another name", lambda: restored([2, 3], names=("a", "zz")), kind_only=True)

for options in (
    {"sharded": True}, {"write_version": V1}, {"sharded": True, "write_version": V1}, {"pad_step_number": True},
    {"save_relative_paths": True}, {"max_to_keep": 0}, {"max_to_keep": None}, {"filename": "f"},
):  # fmt: skip
    print(sorted(options))
    os.makedirs("sub")
    graph, variables, _, saver, initialize = model(**options)
    with tf.Session(graph=graph) as session:
        session.run(initialize)
        for number in range(7):
            path = saver.save(session, FOLDER + "/sub/m", global_step=number)
        show("path", lambda: path)  # noqa: B023
        show("files", lambda: files("sub"))
        show("state", lambda: state("sub/checkpoint"))
        show("last", lambda: saver.last_checkpoints)  # noqa: B023
        show("restore", lambda: saver.restore(session, path))  # noqa: B023
        show("newest", lambda: saver.restore(session, tf.train.latest_checkpoint(FOLDER + "/sub")))  # noqa: B023
    shutil.rmtree("sub")

graph, _, _, saver, initialize = model(max_to_keep=1, keep_checkpoint_every_n_hours=0.5 / 3600)
os.makedirs("kept")
with tf.Session(graph=graph) as session:
    session.run(initialize)
    saver.save(session, "kept/m", 0)
    time.sleep(0.6)
    for number in (1, 2, 3):
        saver.save(session, "kept/m", number)
    show("kept for good", lambda: [name for name in files("kept") if name.endswith("index")])

with tf.Graph().as_default(), tf.Session() as session:
    parts = tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    tf.get_variable(
        "q", [5, 2], use_resource=True, partitioner=tf.fixed_size_partitioner(3), initializer=tf.ones_initializer()
    )
    session.run(tf.global_variables_initializer())
    session.run(next(iter(parts)).assign(np.arange(6.0).reshape(3, 2)))
    show("in parts", lambda: tf.train.Saver().save(session, "part"))
    show("variables", lambda: tf.train.list_variables("part"))
with tf.Graph().as_default(), tf.Session() as session:
    parts = tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(3))
    whole = tf.get_variable("q", [5, 2])
    show("in other parts", lambda: tf.train.Saver().restore(session, "part"))
    show("values", lambda: values(session, (tf.convert_to_tensor(parts), whole)))
with tf.Graph().as_default(), tf.Session() as session:
    whole = tf.get_variable("w", [5, 2])
    show("as a whole", lambda: tf.train.Saver({"p": whole}).restore(session, "part"))
    show("values", lambda: values(session, (whole,)))
    later = tf.train.Saver(defer_build=True)
    show("not built", lambda: later.save(session, "later"))
    tf.Variable(1, name="z")
    later.build()
    session.run(tf.global_variables_initializer())
    show("built", lambda: later.save(session, "later"))
    show("variables", lambda: tf.train.list_variables("later"))
with tf.Graph().as_default(), tf.Session() as session:
    nothing = tf.train.Saver(allow_empty=True)
    show("nothing", lambda: nothing.save(session, "nothing"))
    show("nothing", lambda: nothing.restore(session, "zz"))
with tf.Graph().as_default(), tf.Session() as session:
    imported = tf.train.import_meta_graph("x.meta")
    show("imported", lambda: imported.restore(session, "x"))
    show("values", lambda: values(session, ("a:0", "b/Read/ReadVariableOp:0", "global_step:0")))
    show("variables", lambda: [variable.name for variable in tf.global_variables()])
    show("saved again", lambda: imported.save(session, "again"))
show("files", files)
