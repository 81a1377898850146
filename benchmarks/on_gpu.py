"""The training workloads on a GPU: stoker beside PyTorch (eager and compiled) and JAX of the same step.

    python benchmarks/on_gpu.py [--no-jax] [--no-compile] [WORKLOAD ...]

Every side is fed NumPy arrays and hands the loss back as a number, step by step, as `workloads.py` does. PyTorch runs eagerly with
its own optimizers (nn.functional and autograd), and with the loss and its gradient compiled by `torch.compile`; JAX is one jitted step. TF32 is on
for all. `torch.compile` is left out where it takes minutes: for long unrolled loops, and for sparse gradients, which it does not have.
Prints a table of items per second.
"""

import argparse
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.dirname(__file__))

import numpy as np
import torch
import torch.nn.functional as F
import workloads

import stoker.compat.v1 as tf

RNG = np.random.RandomState


def _mlp_shapes():
    shapes = {}
    for i, (a, b) in enumerate([(784, 512), (512, 512), (512, 10)]):
        shapes[f"w{i}"], shapes[f"b{i}"] = (a, b), (b,)
    return shapes


MLP_FEED = [RNG(0).rand(128, 784).astype("f"), RNG(0).randint(0, 10, 128)]
SHAPES = {
    "mlp": _mlp_shapes(),
    "many_small": {f"w{i}": (16, 16) for i in range(150)},
    "cnn": {"c1": (5, 5, 1, 32), "c2": (5, 5, 32, 64), "w1": (3136, 512), "w2": (512, 10)},
    "lstm": {"w": (256, 512)},
    "embedding": {"table": (200000, 64)},
    "attention": {
        f"{c}{n}": {"f": (256, 1024), "g": (1024, 256)}.get(c, (256, 256)) for n in range(2) for c in "qkvofg"
    },
}
# workload: (model, optimizer and its numbers, feed, items)
WORKLOADS = {
    "mlp_sgd": ("mlp", ("sgd", 1e-3), MLP_FEED, 128),
    "mlp_adam": ("mlp", ("adam", 1e-3), MLP_FEED, 128),
    "mlp_rmsprop_momentum": ("mlp", ("rmsprop", 1e-3), MLP_FEED, 128),
    "many_small_variables_adam": ("many_small", ("adam", 1e-3), [np.ones((16, 16), "f")], 1),
    "cnn_momentum": (
        "cnn",
        ("momentum", 0.01),
        [RNG(0).rand(64, 28, 28, 1).astype("f"), RNG(0).randint(0, 10, 64)],
        64,
    ),
    "lstm_while_loop": ("lstm", ("sgd", 0.01), [RNG(0).rand(32, 50, 128).astype("f")], 32),
    "embedding_adagrad": ("embedding", ("adagrad", 0.1), [RNG(0).randint(0, 200000, 1024)], 1024),
    "attention_adam": ("attention", ("adam", 1e-3), [RNG(0).randn(8, 64, 256).astype("f")], 8),
}


NOT_COMPILED = ("many_small", "lstm", "embedding")


def initial(model):
    random = RNG(1)
    return {name: (random.randn(*shape) * 0.05).astype("f") for name, shape in SHAPES[model].items()}


# ---- PyTorch --------------------------------------------------------------------------------------------------------


def torch_loss(model, p, feed):
    if model == "mlp":
        h = F.relu(feed[0] @ p["w0"] + p["b0"])
        h = F.relu(h @ p["w1"] + p["b1"])
        return F.cross_entropy(h @ p["w2"] + p["b2"], feed[1])
    if model == "many_small":
        h = feed[0]
        for w in p.values():
            h = torch.tanh(h @ w)
        return h.mean()
    if model == "cnn":
        h = feed[0].permute(0, 3, 1, 2)
        for name in ("c1", "c2"):
            h = F.max_pool2d(F.relu(F.conv2d(h, p[name].permute(3, 2, 0, 1), padding=2)), 2)
        h = F.relu(h.permute(0, 2, 3, 1).reshape(-1, 3136) @ p["w1"])
        return F.cross_entropy(h @ p["w2"], feed[1])
    if model == "lstm":
        h = c = torch.zeros(32, 128, device="cuda")
        for t in range(50):
            i, j, f, o = (torch.cat([feed[0][:, t], h], 1) @ p["w"]).chunk(4, 1)
            c = c * torch.sigmoid(f + 1) + torch.sigmoid(i) * torch.tanh(j)
            h = torch.tanh(c) * torch.sigmoid(o)
        return (h**2).sum()
    if model == "embedding":
        return (F.embedding(feed[0], p["table"], sparse=True) ** 2).sum()
    h = feed[0]
    for n in range(2):
        q, k, v = ((h.reshape(-1, 256) @ p[f"{c}{n}"]).reshape(8, 64, 4, 64).transpose(1, 2) for c in "qkv")
        a = torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1)
        h = h + ((a @ v).transpose(1, 2).reshape(-1, 256) @ p[f"o{n}"]).reshape(8, 64, 256)
        variance, mean = torch.var_mean(h, 2, keepdim=True, correction=0)
        h = (h - mean) * torch.rsqrt(variance + 1e-5)
        h = h + (F.relu(h.reshape(-1, 256) @ p[f"f{n}"]) @ p[f"g{n}"]).reshape(8, 64, 256)
    return (h**2).mean()


def torch_rate(model, optimizer, feed, items, *, compiled=False):
    kind, rate = optimizer
    loss_of = torch.compile(torch_loss) if compiled else torch_loss
    p = {name: torch.tensor(value, device="cuda", requires_grad=True) for name, value in initial(model).items()}
    made = {
        "sgd": lambda: torch.optim.SGD(p.values(), rate),
        "momentum": lambda: torch.optim.SGD(p.values(), rate, momentum=0.9),
        "adam": lambda: torch.optim.Adam(p.values(), rate, fused=True),
        "rmsprop": lambda: torch.optim.RMSprop(p.values(), rate, alpha=0.9, momentum=0.9),
        "adagrad": lambda: torch.optim.Adagrad(p.values(), rate, initial_accumulator_value=0.1),
    }[kind]()

    def step():
        made.zero_grad()
        loss = loss_of(model, p, [torch.from_numpy(each).to("cuda", non_blocking=True) for each in feed])
        loss.backward()
        made.step()
        return loss.item()

    return workloads._rate(step, items)


# ---- JAX ------------------------------------------------------------------------------------------------------------


def jax_rate(model, optimizer, feed, items):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")

    def entropy(logits, labels):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    def loss_of(p, feed):
        if model == "mlp":
            h = jax.nn.relu(feed[0] @ p["w0"] + p["b0"])
            h = jax.nn.relu(h @ p["w1"] + p["b1"])
            return entropy(h @ p["w2"] + p["b2"], feed[1])
        if model == "many_small":
            h = feed[0]
            for w in p.values():
                h = jnp.tanh(h @ w)
            return h.mean()
        if model == "cnn":
            h = feed[0]
            for name in ("c1", "c2"):
                h = jax.nn.relu(
                    jax.lax.conv_general_dilated(h, p[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                )
                h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
            return entropy(jax.nn.relu(h.reshape(-1, 3136) @ p["w1"]) @ p["w2"], feed[1])
        if model == "lstm":

            def cell(state, x):
                h, c = state
                i, j, f, o = jnp.split(jnp.concatenate([x, h], 1) @ p["w"], 4, 1)
                c = c * jax.nn.sigmoid(f + 1) + jax.nn.sigmoid(i) * jnp.tanh(j)
                return (jnp.tanh(c) * jax.nn.sigmoid(o), c), None

            zero = jnp.zeros((32, 128))
            (h, _), _ = jax.lax.scan(cell, (zero, zero), feed[0].transpose(1, 0, 2))
            return (h**2).sum()
        h = feed[0]
        for n in range(2):
            q, k, v = ((h.reshape(-1, 256) @ p[f"{c}{n}"]).reshape(8, 64, 4, 64).transpose(0, 2, 1, 3) for c in "qkv")
            a = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 8.0)
            h = h + ((a @ v).transpose(0, 2, 1, 3).reshape(-1, 256) @ p[f"o{n}"]).reshape(8, 64, 256)
            h = (h - h.mean(2, keepdims=True)) * jax.lax.rsqrt(h.var(2, keepdims=True) + 1e-5)
            h = h + (jax.nn.relu(h.reshape(-1, 256) @ p[f"f{n}"]) @ p[f"g{n}"]).reshape(8, 64, 256)
        return (h**2).mean()

    kind, rate = optimizer
    over = jax.tree_util.tree_map

    def zeros(p, value=0.0):
        return over(lambda x: jnp.full_like(x, value), p)

    def update(p, s, g, t):
        if kind == "sgd":
            return over(lambda x, d: x - rate * d, p, g), s
        if kind == "momentum":
            m = over(lambda m, d: 0.9 * m + d, s[0], g)
            return over(lambda x, m: x - rate * m, p, m), (m,)
        if kind == "rmsprop":
            r = over(lambda r, d: 0.9 * r + 0.1 * d * d, s[0], g)
            m = over(lambda m, r, d: 0.9 * m + rate * d * jax.lax.rsqrt(r + 1e-10), s[1], r, g)
            return over(lambda x, m: x - m, p, m), (r, m)
        m = over(lambda m, d: 0.9 * m + 0.1 * d, s[0], g)
        v = over(lambda v, d: 0.999 * v + 0.001 * d * d, s[1], g)
        step = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return over(lambda x, m, v: x - step * m / (jnp.sqrt(v) + 1e-8), p, m, v), (m, v)

    def dense(p, s, t, *feed):
        loss, g = jax.value_and_grad(loss_of)(p, feed)
        p, s = update(p, s, g, t)
        return p, s, t + 1, loss

    def rows(p, s, t, ids):
        # JAX has no sparse gradients: the rows are taken out, differentiated and put back.
        taken = p["table"][ids]
        loss, g = jax.value_and_grad(lambda x: (x**2).sum())(taken)
        unique, back = jnp.unique(ids, return_inverse=True, size=ids.shape[0], fill_value=0)
        g = jax.ops.segment_sum(g, back, ids.shape[0])
        accumulated = s[0]["table"].at[unique].add(g * g)
        table = p["table"].at[unique].add(-rate * g / jnp.sqrt(accumulated[unique]))
        return {"table": table}, ({"table": accumulated},), t + 1, loss

    step = jax.jit(rows if model == "embedding" else dense, donate_argnums=(0, 1))
    p = {name: jnp.asarray(value) for name, value in initial(model).items()}
    counts = {"sgd": 0, "momentum": 1, "rmsprop": 2, "adam": 2, "adagrad": 1}
    state = [p, tuple(zeros(p, 0.1 if kind == "adagrad" else 0.0) for _ in range(counts[kind])), jnp.float32(1)]

    def work():
        *state[:], loss = step(*state, *feed)
        return float(loss)

    return workloads._rate(work, items)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="all of: " + ", ".join(WORKLOADS))
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}; items per second\n")
    print(
        "| workload | stoker | not fused | not recorded | PyTorch | torch.compile | JAX |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for name in args.workloads or WORKLOADS:
        cells = []
        for settings in ({}, {"STOKER_FUSED_KERNELS": "0"}, {"STOKER_CUDA_GRAPHS": "0"}):
            os.environ.update({"STOKER_FUSED_KERNELS": "1", "STOKER_CUDA_GRAPHS": "1", **settings})
            cells.append(workloads.ALL[name](tf)[0])
        compiles = not args.no_compile and WORKLOADS[name][0] not in NOT_COMPILED
        cells.append(torch_rate(*WORKLOADS[name]))
        cells.append(torch_rate(*WORKLOADS[name], compiled=True) if compiles else None)
        cells.append(None if args.no_jax else jax_rate(*WORKLOADS[name]))
        print(f"| {name} | " + " | ".join("" if cell is None else f"{cell:,.0f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
