"""Fuzzes the Example parsers: random damage to messages, both parsers, equal outcomes.

    python scripts/fuzz_examples.py SECONDS [SEED]

Build the extension with `CFLAGS="-fsanitize=address,undefined -g"` and preload libasan to have memory watched as well:

    CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -g" python setup.py build_ext --inplace --force
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
        PYTHONMALLOC=malloc python scripts/fuzz_examples.py 60

An input on which the parsers differ is written to tests/fuzz/corpus/example_twins, whose files the tests replay.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "golden")]

import example_parsing  # noqa: E402

from stoker._src.formats import _native, example_python, framing  # noqa: E402  # pyright: ignore[reportAttributeAccessIssue]

WANTED = (
    (b"a", 1, -1, None, True),
    (b"b", 2, -1, None, False),
    (b"c", 3, -1, None, True),
    (b"d", 1, 2, (b"x", b"y"), False),
    (b"e", 2, 1, b"\0\0\0\0", False),
    (b"f", 3, 2, bytes(16), False),
)
LISTS = ((b"a", 1), (b"b", 2), (b"c", 3))


def damage(rng: random.Random, row: bytes) -> bytes:
    data = bytearray(row)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(4)
        if what == 0:
            data[at : at + 1] = bytes([rng.choice([0, 1, 2, 10, 18, 26, 127, 128, 255, rng.randrange(256)])])
        elif what == 1:
            del data[at : at + rng.randrange(1, 5)]
        elif what == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 12))
        else:
            data[at:at] = data[at : at + rng.randrange(1, 30)]
    return bytes(data)


def check(row: bytes) -> bool:
    rows = (row,)
    subsets = [WANTED, *((feature,) for feature in WANTED)]
    lists = [(LISTS, LISTS), *(((), (each,)) for each in LISTS)]
    return (
        all(_native.parse_examples(rows, w) == example_python.parse_examples(rows, w) for w in subsets)
        and all(
            _native.parse_sequence_examples(rows, *pair) == example_python.parse_sequence_examples(rows, *pair)
            for pair in lists
        )
        and framing.split(row, 0) == framing.split_python(row, 0)
    )


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng = random.Random(seed)
    deadline = time.monotonic() + seconds
    corpus = ROOT / "tests" / "fuzz" / "corpus" / "example_twins"
    corpus.mkdir(parents=True, exist_ok=True)
    rounds = different = 0
    while time.monotonic() < deadline:
        maker = example_parsing.Maker(rng.getrandbits(40))
        maker.odd = rng.choice([0.0, 0.3, 1.0, 3.0])
        kinds = ["string", "float32", "int64"]
        specs = [{"key": key, "layout": "sparse", "dtype": kind} for key, kind in zip("abcdef", kinds * 2)]
        row = maker.example(specs) if rng.random() < 0.5 else maker.sequence(specs[:3], specs[:3])
        for _ in range(8):
            rounds += 1
            if not check(row):
                different += 1
                (corpus / hashlib.sha256(row).hexdigest()[:16]).write_bytes(row)
            row = damage(rng, row)
        framed = damage(rng, framing.frame(row) + framing.frame(b"x" * rng.randrange(20)))
        if framing.split(framed, 0) != framing.split_python(framed, 0):
            different += 1
    print(f"{rounds} inputs, {different} different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
