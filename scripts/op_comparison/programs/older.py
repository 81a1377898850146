"""Accumulators, barriers, staging areas, maps of sparse tensors, ragged tensors as values, and the first tensor arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Run, program

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = np.array([b"a", b"b", b"c", b"d"], object)


def _int(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# -- accumulators ------------------------------------------------------------------------------------------------


def _accumulate(run: Run, prefix: str) -> None:
    raw, tf = run.raw, run.tf
    for reduction in ("MEAN", "SUM"):
        make = getattr(raw, f"{prefix}ConditionalAccumulator")
        handle = make(dtype=tf.float32, shape=[3], reduction_type=reduction, shared_name=reduction)
        op = {
            name: getattr(raw, f"{prefix}Accumulator{name}")
            for name in ("ApplyGradient", "TakeGradient", "NumAccumulated", "SetGlobalStep")
        }
        count = op["NumAccumulated"](handle=handle)
        run.get(count)
        for step, row in ((0, ROWS[1]), (0, ROWS[2]), (-1, ROWS[3])):  # the last is stale: it is dropped
            run.do(op["ApplyGradient"](handle=handle, local_step=np.int64(step), gradient=row))
            run.get(count)
        run.get(op["TakeGradient"](handle=handle, num_required=np.int32(1), dtype=tf.float32))
        run.get(count)
        run.do(op["SetGlobalStep"](handle=handle, new_global_step=np.int64(7)))
        run.do(op["ApplyGradient"](handle=handle, local_step=np.int64(3), gradient=ROWS[1]))  # stale
        run.do(op["ApplyGradient"](handle=handle, local_step=np.int64(7), gradient=ROWS[2]))
        run.get(count)
        run.get(op["TakeGradient"](handle=handle, num_required=np.int32(1), dtype=tf.float32))
        run.fails(lambda: op["ApplyGradient"](handle=handle, local_step=np.int64(9), gradient=ROWS[0, :2]))  # noqa: B023


_ACCUMULATOR = ("ApplyGradient", "TakeGradient", "NumAccumulated", "SetGlobalStep")


@program("ConditionalAccumulator", *(f"Accumulator{name}" for name in _ACCUMULATOR))
def accumulator(run: Run) -> None:
    _accumulate(run, "")


@program("ResourceConditionalAccumulator", *(f"ResourceAccumulator{name}" for name in _ACCUMULATOR))
def resource_accumulator(run: Run) -> None:
    _accumulate(run, "Resource")


@program(
    "SparseConditionalAccumulator", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient", "AccumulatorNumAccumulated",
    "AccumulatorSetGlobalStep",
)  # fmt: skip
def sparse_accumulator(run: Run) -> None:
    raw, tf = run.raw, run.tf
    for dtype in (tf.float32, tf.float64):
        rows = ROWS.astype(dtype.as_numpy_dtype)
        for reduction in ("MEAN", "SUM"):
            named = {"dtype": dtype, "reduction_type": reduction, "shared_name": f"{reduction} of {dtype.name} rows"}
            handle = raw.SparseConditionalAccumulator(shape=[None, 3], **named)
            count = raw.AccumulatorNumAccumulated(handle=handle)

            def apply(step: int, indices: Any, values: Any, shape: Any = (4, 3)) -> Any:
                return raw.SparseAccumulatorApplyGradient(
                    handle=handle, local_step=np.int64(step), gradient_indices=np.array(indices, np.int64),  # noqa: B023
                    gradient_values=values, gradient_shape=np.array(shape, np.int64), has_known_shape=True,
                )  # fmt: skip

            run.get(count)
            run.do(apply(0, [0, 2], rows[:2]))
            run.do(apply(0, [2, 3], rows[1:3]))
            run.do(apply(-1, [1], rows[3:]))  # stale: it is dropped
            run.do(apply(0, [1, 3], rows[2:]))
            run.get(count)
            run.get(list(raw.SparseAccumulatorTakeGradient(handle=handle, num_required=np.int32(2), dtype=dtype)))
            run.get(count)
            run.do(raw.AccumulatorSetGlobalStep(handle=handle, new_global_step=np.int64(7)))
            run.do(apply(3, [1], rows[3:]))  # stale
            run.do(apply(7, [1], rows[3:]))
            run.get(list(raw.SparseAccumulatorTakeGradient(handle=handle, num_required=np.int32(1), dtype=dtype)))
            run.fails(lambda: apply(9, [0, 1], rows[:1]))  # noqa: B023
            run.fails(lambda: apply(9, [0], rows[:1, :2], (4, 2)))  # noqa: B023


# -- barriers ----------------------------------------------------------------------------------------------------


@program("Barrier", "BarrierInsertMany", "BarrierTakeMany", "BarrierClose", "BarrierReadySize", "BarrierIncompleteSize")
def barrier(run: Run) -> None:
    raw, tf = run.raw, run.tf
    handle = raw.Barrier(component_types=[tf.float32, tf.int32], shapes=[[3], []])
    sizes = [raw.BarrierReadySize(handle=handle), raw.BarrierIncompleteSize(handle=handle)]

    def insert(keys: np.ndarray, values: np.ndarray, index: int) -> Any:
        return raw.BarrierInsertMany(handle=handle, keys=keys, values=values, component_index=index)

    def take(count: int, **attrs: bool) -> Any:
        types = {"component_types": [tf.float32, tf.int32]}
        indices, keys, values = raw.BarrierTakeMany(handle=handle, num_elements=np.int32(count), **types, **attrs)
        return [indices, keys, *values]

    run.get(sizes)
    run.do(insert(WORDS[:3], ROWS[:3], 0))
    run.get(sizes)
    run.do(insert(WORDS[[1, 0]], _int(10, 20), 1))
    run.get(sizes)
    run.get(take(2))
    run.fails(lambda: insert(WORDS[2:3], ROWS[:1], 0))  # the component is there already
    run.fails(lambda: insert(WORDS[2:3], ROWS[:1, :2], 0))
    run.do(insert(WORDS[2:], _int(30, 40), 1))
    run.do(raw.BarrierClose(handle=handle))
    run.fails(lambda: insert(np.array([b"new"], object), ROWS[:1], 0))
    run.get(take(1))
    run.do(insert(WORDS[3:], ROWS[:1], 0))  # what was begun may be completed
    run.get(sizes)
    run.get(take(5, allow_small_batch=True)[1:])  # the index counts refused insertions too


# -- staging -----------------------------------------------------------------------------------------------------


@program("Stage", "Unstage", "StagePeek", "StageSize", "StageClear")
def staging(run: Run) -> None:
    raw, tf = run.raw, run.tf
    area = {"shared_name": "area", "capacity": 9}
    types = {"dtypes": [tf.float32, tf.string], **area}
    size = raw.StageSize(**types)
    run.get(size)
    for row, word in zip(ROWS, WORDS):
        run.do(raw.Stage(values=[row, tf.constant(word)], **area))
    run.get(size)
    run.get(list(raw.StagePeek(index=np.int32(2), **types)))
    run.get(list(raw.Unstage(**types)))
    run.get(size)
    run.do(raw.StageClear(**types))
    run.get(size)


def _mapped(run: Run, prefix: str) -> None:
    raw, tf = run.raw, run.tf
    area = {"shared_name": prefix, "capacity": 9}
    types = {"dtypes": [tf.float32, tf.int32], **area}
    op = {
        name: getattr(raw, f"{prefix}{name}")
        for name in ("Stage", "Peek", "Unstage", "UnstageNoKey", "Size", "IncompleteSize", "Clear")
    }
    sizes = [op["Size"](**types), op["IncompleteSize"](**types)]
    both = _int(0, 1)
    for key in (5, -3, 9):
        run.do(op["Stage"](key=np.int64(key), indices=both, values=[ROWS[abs(key) % 4], np.int32(key)], **types))
    run.do(op["Stage"](key=np.int64(7), indices=_int(1), values=[np.int32(70)], **types))
    run.get(sizes)
    run.get(list(op["Peek"](key=np.int64(9), indices=both, **types)))
    run.get(list(op["Unstage"](key=np.int64(5), indices=both, **types)))
    run.do(op["Stage"](key=np.int64(7), indices=_int(0), values=[ROWS[3]], **types))
    run.get(sizes)
    found = [run.do([each[0], *each[1]]) for each in [op["UnstageNoKey"](indices=both, **types)] for _ in range(3)]
    for key, row, number in sorted(found, key=lambda each: int(each[0])) if prefix == "Map" else found:
        run.note(key)
        run.note(row)
        run.note(number)
    run.do(op["Clear"](**types))
    run.get(sizes)


_MAPPED = ("Stage", "Peek", "Unstage", "UnstageNoKey", "Size", "IncompleteSize", "Clear")


@program(*(f"Map{name}" for name in _MAPPED))
def staging_by_key(run: Run) -> None:
    _mapped(run, "Map")


@program(*(f"OrderedMap{name}" for name in _MAPPED))
def staging_in_order(run: Run) -> None:
    _mapped(run, "OrderedMap")


# -- sparse and ragged tensors as values -------------------------------------------------------------------------


@program("AddSparseToTensorsMap", "AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap")
def maps_of_sparse_tensors(run: Run) -> None:
    raw, tf = run.raw, run.tf
    indices, values = np.array([[0, 1], [1, 0], [1, 2]], np.int64), np.array([1.5, -2, 3], np.float32)
    sparse = {"sparse_indices": indices, "sparse_values": values, "sparse_shape": np.array([2, 3], np.int64)}
    one = run.do(raw.AddSparseToTensorsMap(**sparse, shared_name="held"))
    many = run.do(raw.AddManySparseToTensorsMap(**sparse, shared_name="other"))
    run.note(np.shape(one))
    run.note(np.shape(many))
    taken = raw.TakeManySparseFromTensorsMap(
        sparse_handles=np.array([one], np.int64), dtype=tf.float32, shared_name="held"
    )
    run.get(list(taken))
    order = np.array([many[1], many[0]], np.int64)
    run.get(list(raw.TakeManySparseFromTensorsMap(sparse_handles=order, dtype=tf.float32, shared_name="other")))
    run.fails(lambda: list(taken))  # each is taken once


@program("RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedTensorToVariantGradient", eager=True)
def ragged_values(run: Run) -> None:
    raw, tf = run.raw, run.tf
    splits, values = np.array([0, 2, 2, 5], np.int64), np.arange(5, dtype=np.float32)
    types = {"Tvalues": tf.float32, "Tsplits": tf.int64}
    whole = raw.RaggedTensorToVariant(rt_nested_splits=[splits], rt_dense_values=values, batched_input=False)
    rows = raw.RaggedTensorToVariant(rt_nested_splits=[splits], rt_dense_values=values, batched_input=True)
    back = raw.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=1, output_ragged_rank=1, **types)
    run.get([*back[0], back[1]])
    back = raw.RaggedTensorFromVariant(encoded_ragged=rows, input_ragged_rank=0, output_ragged_rank=1, **types)
    run.get([*back[0], back[1]])
    slope = raw.RaggedTensorToVariantGradient(
        encoded_ragged_grad=rows, row_splits=splits, dense_values_shape=_int(5), Tvalues=tf.float32
    )
    run.get(slope)


# -- the first tensor arrays -------------------------------------------------------------------------------------


def _array(run: Run, suffix: str) -> None:
    raw, tf = run.raw, run.tf
    op = {
        name: getattr(raw, f"TensorArray{name}{suffix}")
        for name in ("", "Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close", "Grad")
    }
    make, f32 = op[""], {"dtype": tf.float32}

    def fresh(size: int = 4) -> tuple[Any, Any]:
        handle = make(size=np.int32(size), **f32)
        return handle, tf.constant(0.0)

    handle, flow = fresh()
    for index in (3, 0, 1, 2):
        flow = op["Write"](handle=handle, index=np.int32(index), value=ROWS[index], flow_in=flow)
    run.get(op["Read"](handle=handle, index=np.int32(3), flow_in=flow, **f32))
    run.get(op["Size"](handle=handle, flow_in=flow))
    run.get(op["Gather"](handle=handle, indices=_int(2, 0), flow_in=flow, **f32))
    handle, flow = fresh()
    flow = op["Scatter"](handle=handle, indices=_int(1, 3, 0, 2), value=ROWS, flow_in=flow)
    sums = op["Grad"](handle=handle, flow_in=flow, source="sums")
    sums = sums[0] if isinstance(sums, (list, tuple)) else sums
    added = op["Write"](handle=sums, index=np.int32(1), value=ROWS[0] + 1, flow_in=flow)
    added = op["Write"](handle=sums, index=np.int32(1), value=ROWS[1], flow_in=added)
    run.get(op["Read"](handle=sums, index=np.int32(1), flow_in=added, **f32))
    handle, flow = fresh(2)
    flow = op["Split"](handle=handle, value=ROWS, lengths=np.array([1, 3], np.int64), flow_in=flow)
    joined = op["Concat"](handle=handle, flow_in=flow, **f32)
    run.get([joined[0], joined[1]])
    run.do(op["Close"](handle=handle))


_ARRAY = ("", "Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close", "Grad")


@program(*(f"TensorArray{name}V2" for name in _ARRAY), producer=25)
def second_tensor_array(run: Run) -> None:
    _array(run, "V2")


@program(*(f"TensorArray{name}" for name in _ARRAY), producer=15)
def first_tensor_array(run: Run) -> None:
    _array(run, "")


@program("TensorArrayPack", "TensorArrayUnpack", producer=15)
def packed_tensor_array(run: Run) -> None:
    raw, tf = run.raw, run.tf
    handle = raw.TensorArray(size=np.int32(4), dtype=tf.float32)
    flow = raw.TensorArrayUnpack(handle=handle, value=ROWS, flow_in=tf.constant(0.0))
    run.get(raw.TensorArrayPack(handle=handle, flow_in=flow, dtype=tf.float32))


@program("TensorArrayGradWithShape")
def longer_gradients(run: Run) -> None:
    raw, tf = run.raw, run.tf
    handle, flow = raw.TensorArrayV3(size=np.int32(2), dtype=tf.float32, element_shape=[3])
    flow = raw.TensorArrayWriteV3(handle=handle, index=np.int32(1), value=ROWS[0], flow_in=flow)
    sums, flow = raw.TensorArrayGradWithShape(handle=handle, flow_in=flow, shape_to_prepend=_int(4), source="sums")
    flow = raw.TensorArrayWriteV3(handle=sums, index=np.int32(1), value=ROWS, flow_in=flow)
    run.get(raw.TensorArrayReadV3(handle=sums, index=np.int32(1), flow_in=flow, dtype=tf.float32))


@program("RefIdentity", "PlaceholderV2", producer=22)
def nodes_of_old_graphs(run: Run) -> None:
    raw, tf = run.raw, run.tf
    variable = raw.VariableV2(shape=[4, 3], dtype=tf.float32)
    run.do(raw.Assign(ref=variable, value=ROWS))
    run.get(raw.RefIdentity(input=variable))
    place = raw.PlaceholderV2(dtype=tf.float32, shape=[4, 3])
    run.get(place * 2, {place: ROWS})
