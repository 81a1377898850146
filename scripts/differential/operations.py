"""The grammar's ops on values: element by element, sums, products, shapes, lookups."""

from __future__ import annotations

from typing import Any

from differential.grammar import NAMES, SIZES, Builder, Refused, Shape, broadcast, op, partner

UNARY = [  # expression, exact, bound of the result
    ("tf.negative({})", True, lambda b: b), ("tf.abs({})", True, lambda b: b), ("tf.nn.relu({})", True, lambda b: b),
    ("tf.square({})", True, lambda b: 2 * b), ("tf.tanh({})", False, lambda b: 0), ("tf.sigmoid({})", False, lambda b: 0),
    ("tf.nn.relu6({})", True, lambda b: b), ("tf.nn.leaky_relu({}, 0.25)", True, lambda b: b), ("tf.nn.elu({})", False, lambda b: b),
    ("tf.nn.selu({})", False, lambda b: b + 1), ("tf.nn.softplus({})", False, lambda b: b + 1), ("tf.log(tf.abs({}) + 0.25)", False, lambda b: 3),
    ("tf.log1p(tf.abs({}))", False, lambda b: 3), ("tf.sqrt(tf.abs({}) + 0.125)", False, lambda b: b), ("tf.rsqrt(tf.abs({}) + 0.5)", False, lambda b: 1),
    ("tf.sign({})", True, lambda b: 0), ("tf.floor({})", True, lambda b: b + 0.5), ("tf.ceil({})", True, lambda b: b + 0.5), ("tf.round({})", True, lambda b: b),
    ("tf.sin({})", False, lambda b: 0), ("tf.cos({})", False, lambda b: 0), ("tf.erf({})", False, lambda b: 0), ("tf.exp(-tf.abs({}))", False, lambda b: 0),
    ("tf.expm1(-tf.abs({}))", False, lambda b: 0), ("tf.reciprocal(tf.abs({}) + 0.5)", False, lambda b: 1), ("tf.nn.softsign({})", False, lambda b: 0),
    ("tf.atan({})", False, lambda b: 1), ("tf.pow({}, 2.0)", True, lambda b: 2 * b), ("tf.pow({}, 3.0)", True, lambda b: 3 * b), ("{} ** 2", True, lambda b: 2 * b),
    ("tf.clip_by_value({}, -1.5, 1.0)", True, lambda b: 1), ("tf.stop_gradient({})", True, lambda b: b), ("tf.identity({})", True, lambda b: b),
    ("tf.zeros_like({})", True, lambda b: 0), ("tf.ones_like({})", True, lambda b: 0), ("{} * 0.5", True, lambda b: b), ("1.0 - {}", True, lambda b: b + 1),
    ("{} + 0.25", True, lambda b: b + 0.2), ("2.0 / (tf.abs({}) + 1.0)", False, lambda b: 1), ("tf.log_sigmoid({})", False, lambda b: b + 1),
    ("tf.nn.crelu({})", True, None), ("tf.cast(tf.cast({}, tf.int32), F)", True, lambda b: b), ("tf.where_v2(tf.is_nan({0}), tf.ones_like({0}) * 0.5, {0})", True, lambda b: b),
    ("tf.rint({})", True, lambda b: b), ("tf.minimum({}, 0.75)", True, lambda b: b), ("tf.maximum({}, -0.25)", True, lambda b: b),
    ("tf.math.lgamma(tf.abs({}) + 0.5)", False, lambda b: b + 3), ("tf.math.xlogy(tf.abs({0}), tf.abs({0}) + 0.5)", False, lambda b: b + 3),
]  # fmt: skip


@op(8, exact=True)
def unary(b: Builder) -> Any:
    x = b.pick("F")
    text, exact, bound = b.r.choice(UNARY)
    if bound is None or (b.mode == "exact" and not exact):
        raise Refused
    if b.mode == "exact" and bound(x.bound) > x.bound + 1 and x.bound > 4:
        raise Refused
    return b.add(text.format(x.name), "F", x.shape, bound(x.bound))


BINARY = [
    ("{} + {}", True, lambda x, y: max(x, y) + 1), ("{} - {}", True, lambda x, y: max(x, y) + 1), ("{} * {}", True, lambda x, y: x + y),
    ("tf.maximum({}, {})", True, max), ("tf.minimum({}, {})", True, max), ("tf.squared_difference({}, {})", True, lambda x, y: 2 * max(x, y) + 2),
    ("{} / (tf.abs({}) + 0.5)", False, lambda x, y: x + 1), ("tf.div_no_nan({}, tf.nn.relu({} - 0.25) * 4.0)", False, None),
    ("tf.where_v2({0} > {1}, {0}, {1})", True, max), ("tf.atan2({}, {})", False, lambda x, y: 2), ("tf.pow(tf.abs({}) + 0.25, tf.tanh({}))", False, lambda x, y: x + 3),
    ("tf.mod({}, tf.abs({}) + 1.0)", False, max), ("tf.floordiv({}, tf.abs({}) + 1.0)", False, lambda x, y: x + 1), ("tf.add_n([{0}, {0}, {1}])", True, None),
    ("tf.math.multiply_no_nan({}, {})", True, lambda x, y: x + y), ("{} * tf.sigmoid({})", False, lambda x, y: x), ("tf.cast({} >= {}, F)", True, lambda x, y: 0),
]  # fmt: skip


@op(8, exact=True)
def binary(b: Builder) -> Any:
    x = b.pick("F")
    text, exact, bound = b.r.choice(BINARY)
    if b.mode == "exact" and not exact:
        raise Refused
    y = partner(b, x)
    if y is None:
        other, shape, top = b.r.choice(["0.5", "2.0", "-1.25", "tf.constant(0.75, F)"]), x.shape, 1.0
        if "add_n" in text:
            raise Refused
    else:
        other, shape, top = y.name, broadcast(x.shape, y.shape), y.bound
        assert shape is not None
    if "add_n" in text and (y is None or y.shape != x.shape):
        raise Refused
    size = max(x.bound, top) + 2 if bound is None else bound(x.bound, top)
    if bound is None and "no_nan" in text:
        size = x.bound + 4
    if b.mode == "exact" and size > 8:
        raise Refused
    names = [x.name, other]
    if b.r.random() < 0.3 and "abs" not in text and "relu" not in text:
        names.reverse()
    if names[0][0] not in "xvcap" and "cast" in text:
        raise Refused
    return b.add(text.format(*names), "F", shape, size)


@op(2, exact=True)
def integers(b: Builder) -> Any:
    x = b.pick("il", lambda v: v.bound < 20)
    text = b.r.choice(["{0} + {1}", "{0} - {1}", "{0} * {1}", "tf.maximum({0}, {1})", "tf.floordiv({0}, tf.abs({1}) + 1)", "tf.floormod({0}, tf.abs({1}) + 1)",
                       "tf.where_v2({0} > {1}, {0}, {1})", "tf.abs({0})", "-{0}", "tf.minimum({0}, {1})", "tf.square(tf.clip_by_value({0}, -9, 9))"])  # fmt: skip
    y = partner(b, x)
    if y is None:
        if "abs({1})" in text:
            raise Refused
        return b.add(text.format(x.name, b.r.choice(["1", "3", "-2"])), x.dtype, x.shape, x.bound + 3)
    shape = broadcast(x.shape, y.shape)
    if "{1}" not in text:
        shape = x.shape
    assert shape is not None
    bound = x.bound + y.bound if "*" in text else max(x.bound, y.bound) + 1
    return b.add(text.format(x.name, y.name), x.dtype, shape, bound)


@op(2, exact=True)
def casts(b: Builder) -> Any:
    kind = b.r.randrange(6)
    if kind == 0:
        x = b.pick("F")
        return b.add(f"tf.cast({x.name} * 2.0, tf.{b.r.choice(['int32', 'int32'])})", "i", x.shape, x.bound + 1)
    if kind == 1:
        x = b.pick("il", lambda v: v.bound < 8)
        return b.add(f"tf.cast({x.name}, F)", "F", x.shape, x.bound)
    if kind == 2:
        x = b.pick("b")
        return b.add(f"tf.cast({x.name}, F)", "F", x.shape, 0.0)
    if kind == 3:
        x = b.pick("il", lambda v: v.bound < 30)
        target = "l" if x.dtype == "i" else "i"
        return b.add(f"tf.cast({x.name}, {NAMES[target]})", target, x.shape, x.bound)
    if kind == 4:
        x = b.pick("F")
        if b.mode == "exact":
            raise Refused
        return b.add(f"tf.cast({x.name}, tf.float64)", "D", x.shape, x.bound)
    x = b.pick("D")
    return b.add(f"tf.cast({x.name}, F)", "F", x.shape, x.bound)


@op(1.5)
def doubles(b: Builder) -> Any:
    x = b.pick("D")
    y = partner(b, x)
    if y is None or b.r.random() < 0.5:
        text, _, bound = b.r.choice(UNARY[:40])
        if bound is None or "F)" in text or "[" in text:
            raise Refused
        return b.add(text.format(x.name), "D", x.shape, bound(x.bound))
    shape = broadcast(x.shape, y.shape)
    assert shape is not None
    return b.add(
        b.r.choice(["{} + {}", "{} - {}", "tf.maximum({}, {})"]).format(x.name, y.name),
        "D",
        shape,
        max(x.bound, y.bound) + 1,
    )


@op(3, exact=True)
def comparisons(b: Builder) -> Any:
    x = b.pick("Fil")
    y = partner(b, x)
    relation = b.r.choice(["tf.less", "tf.less_equal", "tf.greater", "tf.greater_equal", "tf.equal", "tf.not_equal"])
    if y is None:
        return b.add(f"{relation}({x.name}, {b.r.choice(['0', '1'])})", "b", x.shape)
    shape = broadcast(x.shape, y.shape)
    assert shape is not None
    return b.add(f"{relation}({x.name}, {y.name})", "b", shape)


@op(1.5, exact=True)
def logic(b: Builder) -> Any:
    x = b.pick("b")
    if b.r.random() < 0.3:
        return b.add(f"tf.logical_not({x.name})", "b", x.shape)
    y = partner(b, x)
    if y is None:
        raise Refused
    shape = broadcast(x.shape, y.shape)
    assert shape is not None
    return b.add(f"tf.logical_{b.r.choice(['and', 'or', 'xor'])}({x.name}, {y.name})", "b", shape)


@op(3, exact=True)
def select(b: Builder) -> Any:
    c = b.pick("b")
    x = b.pick("Fil", lambda v: broadcast(v.shape, c.shape) is not None)
    y = partner(b, x)
    shape = broadcast(x.shape, c.shape)
    assert shape is not None
    other, bound = b.r.choice(["0", "1"]), x.bound + 1
    if y is not None:
        other, bound = y.name, max(x.bound, y.bound)
        shape = broadcast(shape, y.shape)
        if shape is None:
            raise Refused
    names = [x.name, other]
    if b.r.random() < 0.5:
        names.reverse()
    if y is None and x.dtype != "F":
        names = [n if n == x.name else f"tf.constant({n}, {NAMES[x.dtype]})" for n in names]
    elif y is None:
        names = [n if n == x.name else f"tf.constant({n}.0, F)" for n in names]
    return b.add(f"tf.where_v2({c.name}, {names[0]}, {names[1]})", x.dtype, shape, bound)


def reduced(shape: Shape, axes: list[int], keep: bool) -> Shape:
    return tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)


@op(6, exact=True)
def reductions(b: Builder) -> Any:
    x = b.pick("Fil", lambda v: len(v.shape) > 0)
    rank = len(x.shape)
    axes = sorted(b.r.sample(range(rank), b.r.randint(1, rank)))
    keep = b.r.random() < 0.4
    count = b.size(tuple(x.shape[i] for i in axes))
    names = ["sum", "mean", "max", "min", "sum"]
    if x.dtype == "F" and b.mode != "exact":
        names += ["logsumexp", "variance", "euclidean_norm", "std", "prod"]
    name = b.r.choice(names)
    if name in ("sum",) and b.mode == "exact" and x.dtype == "F" and x.bound + count.bit_length() > 14:
        raise Refused
    if name == "mean" and (x.dtype != "F" or b.mode == "exact"):
        name = "max"
    bound = x.bound + (count.bit_length() if name in ("sum", "euclidean_norm") else 0)
    if name == "logsumexp":
        bound = x.bound + 4
    if name == "variance":
        bound = 2 * x.bound
    if name == "prod" and (count > 4 or x.bound > 2):
        raise Refused
    if name == "prod":
        bound = x.bound * 4
    if name in ("max", "min") and any(isinstance(x.shape[i], str) for i in axes) and x.dtype != "F":
        name = "sum"
    axis = repr(axes) if b.r.random() < 0.7 or len(axes) > 1 else repr(axes[0] - b.r.choice([0, rank]))
    if len(axes) == rank and b.r.random() < 0.5:
        axis = "None"
    where = "math." if name in ("variance", "std", "euclidean_norm") else ""
    text = f"tf.{where}reduce_{name}({x.name}, {axis}, keepdims={keep})"
    if name == "std":
        text = f"tf.sqrt(tf.math.reduce_variance({x.name}, {axis}, keepdims={keep}) + 0.1)"
    if name == "euclidean_norm":
        text = f"tf.sqrt(tf.reduce_sum(tf.square({x.name}), {axis}, keepdims={keep}) + 0.1)"
    return b.add(text, x.dtype, reduced(x.shape, axes, keep), bound)


@op(1, exact=True)
def any_all(b: Builder) -> Any:
    x = b.pick("b", lambda v: len(v.shape) > 0)
    axes = sorted(b.r.sample(range(len(x.shape)), b.r.randint(1, len(x.shape))))
    keep = b.r.random() < 0.4
    return b.add(
        f"tf.reduce_{b.r.choice(['any', 'all'])}({x.name}, {axes}, keepdims={keep})", "b", reduced(x.shape, axes, keep)
    )


@op(2, exact=True)
def places(b: Builder) -> Any:
    x = b.pick("Fi", lambda v: len(v.shape) > 0 and any(isinstance(d, int) for d in v.shape))
    axis = b.r.choice([i for i, d in enumerate(x.shape) if isinstance(d, int)])
    kind = b.r.choice(["tf.int64", "tf.int32"])
    return b.add(f"tf.arg{b.r.choice(['max', 'min'])}({x.name}, {axis}, output_type={kind})", "l" if "64" in kind else "i",
                 reduced(x.shape, [axis], False), 6.0)  # fmt: skip


@op(1.5, exact=True)
def largest(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) > 0 and isinstance(v.shape[-1], int))
    if b.r.random() < 0.25:
        d = b.r.choice(["ASCENDING", "DESCENDING"])
        return b.add(f"tf.sort({x.name}, direction={d!r})", "F", x.shape, x.bound)
    k = b.r.randint(1, x.shape[-1])
    shape = (*x.shape[:-1], k)
    return b.add_many(f"tf.nn.top_k({x.name}, {k})", [("F", shape, x.bound), ("i", shape, 6.0)])


@op(3)
def softmaxes(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) > 0)
    kind = b.r.randrange(5)
    if kind == 0:
        axis = b.r.randrange(len(x.shape))
        return b.add(f"tf.nn.softmax({x.name}, axis={axis})", "F", x.shape, 0.0)
    if kind == 1:
        return b.add(f"tf.nn.log_softmax({x.name})", "F", x.shape, x.bound + 4)
    if kind == 2:
        return b.add(f"tf.nn.l2_normalize({x.name}, {b.r.randrange(len(x.shape))}, epsilon=0.01)", "F", x.shape, 0.0)
    d = x.shape[-1]
    if not isinstance(d, int):
        raise Refused
    if kind == 3:
        return b.add(f"norm({x.name}, {b.fresh('F', (d,))}, {b.fresh('F', (d,))})", "F", x.shape, 5.0)
    ids = f"tf.floormod(tf.cast(tf.abs(tf.reduce_sum({x.name}, -1)) * 3.0, tf.int32), {d})"
    if b.r.random() < 0.5:
        return b.add(
            f"tf.nn.sparse_softmax_cross_entropy_with_logits(labels={ids}, logits={x.name})",
            "F",
            x.shape[:-1],
            x.bound + 4,
        )
    return b.add(
        f"tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid({x.name} * 2.0), logits={x.name})",
        "F",
        x.shape,
        x.bound + 2,
    )


@op(5, exact=True)
def products(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) >= 1 and isinstance(v.shape[-1], int) and v.shape[-1] > 0)
    k = x.shape[-1]
    if b.mode == "exact" and x.bound + 1 + k.bit_length() > 13:
        raise Refused
    m = b.r.choice(SIZES)
    weight_bound = 2.0 if b.mode == "exact" else 1.0
    bound = x.bound + weight_bound + k.bit_length() / 2 + 1
    kind = b.r.randrange(6)
    if len(x.shape) == 2 and kind < 3:
        turned = b.r.random() < 0.3
        w = b.fresh("F", (m, k) if turned else (k, m), weight_bound)
        text = f"tf.matmul({x.name}, {w}{', transpose_b=True' if turned else ''})"
        if b.r.random() < 0.4:
            text = f"tf.nn.bias_add({text}, {b.fresh('F', (m,))})"
        return b.add(text, "F", (x.shape[0], m), bound + 1)
    if kind < 4 and len(x.shape) >= 2:
        w = b.fresh("F", (k, m), weight_bound)
        return b.add(f"tf.tensordot({x.name}, {w}, 1)", "F", (*x.shape[:-1], m), bound)
    if len(x.shape) >= 2:
        found = [
            v
            for v in b.values
            if v.dtype == "F" and len(v.shape) == len(x.shape) and v.shape[:-2] == x.shape[:-2] and v.shape[-1] == k
        ]
        y = b.r.choice(found[-5:])
        b.uses.add(y.name)
        size = x.bound + y.bound + k.bit_length()
        if b.mode == "exact" and size > 14:
            raise Refused
        shape = (*x.shape[:-1], y.shape[-2])
        if len(x.shape) == 3 and b.r.random() < 0.3:
            return b.add(f"tf.einsum('bik,bjk->{b.r.choice(['bij', 'bij'])}', {x.name}, {y.name})", "F", shape, size)
        return b.add(f"tf.matmul({x.name}, {y.name}, transpose_b=True)", "F", shape, size)
    raise Refused


@op(5, exact=True)
def reshapes(b: Builder) -> Any:
    x = b.pick("Filb")
    rank = len(x.shape)
    kind = b.r.randrange(7)
    if kind == 0 and rank >= 2:
        order = list(range(rank))
        b.r.shuffle(order)
        return b.add(f"tf.transpose({x.name}, {order})", x.dtype, tuple(x.shape[i] for i in order), x.bound)
    if kind == 1:
        axis = b.r.randint(0, rank)
        return b.add(f"tf.expand_dims({x.name}, {axis})", x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]), x.bound)
    if kind == 2 and 1 in x.shape:
        axis = b.r.choice([i for i, d in enumerate(x.shape) if d == 1])
        return b.add(f"tf.squeeze({x.name}, [{axis}])", x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]), x.bound)
    if kind == 3 and rank >= 2 and isinstance(x.shape[-1], int):
        lead = x.shape[:-1]
        name = (
            lead[0]
            if len(lead) == 1
            else "*".join(map(str, lead))
            if any(isinstance(d, str) for d in lead)
            else b.size(lead)
        )
        for sizes in b.sizes:
            if isinstance(name, str):
                total = 1
                for d in lead:
                    total *= d if isinstance(d, int) else sizes.get(d, 4)
                sizes[name] = total
        if x.shape[-1] == 0:
            raise Refused
        return b.add(f"tf.reshape({x.name}, [-1, {x.shape[-1]}])", x.dtype, (name, x.shape[-1]), x.bound)
    if kind == 4 and rank >= 1 and isinstance(x.shape[-1], int) and x.shape[-1] % 2 == 0:
        head = ", ".join(
            f"tf.shape({x.name})[{i}]" if isinstance(d, str) else str(d) for i, d in enumerate(x.shape[:-1])
        )
        d = x.shape[-1] // 2
        return b.add(
            f"tf.reshape({x.name}, [{head}{',' if head else ''} {d}, 2])", x.dtype, (*x.shape[:-1], d, 2), x.bound
        )
    if kind == 5 and rank >= 1 and x.dtype != "b":
        axes = sorted(b.r.sample(range(rank), b.r.randint(1, rank)))
        return b.add(f"tf.reverse({x.name}, {axes})", x.dtype, x.shape, x.bound)
    if kind == 6 and rank >= 1 and x.dtype == "F":
        y = b.pick("F", lambda v: 0 < len(v.shape) < rank and broadcast(v.shape, x.shape) == x.shape)
        return b.add(f"tf.broadcast_to({y.name}, tf.shape({x.name}))", "F", x.shape, y.bound)
    raise Refused


@op(4, exact=True)
def slices(b: Builder) -> Any:
    x = b.pick("Filb", lambda v: len(v.shape) > 0)
    parts, shape = [], []
    for d in x.shape:
        kind = b.r.randrange(6)
        if not isinstance(d, int):
            if kind == 0 and len(x.shape) > 1 and min(s.get(d, 1) for s in b.sizes) >= 1:
                parts.append("0" if b.r.random() < 0.5 else "-1")
            else:
                parts.append(":" if kind < 5 or "*" in d else "::-1")
                shape.append(d)
        elif d == 0 or kind < 2:
            parts.append(":")
            shape.append(d)
        elif kind == 2:
            parts.append(str(b.r.randrange(-d, d)))
        elif kind == 3 and d > 1:
            start = b.r.randrange(d - 1)
            stop = b.r.randint(start + 1, d)
            parts.append(f"{start}:{stop}")
            shape.append(stop - start)
        elif kind == 4:
            step = b.r.choice([2, 3, -1, -2])
            parts.append(f"::{step}")
            shape.append(len(range(d)[::step]))
        else:
            parts.append("tf.newaxis, :")
            shape += [1, d]
    return b.add(f"{x.name}[{', '.join(parts)}]", x.dtype, tuple(shape), x.bound)


@op(4, exact=True)
def joins(b: Builder) -> Any:
    x = b.pick("Fil", lambda v: len(v.shape) > 0)
    same = [v for v in b.values if v.dtype == x.dtype and v.shape == x.shape]
    others = [b.r.choice(same[-5:]) for _ in range(b.r.randint(0, 3))]
    b.uses.update(v.name for v in others)
    every = [x, *others]
    b.r.shuffle(every)
    bound = max(v.bound for v in every)
    axis = b.r.randrange(len(x.shape))
    text = ", ".join(v.name for v in every)
    if b.r.random() < 0.4:
        at = b.r.randint(0, len(x.shape))
        return b.add(f"tf.stack([{text}], {at})", x.dtype, (*x.shape[:at], len(every), *x.shape[at:]), bound)
    fixed = [i for i, d in enumerate(x.shape) if isinstance(d, int)]
    if not fixed:
        raise Refused
    axis = b.r.choice(fixed)
    near = [v for v in b.values if v.dtype == x.dtype and len(v.shape) == len(x.shape) and isinstance(v.shape[axis], int)
            and all(i == axis or a == c for i, (a, c) in enumerate(zip(v.shape, x.shape)))]  # fmt: skip
    every = [b.r.choice(near[-6:]) for _ in range(b.r.randint(1, 3))] + [x]
    b.uses.update(v.name for v in every)
    b.r.shuffle(every)
    total = sum(v.shape[axis] for v in every)
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    return b.add(
        f"tf.concat([{', '.join(v.name for v in every)}], {axis})", x.dtype, shape, max(v.bound for v in every)
    )


@op(2, exact=True)
def splits(b: Builder) -> Any:
    x = b.pick("Fi", lambda v: any(isinstance(d, int) and d > 1 for d in v.shape))
    axis = b.r.choice([i for i, d in enumerate(x.shape) if isinstance(d, int) and d > 1])
    d = x.shape[axis]
    if d <= 6 and b.r.random() < 0.4:
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return b.add_many(f"tf.unstack({x.name}, axis={axis})", [(x.dtype, shape, x.bound)] * d)
    first = b.r.randint(1, d - 1)
    sizes = [first, d - first]
    if d % 2 == 0 and b.r.random() < 0.5:
        sizes = [d // 2] * 2
    shapes = [(*x.shape[:axis], s, *x.shape[axis + 1 :]) for s in sizes]
    return b.add_many(
        f"tf.split({x.name}, {sizes if b.r.random() < 0.6 or sizes[0] != sizes[-1] else 2}, {axis})",
        [(x.dtype, s, x.bound) for s in shapes],
    )


@op(3, exact=True)
def repeats(b: Builder) -> Any:
    x = b.pick("Fi", lambda v: len(v.shape) > 0)
    kind = b.r.randrange(4)
    fixed = [i for i, d in enumerate(x.shape) if isinstance(d, int)]
    if kind == 0:
        times = [b.r.choice([1, 2, 3]) if i in fixed else 1 for i in range(len(x.shape))]
        return b.add(
            f"tf.tile({x.name}, {times})",
            x.dtype,
            tuple(d * t if isinstance(d, int) else d for d, t in zip(x.shape, times)),
            x.bound,
        )
    if kind == 1:
        pads = [[b.r.randint(0, 2), b.r.randint(0, 2)] if i in fixed else [0, 0] for i in range(len(x.shape))]
        mode = b.r.choice(["CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"])
        if mode != "CONSTANT" and (any(isinstance(d, int) and d < 3 for d in x.shape)):
            mode = "CONSTANT"
        value = f", constant_values={b.r.choice(['1', '-2'])}" if mode == "CONSTANT" and b.r.random() < 0.3 else ""
        if mode != "CONSTANT" and x.dtype != "F":
            raise Refused
        shape = tuple(d + p[0] + p[1] if isinstance(d, int) else d for d, p in zip(x.shape, pads))
        return b.add(f"tf.pad({x.name}, {pads}, {mode!r}{value})", x.dtype, shape, max(x.bound, 1))
    axis = b.r.randrange(len(x.shape))
    if kind == 2:
        return b.add(f"tf.roll({x.name}, {b.r.randint(-3, 3)}, {axis})", x.dtype, x.shape, x.bound)
    if b.mode == "exact" and x.bound + b.size((x.shape[axis],)).bit_length() > 13:
        raise Refused
    return b.add(
        f"tf.cumsum({x.name}, {axis}, exclusive={b.r.random() < 0.4}, reverse={b.r.random() < 0.4})",
        x.dtype,
        x.shape,
        x.bound + b.size((x.shape[axis],)).bit_length(),
    )


def ids(b: Builder, count: int) -> tuple[str, Shape]:
    """Indices below `count`."""
    if b.r.random() < 0.6:
        x = b.pick("il", lambda v: len(v.shape) < 4)
        return f"tf.floormod({x.name}, {count})", x.shape
    shape = tuple(b.r.choice(SIZES) for _ in range(b.r.randint(0, 2)))
    return (
        f"tf.constant(np.random.RandomState({b.r.randrange(9999)}).randint(0, {count}, {list(shape)}).astype('int32'))",
        shape,
    )


@op(4, exact=True)
def gathers(b: Builder) -> Any:
    kind = b.r.randrange(7)
    if kind == 0:
        d, w = b.r.choice(SIZES), b.r.choice(SIZES)
        text, shape = ids(b, d)
        if b.parent is None:
            b_uses = set(b.uses)
            table = b.variable((d, w))
            b.uses = b_uses | {table.name}
            return b.add(f"tf.nn.embedding_lookup({table.name}, {text})", "F", (*shape, w), 2.0)
        return b.add(f"tf.gather({b.fresh('F', (d, w))}, {text})", "F", (*shape, w), 2.0)
    x = b.pick("Fi", lambda v: any(isinstance(d, int) and d > 0 for d in v.shape))
    axis = b.r.choice([i for i, d in enumerate(x.shape) if isinstance(d, int) and d > 0])
    count = x.shape[axis]
    if kind == 1:
        text, shape = ids(b, count)
        return b.add(
            f"tf.gather({x.name}, {text}, axis={axis})",
            x.dtype,
            (*x.shape[:axis], *shape, *x.shape[axis + 1 :]),
            x.bound,
        )
    if kind == 2:
        depth = b.r.choice([2, 3, 5, 8, 16])
        i = b.pick("il", lambda v: len(v.shape) < 4)
        on = b.r.choice(["", ", on_value=2.0, off_value=-1.0", f", axis={b.r.randint(0, len(i.shape))}"])
        at = int(on[-1]) if "axis" in on else len(i.shape)
        return b.add(f"tf.one_hot({i.name}, {depth}, dtype=F{on})", "F", (*i.shape[:at], depth, *i.shape[at:]), 1.0)
    if kind == 3 and x.dtype == "F" and axis == 0:
        text, shape = ids(b, count)
        return b.add(f"tf.gather_nd({x.name}, tf.expand_dims({text}, -1))", "F", (*shape, *x.shape[1:]), x.bound)
    if kind == 4:
        y = b.pick("F", lambda v: len(v.shape) >= 1)
        rows = y.shape[0]
        i = b.pick("il", lambda v: v.shape == (rows,))
        n = b.r.choice([2, 3, 5, 8])
        name = b.r.choice(["sum", "max", "min", "sum", "mean"])
        count = b.size((rows,))
        if b.mode == "exact" and (name == "mean" or y.bound + count.bit_length() > 14):
            name = "max"
        text = f"tf.unsorted_segment_{name}({y.name}, tf.floormod({i.name}, {n}), {n})"
        if name in ("max", "min"):
            text = f"tf.clip_by_value({text}, -{2.0 ** int(y.bound + 1)}, {2.0 ** int(y.bound + 1)})"
        return b.add(text, "F", (n, *y.shape[1:]), y.bound + count.bit_length())
    if kind == 5:
        y = b.pick("F", lambda v: len(v.shape) >= 1)
        i = b.pick("il", lambda v: v.shape == (y.shape[0],))
        n = b.r.choice([2, 3, 8])
        if b.mode == "exact" and y.bound + b.size((y.shape[0],)).bit_length() > 14:
            raise Refused
        if any(isinstance(d, str) for d in y.shape[1:]):
            raise Refused
        shape = (n, *y.shape[1:])
        if i.dtype == "l":
            raise Refused
        return b.add(
            f"tf.scatter_nd(tf.expand_dims(tf.floormod({i.name}, {n}), 1), {y.name}, {list(shape)})",
            "F",
            shape,
            y.bound + b.size((y.shape[0],)).bit_length(),
        )
    i = b.pick("il", lambda v: len(v.shape) == 1)
    n = b.r.choice([3, 5, 8, 16])
    return b.add(f"tf.sequence_mask(tf.clip_by_value({i.name}, 0, {n}), {n}, dtype=F)", "F", (*i.shape, n), 0.0)
