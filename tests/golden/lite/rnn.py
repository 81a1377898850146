"""Writes rnn.json: variables, hints and results of the cells of tf.lite.experimental.nn, from TensorFlow 1.15.

python tests/golden/lite/rnn.py
"""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))

LSTM = [
    ("plain", {}),
    ("peepholes", {"use_peepholes": True}),
    ("projection", {"num_proj": 2}),
    (
        "everything",
        {"use_peepholes": True, "cell_clip": 0.5, "num_proj": 2, "proj_clip": 0.05, "forget_bias": 0.5},
    ),
    ("concatenated", {"state_is_tuple": False}),
    ("relu", {"activation": "relu"}),
]
RNN = [("rnn", {}), ("rnn relu", {"activation": "relu"})]


def nodes(graph_def):
    for node in graph_def.node:
        yield node
    for function in graph_def.library.function:
        for node in function.node_def:
            yield node


def hints(graph):
    found = []
    for node in nodes(graph.as_graph_def()):
        attr = node.attr
        if "_tflite_function_name" in attr:
            is_input = "_tflite_function_input_index" in attr
            key = "_tflite_function_%s_index" % ("input" if is_input else "output")
            sort = attr["_tflite_function_sort_index"].i if "_tflite_function_sort_index" in attr else None
            found.append(
                [
                    "in" if is_input else "out",
                    attr["_tflite_function_name"].s.decode(),
                    attr[key].i,
                    sort,
                    attr["_tflite_function_aggregate"].s.decode() if sort is not None else None,
                    node.name.rsplit("-", 1)[-1],
                    attr["_tflite_ophint_level"].i,
                ]
            )
    return sorted(found, key=str)


def main():
    tf.disable_v2_behavior()
    tf.enable_control_flow_v2()
    experimental = tf.lite.experimental.nn
    x = np.random.RandomState(0).uniform(-1, 1, [4, 2, 2]).astype(np.float32)
    found = []
    for make, cases in ((experimental.TFLiteLSTMCell, LSTM), (experimental.TfLiteRNNCell, RNN)):
        for label, options in cases:
            with tf.Graph().as_default() as graph, tf.Session() as session:
                tf.set_random_seed(7)
                placeholder = tf.placeholder(tf.float32, [4, 2, 2])
                # The LSTM cell takes a function only.
                given = {k: getattr(tf.nn, v) if k == "activation" else v for k, v in options.items()}
                cell = make(3, name="c", **given)
                outputs, state = experimental.dynamic_rnn(cell, placeholder, dtype=tf.float32)
                session.run(tf.global_variables_initializer())
                variables = tf.global_variables()
                initial = {v.op.name: session.run(v).tolist() for v in variables if v.op.name.endswith("bias")}
                for number, each in enumerate(variables):
                    value = np.random.RandomState(number).uniform(-1, 1, each.shape.as_list())
                    each.load(value.astype(np.float32), session)
                result, final = session.run([outputs, state], {placeholder: x})
                found.append(
                    {
                        "label": label,
                        "kind": make.__name__,
                        "options": options,
                        "variables": [[v.name, v.shape.as_list()] for v in variables],
                        "initial": initial,
                        "hints": hints(graph),
                        "outputs": result.tolist(),
                        "state": [each.tolist() for each in (final if isinstance(final, tuple) else [final])],
                    }
                )
    with open(os.path.join(HERE, "rnn.json"), "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
