"""Short programs for ops that work on a resource, a list or a function: queues, tables, readers, tensor lists, control flow.

A program is a list of steps, each a call of an op whose inputs are arrays or outputs of earlier steps. Its hostile variants
change one thing in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from op_comparison.cases import case_from, leaves
from op_comparison.exchange import Function, Output
from op_comparison.hostile import attribute_variants, input_variants
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.graph.definition import find_definition

FLOAT, INT, LONG, STRING = (as_dtype(name) for name in ("float32", "int32", "int64", "string"))
UNIQUE = "<unique>"  # the runner puts a name of its own here: resources of other programs must not be found


@dataclass
class Step:
    """A call of one op; inputs by name."""

    op: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]


@dataclass
class Program:
    """Steps in order. `graph` leaves eager mode out (references)."""

    steps: list[Step]
    kind: str = "program"
    graph: bool = False

    @property
    def op(self) -> str:
        return self.steps[0].op

    def message(self) -> dict[str, Any]:
        steps = [{"op": step.op, "inputs": step.inputs, "attrs": step.attrs} for step in self.steps]
        return {"steps": steps, "graph": self.graph}


class Building:
    """Gathers steps: `b("QueueSizeV2", b.out(0))`."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Output:
        definition = find_definition(op)
        assert definition is not None, op
        plain = [[] if isinstance(x, list) and any(isinstance(y, Output) for y in x) else x for x in inputs]
        plain = [np.zeros(()) if isinstance(x, Output) else x for x in plain]
        arrays = case_from(op, plain, attrs).inputs
        for arg, given in zip(definition.inputs, inputs):
            if isinstance(given, Output) or (isinstance(given, list) and any(isinstance(x, Output) for x in given)):
                arrays[arg.name] = given
        self.steps.append(Step(op, arrays, attrs))
        return Output(len(self.steps) - 1, 0)


def variants(program: Program) -> Iterator[Program]:
    """The program as it is, then with one input or attribute of one step changed for the worse."""
    yield program
    for number, step in enumerate(program.steps):
        definition = find_definition(step.op)
        assert definition is not None

        def with_step(kind: str, *, number: int = number, step: Step = step, **changes: Any) -> Program:
            steps = [*program.steps[:number], replace(step, **changes), *program.steps[number + 1 :]]
            return replace(program, steps=steps, kind=f"{step.op} {kind}")

        for arg in definition.inputs:
            item = step.inputs[arg.name]
            if isinstance(item, Output):
                yield with_step(f"{arg.name}: a number", inputs={**step.inputs, arg.name: np.array(1.0, np.float32)})
                continue
            if isinstance(item, list) and any(isinstance(x, Output) for x in item):
                yield with_step(f"{arg.name}: no elements", inputs={**step.inputs, arg.name: []})
                continue
            for kind, changed in input_variants(arg, item):
                yield with_step(f"{arg.name}: {kind}", inputs={**step.inputs, arg.name: changed})
        for name, spec in definition.attrs.items():
            if spec.kind in ("func", "list(func)", "tensor") or name in ("shared_name", "container"):
                continue
            for value in attribute_variants(spec.kind, step.attrs.get(name, spec.default)):
                if not (name in step.attrs and step.attrs[name] == value):
                    yield with_step(f"attr {name}={value!r:.40}", attrs={**step.attrs, name: value})
        if number + 1 < len(program.steps) and not definition.outputs:
            rest = [*program.steps[:number], *program.steps[number + 1 :]]
            if not any(isinstance(x, Output) and x.step > number for s in rest for x in s.inputs.values()):
                yield replace(program, steps=rest, kind=f"without {step.op}")


def bad_programs() -> Iterator[Program]:
    """Every good program and its variants; what is wrong with a step of one op is tried in one program only."""
    seen: set[str] = set()
    for program in good_programs():
        for variant in variants(program):
            if variant is program or variant.kind not in seen:
                seen.add(variant.kind)
                yield variant


def describe_program(program: Program) -> str:
    shown = []
    for step in program.steps:
        inputs = [
            repr(item)
            if isinstance(item, Output)
            else " ".join(
                f"{leaf.dtype.name}{list(leaf.shape)}" for leaf in leaves(item) if isinstance(leaf, np.ndarray)
            )
            for item in step.inputs.values()
        ]
        plain = {key: value.name if isinstance(value, DType) else value for key, value in step.attrs.items()}
        shown.append(f"{step.op}({', '.join(inputs)}, {plain})")
    return f"[{program.kind}] of {'; '.join(shown):.160}"


# -- the programs ------------------------------------------------------------------------------------------------


def good_programs() -> list[Program]:
    return [Program(b.steps, graph=graph) for b, graph in _all()]


def _all() -> Iterator[tuple[Building, bool]]:
    for family in (
        _queues,
        _tables,
        _readers,
        _lists,
        _arrays,
        _stacks,
        _barriers,
        _accumulators,
        _stages,
        _optionals,
        _functions,
        _others,
    ):
        for item in family():
            yield item if isinstance(item, tuple) else (item, False)


def _queues() -> Iterator[Any]:
    rows, words = np.ones((3, 2), np.float32), np.array([b"a", b"b", b"c"], object)
    types = {"component_types": [FLOAT, STRING]}
    extras: dict[str, dict[str, Any]] = {
        "FIFOQueueV2": {}, "PaddingFIFOQueueV2": {}, "RandomShuffleQueueV2": {"min_after_dequeue": 1, "seed": 3},
        "FIFOQueue": {}, "PaddingFIFOQueue": {}, "RandomShuffleQueue": {"min_after_dequeue": 1, "seed": 3},
    }  # fmt: skip
    for kind, more in extras.items():
        v = "V2" if kind.endswith("V2") else ""
        b = Building()
        q = b(kind, **types, shapes=[[2], []], capacity=5, shared_name=UNIQUE, **more)
        b(f"QueueEnqueue{v}", q, [rows[0], words[0]])
        b(f"QueueEnqueueMany{v}", q, [rows, words])
        b(f"QueueDequeue{v}", q, **types)
        b(f"QueueDequeueMany{v}", q, np.int32(2), **types)
        b(f"QueueSize{v}", q)
        b(f"QueueClose{v}", q)
        b(f"QueueIsClosed{v}", q)
        b(f"QueueDequeueUpTo{v}", q, np.int32(5), **types)
        yield b, not v
    b = Building()
    q = b("PriorityQueueV2", component_types=[FLOAT], shapes=[[2]], capacity=5, shared_name=UNIQUE)
    b("QueueEnqueueManyV2", q, [np.array([3, 1, 2], np.int64), rows])
    b("QueueDequeueManyV2", q, np.int32(2), component_types=[LONG, FLOAT])
    yield b


def _tables() -> Iterator[Any]:
    keys, values = np.array([b"a", b"b", b"c"], object), np.array([5, 6, 7], np.int64)
    types = {"key_dtype": STRING, "value_dtype": LONG}
    out = {"Tkeys": STRING, "Tvalues": LONG}
    for kind in ("HashTableV2", "AnonymousHashTable", "HashTable"):
        v = "" if kind == "HashTable" else "V2"
        b = Building()
        table = b(kind, **types, **({} if kind.startswith("Anon") else {"shared_name": UNIQUE}))
        b(f"InitializeTable{v}", table, keys, values)
        b(f"LookupTableFind{v}", table, np.array([b"a", b"x"], object), np.int64(-1))
        b(f"LookupTableSize{v}", table)
        b(f"LookupTableExport{v}", table, **out)
        yield b, not v
    for kind in ("MutableHashTableV2", "AnonymousMutableHashTable", "MutableHashTable"):
        v = "" if kind == "MutableHashTable" else "V2"
        b = Building()
        table = b(kind, **types, **({} if kind.startswith("Anon") else {"shared_name": UNIQUE}))
        b(f"LookupTableInsert{v}", table, keys, values)
        b(f"LookupTableFind{v}", table, np.array([b"a", b"x"], object), np.int64(-1))
        if v:
            b(f"LookupTableRemove{v}", table, keys[:1])
        b(f"LookupTableImport{v}", table, keys, values)
        b(f"LookupTableSize{v}", table)
        b(f"LookupTableExport{v}", table, **out)
        yield b, not v
    vectors, missing = np.ones((3, 2), np.float32), np.zeros(2, np.float32)
    long_keys = np.array([1, 2, 3], np.int64)
    for kind in ("MutableHashTableOfTensorsV2", "AnonymousMutableHashTableOfTensors", "MutableDenseHashTableV2"):
        b = Building()
        attrs = {"key_dtype": LONG, "value_dtype": FLOAT, "value_shape": [2]}
        if not kind.startswith("Anon"):
            attrs["shared_name"] = UNIQUE
        if kind == "MutableDenseHashTableV2":
            table = b(kind, np.int64(0), np.int64(-1), **attrs, initial_num_buckets=8)
        else:
            table = b(kind, **attrs)
        b("LookupTableInsertV2", table, long_keys, vectors)
        b("LookupTableFindV2", table, np.array([2, 9], np.int64), missing)
        b("LookupTableRemoveV2", table, long_keys[:1])
        b("LookupTableImportV2", table, long_keys, vectors)
        b("LookupTableExportV2", table, Tkeys=LONG, Tvalues=FLOAT)
        yield b
    b = Building()
    b("WriteFile", np.array(FILE, object), np.array(b"a 5\nb 6\nc 7\n", object))
    table = b("HashTableV2", **types, shared_name=UNIQUE)
    b(
        "InitializeTableFromTextFileV2",
        table,
        np.array(FILE, object),
        key_index=0,
        value_index=1,
        vocab_size=3,
        delimiter=" ",
    )
    b("LookupTableFindV2", table, keys, np.int64(-1))
    yield b


FILE = b"bad_inputs.txt"  # in a folder of the runner's own


def _readers() -> Iterator[Any]:
    kinds: dict[str, dict[str, Any]] = {
        "WholeFileReaderV2": {}, "TextLineReaderV2": {"skip_header_lines": 1}, "IdentityReaderV2": {}, "TFRecordReaderV2": {},
        "FixedLengthRecordReaderV2": {"record_bytes": 2, "header_bytes": 1, "footer_bytes": 1, "hop_bytes": 1},
        "TextLineReader": {"skip_header_lines": 1},
    }  # fmt: skip
    for kind, attrs in kinds.items():
        v = "V2" if kind.endswith("V2") else ""
        b = Building()
        b("WriteFile", np.array(FILE, object), np.array(b"one\ntwo\nthree\nfour\nfive\n", object))
        queue = b(f"FIFOQueue{v}", component_types=[STRING], shapes=[[]], capacity=5, shared_name=UNIQUE)
        b(f"QueueEnqueueMany{v}", queue, [np.array([FILE, FILE], object)])
        b(f"QueueClose{v}", queue)
        reader = b(kind, **attrs, shared_name=UNIQUE)
        if kind != "TFRecordReaderV2":
            b(f"ReaderRead{v}", reader, queue)
            b(f"ReaderReadUpTo{v}", reader, queue, np.int64(2))
        b(f"ReaderNumRecordsProduced{v}", reader)
        b(f"ReaderNumWorkUnitsCompleted{v}", reader)
        b(f"ReaderReset{v}", reader)
        if kind in ("IdentityReaderV2", "WholeFileReaderV2"):
            state = b("ReaderSerializeStateV2", reader)
            b("ReaderRestoreStateV2", reader, state)
            b("ReaderRestoreStateV2", reader, np.array(b"", object))
        yield b, not v


def _lists() -> Iterator[Any]:
    shape, rows = np.array([2], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)
    of = {"element_dtype": FLOAT}
    b = Building()
    empty = b("EmptyTensorList", shape, np.int32(5), **of)
    one = b("TensorListPushBack", empty, rows[0])
    b("TensorListLength", one)
    b("TensorListElementShape", one, shape_type=INT)
    b("TensorListPopBack", one, shape, **of)
    b("TensorListStack", one, shape, **of, num_elements=1)
    yield b
    b = Building()
    reserved = b("TensorListReserve", shape, np.int32(3), **of)
    filled = b("TensorListSetItem", reserved, np.int32(1), rows[0])
    b("TensorListGetItem", filled, np.int32(1), shape, **of)
    b("TensorListGetItem", filled, np.int32(0), shape, **of)
    b("TensorListResize", filled, np.int32(4))
    b("TensorListGather", filled, np.array([1, 0], np.int32), shape, **of)
    yield b
    b = Building()
    made = b("TensorListFromTensor", rows, shape)
    b("TensorListStack", made, shape, **of)
    b("TensorListGather", made, np.array([2, 0], np.int32), shape, **of)
    b("TensorListConcatLists", made, made, **of)
    b("TensorListScatterIntoExistingList", made, rows, np.array([0, 2, 1], np.int32))
    yield b
    b = Building()
    scattered = b("TensorListScatterV2", rows, np.array([0, 2, 1], np.int32), shape, np.int32(4))
    b("TensorListGetItem", scattered, np.int32(2), shape, **of)
    old = b("TensorListScatter", rows, np.array([0, 2, 1], np.int32), shape)
    b("TensorListLength", old)
    yield b
    b = Building()
    split = b("TensorListSplit", rows, np.array([-1, 2], np.int32), np.array([1, 2], np.int64))
    b("TensorListConcat", split, **of, element_shape=[None, 2])
    b("TensorListConcatV2", split, np.array([-1, 2], np.int32), np.zeros(0, np.int64), **of)
    yield b


def _arrays() -> Iterator[Any]:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    b = Building()
    handle = b("TensorArrayV3", np.int32(3), dtype=FLOAT, element_shape=[2], clear_after_read=False)
    flow = b("TensorArrayScatterV3", handle, np.array([0, 1, 2], np.int32), rows, Output(0, 1))
    b("TensorArrayReadV3", handle, np.int32(1), flow, dtype=FLOAT)
    b("TensorArrayGatherV3", handle, np.array([0, 2], np.int32), flow, dtype=FLOAT, element_shape=[2])
    b("TensorArraySizeV3", handle, flow)
    gradient = b("TensorArrayGradV3", handle, flow, source="gradients")
    b("TensorArrayWriteV3", gradient, np.int32(1), rows[0], Output(gradient.step, 1))
    b("TensorArrayCloseV3", handle)
    yield b
    b = Building()
    handle = b("TensorArrayV3", np.int32(2), dtype=FLOAT)
    flow = b("TensorArraySplitV3", handle, rows, np.array([1, 2], np.int64), Output(0, 1))
    b("TensorArrayConcatV3", handle, flow, dtype=FLOAT)
    yield b
    b = Building()
    handle = b("TensorArrayV3", np.int32(2), dtype=FLOAT, dynamic_size=True)
    flow = b("TensorArrayWriteV3", handle, np.int32(4), rows[0], Output(0, 1))
    b("TensorArrayReadV3", handle, np.int32(4), flow, dtype=FLOAT)
    yield b
    b = Building()
    handle = b("TensorArrayV3", np.int32(3), dtype=FLOAT, element_shape=[2])
    b("TensorArrayGradWithShape", handle, Output(0, 1), np.array([4], np.int32), source="gradients")
    yield b


def _stacks() -> Iterator[Any]:
    b = Building()
    stack = b("StackV2", np.int32(2), elem_type=FLOAT)
    b("StackPushV2", stack, np.ones(2, np.float32))
    b("StackPopV2", stack, elem_type=FLOAT)
    b("StackCloseV2", stack)
    yield b


def _barriers() -> Iterator[Any]:
    keys = np.array([b"a", b"b"], object)
    b = Building()
    barrier = b("Barrier", component_types=[FLOAT, STRING], shapes=[[2], []], shared_name=UNIQUE)
    b("BarrierInsertMany", barrier, keys, np.ones((2, 2), np.float32), component_index=0)
    b("BarrierIncompleteSize", barrier)
    b("BarrierInsertMany", barrier, keys, np.array([b"x", b"y"], object), component_index=1)
    b("BarrierReadySize", barrier)
    b("BarrierTakeMany", barrier, np.int32(1), component_types=[FLOAT, STRING])
    b("BarrierClose", barrier)
    yield b, True


def _accumulators() -> Iterator[Any]:
    row = np.ones(2, np.float32)
    for prefix in ("", "Resource"):
        b = Building()
        handle = b(f"{prefix}ConditionalAccumulator", dtype=FLOAT, shape=[2], shared_name=UNIQUE)
        b(f"{prefix}AccumulatorApplyGradient", handle, np.int64(0), row)
        b(f"{prefix}AccumulatorNumAccumulated", handle)
        b(f"{prefix}AccumulatorTakeGradient", handle, np.int32(1), dtype=FLOAT)
        b(f"{prefix}AccumulatorSetGlobalStep", handle, np.int64(3))
        yield b, True
    b = Building()
    handle = b("SparseConditionalAccumulator", dtype=FLOAT, shape=[3, 2], shared_name=UNIQUE)
    places, sizes = np.array([0, 2], np.int64), np.array([3, 2], np.int64)
    b("SparseAccumulatorApplyGradient", handle, np.int64(0), places, np.ones((2, 2), np.float32), sizes, has_known_shape=True)  # fmt: skip
    b("SparseAccumulatorTakeGradient", handle, np.int32(1), dtype=FLOAT)
    yield b, True


def _stages() -> Iterator[Any]:
    """Staging areas are found by their name: all steps of one carry the same."""
    row, kinds = np.ones(2, np.float32), {"dtypes": [FLOAT, STRING], "shared_name": UNIQUE}
    word, key, both = np.array(b"a", object), np.int64(7), np.array([0, 1], np.int32)
    b = Building()
    b("Stage", [row, word], **kinds)
    b("Stage", [row, word], **kinds)
    b("StagePeek", np.int32(1), **kinds)
    b("Unstage", **kinds)
    b("StageSize", **kinds)
    b("StageClear", **kinds)
    yield b
    for kind in ("Map", "OrderedMap"):
        b = Building()
        b(f"{kind}Stage", key, np.array([0], np.int32), [row], **kinds)
        b(f"{kind}IncompleteSize", **kinds)
        b(f"{kind}Stage", key, np.array([1], np.int32), [word], **kinds)
        b(f"{kind}Peek", key, both, **kinds)
        b(f"{kind}Unstage", key, both, **kinds)
        b(f"{kind}Stage", key, both, [row, word], **kinds)
        b(f"{kind}UnstageNoKey", both, **kinds)
        b(f"{kind}Size", **kinds)
        b(f"{kind}Clear", **kinds)
        yield b
    places, values, sizes = (
        np.array([[0, 0], [1, 1]], np.int64),
        np.array([1, 2], np.float32),
        np.array([2, 2], np.int64),
    )
    for op in ("AddSparseToTensorsMap", "AddManySparseToTensorsMap"):
        b = Building()
        handle = b(op, places, values, sizes, shared_name=UNIQUE)
        if op == "AddManySparseToTensorsMap":
            b("TakeManySparseFromTensorsMap", handle, dtype=FLOAT, shared_name=UNIQUE)
        yield b


def _optionals() -> Iterator[Any]:
    b = Building()
    made = b("OptionalFromValue", [np.ones(2, np.float32), np.array(b"a", object)])
    b("OptionalHasValue", made)
    b("OptionalGetValue", made, output_types=[FLOAT, STRING], output_shapes=[[2], []])
    yield b
    b = Building()
    none = b("OptionalNone")
    b("OptionalHasValue", none)
    b("OptionalGetValue", none, output_types=[FLOAT], output_shapes=[[2]])
    yield b


def _functions() -> Iterator[Any]:
    """Bodies by name (see hostile_run.BODIES), good ones and those that do not fit the call."""
    x, n = np.ones(2, np.float32), np.int32(3)
    pair = [("float32", [2]), ("int32", [])]

    def one(op: str, *inputs: Any, **attrs: Any) -> Building:
        b = Building()
        b(op, *inputs, **attrs)
        return b

    bodies = ("step", "swapped", "one", "three", "longer", "vector")
    conditions = ("below", "count", "text", "bools", "two_flags", "no_flag", "one_only")
    for op in ("While", "StatelessWhile"):
        for cond, body in [*((c, "step") for c in conditions), *(("below", c) for c in bodies)]:
            yield one(op, [x, n], cond=Function(cond, pair), body=Function(body, pair))
    for op in ("If", "StatelessIf"):
        for then, other in (
            ("step", "same"),
            ("step", "one"),
            ("swapped", "step"),
            ("longer", "step"),
            ("three", "three"),
        ):
            yield one(op, np.array(True), [x, n], Tout=[FLOAT, INT], then_branch=Function(then, pair), else_branch=Function(other, pair))  # fmt: skip
        narrow = [("float32", [2])]
        yield one(op, np.array(True), [x, n], Tout=[FLOAT], then_branch=Function("first", narrow), else_branch=Function("first", narrow))  # fmt: skip
    for op in ("Case", "StatelessCase"):
        for names in (("step", "same"), ("step", "one"), ("step", "swapped"), ("three",)):
            yield one(op, np.int32(1), [x, n], Tout=[FLOAT, INT], branches=[Function(name, pair) for name in names])
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        for name in ("step", "swapped", "one", "three"):
            yield one(op, [x, n], Tout=[FLOAT, INT], f=Function(name, pair))


def _others() -> Iterator[Any]:
    def one(op: str, *inputs: Any, **attrs: Any) -> Building:
        b = Building()
        b(op, *inputs, **attrs)
        return b

    yield one("Empty", np.array([2, 3], np.int32), dtype=FLOAT, init=True)
    yield one("Fact")
    b = Building()
    rows = b("RaggedTensorToVariant", [np.array([0, 2, 3], np.int64)], np.ones(3, np.float32), RAGGED_RANK=1, batched_input=True)  # fmt: skip
    b("RaggedTensorFromVariant", rows, input_ragged_rank=0, output_ragged_rank=1, Tvalues=FLOAT)
    b("RaggedTensorToVariantGradient", rows, np.array([0, 2, 3], np.int64), np.array([3], np.int32), Tvalues=FLOAT)
    yield b
    image = np.ones((2, 4, 4, 3), np.float32)
    yield one("FractionalMaxPool", image, pooling_ratio=[1.0, 1.5, 1.5, 1.0], seed=3, seed2=4, deterministic=True)
    yield one("FakeParam", dtype=FLOAT, shape=[2])
    yield one("ReadFile", np.array(FILE, object))
    yield one("WriteFile", np.array(FILE, object), np.array(b"text", object))
    yield one("MatchingFiles", np.array([FILE], object))
    yield one("RandomPoisson", np.array([4], np.int32), np.array([0.4, 30.0], np.float32), seed=3, seed2=4)
    yield one("NonDeterministicInts", np.array([4], np.int32))
    yield one("PrintV2", np.array(b"text", object), output_stream="log(info)")
    yield one("Timestamp")
    sampling = {"num_true": 2, "num_sampled": 5, "unique": True, "range_max": 20, "seed": 3, "seed2": 4}
    true = np.array([[1, 4], [0, 7]], np.int64)
    yield one("LearnedUnigramCandidateSampler", true, **sampling)
    yield one("ThreadUnsafeUnigramCandidateSampler", true, **sampling)
    b = Building()
    handle = b("VarHandleOp", dtype=FLOAT, shape=[2], shared_name=UNIQUE)
    b("AssignVariableOp", handle, np.ones(2, np.float32))
    b("ReadVariableOp", handle, dtype=FLOAT)
    b("VariableShape", handle)
    b("DestroyResourceOp", handle)
    yield b
    b = Building()
    temporary = b("TemporaryVariable", shape=[2], dtype=FLOAT, var_name="temporary")
    b("Assign", temporary, np.ones(2, np.float32))
    b("DestroyTemporaryVariable", temporary, var_name="temporary")
    yield b, True
    b = Building()
    variable = b("VariableV2", shape=[2], dtype=FLOAT)
    b("Assign", variable, np.ones(2, np.float32))
    b("IsVariableInitialized", variable)
    yield b, True
