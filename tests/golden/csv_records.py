"""CSV records as TensorFlow decodes them.

    python tests/golden/csv_records.py > tests/golden/csv_records.json   # a Python with TensorFlow 2.21

Each case: record, keyword arguments, number of string columns or a numeric dtype; and the fields, or the refusal.
"""

from __future__ import annotations

import json
import random


def cases():
    rng = random.Random(5)
    made = []
    for _ in range(1200):
        record = "".join(rng.choices('ab,,,""\n\r |', k=rng.randrange(9)))
        options = rng.choice([{}, {}, {}, {"use_quote_delim": False}, {"field_delim": "|"}, {"na_value": "a"}])
        columns = rng.randrange(1, 4)
        if rng.random() < 0.25:
            options = {**options, "select_cols": sorted(rng.sample(range(4), columns))}
        made.append((record, options, columns))
    for _ in range(400):
        text = "".join(rng.choices("0123456789.e+-xXpinfa _", k=rng.randrange(1, 6)))
        made.append((text, {}, rng.choice(["int32", "int64", "float32", "float64"])))
    numbers = ["2147483647", "2147483648", " 5 ", "+7", "1e400", "-1e400", "0x1p3", "nan(1)", "INF", "1_0", "٣", ""]
    numbers += ["9223372036854775807", "-9223372036854775809", "3.4028236e38", "0.1", "16777217", "1e39", ".", "1e-50"]
    return made + [(n, {}, dtype) for n in numbers for dtype in ("int32", "int64", "float32", "float64")]


def main() -> None:
    import tensorflow as tf

    results = []
    for record, options, columns in cases():
        if isinstance(columns, int):
            defaults = [tf.constant(["-"])] * columns
        else:
            defaults = [tf.constant([7], columns)]
        try:
            outputs = tf.io.decode_csv([record], defaults, **options)
            fields = [o.numpy()[0].decode() if o.dtype == tf.string else repr(float(o.numpy()[0])) for o in outputs]
        except tf.errors.InvalidArgumentError as error:
            fields = "refused: " + error.message.split("}}")[-1].strip().removesuffix(" [Op:DecodeCSV]")
        results.append([record, options, columns, fields])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
