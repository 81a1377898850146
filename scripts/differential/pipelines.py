"""Random input pipelines: chains of transformations of datasets whose functions come from the grammar of graphs."""

from __future__ import annotations

import random
from typing import Any

from differential import layers, operations, structures  # noqa: F401 - what the grammar consists of
from differential.grammar import Builder, Refused, Val
from differential.program import Counter, Program, Run

Component = tuple[str, tuple[Any, ...]]  # dtype and shape; a name or None stands for a size that may differ


class Pipeline:
    def __init__(self, r: random.Random, names: Counter, mode: str) -> None:
        self.r, self.names, self.mode = r, names, mode
        self.sizes: list[dict[str, int]] = [{}]
        root = Builder(r, names, mode, self.sizes, 30_000)
        self.outer = Builder(r, names, mode, self.sizes, 3000)
        self.outer.parent = root  # functions have no variables of their own
        self.elements: list[Component] = []
        self.count = 0  # at most so many elements
        self.lines: list[str] = []

    def unknown(self, size: int = 4) -> str:
        name = self.names.name("U")
        self.sizes[0][name] = size
        return name

    def arguments(self) -> list[Val]:
        return [
            Val(self.names.name("a"), dtype, shape, 2.0 if dtype in "FD" else 4.0) for dtype, shape in self.elements
        ]

    def function(self, wanted: list[Component] | None = None, *, most: int = 6) -> tuple[str, list[Component]]:
        arguments = self.arguments()
        child = self.outer.child(arguments)
        child.parent = self.outer
        child.values = list(arguments)
        child.limit = 3000
        child.grow(self.r.randint(1, most))
        results: list[Component] = []
        texts = []
        if wanted is None:
            pool = [v for v in child.values if v.dtype in "Filb"]
            chosen = self.r.sample(pool[-6:], min(len(pool[-6:]), self.r.randint(1, 3)))
            for v in chosen:
                texts.append(f"tf.clip_by_value({v.name}, -4.0, 4.0)" if v.dtype == "F" and v.bound > 2 else
                             f"tf.floormod({v.name}, 13)" if v.dtype in "il" and v.bound > 4 else v.name)  # fmt: skip
                results.append((v.dtype, v.shape))
        else:
            for dtype, shape in wanted:
                if dtype == "b" and shape == ():
                    v = self.r.choice([v for v in child.values if v.dtype in "Fil"] or [None])
                    if v is None:
                        raise Refused
                    texts.append(f"tf.reduce_sum(tf.cast({v.name}, F)) > {self.r.choice(['-1.0', '0.0', '0.5'])}")
                else:
                    texts.append(next(v.name for v in reversed(child.values) if v.dtype == dtype and v.shape == shape))
        name = self.names.name("f")
        body = "".join("    " + line + "\n" for s in child.statements for line in s.text.split("\n"))
        self.lines.append(f"def {name}({', '.join(a.name for a in arguments)}):\n{body}    return {', '.join(texts)}")
        return name, results

    def source(self) -> str:
        r = self.r
        n = r.choice([0, 1, 2, 3, 5, 8, 12, 17, 24, 33, 40, 64, 100, 150]) if r.random() < 0.9 else 300
        self.count = n
        kind = "grid" if self.mode == "exact" else "normal"
        how = r.randrange(5)
        if how == 0:
            self.elements = [("l", ())]
            return f"tf.data.Dataset.range({n})"
        parts = []
        for _ in range(r.randint(1, 3)):
            dtype = r.choices("Filb", [5, 2, 2, 1])[0]
            shape = tuple(r.choice([1, 2, 3, 4, 5, 8, 16]) for _ in range(r.choice([0, 0, 1, 1, 2, 3])))
            self.elements.append((dtype, shape))
            parts.append(
                f"data({r.randrange(9**6)}, {[n, *shape]}, {kind!r}, {'f' if dtype == 'F' else dtype!r})".replace(
                    "'f'", "'f'"
                )
                if dtype != "F"
                else f"data({r.randrange(9**6)}, {[n, *shape]}, {kind!r}, 'f')"
            )
        inner = f"({', '.join(parts)},)" if len(parts) > 1 else parts[0]
        if how == 1 and n < 60:
            types = tuple({"F": "F", "i": "tf.int32", "l": "tf.int64", "b": "tf.bool"}[d] for d, _ in self.elements)
            shapes = [list(s) for _, s in self.elements]
            if len(parts) == 1:
                return f"tf.data.Dataset.from_generator(lambda: iter({inner}), {types[0]}, {shapes[0]})"
            return f"tf.data.Dataset.from_generator(lambda: zip(*{inner}), ({', '.join(types)}), ({', '.join(map(str, shapes))}))"
        return f"tf.data.Dataset.from_tensor_slices({inner})"

    def known(self) -> bool:
        return all(isinstance(d, int) for _, shape in self.elements for d in shape)

    def step(self, ds: str) -> str:
        r = self.r
        kind = r.choices(
            ["map", "batch", "filter", "shuffle", "repeat", "take", "skip", "padded", "unbatch", "cache", "prefetch", "enumerate", "window", "flat", "interleave",
             "zip", "concat", "scan", "ragged", "group", "bucket", "shard", "unique", "take_while", "batch_map", "fails", "random", "strings", "python"],
            [9, 4, 2.5, 2, 1, 1, 1, 2, 1, 0.7, 1, 0.7, 1.5, 1, 1.5, 1.5, 0.7, 1, 3, 1, 1, 0.5, 0.4, 0.4, 2, 1, 1.5, 1, 0.5],
        )[0]  # fmt: skip
        star = len(self.elements)
        if kind == "map":
            f, results = self.function()
            self.elements = results
            options = (
                ""
                if any("random" in line or "checked" in line or "gather" in line for line in self.lines)
                else r.choice(["", "", ", num_parallel_calls=2", ", num_parallel_calls=tf.data.experimental.AUTOTUNE"])
            )
            return f"{ds}.map({f}{options})"
        if kind in ("batch", "batch_map"):
            if not self.known():
                raise Refused
            size, drop = r.choice([1, 2, 3, 4, 5, 7, 8, 16, 32]), r.random() < 0.3
            lead: Any = size if drop else self.unknown(size)
            self.elements = [(d, (lead, *s)) for d, s in self.elements]
            self.count = -(-self.count // size)
            return f"{ds}.batch({size}, drop_remainder={drop})"
        if kind == "filter":
            f, _ = self.function([("b", ())], most=3)
            return f"{ds}.filter({f})"
        if kind == "shuffle":
            return f"{ds}.shuffle({r.choice([1, 2, 5, 16, 100, 1000])}, seed={r.randrange(100)}{r.choice(['', ', reshuffle_each_iteration=False'])})"
        if kind == "repeat":
            times = r.choice([0, 1, 2, 3])
            self.count *= times
            return f"{ds}.repeat({times})"
        if kind == "take":
            return f"{ds}.take({r.choice([0, 1, 3, 10, 50, -1])})"
        if kind == "skip":
            return f"{ds}.skip({r.choice([0, 1, 3, 10])})"
        if kind == "shard":
            k = r.choice([1, 2, 3])
            return f"{ds}.shard({k}, {r.randrange(k)})"
        if kind == "cache":
            return f"{ds}.cache()"
        if kind == "prefetch":
            return f"{ds}.prefetch({r.choice([0, 1, 3, -1])})"
        if kind == "enumerate":
            if star != 1:
                raise Refused
            self.elements = [("l", ()), *self.elements]
            return f"{ds}.enumerate(start={r.choice([0, 5])})"
        if kind == "padded":
            size, drop = r.choice([1, 2, 3, 5, 8, 16]), r.random() < 0.3
            shapes, lead = [], size if drop else self.unknown(size)
            new = []
            for d, s in self.elements:
                if d == "b" and any(isinstance(x, str) for x in s):
                    raise Refused
                dims = [None if isinstance(x, str) else x + r.choice([0, 0, 0, 2]) for x in s]
                shapes.append(str(dims))
                new.append((d, (lead, *(self.unknown() if x is None else x for x in dims))))
            self.elements = new
            self.count = -(-self.count // size)
            values = ""
            if all(d == "F" for d, _ in new) and r.random() < 0.4:
                values = ", padding_values=" + ("N(2.0)" if star == 1 else "(" + ", ".join(["N(2.0)"] * star) + ")")
            return f"{ds}.padded_batch({size}, {shapes[0] if star == 1 else '(' + ', '.join(shapes) + ')'}{values}, drop_remainder={drop})"
        if kind == "unbatch":
            if any(not s for _, s in self.elements) or len({s[0] for _, s in self.elements}) != 1:
                raise Refused
            lead = self.elements[0][1][0]
            self.count *= 8 if isinstance(lead, str) else lead
            self.elements = [(d, s[1:]) for d, s in self.elements]
            if any(isinstance(x, str) for _, s in self.elements for x in s):
                pass
            return f"{ds}.{r.choice(['unbatch()', 'apply(tf.data.experimental.unbatch())', 'flat_map(slices)'])}"
        if kind == "ragged":  # elements of other lengths
            places = [i for i, (d, s) in enumerate(self.elements) if s and isinstance(s[0], int) and s[0] > 1]
            arguments = self.arguments()
            names = [a.name for a in arguments]
            if places:
                i = r.choice(places)
                length = next(
                    (
                        f"tf.cast(tf.floormod({a.name}, {self.elements[i][1][0]}), tf.int32)"
                        for a in arguments
                        if a.dtype in "il" and a.shape == ()
                    ),
                    None,
                )
                if length is None:
                    length = f"tf.floormod(tf.cast(tf.abs(tf.reduce_sum(tf.cast({names[i]}, F))) * 4.0, tf.int32), {self.elements[i][1][0]})"
                made = (
                    f"{names[i]}[:{length}]"
                    if r.random() < 0.7
                    else f"tf.boolean_mask({names[i]}, {names[i]} > 0)"
                    if len(self.elements[i][1]) == 1 and self.elements[i][0] in "Fil"
                    else f"{names[i]}[{length}:]"
                )
                old = self.elements[i]
                self.elements = [*self.elements]
                self.elements[i] = (old[0], (self.unknown(), *old[1][1:]))
                out = [*names]
                out[i] = made
                return f"{ds}.map(lambda {', '.join(names)}: ({', '.join(out)}{',' if star > 1 else ''}))"
            places = [i for i, (d, s) in enumerate(self.elements) if d in "il" and s == ()]
            if not places:
                raise Refused
            i = r.choice(places)
            self.elements = [*self.elements]
            self.elements[i] = (self.elements[i][0], (self.unknown(),))
            out = [*names]
            out[i] = f"tf.range(tf.floormod({names[i]}, 7))"
            return f"{ds}.map(lambda {', '.join(names)}: ({', '.join(out)}{',' if star > 1 else ''}))"
        if kind == "window":
            if not self.known() or self.count > 400:
                raise Refused
            size, shift, drop = r.choice([1, 2, 3, 5]), r.choice([1, 2, 3]), r.random() < 0.5
            lead = size if drop else self.unknown(size)
            self.elements = [(d, (lead, *s)) for d, s in self.elements]
            inner = (
                f"lambda w: w.batch({size}, drop_remainder={drop})"
                if star == 1
                else f"lambda *w: tf.data.Dataset.zip(tuple(x.batch({size}, drop_remainder={drop}) for x in w))"
            )
            return f"{ds}.window({size}, {shift}, {r.choice([1, 1, 2])}, drop_remainder={drop}).flat_map({inner})"
        if kind == "flat":
            if self.count > 150:
                raise Refused
            k = r.randint(0, 3)
            self.count *= k
            return f"{ds}.flat_map(lambda *x: tf.data.Dataset.from_tensors(x if len(x) > 1 else x[0]).repeat({k}))"
        if kind == "interleave":
            if self.count > 150:
                raise Refused
            k = r.randint(1, 3)
            self.count *= k
            parallel = r.choice(["", "", ", num_parallel_calls=2"])
            return f"{ds}.interleave(lambda *x: tf.data.Dataset.from_tensors(x if len(x) > 1 else x[0]).repeat({k}), cycle_length={r.randint(1, 4)}, block_length={r.randint(1, 3)}{parallel})"
        if kind == "zip":
            if star != 1:
                raise Refused
            self.elements = [*self.elements, ("l", ())]
            return f"tf.data.Dataset.zip(({ds}, tf.data.Dataset.range({r.choice([3, 10, 1000])})))"
        if kind == "concat":
            self.count *= 2
            return f"(lambda d: d.concatenate(d.take({r.randint(0, 5)})))({ds})"
        if kind == "scan":
            if any(d == "F" and not s for d, s in self.elements) is False:
                raise Refused
            i = next(i for i, (d, s) in enumerate(self.elements) if d == "F" and not s)
            names = [a.name for a in self.arguments()]
            e = names[0] if star == 1 else "(" + ", ".join(names) + ")"
            self.elements = [("F", ())]
            pick = names[i]
            unpack = f"{e}, = (x,)" if star == 1 else f"{e} = x"
            name = self.names.name("f")
            self.lines.append(f"def {name}(s, x):\n    {unpack}\n    s = s * 0.5 + {pick}\n    return s, s - 1.0")
            return f"{ds}.apply(tf.data.experimental.scan(tf.constant(0.0, F), {name}))"
        if kind == "group":
            if not self.known():
                raise Refused
            places = [i for i, (d, s) in enumerate(self.elements) if d in "il" and s == ()]
            if not places:
                raise Refused
            names = [a.name for a in self.arguments()]
            key = names[r.choice(places)]
            size = r.choice([1, 2, 4])
            lead = self.unknown(size)
            self.elements = [(d, (lead, *s)) for d, s in self.elements]
            return f"{ds}.apply(tf.data.experimental.group_by_window(lambda {', '.join(names)}: tf.cast(tf.floormod({key}, 3), tf.int64), lambda k, w: w.batch({size}), {size}))"
        if kind == "bucket":
            places = [i for i, (d, s) in enumerate(self.elements) if s]
            if not places or any(d == "b" and s for d, s in self.elements):
                raise Refused
            names = [a.name for a in self.arguments()]
            i = r.choice(places)
            lead = self.unknown(3)
            self.elements = [(d, (lead, *(self.unknown() for _ in s))) for d, s in self.elements]
            shapes = [str([None] * (len(s) - 1)) for _, s in self.elements]
            shape = shapes[0] if star == 1 else "(" + ", ".join(shapes) + ")"
            return f"{ds}.apply(tf.data.experimental.bucket_by_sequence_length(lambda {', '.join(names)}: tf.shape({names[i]})[0], [2, 4], [3, 2, 1], padded_shapes={shape}))"
        if kind in ("fails", "random", "strings", "python"):
            arguments = self.arguments()
            names = [a.name for a in arguments]
            places = [
                i
                for i, a in enumerate(arguments)
                if (a.dtype in "il" if kind in ("fails", "strings") else a.dtype == "F")
                and not any(isinstance(d, str) for d in a.shape)
            ]
            if not places:
                raise Refused
            i = r.choice(places)
            out = [*names]
            a = arguments[i]
            if kind == "fails":
                out[i] = (
                    f"tf.gather(tf.constant([3, 1, 2, 5, 8], {a.name}.dtype), {a.name})"
                    if r.random() < 0.5
                    else f"checked({a.name}, {r.choice([1, 3, 5])})"
                )
            elif kind == "random":
                out[i] = (
                    f"{a.name} + {r.choice(['tf.random_uniform', 'tf.random_normal', 'tf.truncated_normal'])}({list(a.shape)}, seed={r.randrange(50)}, dtype=F)"
                )
                if r.random() < 0.2 and a.shape:
                    out[i] = f"tf.random_shuffle({a.name}, seed={r.randrange(50)})"
            elif kind == "python":
                out[i] = f"shaped(tf.py_func(lambda x: x * N(0.5), [{a.name}], F), {list(a.shape)})"
            else:
                out[i] = r.choice([f"tf.cast(tf.strings.length(tf.as_string({a.name} * 7)), {a.name}.dtype)", f"tf.string_to_number(tf.strings.substr(tf.strings.join([tf.as_string(tf.abs({a.name})), '35']), 0, 2), {a.name}.dtype)",
                                   f"tf.cast(tf.strings.to_hash_bucket_fast(tf.as_string({a.name}), 11), {a.name}.dtype)"])  # fmt: skip
            tail = ".apply(tf.data.experimental.ignore_errors())" if kind == "fails" and r.random() < 0.5 else ""
            return f"{ds}.map(lambda {', '.join(names)}: ({', '.join(out)}{',' if star > 1 else ''})){tail}"
        if kind == "unique":
            if star != 1 or self.elements[0][0] not in "il" or self.elements[0][1]:
                raise Refused
            return f"{ds}.apply(tf.data.experimental.unique())"
        f, _ = self.function([("b", ())], most=2)
        return f"{ds}.apply(tf.data.experimental.take_while({f}))"


def generate(seed: int) -> Program:
    r = random.Random(seed)
    mode = "exact" if r.random() < 0.5 else "smooth"
    p = Pipeline(r, Counter(), mode)
    ds = p.source()
    p.lines.append(f"d0 = {ds}")
    number = 0
    for _ in range(r.randint(1, 7)):
        for _ in range(20):
            saved = list(p.elements), p.count, len(p.lines)
            try:
                text = p.step(f"d{number}")
                if p.count > 1500 or not p.elements or len(p.elements) > 4 or any(len(s) > 4 for _, s in p.elements):
                    raise Refused
            except (Refused, StopIteration, IndexError):
                p.elements, p.count = saved[0], saved[1]
                del p.lines[saved[2] :]
                continue
            number += 1
            p.lines.append(f"d{number} = {text}")
            break
    text = "\n".join(p.lines)
    passes = r.choice([1, 1, 2])
    from differential.program import Statement

    return Program(
        seed, (Statement(("all",), text + f"\ndrain(d{number}, {passes})", (), True),), (Run((), ()),), mode == "exact"
    )


def generate_queue(seed: int) -> Program:
    """Records that queue runners map and batch, in their order."""
    from differential.program import Statement

    r = random.Random(seed)
    mode = "exact" if r.random() < 0.5 else "smooth"
    p = Pipeline(r, Counter(), mode)
    n = r.choice([1, 2, 5, 17, 40, 64, 100])
    kind = "grid" if mode == "exact" else "normal"
    columns = []
    for _ in range(r.randint(1, 3)):
        dtype = r.choices("Fil", [5, 2, 2])[0]
        shape = tuple(r.choice([1, 2, 3, 4, 5, 8, 16]) for _ in range(r.choice([0, 0, 1, 1, 2, 3])))
        p.elements.append((dtype, shape))
        columns.append(
            f"data({r.randrange(9**6)}, {[n, *shape]}, {kind!r}, {'f' if dtype == 'F' else dtype!r})".replace(
                ", f)", ", 'f')"
            )
        )
    f, results = p.function(most=8)
    shapes = [list(s) for _, s in results]
    size = r.choice([1, 2, 3, 8, 16])
    how = r.choice(["plain", "plain", "join", "pad"])
    text = "\n".join(p.lines)
    text += f"\nqueue([{', '.join(columns)}], {f}, {r.choice([1, 1, 2, 3])}, 1, {size}, {r.random() < 0.6}, {shapes}, {r.choice([4, 32, 100])}, {how!r})"
    return Program(seed, (Statement(("all",), text, (), True),), (Run((), ()),), mode == "exact")
