"""Writes small TFLite models, converted by TensorFlow 2, with their inputs and outputs.

    TF_USE_LEGACY_KERAS=1 python tests/golden/lite/models.py

Each model `NAME.tflite` comes with the arrays `NAME/in0`, `NAME/out0`, ... of `values.npz`, computed by TensorFlow's interpreter.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent
RANDOM = np.random.RandomState(0)


def weights(*shape):
    return tf.constant(RANDOM.uniform(-0.5, 0.5, shape).astype(np.float32))


def samples(*shape, count=8):
    return [RANDOM.uniform(-1, 1, shape).astype(np.float32) for _ in range(count)]


def concrete(function, *specs):
    return tf.function(function).get_concrete_function(*specs)


def convert(function, dataset=None, **attributes):
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    for name, value in attributes.items():
        setattr(converter, name, value)
    if dataset is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([x] for x in dataset)
    return converter.convert()


KERNEL, DEPTH, DENSE, BIAS = weights(3, 3, 1, 4), weights(3, 3, 4, 1), weights(16, 5), weights(4)


def network(x):
    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, KERNEL, 2, "SAME"), BIAS))
    x = tf.nn.depthwise_conv2d(x, DEPTH, [1, 1, 1, 1], "SAME")
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    return tf.nn.softmax(tf.matmul(tf.reshape(x, [-1, 16]), DENSE))


IMAGE = tf.TensorSpec([1, 8, 8, 1], tf.float32)


def mixed(x):
    y = tf.transpose(tf.pad(x, [[1, 0], [0, 1]]), [1, 0])
    parts = tf.split(y[:4, 1:], 2, axis=0)
    z = tf.concat([tf.gather(parts[0], [1, 0]), tf.stack([parts[1][0], tf.reduce_mean(y[:, 1:], 0)])], 1)
    values, indices = tf.math.top_k(z, 2)
    wide = tf.image.resize(tf.reshape(z, [1, 2, 2, -1]), [3, 3])
    return (
        values,
        indices,
        tf.one_hot(tf.argmax(z, 1), 3),
        wide,
        tf.tile(tf.cast(z > 0, tf.int32), [1, 2]),
        tf.sqrt(tf.abs(z)) / (1 + tf.exp(z)) - tf.maximum(z, 0.1) ** 2,
    )


UP = [weights(3, 3, 1, 8), weights(3, 3, 8, 16), weights(3, 3, 24, 8), weights(1, 1, 8, 3)]


def unet(x):
    a = tf.nn.relu(tf.nn.conv2d(x, UP[0], 1, "SAME"))
    b = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(a, 2, 2, "SAME"), UP[1], 1, "SAME"))
    c = tf.concat([a, tf.image.resize(b, [16, 16])], 3)
    c = tf.nn.relu(tf.nn.conv2d(c, UP[2], 1, "SAME"))
    return tf.nn.sigmoid(tf.nn.conv2d(c, UP[3], 1, "SAME") / 10)


def many(x):
    a, b = tf.split(x, 2, 1)
    q = tf.maximum(a, b) + tf.minimum(a, 0.5)
    h = tf.reshape(tf.transpose(tf.stack([a, b], 1), [0, 2, 1]), [1, -1])
    positive = tf.abs(a) + 1.0
    return (
        tf.pad(a, [[0, 0], [1, 1]]),
        tf.nn.l2_normalize(tf.nn.elu(q) - tf.nn.leaky_relu(b), -1),
        tf.nn.log_softmax(h),
        tf.where(a > b, a, b),
        tf.math.rsqrt(positive) + tf.exp(-positive) + tf.math.squared_difference(a, b) / positive,
        tf.matmul(tf.reshape(a, [1, 4, 4]), tf.reshape(b, [1, 4, 4]), transpose_b=True),
        tf.nn.gelu(a),
        tf.reduce_max(x, 1),
        tf.reduce_sum(x, 1),
        tf.nn.relu6(x * 4) * tf.nn.relu6(x + 3),
        tf.tile(a, [1, 2])[:, 3:9],
    )


def control(x, n):
    total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * 0.5 + x), [0, tf.zeros([3])])[1]
    return tf.cond(tf.reduce_sum(x) > 0, lambda: total * 2, lambda: total - 1)


class Counter(tf.Module):
    def __init__(self):
        self.count = tf.Variable([0.0, 0.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def add(self, x):
        return {"count": self.count.assign_add(x)}

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def scale(self, factor):
        return {"scaled": self.count * factor}


def lstm():
    layer = tf.keras.layers.LSTM(3, return_sequences=True)
    layer.build((1, 4, 2))
    layer.set_weights([RANDOM.uniform(-0.5, 0.5, w.shape).astype(np.float32) for w in layer.get_weights()])
    return layer


def fused_in_half_precision(layer):
    """The fused operator, whose first state DEQUANTIZE makes."""
    model = tf.keras.Sequential([tf.keras.layers.Input([4, 2], batch_size=1), layer])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


def main():
    models, values = {}, {}
    function = concrete(network, IMAGE)
    images = samples(1, 8, 8, 1)
    models["network"] = convert(function)
    models["dynamic"] = convert(
        concrete(lambda x: tf.matmul(x, weights(64, 32)), tf.TensorSpec([None, 64], tf.float32)),
        optimizations=[tf.lite.Optimize.DEFAULT],
    )
    models["int8"] = convert(function, images, inference_input_type=tf.int8, inference_output_type=tf.int8)
    models["mixed"] = convert(concrete(mixed, tf.TensorSpec([4, 5], tf.float32)))
    models["control"] = convert(concrete(control, tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32)))
    layer = lstm()
    models["lstm"] = convert(concrete(lambda x: layer(x), tf.TensorSpec([1, 4, 2], tf.float32)))
    models["text"] = convert(concrete(lambda s: tf.gather(s, [1, 0]), tf.TensorSpec([3], tf.string)))
    models["unet"] = convert(concrete(unet, tf.TensorSpec([1, 16, 16, 1], tf.float32)))
    models["many"] = convert(concrete(many, tf.TensorSpec([1, 32], tf.float32)))
    counter = Counter()
    path = tempfile.mkdtemp()
    tf.saved_model.save(counter, path, signatures={"add": counter.add, "scale": counter.scale})
    models["variables"] = tf.lite.TFLiteConverter.from_saved_model(path).convert()
    models["fused_half"] = fused_in_half_precision(layer)
    for name, content in models.items():
        (HERE / f"{name}.tflite").write_bytes(content)
        if name == "variables":
            continue
        interpreter = tf.lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        for position, detail in enumerate(interpreter.get_input_details()):
            shape, dtype = detail["shape"], detail["dtype"]
            value = {
                np.float32: lambda s=shape: RANDOM.uniform(-1, 1, s).astype(np.float32),
                np.int8: lambda s=shape: RANDOM.randint(-128, 128, s).astype(np.int8),
                np.int32: lambda s=shape: np.full(s, 5, np.int32),
            }.get(dtype, lambda: np.array([b"one", b"two", b"three"], object))()
            interpreter.set_tensor(detail["index"], value)
            values[f"{name}/in{position}"] = np.asarray(value, "S5") if value.dtype == object else value
        interpreter.invoke()
        for position, detail in enumerate(interpreter.get_output_details()):
            value = interpreter.get_tensor(detail["index"])
            values[f"{name}/out{position}"] = np.asarray(value, "S5") if value.dtype == object else value
        print(name, len(content))
    np.savez_compressed(HERE / "values.npz", **values)


if __name__ == "__main__":
    main()
