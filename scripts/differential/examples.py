"""Random programs over serialized examples: parsing, hashing, crosses, bags of embeddings and feature columns."""

from __future__ import annotations

import random

from differential import graphs
from differential.grammar import Builder, Val
from differential.program import Counter, Program, Run, Statement


def generate(seed: int) -> Program:
    r = random.Random(seed)
    names = Counter()
    sizes = [{"B": r.choice([1, 2, 3, 5, 8, 16, 33, 100])} for _ in range(r.choice([1, 2, 4]))]
    b = Builder(r, names, "smooth", sizes, 40_000)
    kinds = []
    for i in range(r.choice([1, 2, 4, 8, 16])):
        dtype = r.choice(["int64", "float32", "string", "string"])
        shape = r.choice(["fixed", "fixed", "var", "var", "sequence", "several"])
        kinds.append((f"k{i}", dtype, shape, r.randint(2, 4) if shape == "several" else 1, r.random() < 0.5))
    spec = []
    for name, dtype, shape, width, default in kinds:
        dims = f"[{width}]" if shape == "several" or default else "[]"
        value = {"int64": "3", "float32": "0.5", "string": "'none'"}[dtype]
        value = f"[{', '.join([value] * width)}]" if dims != "[]" else value
        if shape == "var":
            spec.append(f"{name!r}: tf.VarLenFeature(tf.{dtype})")
        elif shape == "sequence":
            spec.append(f"{name!r}: tf.FixedLenSequenceFeature([], tf.{dtype}, allow_missing=True)")
        else:
            spec.append(f"{name!r}: tf.FixedLenFeature({dims}, tf.{dtype}{'' if shape == 'several' else ', ' + value})")
    b.statement(("s",), "s = tf.placeholder(tf.string, [None])")
    b.uses = {"s"}
    b.statement(("parsed",), f"parsed = tf.parse_example(s, {{{', '.join(spec)}}})")
    made: list[Val] = []

    def add(text: str, dtype: str, shape: tuple, *, uses: tuple[str, ...] = ("parsed",)) -> Val:
        b.uses = set(uses)
        value = b.add(text, dtype, shape, 2.0)
        made.append(value)
        return value

    def table(rows: int, width: int) -> str:
        b.uses = set()
        return b.variable((rows, width)).name

    for name, dtype, shape, width, default in kinds:
        rank2 = shape == "several" or (default and shape == "fixed")
        for _ in range(r.choice([1, 1, 2])):
            buckets, out = r.choice([2, 5, 16, 100]), r.choice([1, 2, 4, 8, 16])
            raw = f"parsed[{name!r}]"
            if shape == "var":
                how = r.randrange(5)
                if dtype == "float32":
                    add(
                        f"tf.sparse_reduce_sum({raw}, 1)"
                        if how < 2
                        else f"tf.reduce_sum(tf.sparse_tensor_to_dense({raw}), 1)",
                        "F",
                        ("B",),
                    )
                    b.statements[-1] = b.statements[-1]
                    continue
                hashed = (
                    f"tf.strings.to_hash_bucket_fast({raw}.values, {buckets})"
                    if dtype == "string"
                    else f"tf.floormod({raw}.values, {buckets})"
                )
                ids = f"tf.SparseTensor({raw}.indices, {hashed}, {raw}.dense_shape)"
                if how < 3:
                    weights = table(buckets, out)
                    add(
                        f"tf.nn.embedding_lookup_sparse({weights}, {ids}, None, combiner={r.choice(['sum', 'mean', 'sqrtn'])!r})",
                        "F",
                        (f"R{names.next}", out),
                        uses=("parsed", weights),
                    )
                    made.pop()
                    value = b.values.pop()
                    b.uses = {value.name, "s"}
                    made.append(
                        b.add(
                            f"tf.pad({value.name}, [[0, tf.size(s) - tf.shape({value.name})[0]], [0, 0]])",
                            "F",
                            ("B", out),
                        )
                    )
                elif how == 3:
                    add(
                        f"tf.reduce_sum(tf.one_hot(tf.sparse_tensor_to_dense({ids}, default_value=-1), {buckets}, dtype=F), 1)",
                        "F",
                        ("B", buckets),
                    )
                else:
                    add(f"tf.cast(tf.sparse_to_indicator({ids}, {buckets}), F)", "F", ("B", buckets))
                continue
            if shape == "sequence":
                if dtype == "float32":
                    add(f"tf.reduce_sum({raw}, 1)", "F", ("B",))
                    continue
                hashed = (
                    f"tf.strings.to_hash_bucket_fast({raw}, {buckets})"
                    if dtype == "string"
                    else f"tf.floormod({raw}, {buckets})"
                )
                weights = table(buckets, out)
                add(
                    f"tf.reduce_sum(tf.nn.embedding_lookup({weights}, {hashed}), 1)",
                    "F",
                    ("B", out),
                    uses=("parsed", weights),
                )
                continue
            dims = ("B", width) if rank2 else ("B",)
            if dtype == "float32":
                add(raw, "F", dims)
            elif dtype == "int64":
                add(f"tf.floormod({raw}, 7)", "l", dims)
            else:
                how = r.randrange(5)
                if how == 0:
                    add(f"tf.equal({raw}, {r.choice(['ab', 'none', 'x'])!r})", "b", dims)
                elif how == 1:
                    add(f"tf.strings.length({raw})", "i", dims)
                elif how == 2:
                    add(f"tf.strings.to_hash_bucket_fast(tf.strings.join([{raw}, {raw}], '_'), {buckets})", "l", dims)
                elif how == 3:
                    weights = table(buckets, out)
                    add(
                        f"tf.nn.embedding_lookup({weights}, tf.strings.to_hash_bucket_fast({raw}, {buckets}))",
                        "F",
                        (*dims, out),
                        uses=("parsed", weights),
                    )
                else:
                    add(f"tf.strings.to_hash_bucket_fast({raw}, {buckets})", "l", dims)
    columns = []
    for name, dtype, shape, width, _ in kinds:
        if shape == "sequence" or r.random() < 0.4:
            continue
        if dtype == "float32":
            if shape == "var":
                continue
            number = f"tf.feature_column.numeric_column({name!r}, [{width}])"
            columns.append(
                number if r.random() < 0.5 else f"tf.feature_column.bucketized_column({number}, [-1.0, 0.0, 0.5])"
            )
            continue
        how = r.randrange(3)
        category = (f"tf.feature_column.categorical_column_with_hash_bucket({name!r}, {r.choice([3, 10, 50])}, tf.{dtype})" if how or dtype != "string" else
                    f"tf.feature_column.categorical_column_with_vocabulary_list({name!r}, ['a', 'ab', 'c', 'none'], num_oov_buckets={r.randint(0, 2)})")  # fmt: skip
        if r.random() < 0.25 and dtype == "string" and shape != "var":
            other = next((k for k, d, s, _, _ in kinds if d == "string" and s not in ("sequence",) and k != name), None)
            if other is not None:
                category = f"tf.feature_column.crossed_column([{name!r}, {other!r}], {r.choice([5, 100])})"
        if r.random() < 0.5:
            columns.append(f"tf.feature_column.indicator_column({category})")
        else:
            columns.append(
                f"tf.feature_column.embedding_column({category}, {r.choice([1, 3, 8])}, {r.choice(['sum', 'mean', 'sqrtn'])!r}, tf.random_uniform_initializer(-1.0, 1.0, seed={r.randrange(50)}))"
            )
    if columns and r.random() < 0.7:
        b.uses = {"parsed"}
        b.statement(
            ("c0",),
            f"c0 = layer('input_layer', 3, lambda: tf.feature_column.input_layer(parsed, [{', '.join(columns)}]))",
        )
        b.uses = {"c0"}
        value = Val(names.name("x"), "F", ("B",), 4.0)
        b.statement((value.name,), f"{value.name} = tf.reduce_sum(c0, 1)")
        b.values.append(value)
        made.append(value)
        fetched = ["c0"]
    else:
        fetched = []
    b.grow(r.choice([0, 3, 10, 20]))
    trains = graphs.training(b) if r.random() < 0.4 else None
    chosen = list(
        dict.fromkeys(
            [
                *fetched,
                *(v.name for v in r.sample(b.values, min(len(b.values), 4)) if v.name[0] == "x"),
                *(v.name for v in made if r.random() < 0.5),
            ]
        )
    ) or [made[0].name]
    runs = []
    for size in sizes:
        feeds = (("s", f"serialized({r.randrange(10**6)}, {size['B']}, {kinds})"),)
        if trains:
            runs.append(Run(("update",), feeds, r.choice([1, 2])))
        runs.append(Run(tuple(chosen), feeds, r.choice([1, 2, 3])))
    if trains:
        runs.append(Run(tuple(v.name + "_ref" for v in b.values if v.name[0] == "v"), ()))
    limits = (("grouping._FEWEST", 2), ("late_shapes._FEWEST", 1)) if r.random() < 0.4 else ()
    statements = tuple(Statement(s.names, s.text, s.uses, s.keep) for s in b.statements)
    return Program(
        seed, statements, tuple(run for run in runs if run.fetches), False, True, False, limits, r.choice([1, 2])
    ).needed()
