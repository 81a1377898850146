"""Programs with tf.keras whose results `make.py` records from TensorFlow 1.15. Each takes `tf` and a folder and returns plain values."""

import json
import os

import numpy as np

_random = np.random.RandomState(0)
FEATURES = _random.randn(48, 6).astype("f")
LABELS = _random.randint(0, 3, (48,))
IMAGES = _random.rand(24, 8, 8, 3).astype("f")
SEQUENCES = _random.randn(16, 5, 4).astype("f")
WORDS = _random.randint(0, 9, (16, 5))
ONE_HOT = np.eye(3, dtype="f")[LABELS]
TARGET = FEATURES[:, :1]
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def plain(value):
    """Numbers with four digits behind the point, in lists and dictionaries."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    return np.round(array.astype(float), 4).tolist() if array.dtype.kind == "f" else array.tolist()


def as_lines(results):
    """JSON with a line for each program."""
    if not any(isinstance(each, dict) and set(each) & set(PROGRAMS) for each in results.values()):
        lines = ["%s: %s" % (json.dumps(name), json.dumps(results[name], sort_keys=True)) for name in sorted(results)]
        return "{" + ",\n".join(lines) + "}\n"
    return "{" + ",\n".join("%s: %s" % (json.dumps(mode), as_lines(results[mode])) for mode in sorted(results)) + "}\n"


def failure(function, *args, **kwargs):
    """The class of the error that a call raises."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "none"


def weighted(model):
    """The model with weights that do not depend on how a library draws random numbers."""
    numbers = np.random.RandomState(5)
    model.set_weights([np.asarray(numbers.randn(*each.shape), "f") * 0.3 for each in model.get_weights()])
    return model


def fitted(model, x, y, **options):
    return model.fit(x, y, **{"epochs": 2, "batch_size": 16, "verbose": 0, "shuffle": False, **options}).history


@program
def convolutional_network(tf, folder):
    layers = tf.keras.layers
    model = weighted(
        tf.keras.Sequential(
            [
                layers.Conv2D(4, 3, activation="relu", input_shape=(8, 8, 3), padding="same"),
                layers.MaxPooling2D(),
                layers.Conv2D(3, 2, strides=2),
                layers.LeakyReLU(),
                layers.Flatten(),
                layers.Dense(2, activation="softmax"),
            ]
        )
    )
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)
    model.compile(optimizer, "categorical_crossentropy", metrics=["accuracy"])
    history = fitted(model, IMAGES, np.eye(2, dtype="f")[np.arange(24) % 2], batch_size=8)
    return history, model.predict(IMAGES[:2])


@program
def batch_normalization(tf, folder):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(5, input_shape=(6,)),
            layers.BatchNormalization(momentum=0.8),
            layers.Activation("relu"),
            layers.Dense(1),
        ]
    )
    numbers = np.random.RandomState(5)
    model.set_weights([np.abs(numbers.randn(*each.shape).astype("f")) * 0.3 for each in model.get_weights()])
    model.compile("rmsprop", "mse", metrics=["mae", "mse"])
    target = LABELS.astype("f")
    return fitted(model, FEATURES, target), model.evaluate(FEATURES, target, verbose=0), model.get_weights()[4]


@program
def recurrent_network(tf, folder):
    layers = tf.keras.layers
    inputs = tf.keras.Input((5, 4))
    x = layers.GRU(3)(layers.LSTM(3, return_sequences=True)(inputs))
    model = weighted(tf.keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x)))
    model.compile("adam", "binary_crossentropy", metrics=["acc"])
    return fitted(model, SEQUENCES, LABELS[:16] % 2, batch_size=8)


@program
def masked_embedding(tf, folder):
    layers = tf.keras.layers
    steps = [
        layers.Embedding(9, 4, mask_zero=True, input_length=5),
        layers.Bidirectional(layers.LSTM(3)),
        layers.Dense(3, activation="softmax"),
    ]
    model = weighted(tf.keras.Sequential(steps))
    model.compile("adagrad", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return fitted(model, WORDS, LABELS[:16], batch_size=8), model.predict(WORDS[:2])


@program
def two_inputs_and_outputs(tf, folder):
    layers = tf.keras.layers
    first, second = tf.keras.Input((6,), name="first"), tf.keras.Input((6,), name="second")
    hidden = layers.Dense(4, activation="tanh")(layers.concatenate([first, second]))
    number = layers.Dense(1, name="number")(hidden)
    kind = layers.Dense(3, activation="softmax", name="kind")(layers.add([hidden, hidden]))
    model = weighted(tf.keras.Model([first, second], [number, kind]))
    losses = {"number": "mse", "kind": "categorical_crossentropy"}
    model.compile("adam", losses, loss_weights={"number": 0.5, "kind": 2.0}, metrics={"kind": ["accuracy"]})
    history = fitted(model, {"first": FEATURES, "second": FEATURES * 2}, {"number": TARGET, "kind": ONE_HOT})
    found = model.evaluate([FEATURES, FEATURES * 2], [TARGET, ONE_HOT], verbose=0)
    return model.metrics_names, history, found, [layer.name for layer in model.layers]


@program
def penalties_and_constraints(tf, folder):
    keras = tf.keras
    first = keras.layers.Dense(
        4,
        kernel_regularizer=keras.regularizers.l2(0.1),
        activity_regularizer=keras.regularizers.l1(0.01),
        input_shape=(6,),
        kernel_constraint=keras.constraints.MaxNorm(1.0),
    )
    model = weighted(keras.Sequential([first, keras.layers.Dense(1, bias_regularizer="l2")]))
    model.compile(keras.optimizers.Adadelta(1.0), "mae")
    return fitted(model, FEATURES, TARGET), model.get_weights()[0]


@program
def weights_of_classes_and_examples(tf, folder):
    model = weighted(tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(6,))]))
    model.compile("nadam", "sparse_categorical_crossentropy", metrics=["acc"], weighted_metrics=["acc"])
    by_class = fitted(model, FEATURES, LABELS, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    return by_class, fitted(model, FEATURES, LABELS, sample_weight=np.linspace(0, 1, 48))


@program
def callbacks(tf, folder):
    calls = tf.keras.callbacks
    model = weighted(tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(6,))]))
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    seen = []
    chosen = [
        calls.EarlyStopping("loss", patience=1, min_delta=0.5),
        calls.ModelCheckpoint(os.path.join(folder, "w{epoch:02d}.h5"), save_weights_only=True),
        calls.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1)),
        calls.CSVLogger(os.path.join(folder, "log.csv")),
        calls.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch)),
        calls.ReduceLROnPlateau("loss", patience=1, min_delta=10.0),
    ]
    history = fitted(model, FEATURES, LABELS, epochs=5, callbacks=chosen, validation_data=(FEATURES, LABELS))
    return sorted(os.listdir(folder)), seen, history


def _batches():
    while True:
        for start in range(0, 48, 16):
            yield FEATURES[start : start + 16], TARGET[start : start + 16]


@program
def generators_and_datasets(tf, folder):
    model = weighted(tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(6,))]))
    model.compile(tf.keras.optimizers.Ftrl(0.1), "mse")
    history = model.fit_generator(_batches(), steps_per_epoch=3, epochs=2, verbose=0).history
    found = model.evaluate_generator(_batches(), 3), np.shape(model.predict_generator(_batches(), 2))
    data = tf.data.Dataset.from_tensor_slices((FEATURES, TARGET)).batch(16).repeat()
    return history, found, model.fit(data, steps_per_epoch=3, epochs=2, verbose=0).history


@program
def files(tf, folder):
    keras = tf.keras
    layers = [keras.layers.Dense(4, activation="relu", input_shape=(6,)), keras.layers.Dense(3, activation="softmax")]
    model = weighted(keras.Sequential(layers))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fitted(model, FEATURES, LABELS)
    path = os.path.join(folder, "model.h5")
    model.save(path)
    loaded = keras.models.load_model(path)
    same = plain(model.evaluate(FEATURES, LABELS, verbose=0)) == plain(loaded.evaluate(FEATURES, LABELS, verbose=0))
    goes_on = plain(fitted(model, FEATURES, LABELS)) == plain(fitted(loaded, FEATURES, LABELS))
    again = keras.models.model_from_json(model.to_json())
    model.save_weights(os.path.join(folder, "weights", "w"))
    again.load_weights(os.path.join(folder, "weights", "w"))
    copied = keras.models.clone_model(model)
    copied.set_weights(model.get_weights())
    expected = model.predict(FEATURES)
    return same, goes_on, [float(np.abs(each.predict(FEATURES) - expected).max()) for each in (again, copied)]


@program
def added_loss(tf, folder):
    backend, layers = tf.keras.backend, tf.keras.layers
    inputs = tf.keras.Input((6,))
    mean, spread = layers.Dense(2)(inputs), layers.Dense(2)(inputs)
    code = layers.Lambda(lambda parts: parts[0] + backend.exp(parts[1] / 2) * 0.1)([mean, spread])
    outputs = layers.Dense(6)(code)
    model = weighted(tf.keras.Model(inputs, outputs))
    divergence = -0.5 * backend.sum(1 + spread - backend.square(mean) - backend.exp(spread), axis=-1)
    model.add_loss(backend.mean(divergence + tf.keras.losses.mse(inputs, outputs)))
    model.compile("adam")
    return fitted(model, FEATURES, None)


@program
def single_batches(tf, folder):
    keras = tf.keras
    model = weighted(keras.Sequential([keras.layers.Dense(3, activation="softmax", input_shape=(6,))]))
    optimizer = keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True, clipnorm=1.0)
    metrics = [
        "accuracy",
        keras.metrics.AUC(name="auc"),
        keras.metrics.Precision(name="p"),
        keras.metrics.Recall(name="r"),
    ]
    model.compile(optimizer, "categorical_crossentropy", metrics=metrics)
    steps = [model.train_on_batch(FEATURES, ONE_HOT) for _ in range(2)]
    return steps, model.test_on_batch(FEATURES, ONE_HOT), model.predict_on_batch(FEATURES[:1])


@program
def layers_of_images(tf, folder):
    layers = tf.keras.layers
    inputs = x = tf.keras.Input((8, 8, 3))
    for layer in (
        layers.DepthwiseConv2D(3),
        layers.SeparableConv2D(4, 3),
        layers.Conv2DTranspose(3, 3, strides=2),
        layers.UpSampling2D(),
        layers.ZeroPadding2D(1),
        layers.Cropping2D(2),
        layers.PReLU(shared_axes=[1, 2]),
        layers.AveragePooling2D(),
        layers.GlobalAveragePooling2D(),
    ):
        x = layer(x)
    model = weighted(tf.keras.Model(inputs, x))
    return model.predict(IMAGES[:2]), model.count_params()


@program
def layers_of_sequences(tf, folder):
    layers = tf.keras.layers
    inputs = x = tf.keras.Input((5, 4))
    for layer in (
        layers.TimeDistributed(layers.Dense(3)),
        layers.Conv1D(3, 2, padding="causal"),
        layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], return_sequences=True),
        layers.SimpleRNN(3, return_sequences=True),
        layers.GlobalMaxPooling1D(),
        layers.RepeatVector(2),
        layers.Permute((2, 1)),
        layers.Reshape((-1,)),
    ):
        x = layer(x)
    return weighted(tf.keras.Model(inputs, x)).predict(SEQUENCES[:2])


@program
def encoder_and_decoder(tf, folder):
    layers = tf.keras.layers
    source, target = tf.keras.Input((5, 4)), tf.keras.Input((5, 4))
    _, state, memory = layers.LSTM(3, return_state=True)(source)
    decoded = layers.LSTM(3, return_sequences=True)(target, initial_state=[state, memory])
    outputs = layers.TimeDistributed(layers.Dense(2, activation="softmax"))(decoded)
    model = weighted(tf.keras.Model([source, target], outputs))
    model.compile("adam", "categorical_crossentropy")
    history = fitted(model, [SEQUENCES, SEQUENCES], np.eye(2, dtype="f")[np.arange(80).reshape(16, 5) % 2])
    again = tf.keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    pair = [SEQUENCES, SEQUENCES]
    return history, float(np.abs(again.predict(pair) - model.predict(pair)).max())


@program
def kept_states(tf, folder):
    layers = tf.keras.layers
    model = weighted(tf.keras.Sequential([layers.LSTM(3, stateful=True, batch_input_shape=(4, 5, 4)), layers.Dense(1)]))
    first, second = model.predict(SEQUENCES[:4]), model.predict(SEQUENCES[:4])
    model.reset_states()
    return first, second, model.predict(SEQUENCES[:4])


@program
def layer_of_the_program(tf, folder):
    keras = tf.keras

    class Product(keras.layers.Layer):
        def __init__(self, count, **kwargs):
            super().__init__(**kwargs)
            self.count = count

        def build(self, input_shape):
            self.w = self.add_weight("w", (int(input_shape[-1]), self.count), initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            return tf.matmul(inputs, self.w)

        def get_config(self):
            return dict(super().get_config(), count=self.count)

    model = keras.Sequential([Product(3, input_shape=(6,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", lambda a, b: keras.backend.mean(keras.backend.square(a - b), axis=-1))
    history = fitted(model, FEATURES, TARGET)
    again = keras.models.model_from_json(model.to_json(), custom_objects={"Product": Product})
    return history, [each.name for each in model.weights], again.predict(FEATURES[:1])


@program
def ops_between_layers(tf, folder):
    layers = tf.keras.layers
    inputs = tf.keras.Input((6,))
    x = layers.Dense(3)(inputs * 2.0 + 1.0)
    y = tf.nn.relu(x) + tf.reduce_sum(inputs, 1, keepdims=True)
    model = weighted(tf.keras.Model(inputs, layers.Dense(1)(y)))
    model.compile("adam", "mse")
    return fitted(model, FEATURES, TARGET), [layer.name for layer in model.layers]


@program
def fixed_layers(tf, folder):
    layers = tf.keras.layers
    first = layers.Dense(4, input_shape=(6,))
    model = tf.keras.Sequential([first, layers.BatchNormalization(), layers.Dense(1)])
    first.trainable = False
    model.compile("sgd", "mse")
    before = first.get_weights()[0]
    fitted(model, FEATURES, TARGET)
    counts = len(model.trainable_weights), len(model.non_trainable_weights)
    return counts, bool((first.get_weights()[0] == before).all())


@program
def configurations(tf, folder):
    layers = tf.keras.layers
    inputs = tf.keras.Input((5, 3), name="sequence")
    outputs, _, memory = layers.LSTM(2, return_state=True, return_sequences=True, name="a")(inputs)
    other = layers.GRU(2, name="b", dropout=0.1)(inputs)
    model = tf.keras.Model(
        inputs, [layers.Conv1D(2, 2, name="c")(outputs), layers.Dense(1, name="d")(other), memory], name="m"
    )
    return model.get_config()


@program
def attention(tf, folder):
    layers = tf.keras.layers
    query, words = tf.keras.Input((5, 4)), tf.keras.Input((5,), dtype="int32")
    values = layers.Embedding(9, 4, mask_zero=True)(words)
    one = layers.Attention(use_scale=True)([query, values])
    two = layers.AdditiveAttention(causal=True)([values, query])
    three = layers.Attention()([query, query, query])
    pooled = [layers.GlobalAveragePooling1D()(each) for each in (one, two, three)]
    model = weighted(tf.keras.Model([query, words], layers.Dense(3, activation="softmax")(layers.concatenate(pooled))))
    model.compile("sgd", "sparse_categorical_crossentropy")
    history = fitted(model, [SEQUENCES, WORDS], LABELS[:16])
    config = layers.Attention(name="a").get_config(), layers.AdditiveAttention(causal=True, name="b").get_config()
    return history, model.predict([SEQUENCES[:2], WORDS[:2]]), config, [each.name for each in model.weights]


@program
def recurrent_convolutions(tf, folder):
    layers = tf.keras.layers
    videos = np.stack([IMAGES[:8], IMAGES[8:16]], 1)
    model = weighted(
        tf.keras.Sequential(
            [
                layers.ConvLSTM2D(2, 3, return_sequences=True, input_shape=(2, 8, 8, 3), padding="same"),
                layers.ConvLSTM2D(filters=3, kernel_size=(2, 3), strides=2, recurrent_activation="sigmoid"),
                layers.Flatten(),
                layers.Dense(1),
            ]
        )
    )
    model.compile("sgd", "mse")
    history = fitted(model, videos, TARGET[:8], batch_size=4)
    path = os.path.join(folder, "videos.h5")
    model.save(path)
    again = tf.keras.models.load_model(path)
    names = [each.name for each in model.weights]
    return history, model.predict(videos[:2]), again.predict(videos[:2]), names, model.output_shape


@program
def weights_at_each_position(tf, folder):
    layers = tf.keras.layers
    inputs = tf.keras.Input((8, 8, 3))
    x = layers.LocallyConnected2D(2, (3, 2), strides=2, activation="tanh")(inputs)
    x = layers.LocallyConnected1D(2, 2)(layers.Reshape((3, 8))(x))
    model = weighted(tf.keras.Model(inputs, x))
    return model.predict(IMAGES[:2]), [each.shape for each in model.get_weights()]


@program
def enlarged_images(tf, folder):
    layers = tf.keras.layers
    inputs = tf.keras.Input((8, 8, 3))
    outputs = [layers.UpSampling2D(2, interpolation=each)(inputs)[:, 3:6, 3:6] for each in ("nearest", "bilinear")]
    series = layers.UpSampling1D(3)(layers.Reshape((16, 12))(inputs))
    pooled = layers.MaxPooling1D(3, padding="same")(layers.AveragePooling1D(2)(series))
    return tf.keras.Model(inputs, [*outputs, pooled]).predict(IMAGES[:1])


@program
def called_on_other_inputs(tf, folder):
    """Training runs the updates and penalties of the model's own inputs, not those of a call elsewhere in the program."""
    layers = tf.keras.layers

    def elsewhere():
        return FEATURES if tf.executing_eagerly() else tf.placeholder(tf.float32, [None, 6])

    inner = tf.keras.Sequential(
        [layers.Dense(3, kernel_regularizer="l2", activity_regularizer="l1"), layers.BatchNormalization()]
    )
    inner(elsewhere())
    inputs = tf.keras.Input((6,))
    model = weighted(tf.keras.Model(inputs, layers.Dense(1)(inner(inputs))))
    model(elsewhere())
    model.compile("sgd", "mse")
    history = fitted(model, FEATURES, TARGET)
    counts = []
    if not tf.executing_eagerly():
        for each in (inner, model):
            counts.append([len(each.get_updates_for(None)), len(each.get_updates_for(model.inputs))])
            counts.append([len(each.get_losses_for(None)), len(each.get_losses_for(model.inputs))])
    return history, counts, model.get_weights()


import data_programs  # noqa: E402, F401 - adds its programs
