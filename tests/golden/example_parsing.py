"""Random and odd Examples: made here, parsed by TensorFlow, compared with ours.

    python tests/golden/example_parsing.py make SEED COUNT cases.json     # any Python
    python tests/golden/example_parsing.py oracle cases.json golden.json  # a Python with TensorFlow 2.21
    python tests/golden/example_parsing.py compare golden.json            # a Python with stoker's dependencies

A case is a batch of rows and the features to take from it; its outcome is the columns or "refused". The golden file of
the ordinary tests, example_parsing.json.gz, is `make 1 500` and `oracle`, compressed.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
import sys

# ---- making cases ---------------------------------------------------------------------------------------------------


def varint(n, pad=0):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    for _ in range(pad):  # a longer spelling of the same number
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.odd = 0.0

    def chance(self, p):
        return self.rng.random() < p

    def unknown(self):
        field = self.rng.choice([4, 5, 9, 17, 1 << 20])
        return self.rng.choice(
            [
                chunk(field, b"u" * self.rng.randrange(3)),
                varint(field << 3) + varint(self.rng.getrandbits(40)),
                varint(field << 3 | 1) + b"12345678",
                varint(field << 3 | 5) + b"1234",
                varint(field << 3 | 3) + varint(field << 3 | 4),
            ]
        )

    def chunk(self, field, data):
        if self.chance(self.odd * 0.3):
            return self.rng.choice(
                [
                    varint(field << 3 | 2) + varint(len(data), pad=self.rng.randrange(4)) + data,
                    varint(field << 3 | 2, pad=self.rng.randrange(3)) + varint(len(data)) + data,
                    varint(field << 3 | 2 | 1 << 35) + varint(len(data)) + data,
                    varint(field << 3 | 2) + varint(len(data) + (1 << 32)) + data,
                    varint(field << 3 | 2) + varint(len(data) + self.rng.choice([-1, 1, 2, 3, 1 << 62])) + data,
                    varint(field << 3 | self.rng.randrange(8)) + varint(len(data)) + data,
                ]
            )
        out = chunk(field, data)
        if self.chance(self.odd * 0.15):
            out = self.unknown() + out if self.chance(0.5) else out + self.unknown()
        return out

    def integer(self):
        return self.rng.choice(
            [self.rng.randrange(200), self.rng.randrange(-5, 1 << 20), self.rng.getrandbits(64) - (1 << 63)]
        )

    def values(self, kind, count):
        rng = self.rng
        if kind == "string":
            values = [bytes(rng.choices(range(256), k=rng.randrange(6))) for _ in range(count)]
            return b"".join(self.chunk(1, v) for v in values)
        if kind == "float32":
            raw = [
                struct.pack("<f", rng.uniform(-9, 9)) if rng.random() < 0.9 else rng.randbytes(4) for _ in range(count)
            ]
            single = [varint(1 << 3 | 5) + v for v in raw]
        else:
            raw = [
                varint(self.integer(), pad=rng.randrange(3) if self.chance(self.odd * 0.3) else 0) for _ in range(count)
            ]
            single = [varint(1 << 3) + v for v in raw]
        if self.chance(0.2):
            return b"".join(single)
        if count and self.chance(self.odd * 0.3):
            cut = rng.randrange(count + 1)
            head = chunk(1, b"".join(raw[:cut]))
            tail = chunk(1, b"".join(raw[cut:])) if self.chance(0.5) else b"".join(single[cut:])
            return head + tail if self.chance(0.5) else tail + head
        if not count and self.chance(0.5):
            return b""
        data = b"".join(raw)
        if self.chance(self.odd * 0.1):
            data += rng.randbytes(rng.randrange(1, 4))
        return self.chunk(1, data)

    def feature(self, kind, count):
        if self.chance(0.03) or (not count and self.chance(0.3)):
            return b""
        if self.chance(self.odd * 0.15):
            kind = self.rng.choice(["string", "float32", "int64"])
        number = {"string": 1, "float32": 2, "int64": 3}[kind]
        out = self.chunk(number, self.values(kind, count))
        if self.chance(self.odd * 0.15):
            out += self.chunk(self.rng.randrange(1, 4), self.values(kind, count))
        if self.chance(self.odd * 0.05):
            out += self.rng.randbytes(2)
        return out

    def entry(self, key, value):
        parts = [self.chunk(1, key), self.chunk(2, value)]
        if self.chance(self.odd * 0.1):
            parts.reverse()
        if self.chance(self.odd * 0.05):
            parts.pop(self.rng.randrange(2))
        if self.chance(self.odd * 0.05):
            parts.append(self.rng.choice(parts) if parts else b"")
        return self.chunk(1, b"".join(parts))

    def count(self, spec):
        if spec["layout"] == "fixed":
            size = 1
            for dim in spec["shape"]:
                size *= dim
            return size if not self.chance(self.odd * 0.1) else self.rng.randrange(5)
        stride = 1
        for dim in spec.get("shape", []):
            stride *= dim
        count = stride * self.rng.choice([0, 1, 1, 2, 3, 7])
        return count if not self.chance(self.odd * 0.05) else count + 1

    def entries(self, specs, make):
        out = []
        for spec in specs:
            if not self.chance(0.15 if spec["layout"] != "fixed" or spec["default"] is not None else self.odd * 0.05):
                for _ in range(2 if self.chance(self.odd * 0.15) else 1):
                    out.append(self.entry(spec["key"].encode(), make(spec)))
        if self.chance(0.3):
            kind = self.rng.choice(["string", "float32", "int64"])
            out.append(self.entry(b"other", self.feature(kind, 2) if self.chance(0.8) else self.rng.randbytes(3)))
        if self.chance(self.odd * 0.02):
            out.append(self.entry(b"\xff\xfe", self.feature("int64", 1)))
        self.rng.shuffle(out)
        return out

    def damaged(self, row):
        row = bytearray(row)
        if row and self.chance(self.odd * 0.15):
            for _ in range(self.rng.randrange(1, 3)):
                row[self.rng.randrange(len(row))] = self.rng.choice([0, 1, 0x7F, 0x80, 0xFF, self.rng.randrange(256)])
        if row and self.chance(self.odd * 0.05):
            del row[self.rng.randrange(len(row)) :]
        return bytes(row)

    def spec(self, key, layouts):
        rng = self.rng
        spec = {"key": key, "layout": rng.choice(layouts), "dtype": rng.choice(["float32", "int64", "string"])}
        if spec["layout"] in ("fixed", "padded"):
            spec["shape"] = rng.choice(
                [[], [1], [2], [3], [2, 2]] + ([[0], [2, 0]] if spec["layout"] == "fixed" else [])
            )
            spec["default"] = None
            if self.chance(0.4):
                size = 1
                for dim in spec["shape"] if spec["layout"] == "fixed" else []:
                    size *= dim
                values = {"float32": [0.5, -2.0], "int64": [-1, 7], "string": ["D", "dd"]}[spec["dtype"]]
                if size:
                    spec["default"] = [values[i % 2] for i in range(size)]
        if spec["layout"] == "padded":
            spec["required"] = False
        return spec

    def case(self):
        self.odd = self.rng.choice([0.0, 0.3, 1.0])
        rows = self.rng.choice([0, 1, 1, 2, 3, 5])
        if self.chance(0.6):
            specs = [self.spec(k, ["fixed", "padded", "sparse", "ragged"]) for k in "abcd"[: self.rng.randrange(1, 5)]]
            return {
                "features": specs,
                "single": rows == 1 and self.chance(0.5),
                "rows": [self.example(specs).hex() for _ in range(rows)],
            }
        context = [self.spec(k, ["fixed", "sparse", "ragged"]) for k in "ab"[: self.rng.randrange(0, 3)]]
        lists = [self.spec(k, ["padded", "sparse", "ragged"]) for k in "cd"[: self.rng.randrange(1, 3)]]
        for spec in lists:
            spec.update(default=None, required=self.chance(0.3))
        return {
            "context": context,
            "lists": lists,
            "single": rows == 1 and self.chance(0.5),
            "rows": [self.sequence(context, lists).hex() for _ in range(rows)],
        }

    def example(self, specs):
        entries = self.entries(specs, lambda spec: self.feature(spec["dtype"], self.count(spec)))
        cut = self.rng.randrange(len(entries) + 1) if self.chance(self.odd * 0.1) else len(entries)
        row = self.chunk(1, b"".join(entries[:cut])) if entries or self.chance(0.5) else b""
        if cut < len(entries):
            row += self.chunk(1, b"".join(entries[cut:]))
        return self.damaged(row)

    def steps(self, spec):
        stride = 1
        for dim in spec.get("shape", []):
            stride *= dim
        out = b""
        for _ in range(self.rng.randrange(4)):
            count = stride if spec["layout"] == "padded" else self.rng.randrange(4)
            if self.chance(self.odd * 0.05):
                count += 1
            feature = self.feature(spec["dtype"], count)
            if spec["layout"] == "padded" and not feature and not self.chance(self.odd):
                continue
            out += self.chunk(1, feature)
        return out

    def sequence(self, context, lists):
        parts = [
            self.chunk(1, b"".join(self.entries(context, lambda s: self.feature(s["dtype"], self.count(s))))),
            self.chunk(2, b"".join(self.entries(lists, self.steps))),
        ]
        if self.chance(0.2):
            parts.reverse()
        return self.damaged(b"".join(parts))


# ---- outcomes -------------------------------------------------------------------------------------------------------


def plain(array):
    """An array as JSON: floats by their bits, strings by their bytes."""
    import numpy as np

    array = np.asarray(array)
    if array.dtype == np.float32:
        flat = np.ascontiguousarray(array).view(np.int32).ravel().tolist()
    elif array.dtype == object or array.dtype.kind == "S":
        flat = [bytes(v).hex() for v in array.astype(object).ravel()]
    else:
        flat = array.ravel().tolist()
    return [list(array.shape), flat]


def parsed_by(tf, case):
    """The outcome through the public functions of TensorFlow, or of stoker."""

    def wanted(spec):
        dtype = tf.as_dtype(spec["dtype"])
        if spec["layout"] == "fixed":
            default = spec["default"]
            if default is not None and not spec["shape"]:
                default = default[0]
            elif default is not None:
                import numpy as np

                default = np.array(default, object if spec["dtype"] == "string" else spec["dtype"]).reshape(
                    spec["shape"]
                )
                default = default.tolist()
            return tf.io.FixedLenFeature(spec["shape"], dtype, default)
        if spec["layout"] == "padded":
            default = spec["default"] and spec["default"][0]
            return tf.io.FixedLenSequenceFeature(spec["shape"], dtype, not spec["required"], default)
        if spec["layout"] == "sparse":
            return tf.io.VarLenFeature(dtype)
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)

    def column(value):
        if isinstance(value, tf.SparseTensor):
            return [plain(value.indices), plain(value.values), plain(value.dense_shape)]
        if isinstance(value, tf.RaggedTensor):
            return [plain(value.flat_values), *map(plain, value.nested_row_splits)]
        return [plain(value.numpy())]

    rows = [bytes.fromhex(row) for row in case["rows"]]
    batch = tf.constant(rows[0] if case["single"] else rows, tf.string, None if case["single"] else [len(rows)])
    try:
        if "features" in case:
            specs = {spec["key"]: wanted(spec) for spec in case["features"]}
            parsed = (tf.io.parse_single_example if case["single"] else tf.io.parse_example)(batch, specs)
            return [column(parsed[spec["key"]]) for spec in case["features"]]
        specs = [{spec["key"]: wanted(spec) for spec in case[group]} for group in ("context", "lists")]
        parse = tf.io.parse_single_sequence_example if case["single"] else tf.io.parse_sequence_example
        context, lists, *lengths = parse(batch, *specs)
        out = [column(context[spec["key"]]) for spec in case["context"]]
        for spec in case["lists"]:
            out.append(column(lists[spec["key"]]))
            if lengths and spec["layout"] == "padded":
                out[-1].append(plain(lengths[0][spec["key"]].numpy()))
        return out
    except tf.errors.InvalidArgumentError as error:
        return "refused: " + error.message.split("}}")[-1].strip()[:60].splitlines()[0]
    except UnicodeDecodeError:  # the message quotes bytes that are no text
        return "refused: Could not parse example input"


def ours(case):
    import numpy as np

    from stoker._src.base import dtypes
    from stoker._src.base.errors import InvalidArgumentError
    from stoker._src.formats import example

    def wanted(spec):
        dtype, default = dtypes.as_dtype(spec["dtype"]), spec.get("default")
        if default is not None:
            is_text = spec["dtype"] == "string"
            default = np.array([v.encode() for v in default] if is_text else default, object if is_text else None)
        if spec["layout"] == "fixed":
            shape = tuple(spec["shape"])
            return example.FixedLength(spec["key"], dtype, shape, None if default is None else default.reshape(shape))
        if spec["layout"] == "padded":
            return example.Padded(spec["key"], dtype, tuple(spec["shape"]), default, spec["required"])
        return (example.Sparse if spec["layout"] == "sparse" else example.Ragged)(spec["key"], dtype)

    def column(value):
        if isinstance(value, example.RaggedColumn):
            return [plain(value.values), *map(plain, value.splits)]
        if isinstance(value, np.ndarray) or not isinstance(value, tuple):
            return [plain(np.asarray(value, object) if isinstance(value, bytes) else value)]
        return [plain(part) for part in value]

    rows = [bytes.fromhex(row) for row in case["rows"]]
    try:
        if "features" in case:
            specs = [wanted(spec) for spec in case["features"]]
            parsed = (
                example.parse_single_example(rows[0], specs) if case["single"] else example.parse_examples(rows, specs)
            )
            return [column(each) for each in parsed]
        specs = [[wanted(spec) for spec in case[group]] for group in ("context", "lists")]
        if case["single"]:
            context, lists = example.parse_single_sequence_example(rows[0], *specs)
        else:
            context, lists = example.parse_sequence_examples(rows, *specs)
        return [column(each) for each in [*context, *lists]]
    except InvalidArgumentError as error:
        return "refused: " + error.message[:60]


def same(theirs, mine):
    if isinstance(theirs, str) or isinstance(mine, str):
        return isinstance(theirs, str) and isinstance(mine, str)
    return theirs == mine


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file)


def main():
    command, *arguments = sys.argv[1:]
    if command == "make":
        maker = Maker(int(arguments[0]))
        with open(arguments[2], "w") as file:
            json.dump([maker.case() for _ in range(int(arguments[1]))], file)
    elif command == "oracle":
        cases = load(arguments[0])
        done: list = []
        while len(done) < len(cases):
            worker = [sys.executable, __file__, "worker", arguments[0], str(len(done))]
            lines = subprocess.run(worker, stdout=subprocess.PIPE, check=False).stdout.decode().splitlines()
            done += [json.loads(line[8:]) for line in lines if line.startswith("outcome ")]
            if len(done) < len(cases):
                done.append("refused: TensorFlow itself crashed")
        with open(arguments[1], "w") as file:
            json.dump([{**case, "outcome": outcome} for case, outcome in zip(cases, done)], file)
    elif command == "worker":
        import tensorflow

        for case in load(arguments[0])[int(arguments[1]) :]:
            print("outcome", json.dumps(parsed_by(tensorflow, case)), flush=True)
    else:
        import stoker

        cases = load(arguments[0])
        wrong = reworded = refused = 0
        for number, case in enumerate(cases):
            if case["outcome"] == "refused: TensorFlow itself crashed":
                print(f"case {number}: TensorFlow crashed; stoker: {json.dumps(ours(case))[:100]}")
                continue
            mine = ours(case)
            refused += isinstance(mine, str)
            public = parsed_by(stoker, case)
            if not same(case["outcome"], mine) or not same(case["outcome"], public):
                wrong += 1
                if wrong <= 10:
                    print(f"case {number}: {json.dumps({k: v for k, v in case.items() if k != 'outcome'})}")
                    print(f"  TensorFlow: {json.dumps(case['outcome'])[:400]}\n  stoker:     {json.dumps(mine)[:400]}")
                    print(f"  public:     {json.dumps(public)[:400]}")
            elif isinstance(mine, str) and mine[:30] != case["outcome"][:30]:
                reworded += 1
                if "-v" in arguments:
                    print(f"  wording: {case['outcome']!r}\n           {mine!r}")
        print(f"{len(cases)} cases, {refused} refused, {wrong} different, {reworded} refused in other words")
        sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
