"""TFRecord files as TensorFlow writes them.

    python tests/golden/tfrecords.py > tests/golden/tfrecords.json   # a Python with TensorFlow 2.21

Each case: constructor arguments of TFRecordOptions, the steps (a record's number or "flush"), and the file in hex.
`records()` gives the records by number, the same in every process.
"""

from __future__ import annotations

import json
import os
import random
import tempfile


def records() -> list[bytes]:
    rng = random.Random(3)
    words = [rng.randbytes(5) for _ in range(40)]
    return [b"", b"a", b"abc" * 50, rng.randbytes(300), *(b"".join(rng.choices(words, k=60)) for _ in range(8))]


CASES = [
    ({"compression_type": kind, **options}, steps)
    for kind in ("", "GZIP", "ZLIB")
    for options in (
        ({},)
        if not kind
        else (
            {},
            {"compression_level": 0},
            {"compression_level": 1},
            {"compression_level": 9},
            {"window_bits": 9},
            {"window_bits": 12, "mem_level": 1},
            {"mem_level": 8},
            {"compression_strategy": 1},
            {"compression_strategy": 2},
            {"compression_strategy": 3},
            {"flush_mode": 1},
            {"flush_mode": 2},
            {"flush_mode": 3},
            {"flush_mode": 2, "input_buffer_size": 256},
            {"input_buffer_size": 64, "output_buffer_size": 64},
            {"compression_level": 0, "input_buffer_size": 256},
        )
    )
    for steps in ([*range(12)], [0, 1, "flush", 2, 3, "flush", "flush", 4, 5, 6])
] + [({"compression_type": kind}, steps) for kind in ("", "GZIP", "ZLIB") for steps in ([], [0], ["flush"])]


def main() -> None:
    import tensorflow as tf

    data = records()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        for options, steps in CASES:
            with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(**options)) as writer:
                for step in steps:
                    if step == "flush":
                        writer.flush()
                    else:
                        writer.write(data[step])
            with open(path, "rb") as file:
                results.append({"options": options, "steps": steps, "file": file.read().hex()})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
