"""Tensor lists, tensor arrays, stacks and optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Run, program

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
ANY_SHAPE = np.int32(-1)
ROW = np.array([3], np.int32)


def _int(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@program(
    "EmptyTensorList", "TensorListPushBack", "TensorListPopBack", "TensorListLength", "TensorListElementShape", "TensorListStack",
    eager=True,
)  # fmt: skip
def growing_list(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for dtype in (tf.float32, tf.int64, tf.bool, tf.complex64, tf.bfloat16, tf.string):
        rows = ROWS.astype("S").astype(object) if dtype == tf.string else ROWS.astype(dtype.as_numpy_dtype)
        empty = raw.EmptyTensorList(element_shape=_int(-1), max_num_elements=np.int32(3), element_dtype=dtype)
        run.get(raw.TensorListLength(input_handle=empty))
        run.get(raw.TensorListElementShape(input_handle=empty, shape_type=tf.int64))
        one = raw.TensorListPushBack(input_handle=empty, tensor=tf.constant(rows[0], dtype))
        two = raw.TensorListPushBack(input_handle=one, tensor=tf.constant(rows[1], dtype))
        run.get(raw.TensorListLength(input_handle=two))
        run.get(raw.TensorListStack(input_handle=two, element_shape=ROW, element_dtype=dtype, num_elements=2))
        run.get(raw.TensorListStack(input_handle=empty, element_shape=ROW, element_dtype=dtype))
        shorter, popped = raw.TensorListPopBack(input_handle=two, element_shape=ANY_SHAPE, element_dtype=dtype)
        run.get([popped, raw.TensorListLength(input_handle=shorter), raw.TensorListLength(input_handle=two)])
        run.fails(lambda: raw.TensorListPopBack(input_handle=empty, element_shape=ROW, element_dtype=dtype)[1])  # noqa: B023
        run.fails(lambda: raw.TensorListStack(input_handle=two, element_shape=_int(4), element_dtype=dtype))  # noqa: B023
        run.fails(lambda: raw.TensorListStack(input_handle=two, element_shape=ROW, element_dtype=dtype, num_elements=3))  # noqa: B023
        three = raw.TensorListPushBack(input_handle=two, tensor=tf.constant(rows[2], dtype))
        run.fails(lambda: _length(run, raw.TensorListPushBack(input_handle=three, tensor=tf.constant(rows[2], dtype))))  # noqa: B023
        run.fails(lambda: _length(run, raw.TensorListPushBack(input_handle=one, tensor=tf.constant(rows, dtype))))  # noqa: B023


def _length(run: Run, handle: Any) -> Any:
    return run.raw.TensorListLength(input_handle=handle)


@program(
    "TensorListReserve", "TensorListSetItem", "TensorListGetItem", "TensorListResize", "TensorListGather", eager=True
)
def reserved_list(run: Run) -> None:
    raw, tf = run.raw, run.tf
    f32 = {"element_dtype": tf.float32}
    made = raw.TensorListReserve(element_shape=ROW, num_elements=np.int32(4), **f32)
    run.get(_length(run, made))
    run.get(raw.TensorListGetItem(input_handle=made, index=np.int32(2), element_shape=ROW, **f32))  # zeros
    made = raw.TensorListSetItem(input_handle=made, index=np.int32(1), item=ROWS[1])
    made = raw.TensorListSetItem(input_handle=made, index=np.int32(3), item=ROWS[3])
    run.get(raw.TensorListGetItem(input_handle=made, index=np.int32(3), element_shape=ROW, **f32))
    run.get(raw.TensorListGather(input_handle=made, indices=_int(3, 0, 1, 3), element_shape=ROW, **f32))
    run.get(raw.TensorListGather(input_handle=made, indices=_int(), element_shape=ROW, **f32))
    run.get(raw.TensorListStack(input_handle=made, element_shape=ANY_SHAPE, **f32))
    for size in (2, 6, 0):
        changed = raw.TensorListResize(input_handle=made, size=np.int32(size))
        run.get(_length(run, changed))
        run.get(raw.TensorListStack(input_handle=changed, element_shape=ROW, **f32))
    for index in (4, -1):
        run.fails(lambda: raw.TensorListGetItem(input_handle=made, index=np.int32(index), element_shape=ROW, **f32))  # noqa: B023
        run.fails(lambda: _length(run, raw.TensorListSetItem(input_handle=made, index=np.int32(index), item=ROWS[0])))  # noqa: B023
        run.fails(lambda: raw.TensorListGather(input_handle=made, indices=_int(index), element_shape=ROW, **f32))  # noqa: B023
    run.fails(lambda: _length(run, raw.TensorListSetItem(input_handle=made, index=np.int32(0), item=ROWS[0, :2])))
    run.fails(lambda: _length(run, raw.TensorListResize(input_handle=made, size=np.int32(-1))))
    grown = raw.TensorListSetItem(
        input_handle=made, index=np.int32(6), item=ROWS[0], resize_if_index_out_of_bounds=True
    )
    run.get(_length(run, grown))


@program(
    "TensorListFromTensor", "TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList", "TensorListConcatLists",
    "TensorListConcat", "TensorListConcatV2", "TensorListSplit", eager=True,
)  # fmt: skip
def lists_of_rows(run: Run) -> None:
    raw, tf = run.raw, run.tf
    f32 = {"element_dtype": tf.float32}
    stack = {"element_shape": ANY_SHAPE, **f32}
    whole = raw.TensorListFromTensor(tensor=ROWS, element_shape=ROW)
    run.get(raw.TensorListStack(input_handle=whole, **stack))
    run.get(_length(run, raw.TensorListFromTensor(tensor=ROWS[:0], element_shape=ROW)))
    run.fails(lambda: _length(run, raw.TensorListFromTensor(tensor=ROWS, element_shape=_int(4))))
    run.fails(lambda: _length(run, raw.TensorListFromTensor(tensor=ROWS[0, 0], element_shape=_int())))
    scattered = raw.TensorListScatter(tensor=ROWS, indices=_int(2, 0, 3, 1), element_shape=ROW)
    run.get(raw.TensorListStack(input_handle=scattered, **stack))
    longer = raw.TensorListScatterV2(tensor=ROWS, indices=_int(2, 0, 5, 1), element_shape=ROW, num_elements=np.int32(7))
    run.get(raw.TensorListStack(input_handle=longer, **stack))
    run.fails(lambda: _length(run, raw.TensorListScatterV2(tensor=ROWS, indices=_int(2, 0, 5, -1), element_shape=ROW, num_elements=np.int32(7))))  # fmt: skip
    into = raw.TensorListScatterIntoExistingList(input_handle=whole, tensor=-ROWS[:2], indices=_int(3, 1))
    run.get(raw.TensorListStack(input_handle=into, **stack))
    both = raw.TensorListConcatLists(input_a=whole, input_b=scattered, **f32)
    run.get(raw.TensorListStack(input_handle=both, **stack))
    parts = raw.TensorListSplit(tensor=ROWS, element_shape=_int(-1, 3), lengths=np.array([1, 0, 3], np.int64))
    run.get(_length(run, parts))
    run.get(raw.TensorListGetItem(input_handle=parts, index=np.int32(2), element_shape=_int(-1, 3), **f32))
    joined = raw.TensorListConcatV2(
        input_handle=parts, element_shape=_int(-1, 3), leading_dims=np.array([], np.int64), **f32
    )
    run.get([joined[0], joined[1]])
    older = raw.TensorListConcat(input_handle=parts, element_shape=[None, 3], **f32)
    run.get([older[0], older[1]])
    run.fails(
        lambda: _length(
            run, raw.TensorListSplit(tensor=ROWS, element_shape=_int(-1, 3), lengths=np.array([1, 1], np.int64))
        )
    )
    run.fails(
        lambda: _length(
            run, raw.TensorListSplit(tensor=ROWS, element_shape=_int(-1, 3), lengths=np.array([5, -1], np.int64))
        )
    )


@program("TensorListPushBackBatch", eager=True)
def lists_that_grow_together(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for dtype in (tf.float32, tf.int64, tf.string):
        rows = ROWS.astype("S").astype(object) if dtype == tf.string else ROWS.astype(dtype.as_numpy_dtype)
        start = [
            raw.EmptyTensorList(element_shape=ROW, max_num_elements=np.int32(2), element_dtype=dtype) for _ in range(4)
        ]
        handles = tf.stack(start)
        push = lambda handles, rows: raw.TensorListPushBackBatch(input_handles=handles, tensor=tf.constant(rows, dtype))  # noqa: B023, E731
        once = push(handles, rows)
        twice = push(once, rows[::-1].copy())
        for number, lists in ((1, once), (2, twice)):
            for each in tf.unstack(lists, 4):
                run.get(
                    raw.TensorListStack(input_handle=each, element_shape=ROW, element_dtype=dtype, num_elements=number)
                )
        run.fails(lambda: _length(run, tf.unstack(push(handles, rows[:3]), 4)[0]))  # noqa: B023
        run.fails(lambda: _length(run, tf.unstack(push(handles, rows[:, :2]), 4)[0]))  # noqa: B023


@program(
    "EmptyTensorMap", "TensorMapInsert", "TensorMapLookup", "TensorMapHasKey", "TensorMapSize", "TensorMapErase", "TensorMapStackKeys",
    eager=True,
)  # fmt: skip
def maps_of_tensors(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for kind in (tf.float32, tf.int64, tf.string):
        keys = [
            tf.constant(b"one" if kind == tf.string else 1, kind),
            tf.constant(b"two" if kind == tf.string else 2, kind),
        ]
        absent = tf.constant(b"three" if kind == tf.string else 3, kind)
        empty = raw.EmptyTensorMap()
        one = raw.TensorMapInsert(input_handle=empty, key=keys[0], value=tf.constant(ROWS))
        two = raw.TensorMapInsert(input_handle=one, key=keys[1], value=tf.constant(ROWS[0]))
        other = raw.TensorMapInsert(input_handle=two, key=keys[0], value=tf.constant(ROWS[1]))
        less = raw.TensorMapErase(input_handle=other, key=keys[1], value_dtype=tf.float32)
        run.get([raw.TensorMapSize(input_handle=each) for each in (empty, one, two, other, less)])
        for each in (one, two, other, less):
            run.get(raw.TensorMapLookup(input_handle=each, key=keys[0], value_dtype=tf.float32))
            run.get([raw.TensorMapHasKey(input_handle=each, key=key) for key in (*keys, absent)])
        found = run.do(raw.TensorMapStackKeys(input_handle=two, key_dtype=kind))
        run.note(np.sort(found))  # in the order of a hash table
        run.get(raw.TensorMapStackKeys(input_handle=one, key_dtype=kind))
        run.fails(lambda: raw.TensorMapLookup(input_handle=two, key=absent, value_dtype=tf.float32))  # noqa: B023
        run.fails(lambda: raw.TensorMapErase(input_handle=two, key=absent, value_dtype=tf.float32))  # noqa: B023
        run.fails(lambda: raw.TensorMapStackKeys(input_handle=empty, key_dtype=kind))  # noqa: B023


@program("OptionalFromValue", "OptionalNone", "OptionalHasValue", "OptionalGetValue", eager=True)
def optional_values(run: Run) -> None:
    raw, tf = run.raw, run.tf
    some, none = raw.OptionalFromValue(components=[ROWS, tf.constant(b"word")]), raw.OptionalNone()
    run.get([raw.OptionalHasValue(optional=some), raw.OptionalHasValue(optional=none)])
    types = {"output_types": [tf.float32, tf.string], "output_shapes": [[4, 3], []]}
    run.get(list(raw.OptionalGetValue(optional=some, **types)))
    run.fails(lambda: list(raw.OptionalGetValue(optional=none, **types)))


# -- by handle ---------------------------------------------------------------------------------------------------


@program(
    "TensorArrayV3", "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3", "TensorArraySizeV3", "TensorArrayScatterV3",
    "TensorArrayCloseV3",
)  # fmt: skip
def tensor_array(run: Run) -> None:
    raw, tf = run.raw, run.tf

    def make(**attrs: Any) -> Any:
        return raw.TensorArrayV3(size=np.int32(4), dtype=tf.float32, **attrs)

    def read(array: Any, index: int) -> Any:
        return raw.TensorArrayReadV3(handle=array[0], index=np.int32(index), flow_in=array[1], dtype=tf.float32)

    def write(array: Any, index: int, value: Any) -> Any:
        flow = raw.TensorArrayWriteV3(handle=array[0], index=np.int32(index), value=value, flow_in=array[1])
        return array[0], flow

    filled = make()
    for index in (3, 0, 1, 2):
        filled = write(filled, index, ROWS[index])
    run.get(read(filled, 3))
    run.get(raw.TensorArraySizeV3(handle=filled[0], flow_in=filled[1]))
    gathered = {"indices": _int(2, 0), "dtype": tf.float32}
    run.get(raw.TensorArrayGatherV3(handle=filled[0], flow_in=filled[1], **gathered))
    scattered = make(element_shape=[3])
    flow = raw.TensorArrayScatterV3(handle=scattered[0], indices=_int(1, 3, 0, 2), value=ROWS, flow_in=scattered[1])
    run.get(raw.TensorArrayGatherV3(handle=scattered[0], flow_in=flow, indices=_int(0, 1, 2, 3), dtype=tf.float32))
    dynamic = write(make(dynamic_size=True, clear_after_read=False), 9, ROWS[0])
    run.get(raw.TensorArraySizeV3(handle=dynamic[0], flow_in=dynamic[1]))
    run.fails(lambda: read(filled, 4))
    run.fails(lambda: read(make(), 1))  # never written
    run.fails(lambda: read(write(make(), 4, ROWS[0]), 0))
    run.fails(lambda: read(write(write(make(), 0, ROWS[0]), 0, ROWS[1]), 0))  # written twice
    run.fails(lambda: read(write(make(element_shape=[2]), 0, ROWS[0]), 0))
    run.fails(lambda: raw.TensorArrayReadV3(handle=filled[0], index=np.int32(0), flow_in=filled[1], dtype=tf.int32))
    closed = make()
    run.do(raw.TensorArrayCloseV3(handle=closed[0]))


@program("TensorArrayConcatV3", "TensorArraySplitV3", "TensorArrayGradV3")
def joined_tensor_array(run: Run) -> None:
    raw, tf = run.raw, run.tf
    value = tf.placeholder(tf.float32, [4, 3])
    handle, flow = raw.TensorArrayV3(size=np.int32(3), dtype=tf.float32)
    lengths = np.array([1, 0, 3], np.int64)
    flow = raw.TensorArraySplitV3(handle=handle, value=value, lengths=lengths, flow_in=flow)
    joined, found = raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float32)
    run.get([joined, found], {value: ROWS})
    written, flow = raw.TensorArrayV3(size=np.int32(2), dtype=tf.float32)
    flow = raw.TensorArrayWriteV3(handle=written, index=np.int32(1), value=value, flow_in=flow)
    sums, flow = raw.TensorArrayGradV3(handle=written, flow_in=flow, source="sums")
    for part in (value, 2 * value):  # what is written twice adds up
        flow = raw.TensorArrayWriteV3(handle=sums, index=np.int32(1), value=part, flow_in=flow)
    run.get(raw.TensorArrayReadV3(handle=sums, index=np.int32(1), flow_in=flow, dtype=tf.float32), {value: ROWS})


def _stack(run: Run, make: Any, suffix: str) -> None:
    raw, tf = run.raw, run.tf
    push, pop = getattr(raw, f"StackPush{suffix}"), getattr(raw, f"StackPop{suffix}")
    handle = make(elem_type=tf.float32)
    first = push(handle=handle, elem=ROWS[0])
    with tf.control_dependencies([first]):
        second = push(handle=handle, elem=ROWS)
    with tf.control_dependencies([second]):
        top = pop(handle=handle, elem_type=tf.float32)
    with tf.control_dependencies([top]):
        bottom = pop(handle=handle, elem_type=tf.float32)
    with tf.control_dependencies([bottom]):
        beyond = pop(handle=handle, elem_type=tf.float32)
    run.get([first, second, top, bottom])
    run.fails(lambda: beyond)
    run.do(getattr(raw, f"StackClose{suffix}")(handle=handle))


@program("StackV2", "StackPushV2", "StackPopV2", "StackCloseV2")
def stack(run: Run) -> None:
    _stack(run, lambda **attrs: run.raw.StackV2(max_size=np.int32(2), **attrs), "V2")


@program("Stack", "StackPush", "StackPop", "StackClose")
def stack_by_reference(run: Run) -> None:
    _stack(run, run.raw.Stack, "")
