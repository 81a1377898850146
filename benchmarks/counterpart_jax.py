"""The steps of `programs.py` and `more_programs.py` in JAX, each jitted as a whole. The module `jax` is an argument, so that it can be left out."""

import functools
import types

import numpy as np
from counterpart_larger import MODELS
from counterpart_models import (
    GAN_SHAPES,
    HESSIAN_FEED,
    HESSIAN_SHAPES,
    IMAGES,
    METRIC_FEED,
    METRIC_SHAPES,
    POLICY_FEED,
    POLICY_SHAPES,
    R,
    around,
    batch_norm_network,
    d_loss,
    g_loss,
    hessian_loss,
    is_held,
    metrics,
    parameters,
    policy,
    q_values,
)


def jax_math(jax, key):
    """Images are NHWC. Every draw has a key of its own."""
    jnp, lax = jax.numpy, jax.lax
    drawn = [0]
    layout = ("NHWC", "HWIO", "NHWC")

    def fresh():
        drawn[0] += 1
        return jax.random.fold_in(key, drawn[0])

    def xent(logits, labels):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    def conv(x, kernel, stride=1, padding="SAME"):
        padding = "VALID" if padding == 0 else padding
        return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=layout)

    def conv_transpose(x, kernel):
        return lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=layout, transpose_kernel=True)

    def ctc(logits, labels, lengths):
        """The forward algorithm in logarithms. Labels have one length, and the last class is the blank."""
        steps, batch, classes = logits.shape
        log_p = jax.nn.log_softmax(logits)
        states = 2 * labels.shape[1] + 1
        emitted = jnp.full((batch, states), classes - 1).at[:, 1::2].set(labels)
        skips = jnp.pad((emitted[:, 2:] != emitted[:, :-2]) & (emitted[:, 2:] != classes - 1), ((0, 0), (2, 0)))
        scores = jnp.take_along_axis(log_p, jnp.broadcast_to(emitted, (steps, batch, states)), 2)
        never = -1e5
        alpha = jnp.full((batch, states), never).at[:, :2].set(scores[0, :, :2])

        def step(alpha, item):
            t, score = item
            one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=never)[:, :-1]
            two = jnp.where(skips, jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=never)[:, :-2], never)
            grown = jnp.logaddexp(jnp.logaddexp(alpha, one), two) + score
            return jnp.where((t < lengths)[:, None], grown, alpha), None

        alpha, _ = lax.scan(step, alpha, (jnp.arange(1, steps), scores[1:]))
        return -jnp.mean(jnp.logaddexp(alpha[:, -1], alpha[:, -2]))

    return types.SimpleNamespace(
        relu=jax.nn.relu, elu=jax.nn.elu, tanh=jnp.tanh, sigmoid=jax.nn.sigmoid,
        exp=jnp.exp, log=jnp.log, sqrt=jnp.sqrt, rsqrt=lax.rsqrt, softplus=jax.nn.softplus,
        maximum=jnp.maximum, where=jnp.where, one_hot=jax.nn.one_hot, softmax=jax.nn.softmax,
        logsumexp=jax.nn.logsumexp, leaky_relu=lambda x: jax.nn.leaky_relu(x, 0.2),
        concat=jnp.concatenate, stack=jnp.stack, split=jnp.split, stop=lax.stop_gradient, xent=xent,
        whole=lambda x: x.astype("int32"), max=jnp.max,
        normal=lambda shape: jax.random.normal(fresh(), shape),
        uniform=lambda shape: jax.random.uniform(fresh(), shape),
        zeros=lambda *shape: jnp.zeros(shape), range=jnp.arange,
        dropout=lambda x, keep: jnp.where(jax.random.bernoulli(fresh(), keep, x.shape), x / keep, 0.0),
        images=lambda x: x, per_channel=lambda v: v, all_but_channels=(0, 1, 2), space=(1, 2),
        conv=conv, conv_transpose=conv_transpose, scan=lax.scan, ctc=ctc,
        moments=lambda x, axes: (x.mean(axes, keepdims=True), x.var(axes, keepdims=True)),
        grad=lambda function, x: jax.grad(lambda y: function(y).sum())(x),
    )  # fmt: skip


def jax_optimizer(jax, kind, rate, beta=0.9):
    """Returns update(parameters, state, gradients, step number), and the function that makes the state."""
    jnp, over = jax.numpy, jax.tree_util.tree_map

    def clipped(g):
        norm = jnp.sqrt(sum((d**2).sum() for d in jax.tree_util.tree_leaves(g)))
        return over(lambda d: d * 5.0 / jnp.maximum(norm, 5.0), g)

    def descent(p, s, g, t):
        return over(lambda x, d: x - rate * d, p, clipped(g)), s

    def adam(p, s, g, t):
        g = clipped(g) if kind.startswith("clipped") else g
        m = over(lambda m, d: beta * m + (1 - beta) * d, s[0], g)
        v = over(lambda v, d: 0.999 * v + 0.001 * d * d, s[1], g)
        step = rate * jnp.sqrt(1 - 0.999**t) / (1 - beta**t)
        return over(lambda x, m, v: x - step * m / (jnp.sqrt(v) + 1e-8), p, m, v), (m, v)

    def rmsprop(p, s, g, t):
        s = over(lambda r, d: 0.99 * r + 0.01 * d * d, s, g)
        return over(lambda x, r, d: x - rate * d / (jnp.sqrt(r) + 1e-8), p, s, g), s

    def momentum(p, s, g, t):
        s = over(lambda a, d: 0.9 * a + d, s, g)
        return over(lambda x, a: x - rate * a, p, s), s

    def adagrad(p, s, g, t):
        s = over(lambda a, d: a + d * d, s, g)
        return over(lambda x, a, d: x - rate * d * jax.lax.rsqrt(a), p, s, g), s

    def ftrl(p, s, g, t):
        """Dense: rows without a gradient keep their values."""

        def one(x, n, z, d):
            grown = n + d * d
            z = z + d - (jnp.sqrt(grown) - jnp.sqrt(n)) / rate * x
            shrunk = jnp.where(jnp.abs(z) > 0.01, (jnp.sign(z) * 0.01 - z) / (jnp.sqrt(grown) / rate), 0.0)
            return shrunk, grown, z

        made = {name: one(p[name], s[0][name], s[1][name], g[name]) for name in p}
        new, n, z = ({name: each[i] for name, each in made.items()} for i in range(3))
        return new, (n, z)

    def zeros(p):
        return over(jnp.zeros_like, p)

    def tenths(p):
        return over(lambda x: jnp.full_like(x, 0.1), p)

    return {
        "adam": (adam, lambda p: (zeros(p), zeros(p))),
        "clipped adam": (adam, lambda p: (zeros(p), zeros(p))),
        "clipped descent": (descent, lambda p: ()),
        "rmsprop": (rmsprop, zeros),
        "momentum": (momentum, zeros),
        "adagrad": (adagrad, tenths),
        "ftrl": (ftrl, lambda p: (tenths(p), zeros(p))),
    }[kind]


def jax_turns(jax, turns, p, after=lambda p, moved, feed: None):
    """Returns a step of jitted turns: (loss_of(m, p, *feed), optimizer, whether a parameter is trained, feed).

    A loss may come with a dictionary of values to keep; `after` sees it.
    """
    compiled, states = [], []
    for loss_of, (update, start), is_own, _ in turns:

        def turn(p, s, t, key, *feed, loss_of=loss_of, update=update, is_own=is_own):
            own = {name: value for name, value in p.items() if is_own(name)}

            def of(own):
                result = loss_of(jax_math(jax, key), {**p, **own}, *feed)
                return result if isinstance(result, tuple) else (result, {})

            (loss, moved), g = jax.value_and_grad(of, has_aux=True)(own)
            own, s = update(own, s, g, t)
            kept = moved.pop("kept", None)
            return {**p, **own, **moved}, s, loss, kept

        compiled.append(jax.jit(turn, donate_argnums=(0, 1)))
        states.append(start({name: jax.numpy.asarray(value) for name, value in p.items() if is_own(name)}))
    now = types.SimpleNamespace(p={name: jax.numpy.asarray(value) for name, value in p.items()}, t=0)
    feeds = [list(feed) for *_, feed in turns]

    def step():
        now.t += 1
        for i, turn in enumerate(compiled):
            key = np.array([i, now.t], np.uint32)
            now.p, states[i], loss, kept = turn(now.p, states[i], np.float32(now.t), key, *feeds[i])
            if kept is not None:
                feeds[i][-4:] = [np.asarray(each) for each in kept]
            loss = float(loss)
        return loss

    return step, now


def jax_step(jax, name):
    """Returns the step of a program in JAX; None if there is none."""
    if name in JAX:
        return JAX[name](jax)
    if name not in MODELS:
        return None
    model, shapes, kind, rate, feed = MODELS[name]
    turn = (model, jax_optimizer(jax, kind, rate), lambda name: not is_held(name), feed)
    step, now = jax_turns(jax, [turn], parameters(shapes))
    best = jax.jit(lambda p, x: q_values(jax_math(jax, None), p, "online", x).argmax(1)[0])
    scored = jax.jit(lambda p, *feed: batch_norm_network(jax_math(jax, None), p, *feed, training=False)[0])
    return around(name, step, lambda x: int(best(now.p, x)), lambda: float(scored(now.p, *feed)))


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

    return step


def jax_gan(jax):
    adam = jax_optimizer(jax, "adam", 2e-4, 0.5)
    turns = [
        (d_loss, adam, lambda name: name.startswith("d"), [IMAGES]),
        (g_loss, adam, lambda name: name.startswith("g"), []),
    ]
    return jax_turns(jax, turns, parameters(GAN_SHAPES))[0]


def jax_policy_gradient(jax):
    def loss_of(m, p, seen, done, earned):
        logits = policy(m, p, seen)
        chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), done[:, None], 1)[:, 0]
        return -(chosen * earned).mean()

    turn = (loss_of, jax_optimizer(jax, "adam", 1e-2), lambda name: True, POLICY_FEED)
    step, now = jax_turns(jax, [turn], parameters(POLICY_SHAPES))
    sample = jax.jit(lambda p, key, x: jax.random.categorical(key, policy(jax_math(jax, key), p, x))[0])

    def whole():
        for i, row in enumerate(POLICY_FEED[0]):
            int(sample(now.p, np.array([i, now.t], np.uint32), row[None]))
        return step()

    return whole


def jax_hessian_vector(jax):
    over = jax.tree_util.tree_map

    def turn(p, x):
        loss, back = jax.value_and_grad(functools.partial(hessian_loss, jax_math(jax, None)))(p, x)
        del back

        def summed(p):
            g = jax.grad(functools.partial(hessian_loss, jax_math(jax, None)))(p, x)
            return sum(each.sum() for each in g.values())

        return over(lambda v, d: v - 1e-3 * d, p, jax.grad(summed)(p)), loss

    compiled = jax.jit(turn, donate_argnums=(0,))
    now = [{name: jax.numpy.asarray(value) for name, value in parameters(HESSIAN_SHAPES).items()}]

    def step():
        now[0], loss = compiled(now[0], HESSIAN_FEED)
        return float(loss)

    return step


def jax_streaming_metrics(jax):
    jnp = jax.numpy
    p = {name: jnp.asarray(value) for name, value in parameters(METRIC_SHAPES).items()}
    compiled = jax.jit(lambda p, state, *feed: metrics(jax_math(jax, None), p, state, *feed), donate_argnums=(1,))
    now = [[jnp.zeros(200 if i in (4, 5) else ()) for i in range(9)]]

    def step():
        now[0], results = compiled(p, now[0], *METRIC_FEED)
        return jax.device_get(results)

    return step


def jax_function_loop(jax):
    jnp = jax.numpy
    x, y = jnp.asarray(R(0).randn(64, 32).astype("f")), jnp.asarray(R(1).randn(64, 1).astype("f"))

    @jax.jit
    def train(p):
        def body(_, carried):
            p, total = carried
            loss, g = jax.value_and_grad(lambda p: ((x @ p[0] + p[1] - y) ** 2).mean())(p)
            return [v - 0.01 * d for v, d in zip(p, g)], total + loss

        return jax.lax.fori_loop(0, 10, body, (p, jnp.float32(0)))

    now = [[jnp.zeros((32, 1)), jnp.float32(0)]]

    def step():
        now[0], total = train(now[0])
        return float(total)

    return step


JAX = {
    "word2vec": jax_word2vec, "gan": jax_gan, "policy_gradient": jax_policy_gradient, "hessian_vector": jax_hessian_vector,
    "streaming_metrics": jax_streaming_metrics, "function_loop": jax_function_loop,
}  # fmt: skip
