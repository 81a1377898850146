"""The programs of `programs.py` on a GPU: stoker beside its CPU, PyTorch (eager and compiled) and JAX of the same step.

    python benchmarks/programs_on_gpu.py [--seconds S] [PROGRAM ...]

Every side is fed NumPy arrays and hands the loss back as a number at each step. PyTorch runs eagerly with its own optimizers, and with the loss and its
gradient compiled by `torch.compile` where that can be (it has no second derivatives, and leaves cuDNN's LSTM as it is); JAX is one jitted step. TF32 is
on for all. Columns are empty where no counterpart is written down here. Prints steps per second, and for each program what
`session.explain` says about recording.
"""

import argparse
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.dirname(__file__))

import numpy as np
import programs
import torch
import torch.nn.functional as F
import workloads

import stoker.compat.v1 as tf
from stoker._src.runtime import devices

R = np.random.RandomState
SECONDS = 1.0


def measured(work):
    return workloads._rate(work, 1, SECONDS)


def parameters(shapes):
    random = R(1)
    return {name: (random.randn(*shape) * 0.05).astype("f") for name, shape in shapes.items()}


def dense_shapes(**layers):
    shapes = {}
    for name, (inputs, units) in layers.items():
        shapes[f"{name}_w"], shapes[f"{name}_b"] = (inputs, units), (units,)
    return shapes


# ---- models that read the same with torch and with jax.numpy --------------------------------------------------------


def dense(p, name, x):
    return x @ p[f"{name}_w"] + p[f"{name}_b"]


def vae_loss(m, p, x):
    h = m.relu(dense(p, "h", x))
    mean, log_scale = dense(p, "mean", h), dense(p, "scale", h)
    z = mean + m.exp(log_scale) * m.normal(mean.shape)
    logits = dense(p, "out", m.relu(dense(p, "d", z)))
    likelihood = (m.softplus(logits) - logits * x).sum(1)
    return (likelihood - 0.5 * (1 + 2 * log_scale - mean**2 - m.exp(2 * log_scale)).sum(1)).mean()


def penalty_loss(m, p, real):
    def critic(x):
        return dense(p, "out", m.leaky_relu(dense(p, "h2", m.leaky_relu(dense(p, "h1", x)))))

    fake = m.normal(real.shape)
    mixed = real + m.uniform((real.shape[0], 1)) * (fake - real)
    slope = m.sqrt((m.grad(critic, mixed) ** 2).sum(1) + 1e-12)
    return critic(fake).mean() - critic(real).mean() + 10.0 * ((slope - 1.0) ** 2).mean()


SAME = {
    "vae": (
        vae_loss,
        dense_shapes(h=(784, 256), mean=(256, 32), scale=(256, 32), d=(32, 256), out=(256, 784)),
        "adam",
        [R(0).rand(64, 784).astype("f")],
    ),
    "gradient_penalty": (
        penalty_loss,
        dense_shapes(h1=(128, 256), h2=(256, 256), out=(256, 1)),
        "rmsprop",
        [R(0).randn(64, 128).astype("f")],
    ),
}

# ---- PyTorch --------------------------------------------------------------------------------------------------------


class TorchMath:
    relu, exp, sqrt, softplus = F.relu, torch.exp, torch.sqrt, F.softplus
    leaky_relu = staticmethod(lambda x: F.leaky_relu(x, 0.2))
    normal = staticmethod(lambda shape: torch.randn(tuple(shape), device="cuda"))
    uniform = staticmethod(lambda shape: torch.rand(tuple(shape), device="cuda"))

    @staticmethod
    def grad(function, x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x).sum(), x, create_graph=True)[0]


def on_gpu(feed):
    return [torch.from_numpy(each).to("cuda", non_blocking=True) for each in feed]


def torch_same(loss_of, shapes, optimizer, feed, *, compiled=False):
    loss_of = torch.compile(loss_of) if compiled else loss_of
    p = {name: torch.tensor(value, device="cuda", requires_grad=True) for name, value in parameters(shapes).items()}
    made = (
        torch.optim.Adam(p.values(), 1e-3, fused=True) if optimizer == "adam" else torch.optim.RMSprop(p.values(), 5e-5)
    )

    def step():
        made.zero_grad()
        loss = loss_of(TorchMath, p, *on_gpu(feed))
        loss.backward()
        made.step()
        return loss.item()

    return measured(step)


def torch_word2vec():
    tables = [torch.randn(50000, 128, device="cuda") * 0.1, torch.randn(50000, 128, device="cuda") * 0.1]
    biases = torch.zeros(50000, device="cuda")
    feed = [R(0).randint(0, 50000, 128), R(1).randint(0, 50000, 128)]
    scale = np.log(50001.0)

    def step():
        center, context = on_gpu(feed)
        drawn = (torch.exp(torch.rand(64, device="cuda") * scale).long() - 1).clamp(0, 49999)
        ids = torch.cat([context, drawn])
        rows, weights, bias = (x.requires_grad_() for x in (tables[0][center], tables[1][ids], biases[ids]))
        expected = 64 * torch.log((ids + 2.0) / (ids + 1.0)) / scale
        shift = bias - torch.log(expected)
        true = (rows * weights[:128]).sum(1) + shift[:128]
        sampled = rows @ weights[128:].T + shift[128:]
        loss = (F.softplus(-true) + F.softplus(sampled).sum(1)).mean()
        g_rows, g_weights, g_bias = torch.autograd.grad(loss, [rows, weights, bias])
        tables[0].index_add_(0, center, -g_rows)
        tables[1].index_add_(0, ids, -g_weights)
        biases.index_add_(0, ids, -g_bias)
        return loss.item()

    return measured(step)


RNN_FEED = [R(0).randn(32, 40, 64).astype("f"), R(1).randint(5, 41, 32), R(2).randint(0, 10, 32)]


def torch_dynamic_rnn():
    lstm, top = torch.nn.LSTM(64, 128, 2, batch_first=True).cuda(), torch.nn.Linear(128, 10, bias=False).cuda()
    made = torch.optim.Adam([*lstm.parameters(), *top.parameters()], 1e-3, fused=True)
    rnn = torch.nn.utils.rnn

    def step():
        made.zero_grad()
        x, labels = on_gpu([RNN_FEED[0], RNN_FEED[2]])
        packed = rnn.pack_padded_sequence(x, torch.from_numpy(RNN_FEED[1]), True, enforce_sorted=False)
        outputs, _ = rnn.pad_packed_sequence(lstm(packed)[0], True, total_length=40)
        loss = F.cross_entropy(top(outputs.mean(1)), labels)
        loss.backward()
        made.step()
        return loss.item()

    return measured(step)


GAN_SHAPES = {
    **dense_shapes(g_in=(64, 7 * 7 * 32), d_out=(7 * 7 * 32, 1)),
    "g_k1": (32, 16, 5, 5), "g_k2": (16, 1, 5, 5), "d_k1": (16, 1, 5, 5), "d_k2": (32, 16, 5, 5),
}  # fmt: skip
IMAGES = R(0).rand(16, 1, 28, 28).astype("f")


def torch_gan(*, compiled=False):
    p = {name: torch.tensor(value, device="cuda", requires_grad=True) for name, value in parameters(GAN_SHAPES).items()}
    made = {
        side: torch.optim.Adam([v for k, v in p.items() if k.startswith(side)], 2e-4, (0.5, 0.999), fused=True)
        for side in "dg"
    }

    def generated():
        h = F.relu(dense(p, "g_in", torch.rand(16, 64, device="cuda") * 2 - 1)).reshape(16, 32, 7, 7)
        h = F.relu(F.conv_transpose2d(h, p["g_k1"], stride=2, padding=2, output_padding=1))
        return torch.sigmoid(F.conv_transpose2d(h, p["g_k2"], stride=2, padding=2, output_padding=1))

    def judged(x):
        h = F.leaky_relu(F.conv2d(x, p["d_k1"], stride=2, padding=2), 0.2)
        h = F.leaky_relu(F.conv2d(h, p["d_k2"], stride=2, padding=2), 0.2)
        return dense(p, "d_out", F.dropout(h.reshape(16, -1), 0.3))

    def turn(side, loss):
        made[side].zero_grad()
        loss.backward()
        made[side].step()
        return loss.item()

    def d_loss(images):
        real, fake = judged(images), judged(generated())
        return (F.softplus(-real) + F.softplus(fake)).mean()

    def g_loss():
        return F.softplus(-judged(generated())).mean()

    if compiled:
        d_loss, g_loss = torch.compile(d_loss), torch.compile(g_loss)

    def step():
        turn("d", d_loss(on_gpu([IMAGES])[0]))
        turn("g", g_loss())

    return measured(step)


TORCH = {"word2vec": torch_word2vec, "dynamic_rnn": torch_dynamic_rnn, "gan": torch_gan}

# ---- JAX ------------------------------------------------------------------------------------------------------------


def jax_math(jax, key):
    jnp = jax.numpy

    class JaxMath:
        relu, exp, sqrt, softplus = jax.nn.relu, jnp.exp, jnp.sqrt, jax.nn.softplus
        leaky_relu = staticmethod(lambda x: jax.nn.leaky_relu(x, 0.2))
        normal = staticmethod(lambda shape: jax.random.normal(jax.random.fold_in(key, 1), shape))
        uniform = staticmethod(lambda shape: jax.random.uniform(jax.random.fold_in(key, 2), shape))
        grad = staticmethod(lambda function, x: jax.grad(lambda y: function(y).sum())(x))

    return JaxMath


def jax_update(jax, optimizer, rate=1e-3, beta=0.9):
    jnp, over = jax.numpy, jax.tree_util.tree_map
    if optimizer == "rmsprop":

        def update(p, s, g, t):
            s = over(lambda r, d: 0.99 * r + 0.01 * d * d, s, g)
            return over(lambda x, r, d: x - 5e-5 * d / (jnp.sqrt(r) + 1e-8), p, s, g), s

        return update, lambda p: over(jnp.zeros_like, p)

    def update(p, s, g, t):
        m = over(lambda m, d: beta * m + (1 - beta) * d, s[0], g)
        v = over(lambda v, d: 0.999 * v + 0.001 * d * d, s[1], g)
        step = rate * jnp.sqrt(1 - 0.999**t) / (1 - beta**t)
        return over(lambda x, m, v: x - step * m / (jnp.sqrt(v) + 1e-8), p, m, v), (m, v)

    return update, lambda p: (over(jnp.zeros_like, p), over(jnp.zeros_like, p))


def jax_steps(jax, turns, p, feeds):
    """Measures steps of jitted turns: (loss_of(p, key, *feed), update, state, the parameters it changes)."""
    states = [start(own(p)) for _, (_, start), own in turns]

    def jitted(loss_of, update, own):
        def turn(p, s, t, key, *feed):
            loss, g = jax.value_and_grad(lambda mine: loss_of({**p, **mine}, key, *feed))(own(p))
            changed, s = update(own(p), s, g, t)
            return {**p, **changed}, s, loss

        return jax.jit(turn, donate_argnums=(0, 1))

    compiled = [jitted(loss_of, update, own) for loss_of, (update, _), own in turns]
    now = [{name: jax.numpy.asarray(value) for name, value in p.items()}, 0]

    def step():
        now[1] += 1
        for i, turn in enumerate(compiled):
            key = np.array([i, now[1]], np.uint32)
            now[0], states[i], loss = turn(now[0], states[i], np.float32(now[1]), key, *feeds[i])
            float(loss)

    return measured(step)


def jax_same(jax, loss_of, shapes, optimizer, feed):
    turn = (lambda p, key, *x: loss_of(jax_math(jax, key), p, *x), jax_update(jax, optimizer), lambda p: p)
    return jax_steps(jax, [turn], parameters(shapes), [feed])


def jax_word2vec(jax):
    jnp = jax.numpy
    scale = np.log(50001.0)

    def turn(tables, key, center, context):
        a, b, biases = tables
        drawn = jnp.clip(jnp.exp(jax.random.uniform(key, (64,)) * scale).astype(int) - 1, 0, 49999)
        ids = jnp.concatenate([context, drawn])

        def loss_of(rows, weights, bias):
            shift = bias - jnp.log(64 * jnp.log((ids + 2.0) / (ids + 1.0)) / scale)
            true = (rows * weights[:128]).sum(1) + shift[:128]
            sampled = rows @ weights[128:].T + shift[128:]
            return (jax.nn.softplus(-true) + jax.nn.softplus(sampled).sum(1)).mean()

        loss, g = jax.value_and_grad(loss_of, (0, 1, 2))(a[center], b[ids], biases[ids])
        return (a.at[center].add(-g[0]), b.at[ids].add(-g[1]), biases.at[ids].add(-g[2])), loss

    compiled = jax.jit(turn, donate_argnums=(0,))
    random = R(0)
    now = [tuple(jnp.asarray(random.randn(*s).astype("f") * 0.1) for s in ((50000, 128), (50000, 128), (50000,))), 0]
    feed = [R(0).randint(0, 50000, 128).astype("i"), R(1).randint(0, 50000, 128).astype("i")]

    def step():
        now[1] += 1
        now[0], loss = compiled(now[0], np.array([0, now[1]], np.uint32), *feed)
        return float(loss)

    return measured(step)


def jax_dynamic_rnn(jax):
    jnp = jax.numpy
    shapes = {"w0": (192, 512), "b0": (512,), "w1": (256, 512), "b1": (512,), "top": (128, 10)}

    def loss_of(p, key, x, lengths, labels):
        def cell(states, item):
            t, h = item
            new = []
            for i, (c, state) in enumerate(states):
                a, j, f, o = jnp.split(jnp.concatenate([h, state], 1) @ p[f"w{i}"] + p[f"b{i}"], 4, 1)
                c2 = c * jax.nn.sigmoid(f + 1) + jax.nn.sigmoid(a) * jnp.tanh(j)
                h = jnp.tanh(c2) * jax.nn.sigmoid(o)
                on = (t < lengths)[:, None]
                new.append((jnp.where(on, c2, c), jnp.where(on, h, state)))
            return new, jnp.where((t < lengths)[:, None], h, 0.0)

        zero = jnp.zeros((32, 128))
        _, outputs = jax.lax.scan(cell, [(zero, zero), (zero, zero)], (jnp.arange(40), x.transpose(1, 0, 2)))
        logits = outputs.mean(0) @ p["top"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    return jax_steps(jax, [(loss_of, jax_update(jax, "adam"), lambda p: p)], parameters(shapes), [RNN_FEED])


def jax_gan(jax):
    jnp, lax = jax.numpy, jax.lax
    layout = ("NHWC", "HWIO", "NHWC")
    shapes = {
        **dense_shapes(g_in=(64, 7 * 7 * 32), d_out=(7 * 7 * 32, 1)),
        "g_k1": (5, 5, 32, 16), "g_k2": (5, 5, 16, 1), "d_k1": (5, 5, 1, 16), "d_k2": (5, 5, 16, 32),
    }  # fmt: skip

    def generated(p, key):
        z = jax.random.uniform(key, (16, 64), minval=-1, maxval=1)
        h = jax.nn.relu(dense(p, "g_in", z)).reshape(16, 7, 7, 32)
        h = jax.nn.relu(lax.conv_transpose(h, p["g_k1"], (2, 2), "SAME", dimension_numbers=layout))
        return jax.nn.sigmoid(lax.conv_transpose(h, p["g_k2"], (2, 2), "SAME", dimension_numbers=layout))

    def judged(p, key, x):
        for name in ("d_k1", "d_k2"):
            x = lax.conv_general_dilated(x, p[name], (2, 2), "SAME", dimension_numbers=layout)
            x = jax.nn.leaky_relu(x, 0.2)
        h = x.reshape(16, -1)
        return dense(p, "d_out", jnp.where(jax.random.bernoulli(key, 0.7, h.shape), h / 0.7, 0.0))

    def d_loss(p, key, images):
        keys = jax.random.split(key, 3)
        real, fake = judged(p, keys[0], images), judged(p, keys[1], generated(p, keys[2]))
        return (jax.nn.softplus(-real) + jax.nn.softplus(fake)).mean()

    def g_loss(p, key):
        keys = jax.random.split(key, 2)
        return jax.nn.softplus(-judged(p, keys[0], generated(p, keys[1]))).mean()

    def own(side):
        return lambda p: {name: value for name, value in p.items() if name.startswith(side)}

    turns = [(loss, jax_update(jax, "adam", 2e-4, 0.5), own(side)) for loss, side in ((d_loss, "d"), (g_loss, "g"))]
    return jax_steps(jax, turns, parameters(shapes), [[IMAGES.transpose(0, 2, 3, 1)], []])


JAX = {"word2vec": jax_word2vec, "dynamic_rnn": jax_dynamic_rnn, "gan": jax_gan}


# ---- stoker ---------------------------------------------------------------------------------------------------------


def ours(name, *, gpu=True, recorded=True, fused=True):
    """Returns the rate of a program, and the remarks about its plans."""
    remarks = []

    class Session(tf.Session):
        def close(self):
            for plan in self._plans.values():
                remarks.extend(line[2:] for line in plan.explain().splitlines() if line.startswith("#"))
            super().close()

    os.environ["STOKER_CUDA_GRAPHS"] = "1" if recorded else "0"
    os.environ["STOKER_FUSED_KERNELS"] = "1" if fused else "0"
    usable, session = devices.usable_gpus, tf.Session
    devices.usable_gpus = usable if gpu else lambda: 0
    tf.Session = Session
    try:
        return programs.ALL[name](tf)[0], remarks
    finally:
        devices.usable_gpus, tf.Session = usable, session


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="all of: " + ", ".join(programs.ALL))
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    import jax

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    global SECONDS
    SECONDS = args.seconds
    rate = workloads._rate
    programs._rate = lambda work, items, seconds=2.0, warm=12: rate(work, items, SECONDS, warm)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    print(f"{torch.cuda.get_device_name(0)}, {os.cpu_count()} cores, torch {torch.__version__}; steps per second\n")
    print("| program | CPU | stoker | not fused | not recorded | PyTorch | torch.compile | JAX |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    notes = []
    for name in args.programs or programs.ALL:  # eager_tape, which changes the mode of the process, is the last
        cpu, (gpu, remarks), single = ours(name, gpu=False)[0], ours(name), ours(name, fused=False)[0]
        plain = ours(name, recorded=False)[0]
        notes += [f"{name}: {remark}" for remark in dict.fromkeys(remarks)]
        same = SAME.get(name)
        eager = torch_same(*same) if same else TORCH[name]() if name in TORCH else None
        compiled = None
        if not args.no_compile and name in ("vae", "gan"):
            compiled = torch_same(*same, compiled=True) if same else torch_gan(compiled=True)
        jitted = jax_same(jax, *same) if same else JAX[name](jax) if name in JAX else None
        cells = [cpu, gpu, single, plain, eager, compiled, jitted]
        print(f"| {name} | " + " | ".join("" if cell is None else f"{cell:,.0f}" for cell in cells) + " |", flush=True)
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
