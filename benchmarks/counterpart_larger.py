"""Models of `larger_programs.py` for torch and JAX, in the manner of counterpart_models.py, whose models are among `MODELS` here."""

import counterpart_models
from counterpart_models import Kernel, R, by_time, dense, dense_shapes, gru, gru_shapes, lstm


def language_model(m, p, x, y):
    def cell(states, item):
        (h,), after = item, []
        for i, state in enumerate(states):
            after.append(lstm(m, p[f"w{i}"], p[f"b{i}"], h, state))
            h = m.dropout(after[-1][1], 0.5)
        return after, h

    zero = m.zeros(20, 400)
    _, outputs = m.scan(cell, [(zero, zero), (zero, zero)], (by_time(m.dropout(p["table"][x], 0.5)),))
    return m.xent(dense(p, "out", outputs.reshape(-1, 400)), by_time(y).reshape(-1))


def wide_batches(m, p, x, labels):
    for i in range(2):
        x = m.dropout(m.relu(dense(p, f"h{i}", x)), 0.8)
    return m.xent(dense(p, "out", x), labels)


def normalized_convolutions(m, p):
    """Returns a function that convolves and normalizes a batch, and the dictionary in which it puts the moving averages."""
    moved = {}

    def conv(name, h, stride=1):
        h = m.conv(h, p[f"{name}_k"], stride)
        mean, variance = m.moments(h, m.all_but_channels)
        for kind, value in (("mean", mean), ("var", variance)):
            moved[f"{name}_{kind}"] = 0.99 * p[f"{name}_{kind}"] + 0.01 * m.stop(value.reshape(-1))
        scale = m.rsqrt(variance + 1e-3) * m.per_channel(p[f"{name}_gamma"])
        return (h - mean) * scale + m.per_channel(p[f"{name}_beta"])

    return conv, moved


def residual_network(m, p, x, labels):
    conv, moved = normalized_convolutions(m, p)
    h = m.relu(conv("c0", m.images(x)))
    for i, stride in enumerate((1, 2, 2)):
        straight = h if stride == 1 else m.conv(h, p[f"s{i}_k"], stride, 0)
        h = m.relu(straight + conv(f"b{i}", m.relu(conv(f"a{i}", h, stride))))
    decay = sum((value**2).sum() / 2 for name, value in p.items() if not counterpart_models.is_held(name))
    return m.xent(dense(p, "out", h.mean(m.space)), labels) + 1e-4 * decay, moved


def _residual_shapes():
    sizes = {
        "c0": (3, 16),
        "a0": (16, 16),
        "b0": (16, 16),
        "a1": (16, 32),
        "b1": (32, 32),
        "a2": (32, 64),
        "b2": (64, 64),
    }
    shapes = {"s1_k": Kernel((1, 1, 16, 32)), "s2_k": Kernel((1, 1, 32, 64)), **dense_shapes(out=(64, 10))}
    for name, (inputs, units) in sizes.items():
        shapes[f"{name}_k"] = Kernel((3, 3, inputs, units))
        shapes.update({f"{name}_{kind}": (units,) for kind in ("mean", "var", "gamma", "beta")})
    return shapes


def transformer_model(m, p, x, y):
    def normalized(name, h):
        mean, variance = m.moments(h, -1)
        return (h - mean) * m.rsqrt(variance + 1e-6) * p[f"{name}_gain"] + p[f"{name}_shift"]

    h = p["table"][x] * 128**0.5
    later = (m.range(64)[None] > m.range(64)[:, None]) * 1e9
    for i in range(2):
        a = normalized(f"attention{i}", h)
        q, k, v = ((a @ p[f"{c}{i}"]).reshape(8, 64, 4, 32).swapaxes(1, 2) for c in "qkv")
        mixed = m.softmax(q @ k.swapaxes(2, 3) * 32**-0.5 - later) @ v
        h = h + m.dropout(mixed.swapaxes(1, 2).reshape(8, 64, 128) @ p[f"o{i}"], 0.9)
        f = m.relu(dense(p, f"f{i}", normalized(f"forward{i}", h)))
        h = h + m.dropout(dense(p, f"g{i}", f), 0.9)
    logits = normalized("last", h).reshape(-1, 128) @ p["table"].T
    return m.xent(logits, y.reshape(-1))


def _transformer_shapes():
    shapes = {"table": (2000, 128)}
    for i in range(2):
        shapes.update({f"{c}{i}": (128, 128) for c in "qkvo"})
        shapes.update(dense_shapes(**{f"f{i}": (128, 512), f"g{i}": (512, 128)}))
    for name in ("attention0", "attention1", "forward0", "forward1", "last"):
        shapes.update({f"{name}_gain": (128,), f"{name}_shift": (128,)})
    return shapes


def click_model(m, p, x, labels):
    moved = {}
    h = p["table"][x].reshape(512, 320)
    for i in range(2):
        h = m.relu(dense(p, f"h{i}", h))
        mean, variance = m.moments(h, 0)
        for kind, value in (("mean", mean), ("var", variance)):
            moved[f"n{i}_{kind}"] = 0.99 * p[f"n{i}_{kind}"] + 0.01 * m.stop(value.reshape(-1))
        h = (h - mean) * m.rsqrt(variance + 1e-3) * p[f"n{i}_gamma"] + p[f"n{i}_beta"]
    logits = dense(p, "out", h)[:, 0] + p["weights"][x].sum((1, 2))
    return (m.softplus(logits) - logits * labels).mean(), moved


def sentence_pairs(m, p, x, labels, lengths):
    rows = by_time(p["table"][x])

    def last(name, items):
        def cell(h, item):
            t, row = item
            return m.where((t < lengths)[:, None], gru(m, p, name, row, h), h), h[:1, :1]

        return m.scan(cell, m.zeros(128, 100), (m.range(20), items))[0]

    at = m.range(20)[:, None]
    places = m.where(at < lengths, lengths - 1 - at, at)
    h = m.concat([last("fw", rows), last("bw", rows[places, m.range(128)])], 1)
    left, right = h[:64], h[64:]
    h = m.relu(dense(p, "h", m.concat([left, right, abs(left - right), left * right], 1)))
    return m.xent(dense(p, "out", h), labels)


def convolutional_lstm(m, p, x, y):
    h = c = m.zeros(8, 16, 16, 16)  # as many channels as rows and columns
    channels = 1 if m.space == (2, 3) else 3
    for t in range(6):
        gates = m.conv(m.concat([m.images(x[:, t]), h], channels), p["gates_k"]) + m.per_channel(p["gates_b"])
        i, j, f, o = m.split(gates, 4, channels)
        c = c * m.sigmoid(f + 1.0) + m.sigmoid(i) * m.tanh(j)
        h = m.tanh(c) * m.sigmoid(o)
    return ((m.conv(h, p["out_k"], 1, 0) + m.per_channel(p["out_b"]) - m.images(y)) ** 2).mean()


MODELS = {
    **counterpart_models.MODELS,
    "language_model": (
        language_model,
        {"table": (5000, 400), "w0": (800, 1600), "b0": (1600,), "w1": (800, 1600), "b1": (1600,), **dense_shapes(out=(400, 5000))},
        "clipped descent", 1.0, [R(0).randint(0, 5000, (20, 20)), R(1).randint(0, 5000, (20, 20))],
    ),
    "wide_batches": (
        wide_batches, dense_shapes(h0=(784, 1024), h1=(1024, 512), out=(512, 10)), "adam", 1e-3,
        [R(0).randn(256, 784).astype("f"), R(1).randint(0, 10, 256)],
    ),
    "residual_network": (
        residual_network, _residual_shapes(), "momentum", 0.1, [R(0).randn(64, 32, 32, 3).astype("f"), R(1).randint(0, 10, 64)],
    ),
    "transformer_model": (
        transformer_model, _transformer_shapes(), "adam", 1e-3, [R(0).randint(0, 2000, (8, 64)), R(1).randint(0, 2000, (8, 64))],
    ),
    "click_model": (
        click_model,
        {
            "table": (100000, 16), "weights": (100000, 1), **dense_shapes(h0=(320, 256), h1=(256, 128), out=(128, 1)),
            **{f"n{i}_{kind}": (units,) for i, units in enumerate((256, 128)) for kind in ("mean", "var", "gamma", "beta")},
        },
        "adagrad", 0.05, [R(0).zipf(1.2, (512, 20)) % 100000, R(1).randint(0, 2, 512).astype("f")],
    ),
    "sentence_pairs": (
        sentence_pairs,
        {"table": (10000, 100), **gru_shapes("fw", 100, 100), **gru_shapes("bw", 100, 100), **dense_shapes(h=(800, 128), out=(128, 3))},
        "adam", 1e-3, [R(0).randint(0, 10000, (128, 20)), R(1).randint(0, 3, 64), R(2).randint(5, 21, 128)],
    ),
    "convolutional_lstm": (
        convolutional_lstm, {"gates_k": Kernel((3, 3, 17, 64)), "gates_b": (64,), "out_k": Kernel((1, 1, 16, 1)), "out_b": (1,)},
        "adam", 1e-3, [R(0).randn(8, 6, 16, 16, 1).astype("f"), R(1).randn(8, 16, 16, 1).astype("f")],
    ),
}  # fmt: skip
