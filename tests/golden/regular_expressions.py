"""What TensorFlow's regular expressions match, {pattern: which of TEXTS match in full, and TEXTS with matches in brackets}, and
what rewrites make of them, {[pattern, rewrite, replace_global] as JSON: TEXTS rewritten}.

    python tests/golden/regular_expressions.py > tests/golden/regular_expressions.json   # a Python with TensorFlow 2.21

A pattern that is refused has null.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

TEXTS = [
    "", "a", "ab", "A", "B", "aab", "\u00e9", "\u00c9", "a b", "a\n", "\na", "1", ".", "aB1 ", "{,2}", "a.", "-", "\udcff",
    "a\nb", "aaaaaa", "\b", "$", "_", "Qa", "\v",
]  # fmt: skip
PIECES = [
    "a", "b", "B", "\u00e9", "\u00c9", "1", " ", "\n", ".", "^", "$", "*", "+", "?", "*?", "{2}", "{,2}", "{1,}", "{0}", "{2,1}",
    "(", ")", "|", "(?i)", "(?s)", "(?m)", "(?-i)", "(?i:", "(?:", "(?P<n>", "[ab]", "[^a]", "[a-z]", r"[^\s]", "[[:alpha:]]",
    r"[\d-]", "[-a]", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", r"\A", r"\z", r"\.", r"\x41", r"\pL", r"\PL",
    r"\p{Lu}", r"\n", "(?U)", "(?=a)", r"\1", "[", "]", "{", "}", "-", r"\Qa.\E",
]  # fmt: skip
WRITTEN = [
    "a++", "a?+", "a{2}+", "a*+", "(?>a)", "(?#x)a", "(?x)a", "(?a)a", "(?L)a", "(?u)a", "(?U)a", "(?<n>a)", "(?P=n)", "a{1001}",
    "a{1000}", "(a{1000}){1000}", "a{,3}", "a{3,2}", r"\Z", r"\u0041", r"\x{41}", r"\101", r"\N{DIGIT ONE}", r"\8", "[z-a]", "[a",
    "(a", "a)", "*a", "a**", "a{", "a{1", "\\", "[]", "[]a]", r"\pN", r"\PN", "[[:foo:]]", "[[:^alpha:]]", "[a&&b]", "[a--b]",
    r"[\b]", "(?i", "(?", "()", "|", "a|", "(?P<n>a)(?P<n>b)", "x(?i)a", "a(?i)b|B", "a{2}{3}", r"\777", r"\_", r"\y", "(?i)[^a]",
    r"(?i)\W", r"[^\D]", "a$", "(?m)a$", "(?s)a.b", r"\C", r"a\C", r"\p{Greek}", r"\P{Latin}", r"[\p{Latin}1]", r"\p{Nonsense}",
    "\u00e9*", "(a+)+$", "(x*)*",
]  # fmt: skip
REWRITTEN = ["a", "(a)(b)?", "", "b*", "\u00e9*", "(.)", r"\C", "(?P<x>a)"]
REWRITES = [
    r"<\0>", r"\1", r"\2", r"\9", r"\z", r"x\zy", "x\\", "\\", r"\\", r"x\\1", r"\1\z", "-", "\u00e9\\0", "\\0\\0\\", r"\00", "",
]  # fmt: skip


def patterns() -> list[str]:
    chosen = random.Random(5)
    drawn = ["".join(chosen.choice(PIECES) for _ in range(chosen.randint(1, 5))) for _ in range(300)]
    return list(dict.fromkeys(WRITTEN + drawn))


def _texts() -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in TEXTS]


def rewrites(tf: Any) -> dict[str, list[str]]:
    found = {}
    for pattern, rewrite, everywhere in itertools.product(REWRITTEN, REWRITES, (True, False)):
        made = tf.raw_ops.StaticRegexReplace(
            input=_texts(), pattern=pattern, rewrite=rewrite, replace_global=everywhere
        )
        key = json.dumps([pattern, rewrite, everywhere])
        found[key] = [text.decode("utf-8", "surrogateescape") for text in made.numpy().tolist()]
    return found


def outcomes(tf: Any) -> dict[str, Any]:
    texts = _texts()
    found: dict[str, Any] = {}
    for pattern in patterns():
        try:
            whole = tf.raw_ops.RegexFullMatch(input=texts, pattern=pattern).numpy()
            marked = tf.raw_ops.RegexReplace(input=texts, pattern=pattern, rewrite=r"<\0>").numpy()
        except tf.errors.InvalidArgumentError:
            found[pattern] = None
            continue
        found[pattern] = [
            "".join(str(int(each)) for each in whole),
            [text.decode("utf-8", "surrogateescape") for text in marked.tolist()],
        ]
    return found


if __name__ == "__main__":
    import tensorflow

    print(json.dumps({"patterns": outcomes(tensorflow), "rewrites": rewrites(tensorflow)}))
