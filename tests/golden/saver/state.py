"""State files and readers of checkpoints: python state.py FOLDER CHECKPOINTS. Recorded in state.txt under TensorFlow 2.21."""

import os
import pathlib
import sys

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity("FATAL")
FOLDER = os.path.realpath(sys.argv[1])
CHECKPOINTS = os.path.realpath(sys.argv[2])
os.makedirs(os.path.join(FOLDER, "rel"))
os.chdir(FOLDER)


def show(label, call, kind_only=False):
    try:
        print(label, "->", repr(call()).replace(FOLDER, "FOLDER"))
    except Exception as error:
        said = "" if kind_only else str(error).replace(FOLDER, "FOLDER").splitlines()[0]
        print(label, "!!", type(error).__name__, said)


def write(name, text=""):
    with open(name, "w") as file:
        file.write(text)


def read(name):
    with open(name) as file:
        return file.read()


def made(*arguments):
    return str(tf.train.generate_checkpoint_state_proto(*arguments))


for arguments in (
    (FOLDER, FOLDER + "/m-1"), ("rel", "rel/m-1"), ("rel", "rel/m-1", ["rel/m-0", "/abs/m"]),
    ("rel", "other/m-1", ["rel/m-0", "rel/m-1"], [1.5, 2.0], 7.0), ("rel", "rel/m-1", ["rel/m-0"], [1.5]),
    (FOLDER, "m-1", ["m-1"]), ("", "m-1", ["m-1"]), (FOLDER, FOLDER + "/m-1", [FOLDER + "/m-1", FOLDER + "/m-0"]),
):  # fmt: skip
    show("proto", lambda: made(*arguments))  # noqa: B023

update = tf.train.update_checkpoint_state
show("update", lambda: update("rel", "rel/m-1", ["rel/m-0", "rel/m-1"]))
show("file", lambda: read("rel/checkpoint"))
show("update", lambda: update(FOLDER, FOLDER + "/m-1", latest_filename="st"))
show("file", lambda: read("st"))
show("its own path", lambda: update(FOLDER, FOLDER + "/checkpoint"))
show("no folder", lambda: update("nodir", "nodir/m"), kind_only=True)
show("update", lambda: update("rel", "rel/m-2", ["rel/m-1", "rel/m-2"], None, [1.25, 2.5], 3.5))
show("file", lambda: read("rel/checkpoint"))

write("rel/bad", "not a proto {{")
write("rel/unknown", 'model_checkpoint_path: "m-7"\nfoo: 3')
write("rel/empty")
write("rel/nopath", 'all_model_checkpoint_paths: "x"')
write("rel/abs", 'model_checkpoint_path: "/abs/m-7"\nall_model_checkpoint_paths: "a/m-7"')
for arguments in (
    ("rel",), (FOLDER + "/rel",), ("rel", "none"), ("none",), ("rel", "bad"), ("rel", "unknown"), ("rel", "empty"), ("rel", "nopath"),
    ("rel", "abs"),
):  # fmt: skip
    show("state", lambda: str(tf.train.get_checkpoint_state(*arguments)))  # noqa: B023

show("newest, no files", lambda: tf.train.latest_checkpoint("rel"))
write("rel/m-2.index")
show("newest", lambda: tf.train.latest_checkpoint("rel"))
show("newest", lambda: tf.train.latest_checkpoint(FOLDER + "/rel"))
show("newest", lambda: tf.train.latest_checkpoint(pathlib.Path("rel")))
os.remove("rel/m-2.index")
write("rel/m-2")
show("newest, older format", lambda: tf.train.latest_checkpoint("rel"))
show("newest", lambda: tf.train.latest_checkpoint("none"))
show("newest", lambda: tf.train.latest_checkpoint("rel", "none"))
for prefix in ("rel/m-2", "rel/m-3", "rel/m-*", "", "rel"):
    show("exists", lambda: tf.train.checkpoint_exists(prefix))  # noqa: B023
show("exists", lambda: tf.train.checkpoint_exists(None), kind_only=True)

for name in ("q.index", "q.data-00000-of-00002", "q.data-00001-of-00002", "q.meta", "q.m2", "q-1.index"):
    write("rel/" + name)
os.utime("rel/q.index", (1000, 2000))
os.utime("rel/m-2", (1, 3000))
show("times", lambda: tf.train.get_checkpoint_mtimes(["rel/q", "rel/m-2", "rel/none"]))
for arguments in (("rel/q",), ("rel/m-2", tf.train.SaverDef.V1)):
    show("remove", lambda: tf.train.remove_checkpoint(*arguments))  # noqa: B023
    show("files", lambda: sorted(os.listdir("rel")))
show("remove", lambda: tf.train.remove_checkpoint("rel/q", meta_graph_suffix="m2"))
show("files", lambda: sorted(os.listdir("rel")))

show("new ones", lambda: list(tf.train.checkpoints_iterator("rel", timeout=0)))
write("rel/m-2.index")
show("new ones", lambda: list(tf.train.checkpoints_iterator("rel", timeout=0.01)))
asked = []
show(
    "new ones",
    lambda: list(
        tf.train.checkpoints_iterator("rel", timeout=0.01, timeout_fn=lambda: asked.append(1) or len(asked) > 2)
    ),
)
show("asked", lambda: len(asked))

os.makedirs("without")
for call in (tf.train.load_checkpoint, tf.train.list_variables, lambda path: tf.train.load_variable(path, "x")):
    show("folder without", lambda: call("without"))  # noqa: B023
    show("nothing", lambda: call("rel/zzz"), kind_only=True)  # noqa: B023
show("a number", lambda: tf.train.NewCheckpointReader(3), kind_only=True)
for name in ("all", "sliced", "merged", "v1", "v1_sliced"):
    path = os.path.join(CHECKPOINTS, name)
    reader = tf.train.NewCheckpointReader(path)
    show(name, lambda: tf.train.list_variables(path))  # noqa: B023
    show("shapes", lambda: sorted(reader.get_variable_to_shape_map().items()))  # noqa: B023
    show("dtypes", lambda: sorted((key, dtype.name) for key, dtype in reader.get_variable_to_dtype_map().items()))  # noqa: B023
    show("has", lambda: [reader.has_tensor(each) for each in ("p", "scalar", "none")])  # noqa: B023
    show("none", lambda: reader.get_tensor("none"), kind_only=True)  # noqa: B023
    for key in ("p", "scalar", "z_string", "a_bfloat16", "a_qint8", "empty"):
        if reader.has_tensor(key) and name != "v1_sliced":
            value = reader.get_tensor(key)
            show(key, lambda: (type(value).__name__, str(value.dtype), value.tolist()))  # noqa: B023
show("variable", lambda: tf.train.load_variable(os.path.join(CHECKPOINTS, "all"), "float32:0").tolist())
