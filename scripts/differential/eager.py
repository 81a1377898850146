"""Random functions that run eagerly under a tape, again and again, and as `tf.function`."""

from __future__ import annotations

import random

from differential import layers, operations, structures  # noqa: F401 - what the grammar consists of
from differential.grammar import DATA, SIZES, Builder, Val
from differential.program import Counter, Program, Run, Statement


def generate(seed: int) -> Program:
    r = random.Random(seed)
    mode = "exact" if r.random() < 0.3 else "smooth"
    names = Counter()
    sizes = [{"B": r.choice([1, 2, 3, 5, 8, 16, 33]), "T": r.choice([1, 2, 3, 5])} for _ in range(r.randint(1, 2))]
    root = Builder(r, names, mode, sizes, 40_000)
    outer = Builder(r, names, mode, sizes, 20_000)
    outer.parent = root
    arguments = []
    for _ in range(r.randint(1, 3)):
        dtype = r.choices("Fi", [5, 1])[0]
        shape = r.choice(
            [
                ("B",),
                ("B", r.choice(SIZES)),
                ("B", "T", r.choice(SIZES)),
                (r.choice(SIZES),),
                ("B", r.choice(SIZES), r.choice(SIZES[:12])),
                (),
            ]
        )
        arguments.append(Val(names.name("a"), dtype, shape, 2.0 if dtype == "F" else 3.0))
    variables = [
        Val(names.name("v"), "F", tuple(r.choice(SIZES) for _ in range(r.choice([0, 1, 2, 2]))), 2.0)
        for _ in range(r.randint(0, 2))
    ]
    if not any(a.dtype == "F" for a in arguments):
        arguments.append(Val(names.name("a"), "F", ("B", 4), 2.0))
    child = outer.child([*arguments, *variables])
    child.parent = outer
    child.values = [*arguments, *variables]
    child.grow(r.choice([3, 6, 12, 20]))
    floats = [v for v in child.values if v.dtype == "F"]
    chosen = r.sample(floats[-6:], min(len(floats[-6:]), r.randint(1, 3)))
    others = [v for v in child.values if v.dtype in "ilb"][-1:]
    body = "".join("    " + line + "\n" for s in child.statements for line in s.text.split("\n"))
    kind = "grid" if mode == "exact" else "normal"
    given = ", ".join(v.name for v in [*arguments, *variables])
    lines = [
        f"def f({given}):\n{body}    return [{', '.join(v.name for v in chosen)}], [{', '.join(v.name for v in others)}]"
    ]
    made = [f"tf.Variable(data({r.randrange(9**6)}, {list(v.shape)}, {kind!r}, 'f'))" for v in variables]
    lines.append(f"variables = [{', '.join(made)}]")
    lines.append(f"f_graph = tf.function(f{', experimental_relax_shapes=True' if r.random() < 0.0 else ''})")
    for size in sizes:
        for _ in range(r.choice([1, 2, 6])):
            values = [
                f"data({r.randrange(9**6)}, {[size[d] if isinstance(d, str) else d for d in v.shape]}, {kind!r}, {DATA[v.dtype]!r})"
                for v in arguments
            ]
            lines.append(
                f"walk(f, f_graph, [{', '.join(values)}], variables, {r.choice(['0.0', '0.01'])}, {r.random() < 0.2})"
            )
    return Program(seed, (Statement(("all",), "\n".join(lines), (), True),), (Run((), ()),))
