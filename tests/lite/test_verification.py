"""Files that no program wrote: what they say is compared before LiteRT reads them, and honest models pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model, write_model
from stoker._src.lite.model import Model, Tensor
from stoker._src.lite.verification import shapes
from stoker._src.lite.verification.meaning import verify
from tests.lite.models import NETWORKS

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "lite"


def converted(build: Callable[..., Any], *inputs: Any) -> bytes:
    """The model of a graph. Inputs are arrays or shapes of float32."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = [
            tf.placeholder(tf.float32, each) if isinstance(each, list) else tf.placeholder(each.dtype, each.shape)
            for each in inputs
        ]
        outputs = tf.nest.flatten(build(*given))
        session.run(tf.global_variables_initializer())
        return tf.lite.TFLiteConverter.from_session(session, given, outputs).convert()


def changed(content: bytes, change: Callable[[Model], None]) -> bytes:
    model = read_model(content)
    change(model)
    return write_model(model)


def _max_pool(x: Any) -> Any:
    return tf.nn.max_pool(x, 2, 2, "SAME")


def _filter_size(model: Model) -> None:
    model.main.operators[0].options.filterWidth = 3 ^ 0xFF0000


def _input_size(model: Model) -> None:
    model.main.inputs[0].shape = (1, 8 ^ 0x0F0000, 8, 4)


def _result_size(model: Model) -> None:
    model.main.operators[0].outputs[0].shape = (1, 4 + 2**22, 4, 4)


def _empty_and_huge(model: Model) -> None:
    model.main.inputs[0].shape = (119, 1996488704, 0, 4)


def _other_sizes(model: Model) -> None:
    model.main.operators[0].outputs[0].shape = (1, 8, 8, 3)


def _text_result(model: Model) -> None:
    model.main.operators[-1].outputs[0].type = "STRING"


def _other_operator(model: Model) -> None:
    model.main.operators[-1].code = "GREATER"


def _other_type(model: Model) -> None:
    model.main.inputs[0].type = "INT32"


def _stated_shape(model: Model) -> None:
    model.main.operators[0].inputs[1] = Tensor("none", "INT32", (4,), np.array([4, 0, 8, 4], np.int32))


def _short_diagonal(model: Model) -> None:
    model.main.inputs[1].shape = (1, 8, 3)


def _radius(model: Model) -> None:
    model.main.operators[0].options.radius = -16777214


def _dimensions(model: Model) -> None:
    reshape = next(each for each in model.main.operators if each.code == "RESHAPE")
    reshape.inputs[1] = Tensor("many", "INT32", (24,), np.ones(24, np.int32))


@pytest.mark.parametrize(
    ("build", "change", "message"),
    [
        (_max_pool, _filter_size, "FilterWidth is 16711683"),
        (_max_pool, _input_size, r"of arguments of the shapes \[\[1, 983048, 8, 4\]\] it makes 7864384 numbers"),
        (_max_pool, _result_size, r"it makes 64 numbers, and its result is declared as \[1, 4194308, 4, 4\]"),
        (_max_pool, _empty_and_huge, "more than the machine has memory for"),
        (lambda x: tf.atan2(x, tf.nn.relu(x)), _other_sizes, "it cannot combine arguments of the shapes"),
        (tf.nn.relu, _text_result, "its result has the type STRING, and none of its arguments has"),
        (lambda x: x + 1.0, _other_operator, "its result has the type FLOAT32, and its kernel makes BOOL"),
        (lambda x: tf.reshape(x, [4, 64]), _other_type, "its result has the type FLOAT32, and its kernel makes INT32"),
        (lambda x: x > 2.0, _other_type, "it cannot combine INT32 and FLOAT32"),
        (lambda x: tf.broadcast_to(x, [4, 8, 8, 4]), _stated_shape, r"makes 0 numbers.*declared as \[4, 8, 8, 4\]"),
        (tf.nn.local_response_normalization, _radius, "Radius is -16777214"),
        (lambda x: tf.reshape(tf.nn.relu(x), [4, 64]), _dimensions, "its result is to have 24 dimensions"),
    ],
    ids=[
        "window",
        "input",
        "result",
        "empty",
        "unequal",
        "text",
        "operator",
        "moved",
        "combined",
        "stated",
        "radius",
        "dimensions",
    ],
)
def test_what_cannot_be_meant_is_refused(build, change, message):
    """LiteRT would ask for gigabytes and minutes, or end the process."""
    content = converted(build, [1, 8, 8, 4])
    verify(content)
    with pytest.raises(ValueError, match=message):
        verify(changed(content, change))


@pytest.mark.parametrize("name", [*NETWORKS, *sorted(path.name for path in GOLDEN.glob("*.tflite"))])
def test_honest_models_declare_what_operators_make(name, monkeypatch):
    """The sizes that follow from arguments are those that converters declare, not only where they are large."""
    monkeypatch.setattr(shapes, "_LARGE", -1)
    if name in NETWORKS:
        network = NETWORKS[name]
        content = converted(lambda *inputs: network.build(tf, *inputs), *network.inputs())
    else:
        content = (GOLDEN / name).read_bytes()
    verify(content)


def test_a_fused_cell_reads_sequences():
    """The kernel of a fused LSTM ends the process where its input does not have time, batch and size."""
    tf.enable_control_flow_v2()
    try:
        cell = tf.lite.experimental.nn.TFLiteLSTMCell
        run = tf.lite.experimental.nn.dynamic_rnn
        content = converted(lambda x: run(cell(3), x, dtype=tf.float32)[0], [4, 1, 2])
    finally:
        tf.disable_control_flow_v2()
    verify(content)

    def more_dimensions(model: Model) -> None:
        model.main.inputs[0].shape = (4, 1, 1, 2)

    with pytest.raises(ValueError, match=r"input 0 has the shape \[4, 1, 1, 2\], not 3 dimensions"):
        verify(changed(content, more_dimensions))


def test_a_diagonal_fits_its_matrices():
    """The kernel reads as many numbers as the matrices have."""
    content = converted(lambda x, diagonal: tf.matrix_set_diag(x, diagonal), [1, 8, 8, 4], [1, 8, 4])
    verify(content)
    with pytest.raises(ValueError, match="it cannot combine arguments of the shapes"):
        verify(changed(content, _short_diagonal))


def test_open_sizes_of_inputs():
    """The number in the place of a size that the caller chooses is small."""
    assert not shapes.open_size_problem([1, 8, 8, 4], [-1, 8, 8, 4])
    assert not shapes.open_size_problem([2**19, 8, 8, 4], [2**19, 8, 8, 4])
    assert "declared to be 524288" in shapes.open_size_problem([2**19, 8, 8, 4], [-1, 8, 8, 4])


def _counting(numbers: tuple[int, int, int], compare: Any = tf.less, row: int = 4) -> Any:
    start, limit, step = numbers

    def build(x: Any) -> Any:
        def more(i: Any, _: Any) -> Any:
            return compare(i, limit)

        return tf.while_loop(more, lambda i, y: (i + step, y * 0.5), [start, x])[1]

    return converted(build, [row])


def _set(model: Model, old: int, new: int) -> None:
    """Replaces a constant of loops that is unlike the others."""
    found = [each for subgraph in model.subgraphs for each in subgraph.tensors if each.data is not None]
    (place,) = [each for each in found if each.type == "INT32" and each.data is not None and each.data.tolist() == old]
    place.data = np.array(new, np.int32)


@pytest.mark.parametrize(
    ("compare", "numbers", "damage", "message"),
    [
        (tf.less, (0, 7, 3), (3, 0), "its loop never ends"),
        (tf.less, (0, 7, 3), (3, -1), "its loop never ends"),
        (tf.less_equal, (0, 7, 3), (0, 3 - 3 * 2**20), "its loop ends after 1048578 turns"),
        (tf.greater, (7, 0, -3), (7, 3 * 2**20 + 1), "its loop ends after 1048577 turns"),
        (tf.greater_equal, (7, 0, -3), (7, 3 * 2**20), "its loop ends after 1048577 turns"),
        (tf.not_equal, (0, 6, 3), (6, 7), "its loop never ends"),
        (tf.not_equal, (0, 6, 3), (6, 3 * 2**21), "its loop ends after 2097152 turns"),
    ],
)
def test_loops_that_turn_for_hours_are_refused(compare, numbers, damage, message):
    """Where start, step and end are constants, the number of turns is known."""
    content = _counting(numbers, compare)
    with pytest.raises(ValueError, match=message):
        verify(changed(content, lambda model: _set(model, *damage)))


@pytest.mark.parametrize(
    ("compare", "numbers", "damage"),
    [
        (tf.less, (0, 7, 3), (7, 3 * 2**20)),
        (tf.less, (0, 7, 3), (0, 8)),
        (tf.equal, (5, 7, 3), (7, 5)),
        (tf.greater_equal, (7, 0, -3), (7, 3 * 2**20 - 1)),
        (tf.not_equal, (0, 6, 3), (6, 0)),
    ],
)
def test_loops_that_end_in_time_are_accepted(compare, numbers, damage):
    """A million turns are not too many, and a loop may have none."""
    content = _counting(numbers, compare)
    verify(changed(content, lambda model: _set(model, *damage)))


def test_a_counter_that_stays_what_it_is():
    """Twice zero is zero, and so is what is only reshaped."""

    def doubled(model: Model) -> None:
        body = next(each for each in model.subgraphs if any(operator.code == "MUL" for operator in each.operators))
        counter = next(operator for operator in body.operators if operator.code == "ADD")
        counter.inputs = [counter.inputs[0], counter.inputs[0]]

    def reshaped(model: Model) -> None:
        doubled(model)
        counter = next(each for each in model.operators() if each.code == "ADD" and each.inputs[0] is each.inputs[1])
        shape = Tensor("none", "INT32", (0,), np.zeros(0, np.int32))
        counter.code, counter.options, counter.inputs[1] = "RESHAPE", None, shape

    for change in (doubled, reshaped):
        with pytest.raises(ValueError, match="its loop never ends"):
            verify(changed(_counting((0, 7, 3)), change))


def test_loops_over_long_tensors_are_accepted():
    """Turns are as many as there are elements to read or make."""
    content = _counting((0, 7, 3), row=2**22)
    verify(changed(content, lambda model: _set(model, 7, 3 * 2**21)))
    with pytest.raises(ValueError, match="ends after 8388608 turns"):
        verify(changed(content, lambda model: _set(model, 7, 3 * 2**23)))


def test_loops_whose_end_depends_on_data_are_accepted():
    """Nothing is known about them, also if one of several conditions is constant."""

    def build(x: Any) -> Any:
        def more(i: Any, y: Any) -> Any:
            return tf.logical_and(tf.reduce_sum(y) > 1.0, i < 2**30)

        return tf.while_loop(more, lambda i, y: (i + 1, y * 0.5), [0, x])[1]

    verify(converted(build, [4]))


def test_conditions_that_must_all_hold():
    """The first that does not hold ends the loop."""

    def build(x: Any) -> Any:
        return tf.while_loop(
            lambda i, y: tf.logical_and(i < 2**30, i < 7), lambda i, y: (i + 1, y * 0.5), [np.int32(0), x]
        )[1]

    content = converted(build, [4])
    verify(content)
    with pytest.raises(ValueError, match="ends after 536870912 turns"):
        verify(changed(content, lambda model: _set(model, 7, 2**29)))
