"""More of the grammar: layers, factorizations, segments, unrolled loops, recurrent and convolutional forms, running averages."""

from __future__ import annotations

from typing import Any

from differential.grammar import SIZES, Builder, Refused, argument, op


def fixed(shape: Any) -> bool:
    return all(isinstance(d, int) for d in shape)


def bits(b: Builder, *dims: Any) -> int:
    return b.size(tuple(dims)).bit_length()


def lowest(b: Builder, d: Any) -> int:
    return d if isinstance(d, int) else min(s.get(d, 4) for s in b.sizes)


@op(2, exact=True)
def unrolled(b: Builder) -> Any:
    """A loop written in Python over slices, as old recurrent programs are."""
    x = b.pick("F", lambda v: len(v.shape) >= 2 and isinstance(v.shape[1], int) and 2 <= v.shape[1] <= 24)
    count = x.shape[1]
    start = (x.shape[0], *x.shape[2:])
    a, e = argument(b, "F", start, max(x.bound, 3.0)), argument(b, "F", start, x.bound)
    uses = set(b.uses)
    f = b.function([a, e], lambda v: True, [("F", start, 3.0)])
    b.uses = uses | {f}
    how = b.r.choice(["last", "sum", "stack", "concat"])
    if how in ("stack",):
        return b.add(f"unrolled({x.name}, {count}, {f}, 'stack')", "F", (start[0], count, *start[1:]), 3.0)
    if how == "concat":
        if len(start) < 2 or not isinstance(start[1], int):
            raise Refused
        return b.add(f"unrolled({x.name}, {count}, {f}, 'concat')", "F", (start[0], count * start[1], *start[2:]), 3.0)
    bound = 3.0 if how == "last" else 3.0 + count.bit_length()
    return b.add(f"unrolled({x.name}, {count}, {f}, {how!r})", "F", start, bound)


@op(1.5, exact=True)
def sums_of_slices(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) >= 1 and isinstance(v.shape[0], int) and v.shape[0] >= 3)
    n = b.r.randint(2, min(8, x.shape[0]))
    starts = [b.r.randrange(x.shape[0]) for _ in range(n)]
    expression = " + ".join(f"{x.name}[{s}] * {b.r.choice([0.5, 1.0, -2.0])}" for s in starts)
    return b.add(expression, "F", x.shape[1:], x.bound + 2 + n.bit_length())


@op(1.5)
def factorizations(b: Builder) -> Any:
    x = b.pick(
        "F",
        lambda v: (
            len(v.shape) >= 2
            and isinstance(v.shape[-1], int)
            and isinstance(v.shape[-2], int)
            and 1 <= v.shape[-1] <= 17
            and v.bound <= 4
            and v.shape[-2] > 0
        ),
    )
    n = x.shape[-1]
    spd = f"(tf.matmul({x.name}, {x.name}, transpose_a=True) * 0.1 + tf.eye({n}, dtype=F) * 4.0)"
    lead = x.shape[:-2]
    kind = b.r.randrange(7)
    if kind == 0:
        return b.add(f"tf.linalg.cholesky({spd})", "F", (*lead, n, n), 5.0)
    if kind == 1:
        return b.add(f"tf.linalg.inv({spd})", "F", (*lead, n, n), 1.0)
    if kind == 2:
        return b.add(f"tf.linalg.logdet({spd})", "F", lead, 6.0)
    if kind == 3:
        return b.add(f"tf.linalg.solve({spd}, tf.matrix_transpose({x.name}))", "F", (*lead, n, x.shape[-2]), x.bound)
    if kind == 4:
        return b.add(
            f"tf.linalg.triangular_solve(tf.linalg.cholesky({spd}), tf.matrix_transpose({x.name}), lower=True)",
            "F",
            (*lead, n, x.shape[-2]),
            x.bound,
        )
    if kind == 5:
        return b.add(f"tf.linalg.diag_part({spd})", "F", (*lead, n), 8.0)
    return b.add(f"tf.matrix_band_part({x.name}, {b.r.randint(-1, 2)}, {b.r.randint(-1, 2)})", "F", x.shape, x.bound)


@op(1, exact=True)
def diagonals(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) >= 1 and isinstance(v.shape[-1], int) and 1 <= v.shape[-1] <= 33)
    n = x.shape[-1]
    if b.r.random() < 0.5:
        return b.add(f"tf.linalg.diag({x.name})", "F", (*x.shape, n), x.bound)
    if len(x.shape) >= 2 and isinstance(x.shape[-2], int):
        return b.add(
            f"tf.matrix_band_part({x.name}, {b.r.randint(-1, 2)}, {b.r.randint(-1, 2)})", "F", x.shape, x.bound
        )
    raise Refused


@op(3, exact=True)
def segments(b: Builder) -> Any:
    y = b.pick("F", lambda v: len(v.shape) >= 1)
    rows = y.shape[0]
    count = bits(b, rows)
    if b.mode == "exact" and y.bound + count > 14:
        raise Refused
    kind = b.r.randrange(8)
    if kind == 0:  # sorted
        n = b.r.choice([1, 2, 3, 7])
        if not isinstance(rows, int) or rows == 0:
            raise Refused
        name = b.r.choice(["sum", "max", "min", "sum"] + (["mean"] if b.mode != "exact" else []))
        order = sorted(b.r.randrange(n) for _ in range(rows))
        return b.add(
            f"tf.math.segment_{name}({y.name}, tf.constant({order}))",
            "F",
            (order[-1] + 1, *y.shape[1:]),
            y.bound + count,
        )
    if kind == 1:
        i = b.pick("il", lambda v: v.shape == (rows,))
        n = b.r.choice([3, 5, 9])
        return b.add(
            f"tf.unsorted_segment_sum({y.name}, tf.floormod({i.name}, {n}) - 1, {n})",
            "F",
            (n, *y.shape[1:]),
            y.bound + count,
        )
    if kind == 2 and b.parent is None:  # distinct ids: a size that depends on data
        i = b.pick("il", lambda v: v.shape == (rows,))
        key = f"U_{b.names.next}"
        for sizes in b.sizes:
            sizes[key] = sizes.get(rows, 4) if isinstance(rows, str) else rows
        name = b.r.choice(["sum", "max"])
        return b.add(f"distinct({i.name}, {y.name}, {name!r})", "F", (key, *y.shape[1:]), y.bound + count)
    if kind == 3:
        i = b.pick("i", lambda v: len(v.shape) == 1)
        n = b.r.choice([3, 5, 9])
        return b.add(
            f"tf.math.bincount(tf.floormod({i.name}, {n}), minlength={n}, maxlength={n}, dtype=F)",
            "F",
            (n,),
            float(bits(b, *i.shape)),
        )
    if kind == 4 and len(y.shape) >= 2 and isinstance(y.shape[1], int) and y.shape[1] > 0:
        i = b.pick("il", lambda v: v.shape == (rows,))
        return b.add(
            f"tf.reverse_sequence({y.name}, tf.clip_by_value({i.name}, 0, {y.shape[1]}), seq_axis=1, batch_axis=0)",
            "F",
            y.shape,
            y.bound,
        )
    if kind == 5 and len(y.shape) >= 2 and isinstance(y.shape[1], int) and y.shape[1] > 0:
        i = b.pick("il", lambda v: len(v.shape) == 2 and v.shape[0] == rows)
        return b.add(
            f"tf.gather({y.name}, tf.floormod({i.name}, {y.shape[1]}), axis=1, batch_dims=1)",
            "F",
            (rows, i.shape[1], *y.shape[2:]),
            y.bound,
        )
    if kind == 6 and isinstance(rows, int) and rows > 0:
        i = b.pick("i", lambda v: len(v.shape) == 1)
        u = b.pick("F", lambda v: v.shape == (i.shape[0], *y.shape[1:]))
        if b.mode == "exact" and u.bound + bits(b, i.shape[0]) > 13:
            raise Refused
        return b.add(
            f"tf.tensor_scatter_nd_add({y.name}, tf.floormod({i.name}, {rows})[:, tf.newaxis], {u.name})",
            "F",
            y.shape,
            max(y.bound, u.bound) + bits(b, i.shape[0]),
        )
    if isinstance(rows, int) and rows > 0:
        width = b.r.choice([1, 2, 3, 6])
        x = b.pick("il", lambda v: len(v.shape) == 1)
        return b.add(
            f"tf.reduce_{'sum' if b.mode != 'exact' or y.bound < 8 else 'max'}(tf.gather({y.name}, tf.floormod({x.name}[:, tf.newaxis] + tf.cast(tf.range({width}), {x.name}.dtype), {rows})), 1)",
            "F",
            (x.shape[0], *y.shape[1:]),
            y.bound + 3,
        )
    raise Refused


@op(1.5)
def sparse_lookups(b: Builder) -> Any:
    if b.parent is not None:
        raise Refused
    i = b.pick("il", lambda v: len(v.shape) == 2)
    d, w = b.r.choice(SIZES), b.r.choice(SIZES)
    uses = set(b.uses)
    table = b.variable((d, w))
    b.uses = uses | {table.name}
    combiner = b.r.choice(["sum", "mean", "sqrtn"])
    weights = ""
    if b.r.random() < 0.3:
        weights = ", weighted=True"
    return b.add(
        f"bags({table.name}, {i.name}, {d}, {combiner!r}{weights})", "F", (i.shape[0], w), 2.0 + bits(b, i.shape[1])
    )


@op(2.5, exact=True)
def layered(b: Builder) -> Any:
    """Layers with variables of their own."""
    if b.parent is not None:
        raise Refused
    scope = b.names.name("layer")
    kind = b.r.randrange(8)
    seed = b.r.randrange(999)
    if b.mode == "exact":
        kind = 5
    if kind <= 1:
        x = b.pick("F", lambda v: len(v.shape) >= 2 and isinstance(v.shape[-1], int) and v.shape[-1] > 0)
        units = b.r.choice(SIZES)
        act = b.r.choice(["None", "tf.nn.relu", "tf.tanh", "tf.nn.elu"])
        return b.add(
            f"layer({scope!r}, {seed}, lambda: tf.layers.dense({x.name}, {units}, {act}))",
            "F",
            (*x.shape[:-1], units),
            x.bound + bits(b, x.shape[-1]) / 2,
        )
    if kind == 2:
        x = b.pick(
            "F",
            lambda v: (
                len(v.shape) in (2, 4)
                and isinstance(v.shape[-1], int)
                and v.shape[-1] > 0
                and lowest(b, v.shape[0]) > 1
            ),
        )
        flags = [v for v in b.values if v.dtype == "b" and v.shape == () and v.name[0] == "p"]
        training = b.r.choice(["True", "False"])
        if flags:
            flag = b.r.choice(flags)
            b.uses.add(flag.name)
            training = flag.name
        return b.add(f"layer({scope!r}, {seed}, lambda: batch_norm({x.name}, {training}))", "F", x.shape, 4.0)
    if kind == 3:
        x = b.pick(
            "F",
            lambda v: (
                len(v.shape) == 3 and isinstance(v.shape[-1], int) and v.shape[-1] > 0 and lowest(b, v.shape[1]) >= 5
            ),
        )
        m, k, s, d = b.r.choice([1, 3, 8, 16]), b.r.choice([1, 2, 3, 5]), b.r.choice([1, 1, 2]), b.r.choice([1, 1, 2])
        if isinstance(x.shape[1], str) and (s > 1):
            s = 1
        if s > 1:
            d = 1
        size = x.shape[1] if s == 1 else -(-x.shape[1] // s)
        return b.add(
            f"layer({scope!r}, {seed}, lambda: tf.layers.conv1d({x.name}, {m}, {k}, strides={s}, dilation_rate={d}, padding='same'))",
            "F",
            (x.shape[0], size, m),
            x.bound + bits(b, k * x.shape[-1]) / 2,
        )
    if kind == 4:
        x = b.pick("F", lambda v: len(v.shape) == 4 and fixed(v.shape[1:]) and all(v.shape[1:]))
        m, k, s = b.r.choice([1, 3, 8, 16]), b.r.choice([1, 2, 3, 4]), b.r.choice([1, 2, 2])
        return b.add(
            f"layer({scope!r}, {seed}, lambda: tf.layers.conv2d_transpose({x.name}, {m}, {k}, strides={s}, padding='same'))",
            "F",
            (x.shape[0], x.shape[1] * s, x.shape[2] * s, m),
            x.bound + bits(b, k * k * x.shape[-1]) / 2,
        )
    if kind == 5:
        x = b.pick("F", lambda v: len(v.shape) == 4 and fixed(v.shape[1:]) and all(v.shape[1:]))
        h, w = b.r.choice([1, 2, 3, 6, 9]), b.r.choice([1, 2, 4, 7])
        name = b.r.choice(
            ["resize_nearest_neighbor"]
            if b.mode == "exact"
            else ["resize_bilinear", "resize_nearest_neighbor", "resize_bilinear"]
        )
        corners = b.r.choice([", align_corners=True", "", ", half_pixel_centers=True"])
        return b.add(f"tf.image.{name}({x.name}, [{h}, {w}]{corners})", "F", (x.shape[0], h, w, x.shape[3]), x.bound)
    if kind == 6:
        x = b.pick("F", lambda v: len(v.shape) == 4 and fixed(v.shape[1:]) and all(v.shape[1:]))
        m, k, d = b.r.choice([1, 3, 8]), b.r.choice([2, 3]), b.r.choice([1, 2, 3])
        return b.add(
            f"layer({scope!r}, {seed}, lambda: tf.layers.conv2d({x.name}, {m}, {k}, dilation_rate={d}, padding='same', activation=tf.nn.relu))",
            "F",
            (*x.shape[:3], m),
            x.bound + bits(b, k * k * x.shape[-1]) / 2,
        )
    x = b.pick("F", lambda v: len(v.shape) == 4 and fixed(v.shape[1:]) and all(v.shape[1:]))
    m = b.r.choice([1, 3, 8])
    return b.add(
        f"layer({scope!r}, {seed}, lambda: tf.layers.separable_conv2d({x.name}, {m}, 3, padding='same'))",
        "F",
        (*x.shape[:3], m),
        x.bound + bits(b, 9 * x.shape[-1]) / 2,
    )


@op(1.5)
def losses(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) >= 1 and lowest(b, v.shape[0]) > 0)
    y = b.pick("F", lambda v: v.shape == x.shape)
    kind = b.r.randrange(8)
    if kind == 0:
        return b.add(f"tf.losses.huber_loss({x.name}, {y.name})", "F", (), x.bound + 2)
    if kind == 1:
        return b.add(
            f"tf.losses.mean_squared_error({x.name}, {y.name}, weights=2.0)", "F", (), 2 * max(x.bound, y.bound) + 2
        )
    if kind == 2 and isinstance(x.shape[-1], int) and x.shape[-1] > 0 and len(x.shape) == 2:
        return b.add(
            f"tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax({x.name}), logits={y.name})",
            "F",
            x.shape[:-1],
            y.bound + 4,
        )
    if kind == 3:
        return b.add(
            f"tf.nn.weighted_cross_entropy_with_logits(targets=tf.sigmoid({x.name}), logits={y.name}, pos_weight=1.5)",
            "F",
            x.shape,
            y.bound + 3,
        )
    if kind == 4:
        return b.add(f"tf.clip_by_norm({x.name}, 1.5)", "F", x.shape, 1.0)
    if kind == 5:
        return b.add(f"tf.nn.l2_loss({x.name} - {y.name})", "F", (), 2 * max(x.bound, y.bound) + bits(b, *x.shape))
    if kind == 6:
        return b.add(
            f"tf.losses.log_loss(tf.sigmoid({x.name}), tf.sigmoid({y.name}), reduction='none')", "F", x.shape, 5.0
        )
    return b.add(
        f"tf.losses.absolute_difference({x.name}, {y.name}, weights=tf.cast({y.name} > 0, F))",
        "F",
        (),
        max(x.bound, y.bound) + 1,
    )


@op(1.5)
def halves(b: Builder) -> Any:
    x = b.pick("F", lambda v: v.bound <= 6)
    kind = b.r.choice(["tf.float16", "tf.bfloat16"])
    f = b.r.choice(
        [
            "tf.nn.relu(h * 2 + 1)",
            "tf.maximum(h, -h)",
            "tf.reduce_max(h, -1, keepdims=True) - h" if x.shape else "h",
            "tf.where(h > 0, h, tf.zeros_like(h))",
            "tf.square(tf.clip_by_value(h, -2, 2))",
        ]
    )
    return b.add(f"(lambda h: tf.cast({f}, F))(tf.round(tf.cast({x.name}, {kind})))", "F", x.shape, x.bound + 2)


@op(1.5)
def recurrent(b: Builder) -> Any:
    """Networks in both directions, and cells over lists."""
    if b.parent is not None:
        raise Refused
    x = b.pick(
        "F",
        lambda v: (
            len(v.shape) == 3
            and isinstance(v.shape[2], int)
            and v.shape[2] > 0
            and lowest(b, v.shape[1]) > 0
            and lowest(b, v.shape[0]) > 0
        ),
    )
    units, cell, scope = (
        b.r.choice([1, 3, 4, 8]),
        b.r.choice(["BasicLSTMCell", "GRUCell", "BasicRNNCell", "LSTMCell"]),
        b.names.name("rnn"),
    )
    lengths = [v for v in b.values if v.dtype == "i" and v.shape == (x.shape[0],)]
    length = ""
    if lengths and b.r.random() < 0.7:
        chosen = b.r.choice(lengths)
        b.uses.add(chosen.name)
        length = f", tf.clip_by_value({chosen.name}, 0, tf.shape({x.name})[1])"
    shapes = [("F", (*x.shape[:2], 2 * units), 0.0), ("F", (x.shape[0], units), 1.0)]
    return b.add_many(f"both_ways({scope!r}, {cell!r}, {units}, {b.r.randrange(99)}, {x.name}{length})", shapes)


@op(1, exact=True)
def arrays(b: Builder) -> Any:
    x = b.pick("F", lambda v: len(v.shape) >= 1 and isinstance(v.shape[0], int) and v.shape[0] > 0)
    n = x.shape[0]
    order = list(range(n))
    b.r.shuffle(order)
    m = b.r.randint(1, n)
    kind = b.r.randrange(3)
    if kind == 0:
        return b.add(
            f"tf.TensorArray(F, {n}, clear_after_read=False).unstack({x.name}).gather({order[:m]})",
            "F",
            (m, *x.shape[1:]),
            x.bound,
        )
    if kind == 1:
        if len(x.shape) < 2 or not isinstance(x.shape[1], int):
            raise Refused
        return b.add(
            f"tf.TensorArray(F, {n}).scatter({order}, {x.name}).concat()", "F", (n * x.shape[1], *x.shape[2:]), x.bound
        )
    return b.add(
        f"tf.dynamic_stitch([tf.constant({order[:m]}), tf.constant({order[m:]}, tf.int32)], [tf.gather({x.name}, tf.range({m})), {x.name}[{m}:]])",
        "F",
        x.shape,
        x.bound,
    )


@op(1, exact=True)
def averages(b: Builder) -> Any:
    """Moving averages and counters that a run updates before it reads them."""
    if b.parent is not None:
        raise Refused
    x = b.pick("F", lambda v: fixed(v.shape))
    if b.mode == "exact":
        raise Refused
    name = b.names.name("w")
    resource = b.r.random() < 0.6
    text = (f"{name} = tf.get_variable({name!r}, initializer=data(5, {list(x.shape)}, 'grid'), use_resource={resource}, trainable=False)\n"
            f"with tf.control_dependencies([{name}.assign_sub(0.25 * ({name}.read_value() - {x.name}))]):\n    {name}_r = {name}.read_value() * 1.0")  # fmt: skip
    b.statement((name, f"{name}_r"), text)
    b.uses.add(f"{name}_r")
    return b.add(f"tf.clip_by_value({name}_r, -9.0, 9.0)", "F", x.shape, 3.5)


@op(1, exact=True)
def patterns(b: Builder) -> Any:
    """Einsums, transposed products and outer products."""
    x = b.pick("F", lambda v: len(v.shape) in (2, 3, 4))
    last = x.shape[-1]
    if b.mode == "exact" and 2 * x.bound + bits(b, last) > 13:
        raise Refused
    same = [v for v in b.values if v.dtype == "F" and v.shape == x.shape and (b.mode != "exact" or v.bound <= x.bound)]
    y = b.r.choice(same[-4:])
    b.uses.add(y.name)
    bound = x.bound + y.bound
    s = (*x.shape, None, None)
    table = {
        2: [("ab,ab->a", s[:1], last), ("ab,ab->b", (last,), s[0]), ("ab,ad->bd", (last, last), s[0])],
        3: [("abc,adc->abd", (s[0], s[1], s[1]), last), ("abc,abd->acd", (s[0], last, last), s[1]), ("abc,abc->ab", s[:2], last), ("abc,abc->ac", (s[0], last), s[1])],
        4: [("abcd,aecd->acbe", (s[0], s[2], s[1], s[1]), last), ("abcd,abcd->abc", s[:3], last), ("abcd,abed->abce", (s[0], s[1], s[2], s[2]), last)],
    }  # fmt: skip
    text, shape, summed = b.r.choice(table[len(x.shape)])
    if b.mode == "exact" and bound + bits(b, summed) > 14:
        raise Refused
    return b.add(f"tf.einsum({text!r}, {x.name}, {y.name})", "F", shape, bound + bits(b, summed))


@op(1.5, exact=True)
def nested(b: Builder) -> Any:
    """Loops in loops, and branches in loops."""
    x = b.pick("F", lambda v: len(v.shape) >= 2 and lowest(b, v.shape[0]) > 0 and lowest(b, v.shape[1]) > 0)
    a = argument(b, "F", x.shape[2:], 3.0)
    e = argument(b, "F", x.shape[2:], x.bound)
    uses = set(b.uses)
    f = b.function([a, e], lambda v: True, [("F", a.shape, 3.0)])
    b.uses = uses | {f}
    kind = b.r.randrange(3)
    if kind == 0:
        return b.add(f"tf.map_fn(lambda row: tf.scan({f}, row), {x.name})", "F", x.shape, max(3.0, x.bound))
    if kind == 1:
        return b.add(
            f"tf.scan(lambda a, row: tf.foldl({f}, row, initializer=a), {x.name}, initializer=tf.zeros_like({x.name}[0, 0]))",
            "F",
            (x.shape[0], *x.shape[2:]),
            3.0,
        )
    return b.add(
        f"tf.map_fn(lambda row: tf.cond(tf.reduce_sum(row) > 0, lambda: {f}(row[0], row[-1]), lambda: row[0] * 0.5), {x.name})",
        "F",
        (x.shape[0], *x.shape[2:]),
        max(3.0, x.bound),
    )


@op(1.5, exact=True)
def stateful_loops(b: Builder) -> Any:
    """Loops and branches that change variables in a defined order."""
    if b.parent is not None:
        raise Refused
    x = b.pick("F", lambda v: fixed(v.shape) and v.bound <= 4)
    name = b.names.name("w")
    start = f"data({b.r.randrange(9999)}, {list(x.shape)}, 'grid')"
    e = argument(b, "F", x.shape, x.bound)
    a = argument(b, "F", x.shape, 4.0)
    uses = set(b.uses)
    f = b.function([a, e], lambda v: True, [("F", x.shape, 2.0)])
    b.uses = uses | {f}
    kind = b.r.randrange(3)
    decay = b.r.choice(["0.5", "0.25"])
    if kind == 2:
        flags = [v for v in b.values if v.dtype == "b" and v.shape == ()]
        if not flags:
            raise Refused
        flag = b.r.choice(flags)
        b.uses.add(flag.name)
        call = f"change_if({flag.name}, {name!r}, {start}, {f}, {x.name}, {decay})"
    else:
        call = f"change_in_loop({name!r}, {start}, {f}, {x.name}, {b.r.randint(0, 5)}, {decay}, {kind == 1})"
    return b.add_many(call, [("F", x.shape, 5.0), ("F", x.shape, 5.0)])
