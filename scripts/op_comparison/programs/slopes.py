"""Gradients through ops with state: variables, lists, arrays by handle, control flow, Python functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Run, program

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 7 - 0.6
WEIGHTS = np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3)
ROW, ANY_SHAPE = np.array([3], np.int32), np.int32(-1)


def _slopes(run: Run, outputs: list[Any], x: Any) -> None:
    """The first and the second derivative of a sum of squares, weighted."""
    tf = run.tf
    total = tf.add_n([tf.reduce_sum(each * each * tf.reduce_sum(WEIGHTS[: each.shape[0] or 1])) for each in outputs])
    (first,) = tf.gradients(total, x)
    (second,) = tf.gradients(tf.reduce_sum(tf.convert_to_tensor(first) ** 2), x)
    run.get([tf.convert_to_tensor(first), tf.convert_to_tensor(second)], {x: ROWS})


@program(
    gradients=(
        "TensorListFromTensor", "TensorListStack", "TensorListPushBack", "TensorListPopBack", "TensorListGetItem", "TensorListSetItem",
        "TensorListGather", "TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList", "TensorListConcat",
        "TensorListConcatV2", "TensorListSplit", "TensorListResize",
    ),
)  # fmt: skip
def slopes_of_lists(run: Run) -> None:
    raw, tf = run.raw, run.tf
    f32 = {"element_dtype": tf.float32}

    def stacked(handle: Any, count: int) -> Any:
        made = raw.TensorListStack(input_handle=handle, element_shape=ROW, num_elements=count, **f32)
        return tf.reshape(made, [count, 3])

    x = tf.placeholder(tf.float32, [4, 3])
    whole = raw.TensorListFromTensor(tensor=x, element_shape=ROW)
    _slopes(run, [stacked(whole, 4)], x)
    pushed = raw.TensorListPushBack(input_handle=whole, tensor=x[1] * x[2])
    _slopes(run, [stacked(pushed, 5)], x)
    shorter, last = raw.TensorListPopBack(input_handle=pushed, element_shape=ROW, **f32)
    _slopes(run, [stacked(shorter, 4), tf.reshape(last, [1, 3])], x)
    item = raw.TensorListGetItem(input_handle=whole, index=np.int32(2), element_shape=ROW, **f32)
    _slopes(run, [tf.reshape(item, [1, 3])], x)
    changed = raw.TensorListSetItem(input_handle=whole, index=np.int32(1), item=x[0] * 3)
    _slopes(run, [stacked(changed, 4)], x)
    gathered = raw.TensorListGather(input_handle=whole, indices=np.array([3, 0, 3], np.int32), element_shape=ROW, **f32)
    _slopes(run, [tf.reshape(gathered, [3, 3])], x)
    places = np.array([2, 0, 3, 1], np.int32)
    scattered = raw.TensorListScatter(tensor=x, indices=places, element_shape=ROW)
    _slopes(run, [stacked(scattered, 4)], x)
    longer = raw.TensorListScatterV2(tensor=x, indices=places, element_shape=ROW, num_elements=np.int32(4))
    _slopes(run, [stacked(longer, 4)], x)
    into = raw.TensorListScatterIntoExistingList(input_handle=whole, tensor=-x[:2], indices=places[:2])
    _slopes(run, [stacked(into, 4)], x)
    shape, lengths = np.array([-1, 3], np.int32), np.array([1, 3], np.int64)
    parts = raw.TensorListSplit(tensor=x, element_shape=shape, lengths=lengths)
    joined = raw.TensorListConcatV2(input_handle=parts, element_shape=shape, leading_dims=np.array([], np.int64), **f32)
    _slopes(run, [tf.reshape(joined[0], [4, 3])], x)
    older = raw.TensorListConcat(input_handle=parts, element_shape=[None, 3], **f32)
    _slopes(run, [tf.reshape(older[0], [4, 3])], x)
    cut = raw.TensorListResize(input_handle=whole, size=np.int32(2))
    _slopes(run, [stacked(cut, 2)], x)


@program(gradients=("ReadVariableOp", "ResourceGather", "ResourceGatherNd"))
def slopes_of_variables(run: Run) -> None:
    tf = run.tf
    variable = tf.get_variable("held", initializer=ROWS, use_resource=True)
    run.do(variable.initializer)
    places = np.array([[2, 0], [2, 2]], np.int32)
    for made in (tf.tanh(variable), tf.gather(variable, [3, 0, 3]) ** 2, tf.gather_nd(variable, places) ** 3):
        (slope,) = tf.gradients(tf.reduce_sum(made * 1.5), variable)
        run.get(tf.convert_to_tensor(slope))


@program(gradients=("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"))
def slopes_of_control_flow(run: Run) -> None:
    tf = run.tf
    x = tf.placeholder(tf.float32, [4, 3])

    def longer(i: Any, y: Any) -> Any:
        return i + 1, y * x + 0.3 * tf.sin(y)

    _, looped = tf.while_loop(lambda i, y: i < 4, longer, [tf.constant(0), x])
    _slopes(run, [looped], x)
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: x * x, lambda: tf.exp(x))
    _slopes(run, [chosen], x)
    picked = tf.switch_case(tf.constant(1), [lambda: x, lambda: tf.tanh(x), lambda: x * 2])
    _slopes(run, [tf.reshape(picked, [4, 3])], x)


@program(gradients=("PartitionedCall", "StatefulPartitionedCall"))
def slopes_of_calls(run: Run) -> None:
    tf = run.tf
    x = tf.placeholder(tf.float32, [4, 3])
    pure = tf.function(lambda y: tf.sin(y) * y)
    drawn = tf.function(lambda y: tf.exp(y) + 0 * tf.random.uniform([]))
    _slopes(run, [tf.reshape(pure(x), [4, 3]), tf.reshape(drawn(x), [4, 3])], x)


@program(gradients=("EagerPyFunc", "Print", "CheckNumerics", "CheckNumericsV2"))
def slopes_of_calls_into_python(run: Run) -> None:
    raw, tf = run.raw, run.tf
    x = tf.placeholder(tf.float32, [4, 3])
    y = tf.py_function(lambda a: a * a + 1, [x], tf.float32)
    y.set_shape([4, 3])
    (slope,) = tf.gradients(tf.reduce_sum(y * WEIGHTS), x)
    run.get(slope, {x: ROWS})
    _slopes(run, [raw.Print(input=x * x, data=[x], first_n=0)], x)
    _slopes(run, [raw.CheckNumerics(tensor=tf.exp(x), message="m")], x)
    _slopes(run, [raw.CheckNumericsV2(tensor=tf.exp(x), message="m")], x)


@program(gradients=("RandomGamma", "FractionalMaxPool", "FractionalAvgPool"))
def slopes_of_drawn_numbers(run: Run) -> None:
    raw, tf = run.raw, run.tf
    alpha = tf.placeholder(tf.float32, [3])
    drawn = raw.RandomGamma(shape=np.array([5], np.int32), alpha=alpha, seed=3, seed2=4)
    (slope,) = tf.gradients(tf.reduce_sum(drawn * drawn), alpha)
    run.get(slope, {alpha: np.array([0.4, 1.5, 6], np.float32)})
    image = tf.placeholder(tf.float32, [1, 6, 7, 2])
    pixels = np.random.RandomState(3).randn(1, 6, 7, 2).astype(np.float32)
    attrs = {"pooling_ratio": [1.0, 1.5, 1.4, 1.0], "deterministic": True, "seed": 5, "seed2": 6}
    for op in (raw.FractionalMaxPool, raw.FractionalAvgPool):
        for more in ({}, {"overlapping": True}, {"pseudo_random": True}):
            pooled = op(value=image, **attrs, **more)[0]
            (slope,) = tf.gradients(tf.reduce_sum(pooled * pooled), image)
            run.get([pooled, slope], {image: pixels})
            turned = {**attrs, "pooling_ratio": [1.0, 1.4, 1.5, 1.0]}
            run.get(list(op(value=pixels.transpose(0, 2, 1, 3), **turned, **more)))
        run.fails(lambda: list(op(value=image, **{**attrs, "deterministic": False})))  # noqa: B023
