"""JSON texts, and what TensorFlow's decode_json_example makes of them.

    python tests/golden/json_examples.py     # a Python with TensorFlow 2.21; writes json_examples.json

Each case is [text in Latin-1, the Example's bytes in hexadecimal or null where it was refused]. The texts are those of
the file, so that a new one is added there by hand with null and the script run again.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")


def main() -> None:
    import tensorflow as tf

    cases = []
    for text, _ in json.loads(FILE.read_text()):
        try:
            data = tf.io.decode_json_example(text.encode("latin-1")).numpy()
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # its message quotes bytes that are no text
            cases.append([text, None])
            continue
        example = tf.train.Example.FromString(data)
        cases.append([text, example.SerializeToString(deterministic=True).hex()])
    FILE.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
