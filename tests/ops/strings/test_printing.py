"""tf.print, tf.Print and tf.strings.format."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: [tf2.constant([1, 2, 3])], "[1 2 3]"),
        (lambda: ["a", tf2.constant(1.5), "b"], "a 1.5 b"),
        (lambda: [{"k": tf2.constant(1), "a": [tf2.constant([1, 2]), "z"]}], "{'a': [[1 2], 'z'], 'k': 1}"),
        (lambda: [tf2.constant(["x", "y"])], '["x" "y"]'),
        (lambda: [tf2.constant("x")], "x"),
        (lambda: [tf2.constant(np.arange(20))], "[0 1 2 ... 17 18 19]"),
        (lambda: [(tf2.constant(1),), None], "(1,) None"),
        (lambda: ["%d {} x", tf2.constant(1)], "%d {} x 1"),
        (lambda: [tf2.constant([[1, 2], [3, 4]])], "[[1 2]\n [3 4]]"),
    ],
)
def test_print_shows_what_tensorflow_shows(eager, capsys, make, expected):
    """Text, tensors and structures (golden texts of TensorFlow 2.21), on standard error."""
    assert tf2.print(*make()) is None
    assert capsys.readouterr().err == expected + "\n"


def test_print_options(eager, capsys, tmp_path):
    """Separator, end, stream and file; other keywords are refused."""
    import sys

    tf2.print("x", 3, sep="|", end="END\n", output_stream=sys.stdout)
    assert capsys.readouterr().out == "x|3END\n"
    tf2.print("line", output_stream=f"file://{tmp_path}/log")
    tf2.print("more", output_stream=f"file://{tmp_path}/log")
    assert (tmp_path / "log").read_text() == "line\nmore\n"
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        tf2.print("x", color="red")
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf2.print("x", output_stream="nonsense")


def test_print_in_a_graph(capsys):
    """An op that prints when it runs; Print passes its input on, a number of times, and has a gradient."""
    x = tf.placeholder(tf.float32, [None])
    shown = tf.Print(x, [x, "str", [[1, 2], [3, 4]]], message="msg: ", first_n=2, summarize=2)
    gradient = tf.gradients(shown * 3.0, x)[0]
    with tf.Session() as session:
        session.run(tf.print("graph:", x, [x, "q"]), {x: [1, 2]})
        assert capsys.readouterr().err == "graph: [1 2] [[1 2], 'q']\n"
        for _ in range(3):
            assert session.run(shown, {x: [1, 2, 3]}).tolist() == [1, 2, 3]
        assert capsys.readouterr().err == "msg: [1 2...][str][[1 2]...]\n" * 2
        assert session.run(gradient, {x: [1, 2]}).tolist() == [3, 3]
        assert session.run(tf.timestamp()) > 1.7e9


@pytest.mark.parametrize(
    ("value", "summarize", "printed", "formatted"),
    [
        ([b"a\nb", b"\"q'\\\t"], -1, "a\\nb \\\"q\\'\\\\\\t", '["a\\nb" "\\"q\\\'\\\\\\t"]'),
        (2.5, 0, "...", "..."),
        ([1, 2], 0, "...", "[ ...]"),
        ([[1], [2]], 0, "...", "[\n ...]"),
        ([True], 0, "", ""),
        (np.zeros([0, 2], np.float32), 0, "", "[]"),
    ],
)
def test_strings_are_escaped_and_nothing_is_dots(capfd, value, summarize, printed, formatted):
    """`Print`, `Assert` and `print` spell strings as C does, and show dots for values of which they may show nothing."""
    tensor = tf.constant(value)
    with tf.Session() as session:
        session.run(tf.Print(0, [tensor], "M", summarize=summarize))
        assert capfd.readouterr().err == f"M[{printed}]\n"
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(tf.Assert(tf.placeholder_with_default(False, []), [tensor], summarize=summarize))
        assert f"assertion failed: [{printed}]" in str(caught.value)
        session.run(tf.print(tensor, summarize=summarize))
        assert capfd.readouterr().err == f"{formatted}\n"


def test_bytes_that_are_no_text_are_printed_as_they_are(capfdbinary):
    """What is no UTF-8 goes to standard error unchanged."""
    with tf.Session() as session:
        session.run([tf.Print(0, [b"\xff"]), tf.print(tf.constant([b"\xfe"]))])
    assert sorted(capfdbinary.readouterr().err.split()) == [b'["\xfe"]', b"[\xff]"]
