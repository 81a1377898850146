"""The grammar's sizes that depend on data, convolutions, control flow, derivatives and updates of variables."""

from __future__ import annotations

from typing import Any

from differential.grammar import NAMES, Builder, Refused, Shape, Val, argument, op


@op(3, exact=True)
def masks(b: Builder) -> Any:
    """Values whose size depends on data."""
    c = b.pick("b", lambda v: len(v.shape) == 1)
    x = b.pick("Fil", lambda v: len(v.shape) >= 1 and v.shape[0] == c.shape[0])
    if b.parent is not None:
        raise Refused
    kind = b.r.randrange(4)
    if kind == 3:
        shapes = [("F" if x.dtype == "F" else x.dtype, (f"P{b.names.next}{s}", *x.shape[1:]), x.bound) for s in "ab"]
        return b.add_many(f"tf.dynamic_partition({x.name}, tf.cast({c.name}, tf.int32), 2)", shapes)
    key = f"M_{c.name}"
    for sizes in b.sizes:
        sizes.setdefault(key, sizes.get(c.shape[0], 4) if isinstance(c.shape[0], str) else c.shape[0])
    if kind == 0:
        return b.add(f"tf.reshape(tf.where({c.name}), [-1])", "l", (key,), 6.0)
    if kind == 1:
        return b.add(f"tf.gather({x.name}, tf.where({c.name})[:, 0])", x.dtype, (key, *x.shape[1:]), x.bound)
    return b.add(f"tf.boolean_mask({x.name}, {c.name})", x.dtype, (key, *x.shape[1:]), x.bound)


@op(2, exact=True)
def images(b: Builder) -> Any:
    n = b.r.choice(["B", 1, 2, 3])
    if n == "B" and not any("B" in v.shape for v in b.values):
        n = 2
    found = [
        v
        for v in b.values
        if v.dtype == "F" and len(v.shape) == 4 and all(isinstance(d, int) and d > 0 for d in v.shape[1:])
    ]
    if found and b.r.random() < 0.7:
        x = b.r.choice(found[-4:])
        b.uses.add(x.name)
    else:
        h, w, c = (
            b.r.choice([3, 4, 5, 7, 8, 12, 16, 20]),
            b.r.choice([3, 4, 5, 8, 11, 16]),
            b.r.choice([1, 2, 3, 4, 8, 16, 17]),
        )
        y = b.pick(
            "F",
            lambda v: (
                (len(v.shape) == 1 and isinstance(v.shape[0], str))
                or (len(v.shape) == 2 and isinstance(v.shape[1], int) and v.shape[1] > 0)
            ),
        )
        lead = y.shape[0]
        one = (
            f"tf.reshape({y.name}, [-1, 1, 1, 1])"
            if len(y.shape) == 1
            else f"tf.reshape(tf.reduce_max({y.name}, 1), [-1, 1, 1, 1])"
        )
        x = b.add(
            f"{one} * {b.fresh('F', (h, w, c), 1.0 if b.mode != 'exact' else 2.0)}", "F", (lead, h, w, c), y.bound + 2
        )
        b.uses.add(x.name)
    lead, h, w, c = x.shape
    padding = b.r.choice(["SAME", "VALID"])
    f1, f2, s1, s2 = (
        b.r.choice([1, 2, 3, 3, 3, 5]),
        b.r.choice([1, 2, 3, 3, 3, 5]),
        b.r.choice([1, 1, 1, 2, 3]),
        b.r.choice([1, 1, 2]),
    )
    if b.r.random() < 0.6:
        f2, s2 = f1, s1
    if padding == "VALID" and (f1 > h or f2 > w):
        raise Refused
    out = [(-(-d // s) if padding == "SAME" else (d - f) // s + 1) for d, f, s in ((h, f1, s1), (w, f2, s2))]
    kind = b.r.randrange(6)
    total = f1 * f2 * c
    if kind <= 2:
        m = b.r.choice([1, 2, 4, 8, 16, 17, 32])
        if b.mode == "exact" and x.bound + 2 + total.bit_length() > 15:
            raise Refused
        bound = x.bound + 2 + total.bit_length()
        weights = b.fresh("F", (f1, f2, c, m), 2.0 if b.mode == "exact" else 0.0)
        return b.add(
            f"tf.nn.conv2d({x.name}, {weights}, [1, {s1}, {s2}, 1], {padding!r})",
            "F",
            (lead, *out, m),
            bound if b.mode == "exact" else x.bound + total.bit_length() / 2,
        )
    if kind == 3:
        if s1 != s2:
            raise Refused
        m = b.r.choice([1, 2])
        weights = b.fresh("F", (f1, f2, c, m))
        return b.add(
            f"tf.nn.depthwise_conv2d({x.name}, {weights}, [1, {s1}, {s1}, 1], {padding!r})",
            "F",
            (lead, *out, c * m),
            x.bound + 2 + (f1 * f2).bit_length(),
        )
    if kind == 4 or b.mode == "exact":
        return b.add(
            f"tf.nn.max_pool({x.name}, [1, {f1}, {f2}, 1], [1, {s1}, {s2}, 1], {padding!r})",
            "F",
            (lead, *out, c),
            x.bound,
        )
    if b.r.random() < 0.5:
        return b.add(
            f"tf.nn.avg_pool({x.name}, [1, {f1}, {f2}, 1], [1, {s1}, {s2}, 1], {padding!r})",
            "F",
            (lead, *out, c),
            x.bound,
        )
    zeros = [s.get(lead, 4) if isinstance(lead, str) else lead for s in b.sizes]
    if 0 in zeros:
        raise Refused
    text = f"tf.nn.fused_batch_norm({x.name}, {b.fresh('F', (c,))}, {b.fresh('F', (c,))}, epsilon=0.1)"
    return b.add_many(text, [("F", x.shape, 5.0), ("F", (c,), x.bound), ("F", (c,), 2 * x.bound)])


@op(2, exact=True)
def branches(b: Builder) -> Any:
    x = b.pick("F")
    flags = [v for v in b.values if v.dtype == "b" and v.shape == ()]
    if flags:
        flag = b.r.choice(flags)
        b.uses.add(flag.name)
        condition = flag.name
    else:
        y = b.pick("Fi")
        condition = f"tf.reduce_sum({y.name}) > 0"
    if b.depth > 1:
        raise Refused
    y = b.pick("F")
    results = [("F", x.shape, 3.0), ("F", y.shape, 3.0)]
    uses = set(b.uses)
    bodies = []
    for _ in range(2):
        b.uses = set()
        marker = [x, y]
        bodies.append(closure(b, marker, results))
    b.uses = uses | set(bodies)
    return b.add_many(f"tf.cond({condition}, {bodies[0]}, {bodies[1]})", results)


def closure(b: Builder, values: list[Val], results: list[tuple[str, Shape, float]]) -> str:
    """A function without arguments over outer values."""
    child = b.child(values)
    child.grow(b.r.randint(1, 5))
    outer_names = {v.name for v in child.values} - {n for s in child.statements for n in s.names}
    used: set[str] = set()
    for s in child.statements:
        used |= set(s.uses) & outer_names
    chosen = []
    for (dtype, shape, bound), default in zip(results, values):
        found = [v for v in child.values if v.dtype == dtype and v.shape == shape]
        value = b.r.choice(found[-4:]) if found else default
        if value.name in outer_names:
            used.add(value.name)
        text = value.name
        if value.bound > bound:
            text = f"tf.clip_by_value({text}, {-(2.0**bound)!r}, {2.0**bound!r})"
        chosen.append(text)
    name = b.names.name("f")
    indented = "".join("    " + line + "\n" for s in child.statements for line in s.text.split("\n"))
    used |= b.uses
    b.uses = used
    b.statement((name,), f"def {name}():\n{indented}    return {', '.join(chosen)}")
    return name


@op(3, exact=True)
def loops(b: Builder) -> Any:
    if b.depth > 0 and b.r.random() < 0.8:
        raise Refused
    kind = b.r.randrange(6)
    bound = 3.0
    if kind == 0:  # map_fn over the first axis
        x = b.pick("F", lambda v: len(v.shape) >= 1)
        e = argument(b, "F", x.shape[1:], x.bound)
        y = b.pick("F")
        uses = set(b.uses)
        f = b.function([e], lambda v: True, [("F", e.shape, bound)])
        b.uses = uses | {f}
        return b.add(f"tf.map_fn({f}, {x.name})", "F", x.shape, bound)
    if kind == 1:  # scan
        x = b.pick("F", lambda v: len(v.shape) >= 1)
        start = b.pick("F", lambda v: len(v.shape) <= 2)
        a, e = argument(b, "F", start.shape, max(start.bound, bound)), argument(b, "F", x.shape[1:], x.bound)
        uses = set(b.uses)
        f = b.function([a, e], lambda v: True, [("F", a.shape, bound)])
        b.uses = uses | {f}
        lowest = min(s.get(x.shape[0], 4) if isinstance(x.shape[0], str) else x.shape[0] for s in b.sizes)
        if lowest == 0:
            raise Refused
        return b.add(f"tf.scan({f}, {x.name}, initializer={start.name})", "F", (x.shape[0], *start.shape), bound)
    if kind == 2:  # an array of a loop
        x = b.pick("F", lambda v: len(v.shape) >= 1)
        start = b.pick("F", lambda v: len(v.shape) <= 2)
        a, e = argument(b, "F", start.shape, max(start.bound, bound)), argument(b, "F", x.shape[1:], x.bound)
        uses = set(b.uses)
        f = b.function([a, e], lambda v: True, [("F", a.shape, bound)])
        b.uses = uses | {f}
        lowest = min(s.get(x.shape[0], 4) if isinstance(x.shape[0], str) else x.shape[0] for s in b.sizes)
        if lowest == 0:
            raise Refused
        count = f"tf.shape({x.name})[0]" if b.r.random() < 0.7 or lowest < 2 else "2"
        top = max(start.bound, bound)
        rows = x.shape[0] if count != "2" else 2
        return b.add_many(
            f"loop_array({x.name}, {count}, {f}, {start.name})",
            [("F", start.shape, top), ("F", (rows, *start.shape), bound)],
        )
    if kind == 3:
        x = b.pick("F")
        a = argument(b, "F", x.shape, max(x.bound, bound))
        uses = set(b.uses)
        f = b.function([a], lambda v: True, [("F", a.shape, bound)])
        b.uses = uses | {f}
        return b.add(
            f"until({x.name}, {b.r.choice(['0.0', '1.5', '20.0'])}, {f})[1]", "F", x.shape, max(x.bound, bound)
        )
    if kind == 4:
        x, y = b.pick("F"), b.pick("Fi")
        a, c = argument(b, "F", x.shape, max(x.bound, bound)), argument(b, y.dtype, y.shape, max(y.bound, bound))
        i = argument(b, "i", (), 3.0)
        uses = set(b.uses)
        f = b.function([i, a, c], lambda v: True, [("F", a.shape, bound), (y.dtype, y.shape, bound)])
        b.uses = uses | {f}
        if y.dtype == "i":
            c = argument(b, "i", y.shape, 40.0)
        loop = f"tf.while_loop(lambda i, *_: i < {b.r.randint(0, 5)}, lambda i, a, c: (i + 1, *{f}(i, a, c)), (0, {x.name}, {y.name}))[1:]"
        return b.add_many(
            loop,
            [("F", x.shape, max(x.bound, bound)), (y.dtype, y.shape, max(y.bound, 40.0 if y.dtype == "i" else bound))],
        )
    if b.mode == "exact" or b.parent is not None:
        raise Refused
    x = b.pick("F", lambda v: len(v.shape) == 3 and isinstance(v.shape[2], int) and v.shape[2] > 0)
    units = b.r.choice([1, 3, 4, 8, 16])
    cell = b.r.choice(["BasicLSTMCell", "GRUCell", "BasicRNNCell", "LSTMCell"])
    batch = x.shape[0]
    lengths = [v for v in b.values if v.dtype in "il" and v.shape == (batch,)]
    length = ""
    if lengths and b.r.random() < 0.7:
        chosen = b.r.choice(lengths)
        b.uses.add(chosen.name)
        length = f", sequence_length=tf.clip_by_value({chosen.name}, 0, tf.cast(tf.shape({x.name})[1], {NAMES[chosen.dtype]}))"
    lowest = min(s.get(x.shape[1], 4) if isinstance(x.shape[1], str) else x.shape[1] for s in b.sizes)
    if lowest == 0 or 0 in [s.get(batch, 4) if isinstance(batch, str) else batch for s in b.sizes]:
        raise Refused
    scope = b.names.name("rnn")
    seed = b.r.randrange(1000)
    text = f"rnn({scope!r}, {cell!r}, {units}, {seed}, {x.name}{length})"
    return b.add(text, "F", (*x.shape[:2], units), 0.0)


@op(4, exact=True)
def derivatives(b: Builder) -> Any:
    if b.parent is not None:
        raise Refused
    y = b.pick("F", recent=0.8)
    if b.mode == "exact" and y.bound > 4:
        raise Refused
    sources = [b.pick("F", recent=0.3) for _ in range(b.r.randint(1, 3))]
    weights = b.r.choice(["{}", "{} * {}", "tf.square({})"]) if b.mode != "exact" else b.r.choice(["{}", "{} * 0.5"])
    text = f"grads({weights.format(y.name, y.name)}, [{', '.join(s.name for s in sources)}])"
    made = b.add_many(text, [("F", s.shape, 12.0) for s in sources])
    for value in made:  # a derivative may be large: what goes on from it is bounded
        b.values.remove(value)
        b.uses.add(value.name)
        b.add(f"tf.clip_by_value({value.name}, -4.0, 4.0)", "F", value.shape, 2.0)
    return made


@op(1.5, exact=True)
def changes(b: Builder) -> Any:
    """A variable that is read, changed and read again, in a defined order."""
    if b.parent is not None:
        raise Refused
    x = b.pick("F", lambda v: all(isinstance(d, int) for d in v.shape))
    if b.mode == "exact" and x.bound > 3:
        raise Refused
    name = b.names.name("w")
    resource = b.r.random() < 0.7
    lines = [
        f"{name} = tf.get_variable({name!r}, initializer=data({b.r.randrange(9999)}, {list(x.shape)}, 'grid'), use_resource={resource}, trainable=False)"
    ]
    reads, last = [], "[]"
    decay = b.r.choice(["0.5", "0.75"])
    for step in range(b.r.randint(2, 4)):
        read = f"{name}_{step}"
        lines.append(f"with tf.control_dependencies({last}):")
        lines.append(f"    {read} = {name}.read_value(){'' if resource else ' * 1.0'}")
        wait = f"[{read}]"
        kind = b.r.randrange(5)
        change = [f"assign({read} * {decay} + {x.name})", f"assign_add({x.name})", f"assign_sub({x.name} * 0.5)", f"assign({x.name})",
                  f"assign_sub(({read} - {x.name}) * {decay})"][kind]  # fmt: skip
        if x.shape and x.shape[0] and b.r.random() < 0.3:
            rows = [b.r.randrange(x.shape[0]) for _ in range(b.r.randint(1, 3))]
            which = b.r.choice(["add", "sub", "update"])
            rows = sorted(set(rows)) if which == "update" else rows
            change = f"SCATTER_{which}({rows}, tf.gather({x.name}, {rows}))"
        lines.append(f"with tf.control_dependencies({wait}):")
        if change.startswith("SCATTER_"):
            lines.append(f"    {name}_w{step} = tf.scatter_{change[8:].replace('(', f'({name}, ', 1)}")
        else:
            lines.append(f"    {name}_w{step} = {name}.{change}")
        last = f"[{name}_w{step}]"
        reads.append(Val(read, "F", x.shape, 5.0))
    lines.append(f"with tf.control_dependencies({last}):")
    lines.append(f"    {name}_end = {name}.read_value()")
    reads.append(Val(f"{name}_end", "F", x.shape, 6.0))
    b.statement(tuple(v.name for v in reads) + (name,), "\n".join(lines))
    chosen = b.r.choice(reads)
    text = f"tf.clip_by_value({chosen.name}, -8.0, 8.0)"
    b.uses.add(chosen.name)
    return b.add(text, "F", x.shape, 3.0)
