"""The models of `programs.py` and `more_programs.py` once more, written so that they run with torch and with JAX.

`m` holds what the two call differently (`TorchMath` in counterpart_torch.py, `jax_math` in counterpart_jax.py), `p` the parameters by name.
"""

import queue

import numpy as np

R = np.random.RandomState


class Kernel(tuple):
    """The shape of a convolution's kernel: height, width, inputs, outputs. Transposed ones keep the order of the forward convolution's."""


def dense_shapes(**layers):
    shapes = {}
    for name, (inputs, units) in layers.items():
        shapes[f"{name}_w"], shapes[f"{name}_b"] = (inputs, units), (units,)
    return shapes


def parameters(shapes, *, for_torch=False):
    random = R(1)
    made = {}
    for name, shape in shapes.items():
        value = (random.randn(*shape) * 0.05).astype("f")
        made[name] = np.ascontiguousarray(value.transpose(3, 2, 0, 1)) if for_torch and type(shape) is Kernel else value
    return made


def dense(p, name, x):
    return x @ p[f"{name}_w"] + p[f"{name}_b"]


def vae(m, p, x):
    h = m.relu(dense(p, "h", x))
    mean, log_scale = dense(p, "mean", h), dense(p, "scale", h)
    z = mean + m.exp(log_scale) * m.normal(mean.shape)
    logits = dense(p, "out", m.relu(dense(p, "d", z)))
    likelihood = (m.softplus(logits) - logits * x).sum(1)
    return (likelihood - 0.5 * (1 + 2 * log_scale - mean**2 - m.exp(2 * log_scale)).sum(1)).mean()


def gradient_penalty(m, p, real):
    def critic(x):
        return dense(p, "out", m.leaky_relu(dense(p, "h2", m.leaky_relu(dense(p, "h1", x)))))

    fake = m.normal(real.shape)
    mixed = real + m.uniform((real.shape[0], 1)) * (fake - real)
    slope = m.sqrt((m.grad(critic, mixed) ** 2).sum(1) + 1e-12)
    return critic(fake).mean() - critic(real).mean() + 10.0 * ((slope - 1.0) ** 2).mean()


def lstm(m, w, b, x, state):
    c, h = state
    i, j, f, o = m.split(m.concat([x, h], 1) @ w + b, 4, 1)
    c = c * m.sigmoid(f + 1) + m.sigmoid(i) * m.tanh(j)
    return c, m.tanh(c) * m.sigmoid(o)


def gru(m, p, name, x, h):
    r, u = m.split(m.sigmoid(dense(p, f"{name}_gates", m.concat([x, h], 1))), 2, 1)
    candidate = m.tanh(dense(p, f"{name}_new", m.concat([x, r * h], 1)))
    return u * h + (1 - u) * candidate


def gru_shapes(name, inputs, units):
    return dense_shapes(**{f"{name}_gates": (inputs + units, 2 * units), f"{name}_new": (inputs + units, units)})


def by_time(x):
    return x.swapaxes(0, 1)


def dynamic_rnn(m, p, x, lengths, labels):
    def cell(states, item):
        t, h = item
        on = (t < lengths)[:, None]
        after = []
        for i, (c, state) in enumerate(states):
            c2, h = lstm(m, p[f"w{i}"], p[f"b{i}"], h, (c, state))
            after.append((m.where(on, c2, c), m.where(on, h, state)))
        return after, m.where(on, h, 0.0)

    zero = m.zeros(32, 128)
    _, outputs = m.scan(cell, [(zero, zero), (zero, zero)], (m.range(40), by_time(x)))
    return m.xent(outputs.mean(0) @ p["top"], labels)


def matrix_factorization(m, p, users, items, ratings):
    a, b = p["u"][users], p["v"][items]
    predicted = (a * b).sum(1) + p["bu"][users] + p["bv"][items] + 3.0
    return ((predicted - ratings) ** 2).mean() + 0.01 * ((a**2).sum() + (b**2).sum()) / 2 / 256


def wide_linear(m, p, ids, weights, labels):
    logits = (p["t"][ids, 0] * weights).sum(1, keepdims=True) + p["b"]
    return (m.softplus(logits) - logits * labels).mean()


def small_resnet(m, p, x, labels):
    moved = {}

    def norm(name, h):
        mean, variance = m.moments(h, m.all_but_channels)
        moved[f"{name}_mean"] = p[f"{name}_mean"] - 0.1 * (p[f"{name}_mean"] - m.stop(mean.reshape(-1)))
        scale = m.rsqrt(variance + 1e-3) * m.per_channel(p[f"{name}_gamma"])
        return (h - mean) * scale + m.per_channel(p[f"{name}_beta"])

    h = m.relu(norm("n0", m.conv(m.images(x), p["c0"])))
    for i, stride in enumerate((1, 2)):
        short = h if stride == 1 else m.conv(h, p[f"s{i}"], stride)
        y = m.relu(norm(f"a{i}", m.conv(h, p[f"ca{i}"], stride)))
        h = m.relu(short + norm(f"b{i}", m.conv(y, p[f"cb{i}"])))
    return m.xent(dense(p, "out", h.mean(m.space)), labels), moved


def norm_shapes(**channels):
    return {f"{name}_{kind}": (c,) for name, c in channels.items() for kind in ("mean", "gamma", "beta")}


def bidirectional(m, p, x, lengths, labels):
    def last(name, items):
        def cell(h, item):
            t, row = item
            h = m.where((t < lengths)[:, None], gru(m, p, name, row, h), h)
            return h, h[:1, :1]

        return m.scan(cell, m.zeros(16, 48), (m.range(20), items))[0]

    at = m.range(20)[:, None]
    places = m.where(at < lengths, lengths - 1 - at, at)
    forward = by_time(x)
    backward = forward[places, m.range(16)]
    states = m.concat([last("fw", forward), last("bw", backward)], 1)
    return m.xent(dense(p, "out", m.dropout(states, 0.5)), labels)


def ctc(m, p, x, lengths, labels):
    def cell(state, item):
        t, row = item
        on = (t < lengths)[:, None]
        c, h = lstm(m, p["w"], p["b"], row, state)
        return (m.where(on, c, state[0]), m.where(on, h, state[1])), m.where(on, h, 0.0)

    zero = m.zeros(8, 64)
    _, outputs = m.scan(cell, (zero, zero), (m.range(30), by_time(x)))
    return m.ctc(dense(p, "out", outputs), labels, lengths)


def seq2seq(m, p, source, target):
    def encoded(h, item):
        h = gru(m, p, "enc", item[0], h)
        return h, h

    state, memory = m.scan(encoded, m.zeros(16, 48), (by_time(p["table"][source]),))
    memory = by_time(memory)
    outputs = []
    for t in range(12):
        weights = m.softmax((memory * (state @ p["w"])[:, None]).sum(2))
        context = (memory * weights[:, :, None]).sum(1)
        state = gru(m, p, "dec", m.concat([p["table"][target[:, t]], context], 1), state)
        outputs.append(state)
    return m.xent(dense(p, "out", m.stack(outputs, 1).reshape(-1, 48)), (target % 500).reshape(-1))


def dropout_mlp(m, p, x, labels):
    for i in range(3):
        x = m.dropout(m.elu(dense(p, f"h{i}", x)), 0.8)
    decay = sum((value**2).sum() / 2 for value in p.values())
    return m.xent(dense(p, "out", x), labels) + 1e-4 * decay


def queue_input(m, p, x, labels):
    for i in range(3):
        x = m.tanh(dense(p, f"h{i}", x))
    return m.xent(dense(p, "out", x), labels)


def dqn(m, p, state, after, action, reward, done):
    goal = reward + 0.99 * (1.0 - done) * m.max(m.stop(q_values(m, p, "target", after)), 1)
    error = abs((q_values(m, p, "online", state) * m.one_hot(action, 6)).sum(1) - goal)
    return m.where(error < 1, 0.5 * error**2, error - 0.5).mean()


def q_values(m, p, name, x):
    return dense(p, f"{name}_q", m.relu(dense(p, f"{name}_h2", m.relu(dense(p, f"{name}_h1", x)))))


def char_rnn(m, p, x, y, c0, h0, c1, h1):
    def cell(states, item):
        (h,), after = item, []
        for i, state in enumerate(states):
            after.append(lstm(m, p[f"w{i}"], p[f"b{i}"], h, state))
            h = after[-1][1]
        return after, h

    last, outputs = m.scan(cell, [(c0, h0), (c1, h1)], (by_time(p["table"][x]),))
    loss = m.xent(dense(p, "out", outputs).reshape(-1, 65), by_time(y).reshape(-1))
    return loss, {"kept": [m.stop(each) for state in last for each in state]}


def sampled_softmax(m, p, words, labels):
    h = p["table"][words].mean(1)
    scale = float(np.log(20001.0))
    drawn = m.whole((m.exp(m.uniform((64,)) * scale) - 1).clip(0, 19999))
    true = labels[:, 0]

    def logits(ids):
        return m.log(64 * m.log((ids + 2.0) / (ids + 1.0)) / scale)

    positive = (h * p["w"][true]).sum(1) + p["b"][true] - logits(true)
    negative = h @ p["w"][drawn].T + p["b"][drawn] - logits(drawn)
    negative = m.where(drawn == true[:, None], -1e9, negative)
    return (m.logsumexp(m.concat([positive[:, None], negative], 1), 1) - positive).mean()


def denoising_autoencoder(m, p, x):
    def bias(name):
        return m.per_channel(p[name])

    x = m.images(x)
    h = m.elu(m.conv(m.dropout(x, 0.8), p["k1"], 2) + bias("b1"))
    h = m.elu(m.conv(h, p["k2"], 2) + bias("b2"))
    shape = h.shape
    h = m.elu(dense(p, "d", dense(p, "code", h.reshape(16, -1)))).reshape(shape)
    h = m.elu(m.conv_transpose(h, p["k3"]) + bias("b3"))
    return ((m.conv_transpose(h, p["k4"]) + bias("b4") - x) ** 2).mean()


def crf_tagger(m, p, words, tags, lengths):
    x = by_time(p["table"][words])

    def run(name, items):
        def cell(state, item):
            t, row = item
            on = (t < lengths)[:, None]
            c, h = lstm(m, p[f"{name}_w"], p[f"{name}_b"], row, state)
            return (m.where(on, c, state[0]), m.where(on, h, state[1])), m.where(on, h, 0.0)

        zero = m.zeros(8, 32)
        return m.scan(cell, (zero, zero), (m.range(15), items))[1]

    at, rows = m.range(15)[:, None], m.range(8)
    places = m.where(at < lengths, lengths - 1 - at, at)
    scores = dense(p, "out", m.concat([run("fw", x), run("bw", x[places, rows])[places, rows]], 2))
    valid = (at < lengths)[:, :, None] * 1.0

    def forward(alpha, item):
        score, on = item
        grown = m.logsumexp(alpha[:, :, None] + p["moves"], 1) + score
        alpha = on * grown + (1.0 - on) * alpha
        return alpha, alpha[:1, :1]

    alpha, _ = m.scan(forward, scores[0], (scores[1:], valid[1:]))
    mask = valid[:, :, 0]
    unary = ((scores * m.one_hot(by_time(tags), 9)).sum(2) * mask).sum(0)
    pairs = (p["moves"][by_time(tags)[:-1], by_time(tags)[1:]] * mask[1:]).sum(0)
    return (m.logsumexp(alpha, 1) - unary - pairs).mean()


def triplet(m, p, *images):
    def embed(x):
        x = dense(p, "out", m.relu(dense(p, "h", x)))
        return x * m.rsqrt((x**2).sum(1, keepdims=True) + 1e-12)

    anchor, same, other = map(embed, images)
    return m.relu(((anchor - same) ** 2).sum(1) - ((anchor - other) ** 2).sum(1) + 0.2).mean()


def attention_decoder(m, p, source, target):
    def encoded(h, item):
        h = gru(m, p, "enc", item[0], h)
        return h, h

    state, memory = m.scan(encoded, m.zeros(16, 32), (by_time(p["table"][source]),))
    memory = by_time(memory)
    keys = memory @ p["keys"]

    def decoded(state, item):
        scores = (p["v"] * m.tanh(keys + (state @ p["query"])[:, None])).sum(2)
        context = (memory * m.softmax(scores)[:, :, None]).sum(1)
        state = gru(m, p, "dec", m.concat([item[0], context], 1), state)
        return state, state

    _, outputs = m.scan(decoded, state, (by_time(p["table"][target]),))
    return m.xent(dense(p, "out", outputs.reshape(-1, 32)), by_time(target).reshape(-1)) * 10


def text_cnn(m, p, words, labels, keep):
    x = m.images(p["table"][words][:, :, :, None])
    pooled = []
    for width in (3, 4, 5):
        h = m.relu(m.conv(x, p[f"k{width}"], padding=0) + m.per_channel(p[f"b{width}"]))
        pooled.append(m.max(h, m.space))
    h = m.concat(pooled, 1)
    h = m.where(m.uniform(h.shape) < keep, h / keep, 0.0)
    return m.xent(dense(p, "out", h), labels)


def batch_norm_network(m, p, x, labels, training=True):
    moved = {}
    for i in range(3):
        x = dense(p, f"h{i}", x)
        if training:
            mean, variance = m.moments(x, 0)
            for kind, value in (("mean", mean), ("var", variance)):
                name = f"n{i}_{kind}"
                moved[name] = 0.99 * p[name] + 0.01 * m.stop(value.reshape(-1))
        else:
            mean, variance = p[f"n{i}_mean"], p[f"n{i}_var"]
        x = m.relu((x - mean) * m.rsqrt(abs(variance) + 1e-3) * p[f"n{i}_gamma"] + p[f"n{i}_beta"])
    return m.xent(dense(p, "out", x), labels), moved


def transformer_block(m, p, words, labels):
    x = p["table"][words]

    def norm(name, h):
        mean, variance = m.moments(h, -1)
        return (h - mean) * m.rsqrt(variance + 1e-6) * p[f"{name}_scale"] + p[f"{name}_shift"]

    for i in range(2):
        q, k, v = ((x @ p[f"{c}{i}"]).reshape(16, 20, 4, 16).swapaxes(1, 2) for c in "qkv")
        weights = m.dropout(m.softmax(q @ k.swapaxes(2, 3) / 4.0), 0.9)
        mixed = (weights @ v).swapaxes(1, 2).reshape(16, 20, 64)
        x = norm(f"n1{i}", x + dense(p, f"o{i}", mixed))
        x = norm(f"n2{i}", x + dense(p, f"g{i}", m.relu(dense(p, f"f{i}", x))))
    return m.xent(dense(p, "out", x.mean(1)), labels)


def transformer_shapes():
    shapes = {"table": (1000, 64), **dense_shapes(out=(64, 5))}
    for i in range(2):
        shapes.update({f"{c}{i}": (64, 64) for c in "qkv"})
        shapes.update({f"n{n}{i}_{kind}": (64,) for n in (1, 2) for kind in ("scale", "shift")})
        shapes.update(dense_shapes(**{f"o{i}": (64, 64), f"f{i}": (64, 128), f"g{i}": (128, 64)}))
    return shapes


RNN_FEED = [R(0).randn(32, 40, 64).astype("f"), R(1).randint(5, 41, 32), R(2).randint(0, 10, 32)]
CHAR_STATE = [np.zeros((16, 96), "f")] * 4
# program: (model, shapes of parameters, optimizer, its rate, feeds). Parameters that a model hands back are not trained.
MODELS = {
    "vae": (
        vae, dense_shapes(h=(784, 256), mean=(256, 32), scale=(256, 32), d=(32, 256), out=(256, 784)), "adam", 1e-3,
        [R(0).rand(64, 784).astype("f")],
    ),
    "gradient_penalty": (
        gradient_penalty, dense_shapes(h1=(128, 256), h2=(256, 256), out=(256, 1)), "rmsprop", 5e-5,
        [R(0).randn(64, 128).astype("f")],
    ),
    "dynamic_rnn": (
        dynamic_rnn, {"w0": (192, 512), "b0": (512,), "w1": (256, 512), "b1": (512,), "top": (128, 10)}, "adam", 1e-3, RNN_FEED,
    ),
    "matrix_factorization": (
        matrix_factorization, {"u": (5000, 32), "v": (2000, 32), "bu": (5000,), "bv": (2000,)}, "adam", 1e-3,
        [R(0).randint(0, 5000, 256), R(1).randint(0, 2000, 256), R(2).rand(256).astype("f")],
    ),
    "wide_linear": (
        wide_linear, {"t": (200000, 1), "b": (1,)}, "ftrl", 0.1,
        [R(0).randint(0, 200000, (256, 20)), R(1).rand(256, 20).astype("f"), R(2).randint(0, 2, (256, 1)).astype("f")],
    ),
    "small_resnet": (
        small_resnet,
        {
            "c0": Kernel((3, 3, 3, 16)), "ca0": Kernel((3, 3, 16, 16)), "cb0": Kernel((3, 3, 16, 16)),
            "s1": Kernel((3, 3, 16, 32)), "ca1": Kernel((3, 3, 16, 32)), "cb1": Kernel((3, 3, 32, 32)),
            **norm_shapes(n0=16, a0=16, b0=16, a1=32, b1=32), **dense_shapes(out=(32, 10)),
        },
        "momentum", 0.1, [R(0).randn(16, 16, 16, 3).astype("f"), R(1).randint(0, 10, 16)],
    ),
    "bidirectional": (
        bidirectional, {**gru_shapes("fw", 32, 48), **gru_shapes("bw", 32, 48), **dense_shapes(out=(96, 5))}, "clipped adam", 1e-3,
        [R(0).randn(16, 20, 32).astype("f"), R(1).randint(3, 21, 16), R(2).randint(0, 5, 16)],
    ),
    "ctc": (
        ctc, {"w": (90, 256), "b": (256,), **dense_shapes(out=(64, 20))}, "momentum", 0.01,
        [R(0).randn(8, 30, 26).astype("f"), R(1).randint(20, 31, 8), R(2).randint(0, 19, (8, 5))],
    ),
    "seq2seq": (
        seq2seq,
        {"table": (2000, 32), "w": (48, 48), **gru_shapes("enc", 32, 48), **gru_shapes("dec", 80, 48), **dense_shapes(out=(48, 500))},
        "adam", 1e-3, [R(0).randint(0, 2000, (16, 15)), R(1).randint(0, 2000, (16, 12))],
    ),
    "dropout_mlp": (
        dropout_mlp, dense_shapes(h0=(256, 256), h1=(256, 256), h2=(256, 256), out=(256, 10)), "adagrad", 0.01,
        [R(0).randn(64, 256).astype("f"), R(1).randint(0, 10, 64)],
    ),
    "queue_input": (
        queue_input, dense_shapes(h0=(64, 64), h1=(64, 64), h2=(64, 64), out=(64, 10)), "rmsprop", 0.01,
        [R(0).randn(32, 64).astype("f"), R(1).randint(0, 10, 32)],
    ),
    "char_rnn": (
        char_rnn,
        {"table": (65, 96), "w0": (192, 384), "b0": (384,), "w1": (192, 384), "b1": (384,), **dense_shapes(out=(96, 65))},
        "clipped adam", 2e-3, [R(0).randint(0, 65, (16, 25)), R(1).randint(0, 65, (16, 25)), *CHAR_STATE],
    ),
    "sampled_softmax": (
        sampled_softmax, {"table": (20000, 64), "w": (20000, 64), "b": (20000,)}, "adagrad", 0.5,
        [R(0).randint(0, 20000, (64, 4)), R(1).randint(0, 20000, (64, 1))],
    ),
    "denoising_autoencoder": (
        denoising_autoencoder,
        {
            "k1": Kernel((3, 3, 1, 16)), "b1": (16,), "k2": Kernel((3, 3, 16, 32)), "b2": (32,),
            "k3": Kernel((3, 3, 16, 32)), "b3": (16,), "k4": Kernel((3, 3, 1, 16)), "b4": (1,),
            **dense_shapes(code=(512, 32), d=(32, 512)),
        },
        "adam", 1e-3, [R(0).rand(16, 16, 16, 1).astype("f")],
    ),
    "crf_tagger": (
        crf_tagger,
        {
            "table": (1000, 32), "moves": (9, 9), "fw_w": (64, 128), "fw_b": (128,), "bw_w": (64, 128), "bw_b": (128,),
            **dense_shapes(out=(64, 9)),
        },
        "adam", 1e-3, [R(0).randint(0, 1000, (8, 15)), R(1).randint(0, 9, (8, 15)), R(2).randint(4, 16, 8)],
    ),
    "triplet": (
        triplet, dense_shapes(h=(128, 128), out=(128, 32)), "momentum", 1e-2, [R(i).randn(48, 128).astype("f") for i in range(3)],
    ),
    "attention_decoder": (
        attention_decoder,
        {
            "table": (500, 32), "keys": (32, 32), "query": (32, 32), "v": (32,),
            **gru_shapes("enc", 32, 32), **gru_shapes("dec", 64, 32), **dense_shapes(out=(32, 500)),
        },
        "adam", 1e-3, [R(0).randint(0, 500, (16, 12)), R(1).randint(0, 500, (16, 10))],
    ),
    "text_cnn": (
        text_cnn,
        {
            "table": (5000, 48), **{f"k{w}": Kernel((w, 48, 1, 32)) for w in (3, 4, 5)}, **{f"b{w}": (32,) for w in (3, 4, 5)},
            **dense_shapes(out=(96, 2)),
        },
        "adam", 1e-3, [R(0).randint(0, 5000, (32, 30)), R(1).randint(0, 2, 32), np.float32(0.5)],
    ),
    "transformer_block": (
        transformer_block, transformer_shapes(), "adam", 1e-3, [R(0).randint(0, 1000, (16, 20)), R(1).randint(0, 5, 16)],
    ),
    "batch_norm_network": (
        batch_norm_network,
        {
            **dense_shapes(h0=(64, 128), h1=(128, 128), h2=(128, 128), out=(128, 10)),
            **{f"n{i}_{kind}": (128,) for i in range(3) for kind in ("mean", "var", "gamma", "beta")},
        },
        "adam", 1e-3, [R(0).randn(64, 64).astype("f"), R(1).randint(0, 10, 64)],
    ),
    "dqn": (
        dqn,
        dense_shapes(**{f"{n}_{layer}": s for n in ("online", "target") for layer, s in (("h1", (16, 64)), ("h2", (64, 64)), ("q", (64, 6)))}),
        "rmsprop", 2.5e-4,
        [R(1).randn(32, 16).astype("f"), R(2).randn(32, 16).astype("f"), R(3).randint(0, 6, 32), R(4).randn(32).astype("f"), R(5).randint(0, 2, 32).astype("f")],
    ),
}  # fmt: skip


def is_held(name):
    """Whether a parameter is not trained."""
    return (name.endswith(("_mean", "_var")) and name != "mean") or name.startswith("target_")


GAN_SHAPES = {
    **dense_shapes(g_in=(64, 7 * 7 * 32), d_out=(7 * 7 * 32, 1)),
    "g_k1": Kernel((5, 5, 16, 32)), "g_k2": Kernel((5, 5, 1, 16)), "d_k1": Kernel((5, 5, 1, 16)), "d_k2": Kernel((5, 5, 16, 32)),
}  # fmt: skip
IMAGES = R(0).rand(16, 28, 28, 1).astype("f")


def generated(m, p):
    h = m.relu(dense(p, "g_in", m.uniform((16, 64)) * 2 - 1)).reshape(16, 7, 7, 32)
    h = m.relu(m.conv_transpose(m.images(h), p["g_k1"]))
    return m.sigmoid(m.conv_transpose(h, p["g_k2"]))


def judged(m, p, x):
    for name in ("d_k1", "d_k2"):
        x = m.leaky_relu(m.conv(x, p[name], 2))
    return dense(p, "d_out", m.dropout(x.reshape(16, -1), 0.7))


def d_loss(m, p, images):
    real, fake = judged(m, p, m.images(images)), judged(m, p, generated(m, p))
    return (m.softplus(-real) + m.softplus(fake)).mean()


def g_loss(m, p):
    return m.softplus(-judged(m, p, generated(m, p))).mean()


POLICY_SHAPES = dense_shapes(h=(8, 64), out=(64, 4))
POLICY_FEED = [R(0).randn(50, 8).astype("f"), R(1).randint(0, 4, 50), R(2).randn(50).astype("f")]


def policy(m, p, x):
    return dense(p, "out", m.tanh(dense(p, "h", x)))


HESSIAN_SHAPES = dense_shapes(h1=(64, 128), h2=(128, 64), out=(64, 1))
HESSIAN_FEED = R(0).randn(64, 64).astype("f")


def hessian_loss(m, p, x):
    return (dense(p, "out", m.softplus(dense(p, "h2", m.tanh(dense(p, "h1", x))))) ** 2).mean()


METRIC_SHAPES = dense_shapes(h=(32, 64), out=(64, 2))
METRIC_FEED = [R(0).randn(128, 32).astype("f"), R(1).randint(0, 2, 128)]


def metrics(m, p, state, x, labels):
    """Accuracy, precision, recall, AUC with 200 thresholds, mean and RMSE. Returns the state after the batch and the six results."""
    logits = dense(p, "out", m.relu(dense(p, "h", x)))
    share = m.softmax(logits)[:, 1]
    said, true = (logits[:, 1] > logits[:, 0]) * 1.0, labels * 1.0
    above = (share[None] > (m.range(200) / 199.0)[:, None]) * 1.0
    error = (true - share) ** 2
    seen = [
        (said == true).sum() * 1.0, (said * true).sum(), said.sum(), true.sum(), (above * true).sum(1),
        (above * (1 - true)).sum(1), share.sum(), error.sum(), m.zeros() + 128.0,
    ]  # fmt: skip
    right, hits, calls, wanted, tp, fp, total, squares, count = state = [a + b for a, b in zip(state, seen)]
    recall, falsely = tp / wanted, fp / (count - wanted)
    area = ((falsely[:-1] - falsely[1:]) * (recall[:-1] + recall[1:]) / 2).sum()
    return state, [right / count, hits / calls, hits / wanted, area, total / count, m.sqrt(squares / count)]


def around(name, step, act, evaluate):
    """The step of a program that runs more than its update."""
    if name == "dqn":
        single = R(0).randn(4, 1, 16).astype("f")

        def whole():
            for each in single:
                act(each)
            return step()

        return whole
    if name == "batch_norm_network":
        return lambda: (step(), evaluate())
    if name == "queue_input":
        waiting = queue.Queue(2)

        def queued():
            waiting.put(0)
            waiting.get()
            return step()

        return queued
    return step
