"""SavedModels for serving, and predictors."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import predictor
from tensorflow.python.saved_model import builder as saved_model_builder
from tensorflow.python.saved_model import loader, signature_constants, signature_def_utils, tag_constants, utils
from tensorflow.python.saved_model.signature_def_utils_impl import build_signature_def
from tensorflow.python.util import compat

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

tf.app.flags.DEFINE_integer("model_version", 2, "version")
FLAGS = tf.app.flags.FLAGS


def main(_):
    ser = tf.placeholder(tf.string, name="tf_example")
    tf_example = tf.parse_example(ser, {"x": tf.FixedLenFeature(shape=[4], dtype=tf.float32)})
    x = tf.identity(tf_example["x"], name="x")
    w = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3) / 10)
    b = tf.Variable(tf.zeros([3]))
    y = tf.nn.softmax(tf.matmul(x, w) + b, name="y")
    values, indices = tf.nn.top_k(y, 2)
    table = tf.contrib.lookup.index_to_string_table_from_tensor(tf.constant(["a", "b", "c"]))
    classes = table.lookup(tf.to_int64(indices))
    path = os.path.join(compat.as_bytes("serve"), compat.as_bytes(str(FLAGS.model_version)))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(path)
        ci = tf.saved_model.utils.build_tensor_info(ser)
        cs = tf.saved_model.signature_def_utils.build_signature_def(
            inputs={signature_constants.CLASSIFY_INPUTS: ci},
            outputs={
                signature_constants.CLASSIFY_OUTPUT_CLASSES: utils.build_tensor_info(classes),
                signature_constants.CLASSIFY_OUTPUT_SCORES: utils.build_tensor_info(values),
            },
            method_name=signature_constants.CLASSIFY_METHOD_NAME,
        )
        ps = tf.saved_model.signature_def_utils.build_signature_def(
            inputs={"images": utils.build_tensor_info(x)},
            outputs={"scores": utils.build_tensor_info(y)},
            method_name=signature_constants.PREDICT_METHOD_NAME,
        )
        legacy = tf.group(tf.tables_initializer(), name="legacy_init_op")
        builder.add_meta_graph_and_variables(
            sess,
            [tag_constants.SERVING],
            signature_def_map={"predict_images": ps, signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: cs},
            legacy_init_op=legacy,
        )
        print(builder.save())
    for r, d, f in sorted(os.walk("serve")):
        print(r, sorted(f))
    with tf.Graph().as_default(), tf.Session() as sess:
        mg = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], "serve/2")
        sig = mg.signature_def["predict_images"]
        print(sig.inputs["images"].name, sig.outputs["scores"].name, sig.method_name)
        print(np.round(sess.run(sig.outputs["scores"].name, {sig.inputs["images"].name: np.ones((1, 4))}), 4).tolist())
        ex = tf.train.Example(
            features=tf.train.Features(
                feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=[1, 2, 3, 4]))}
            )
        )
        cls = mg.signature_def["serving_default"]
        print(
            sess.run(
                [cls.outputs["classes"].name, cls.outputs["scores"].name],
                {cls.inputs["inputs"].name: [ex.SerializeToString()]},
            )[0].tolist()
        )
    fn = predictor.from_saved_model("serve/2", signature_def_key="predict_images")
    print({k: np.round(v, 4).tolist() for k, v in fn({"images": np.zeros((1, 4))}).items()})
    with tf.Session(graph=tf.Graph()) as sess:
        a = tf.placeholder(tf.float32, [None, 2], "a")
        v = tf.get_variable("v", initializer=2.0)
        o = tf.multiply(a, v, name="o")
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, "simple", inputs={"a": a}, outputs={"o": o})
        print(tf.saved_model.loader.maybe_saved_model_directory("simple"))
    from tensorflow.python.tools import saved_model_utils

    m = saved_model_utils.get_meta_graph_def("simple", "serve")
    print(sorted(m.signature_def), saved_model_utils.get_saved_model_tag_sets("simple"))
    fn = tf.contrib.predictor.from_saved_model("simple")
    print(fn({"a": [[1.0, 2.0]]}), fn.session.graph is fn.graph)


if __name__ == "__main__":
    tf.app.run()
