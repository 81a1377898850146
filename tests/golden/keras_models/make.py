"""Keras models with random weights, inputs and what Keras computes for them.

    python make.py FOLDER tf1|legacy|keras3

`tf1` runs under TensorFlow 1.15, `legacy` under TensorFlow 2 with tf_keras, `keras3` under TensorFlow 2 with Keras 3. The files in this folder are a part of what
it writes: NAME.h5 or NAME.keras, and NAME.npz with the inputs i0, i1, ... (their number is n) and the outputs o0, o1, ...
"""

import os
import sys

folder, flavour = sys.argv[1:3]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
if flavour == "legacy":
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

K, L = tf.keras, tf.keras.layers
random = np.random.RandomState(0)


def randomize(model):
    names = [each.path if flavour == "keras3" else each.name for each in model.weights]
    values = [np.asarray(random.randn(*np.shape(each))) for each in model.get_weights()]
    # Variances are positive.
    pairs = zip(values, names)
    model.set_weights([np.abs(v) * 0.5 + 0.5 if "variance" in n else v * 0.4 for v, n in pairs])


def entry(*sizes):
    return L.Input(sizes) if flavour == "keras3" else L.InputLayer(sizes)


def dense():
    return [entry(5), L.Dense(8, activation="relu"), L.Dropout(0.5), L.Dense(3, activation="softmax")]


def cnn():
    return [
        entry(12, 12, 3),
        L.ZeroPadding2D(((1, 0), (0, 1))),
        L.Conv2D(6, 3, padding="same", use_bias=False),
        L.BatchNormalization(),
        L.ReLU(6.0),
        L.MaxPooling2D(),
        L.SeparableConv2D(8, 3, activation="elu"),
        L.DepthwiseConv2D(3, padding="same", depth_multiplier=2),
        L.LeakyReLU(),
        L.Cropping2D(1),
        L.AveragePooling2D(2, padding="same"),
        L.Conv2D(4, 2, dilation_rate=2, padding="same", activation="tanh"),
        L.Flatten(),
        L.Dense(4),
    ]


def up():
    return [
        entry(4, 4, 3),
        L.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
        L.Conv2DTranspose(3, 2, strides=2, padding="valid"),
        L.UpSampling2D(2),
        L.UpSampling2D(2, interpolation="bilinear"),
        L.Conv2D(2, 5, strides=3),
        L.PReLU(shared_axes=[1, 2]),
        L.GlobalAveragePooling2D(),
    ]


def seq1d():
    return [
        entry(10, 4),
        L.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="relu"),
        L.BatchNormalization(),
        L.MaxPooling1D(2),
        L.Conv1D(5, 2, strides=2),
        L.UpSampling1D(2),
        L.ZeroPadding1D(1),
        L.Cropping1D((1, 0)),
        L.SpatialDropout1D(0.2),
        L.Permute((2, 1)),
        L.Reshape((-1, 5)),
        L.LayerNormalization(),
        L.GlobalMaxPooling1D(),
    ]


def lstm():
    return [entry(6), L.Embedding(20, 5), L.LSTM(4, return_sequences=True), L.LSTM(3), L.Dense(2)]


def gru():
    return [
        entry(6, 3),
        L.GRU(4, return_sequences=True),
        L.GRU(3, reset_after=False, go_backwards=True, return_sequences=True),
        L.SimpleRNN(3),
        L.RepeatVector(2),
        L.TimeDistributed(L.Dense(3, activation="sigmoid")),
    ]


def bidi():
    return [
        entry(5, 3),
        L.Bidirectional(L.LSTM(4, return_sequences=True)),
        L.Bidirectional(L.GRU(3), merge_mode="sum"),
    ]


def functional():
    a, b = L.Input((6,), name="a"), L.Input((4,), name="b")
    shared = L.Dense(4, activation="softplus", name="shared")
    x, y = shared(L.Dense(4, name="pre")(a)), shared(b)
    inner = K.Sequential([entry(4), L.Dense(5, activation="selu"), L.BatchNormalization()], name="inner")
    z = L.Concatenate()([x, y, inner(y)])
    s = L.Add()([x, y])
    m = L.Multiply()([s, x])
    t = L.Subtract()([m, y])
    w = L.Maximum()([L.Average()([s, m, t]), x])
    q = L.Dot(1)([x, w])
    return K.Model([a, b], [L.Dense(2, activation="hard_sigmoid")(z), w, L.Minimum()([w, q])])


def state():
    a = L.Input((5, 3))
    y, h, c = L.LSTM(4, return_sequences=True, return_state=True)(a)
    g = L.GRU(4)(y) if flavour == "keras3" else L.GRU(4)(y, initial_state=h)
    return K.Model(a, [L.Activation("exponential" if flavour == "tf1" else "swish")(g), c])


def masked():
    a, b = L.Input((6,), name="a"), L.Input((6,), name="b")
    x, y = L.Embedding(20, 4, mask_zero=True)(a), L.Masking(0.0)(L.RepeatVector(6)(b))
    steps = L.Bidirectional(L.LSTM(3, return_sequences=True))(x)
    mean = L.GlobalAveragePooling1D()(L.TimeDistributed(L.Dense(3))(L.GRU(3, return_sequences=True)(steps)))
    both = L.Concatenate(axis=1)([x, L.Dense(4)(y)])
    return K.Model([a, b], [mean, L.SimpleRNN(3, go_backwards=True)(both), L.LSTM(2)(L.Add()([x, x]))])


def attention():
    a, b = L.Input((6,), name="a"), L.Input((5, 4), name="b")
    x = L.Embedding(20, 4, mask_zero=True)(a)
    outputs = [L.Attention(use_scale=True)([b, x]), L.AdditiveAttention()([x, b])]
    if flavour != "tf1":
        x = L.Embedding(20, 4, mask_zero=True)(a)
        y = L.MultiHeadAttention(2, 3, value_dim=5)(x, x, use_causal_mask=True)
        z, scores = L.MultiHeadAttention(2, 4, output_shape=6)(b, y, return_attention_scores=True)
        outputs += [L.LayerNormalization()(L.Add()([x, y])), z, scores]
    return K.Model([a, b], outputs)


def operators():
    x = L.Input((4, 6), name="x")
    y = L.Dense(6)(x)
    z = ((x + y) * 2.0 - 1.0) / 1.5
    if flavour == "keras3":
        o = K.ops
        more = [
            o.reshape(o.relu(o.concatenate([z, y], axis=-1)), (-1, 48)),
            o.softmax(o.matmul(z, o.transpose(y, (0, 2, 1)))),
        ]
        more += [o.expand_dims(o.mean(z, axis=1), 1) * y]
    else:
        more = [
            tf.reshape(tf.nn.relu(tf.concat([z, y], axis=-1)), (-1, 48)),
            tf.nn.softmax(tf.matmul(z, y, transpose_b=True)),
        ]
        more += [tf.expand_dims(tf.reduce_mean(z, axis=1), 1) * y]
    return K.Model(x, [(-z)[:, 1:3, ::2], *more, z**2])


def stateful():
    a = L.Input(batch_shape=(2, 5, 3), name="a")
    return K.Model(a, [L.LSTM(4, stateful=True)(a), L.GRU(3, stateful=True, return_sequences=True)(a)])


def cells():
    return [
        entry(5, 3),
        L.RNN([L.LSTMCell(4), L.GRUCell(3)], return_sequences=True),
        L.RNN(L.SimpleRNNCell(2), return_sequences=True),
        L.Reshape((5, 1, 2, 1)),
        L.ConvLSTM2D(2, (1, 2), padding="same"),
    ]


for make in (masked, attention, operators, stateful, cells, dense, cnn, up, seq1d, lstm, gru, bidi, functional, state):
    K.backend.clear_session()
    made = make()
    model = K.Sequential(made) if isinstance(made, list) else made
    randomize(model)
    inputs = []
    for each in model.inputs:
        sizes = [2] + [int(size) for size in each.shape[1:]]
        # Words, of which some are padding.
        words = make is lstm or (len(sizes) == 2 and make in (masked, attention))
        values = random.randint(0, 20, sizes) * (random.rand(*sizes) < 0.7) if words else random.randn(*sizes)
        inputs.append(values.astype(np.float32))
    outputs = model.predict(inputs if len(inputs) > 1 else inputs[0], batch_size=2)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    base = os.path.join(folder, flavour + "_" + make.__name__)
    for extension in [".h5"] if flavour == "tf1" else [".h5", ".keras"]:
        model.save(base + extension)
    arrays = {"i%d" % n: each for n, each in enumerate(inputs)}
    arrays.update({"o%d" % n: each for n, each in enumerate(outputs)})
    if make is stateful:
        # The second call goes on where the first one ended.
        arrays.update({"next%d" % n: each for n, each in enumerate(model.predict(inputs[0], batch_size=2))})
    np.savez(base + ".npz", n=len(inputs), **arrays)
