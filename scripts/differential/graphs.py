"""Random graphs and runs of them, with other shapes and values."""

from __future__ import annotations

import random
from typing import Any

from differential import layers, operations, structures  # noqa: F401 - what the grammar consists of
from differential.grammar import DATA, NAMES, SIZES, Builder, Shape, Val
from differential.program import Counter, Program, Run

OPTIMIZERS = [
    "GradientDescentOptimizer(0.125)", "MomentumOptimizer(0.05, 0.5)", "MomentumOptimizer(0.05, 0.5, use_nesterov=True)", "AdamOptimizer(0.01, epsilon=0.1)",
    "AdagradOptimizer(0.1, initial_accumulator_value=1.0)", "RMSPropOptimizer(0.01, epsilon=0.1)", "RMSPropOptimizer(0.01, momentum=0.5, epsilon=0.1, centered=True)",
    "AdadeltaOptimizer(0.1, epsilon=0.1)", "FtrlOptimizer(0.1, initial_accumulator_value=1.0, l1_regularization_strength=0.001)", "ProximalGradientDescentOptimizer(0.05, l2_regularization_strength=0.01)",
]  # fmt: skip


def training(b: Builder) -> str | None:
    """A step of an optimizer over what comes before; returns the names of its loss and update."""
    floats = [v for v in b.values if v.dtype == "F"][-4:]
    texts = []
    for value in b.r.sample(floats, min(len(floats), b.r.randint(1, 3))):
        b.uses.add(value.name)
        texts.append(
            f"tf.reduce_mean(tf.square(tf.where_v2(tf.is_finite({value.name}), {value.name}, tf.zeros_like({value.name}))))"
        )
    if not texts:
        return None
    kind = b.r.choice(OPTIMIZERS) if b.mode != "exact" else OPTIMIZERS[0]
    clip = b.r.random() < 0.3
    b.statement(("loss", "update"), f"loss, update = train({' + '.join(texts)}, tf.train.{kind}, {clip})")
    return kind


def generate(seed: int) -> Program:
    r = random.Random(seed)
    mode = "exact" if r.random() < 0.35 else "smooth"
    static = r.random() < 0.35
    large = r.random() < 0.12
    special = mode == "smooth" and r.random() < 0.12
    pool = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 32, 33]
    if not static and r.random() < 0.12:
        pool.append(0)
    if large:
        pool = [400, 1000, 1024, 2049, 3000]
    count = r.choice([1, 2, 2, 3, 4, 7])
    sizes = [{"B": r.choice(pool), "T": r.choice(pool[:9] if not large else [3, 8])} for _ in range(count)]
    if static:
        sizes = [sizes[0]] * count
    elif count == 7:
        sizes = [dict(sizes[r.randrange(2)]) for _ in range(count)]
    elif r.random() < 0.3:
        sizes = [dict(s, B=sizes[0]["B"]) for s in sizes]
    b = Builder(r, Counter(), mode, sizes, 1_200_000 if large else 40_000)
    kind = "grid" if mode == "exact" else "normal"
    if r.random() < 0.2:
        kind = "ties"
    if special:
        kind = "special"
    leaves: list[tuple[Val, str]] = []

    def dims(*shape: Any) -> Shape:
        return tuple(sizes[0][d] if static and isinstance(d, str) else d for d in shape)

    for _ in range(r.randint(1, 4)):
        feature = r.choice(SIZES) if r.random() < 0.985 else 0
        shape = dims(
            *r.choice(
                [
                    ("B",),
                    ("B", feature),
                    ("B", "T", feature),
                    ("B", feature),
                    (feature,),
                    ("B", 1),
                    ("T", "B", feature),
                    ("B", feature, r.choice(SIZES[:14])),
                    (),
                ]
            )
        )
        dtype = r.choices("Filb", [6, 1.5, 1, 1])[0]
        if large and dtype != "F":
            shape = shape[:1]
        name = b.names.name("p")
        value = Val(name, dtype, shape, 2.0 if dtype == "F" else 3.0)
        known = (
            "None"
            if r.random() < 0.02
            else "[" + ", ".join("None" if isinstance(d, str) else str(d) for d in shape) + "]"
        )
        b.statement((name,), f"{name} = tf.placeholder({NAMES[dtype]}, {known})")
        leaves.append((value, "large" if dtype in "il" and r.random() < 0.15 else kind))
        b.values.append(value)
    if r.random() < 0.35:
        name = b.names.name("p")
        flag = Val(name, "b", ())
        text = (
            f"{name} = tf.placeholder(tf.bool, [])"
            if r.random() < 0.6
            else f"{name} = tf.placeholder_with_default({r.random() < 0.5}, [])"
        )
        b.statement((name,), text)
        leaves.append((flag, kind))
        b.values.append(flag)
    b.variable(dims(*r.choice([(r.choice(SIZES), r.choice(SIZES)), (r.choice(SIZES),), (1,), ()])))
    b.grow(r.choice([4, 8, 14, 22, 34, 50]))
    trains = training(b) if r.random() < 0.35 else None
    computed = [v for v in b.values if v.name[0] in "x"] or b.values
    runs = []
    changes_state = any("assign" in s.text or "scatter_add(" in s.text for s in b.statements)
    chosen = [v.name for v in r.sample(computed[-20:], min(len(computed[-20:]), r.randint(1, 6)))]
    if r.random() < 0.5:
        chosen = list(dict.fromkeys([*chosen, *[v.name for v in computed[-2:]]]))
    plain = [
        v
        for v in computed
        if v.dtype in "Fi" and all(isinstance(d, int) or d in "BT" for d in v.shape) and not v.name.startswith("v")
    ]
    inner = r.choice(plain) if plain and r.random() < 0.12 else None

    def array(value: Val, actual: list[int], how: str) -> str:
        text = f"data({r.randrange(10**6)}, {actual}, {how!r}, {DATA[value.dtype]!r})"
        return f"laid({text}, {r.choice('FRSUO')!r})" if r.random() < 0.12 else text

    for i, size in enumerate(sizes):
        feeds = []
        for value, how in leaves:
            actual = [size[d] if isinstance(d, str) else d for d in value.shape]
            feeds.append((value.name, array(value, actual, how)))
        if inner is not None and r.random() < 0.6:
            feeds.append(
                (inner.name, array(inner, [size[d] if isinstance(d, str) else d for d in inner.shape], "grid"))
            )
        if trains:
            runs.append(Run(("loss", "update"), tuple(feeds), r.choice([1, 2, 3])))
            runs.append(Run(tuple(v.name + "_ref" for v in b.values if v.name[0] == "v"), ()))
        if not trains or not changes_state or i:
            runs.append(Run(tuple(chosen), tuple(feeds), r.choice([1, 1, 2, 3])))
    limits: dict[str, int] = {}
    if r.random() < 0.55:
        if r.random() < 0.8:
            limits |= {
                "fused_loops.LARGEST": r.choice([3, 20, 100, 1000]),
                "fused_loops._BLOCK": r.choice([1, 16, 48, 100, 2048]),
                "fused_loops._FEWEST_ROWS": r.choice([1, 2, 4]),
            }
        if r.random() < 0.8:
            limits |= {"memory._WORTH_REUSING": 1, "memory._WORTH_TAKING": 1, "memory._WORTH_OVERLAYING": 1}
        if r.random() < 0.5:
            limits |= {"fused_loops._WORTH_SHARING": 0}
        if r.random() < 0.5:
            limits |= {"parts._FEWEST": 2, "parts._WORTH_PARTS": 1}
        if r.random() < 0.5:
            limits |= {"grouping._FEWEST": 2, "late_shapes._FEWEST": 1}
    texts = "\n".join(s.text for s in b.statements)
    ordered = not (trains and "use_resource=False" in texts)
    exact = mode == "exact" and not trains
    return Program(
        seed, tuple(b.statements), tuple(runs), exact, ordered, special, tuple(limits.items()), r.choice([1, 1, 2])
    ).needed()
