"""Checks the contents of a well-formed TFLite model: that indices exist, sizes agree and options have values that the kernels support.

LiteRT's kernels check most of their arguments, but not that a constant is as large as its shape, that an op's result does not
overwrite a constant, that a stride is positive, or that subgraphs do not call each other recursively.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from stoker._src.lite.verification.flexible import options_problem
from stoker._src.lite.verification.layout import members
from stoker._src.lite.verification.loops import Subgraph, loop_problem
from stoker._src.lite.verification.rules import (
    ARGUMENTS,
    BYTES,
    COUNTS,
    ENUMERATIONS,
    FLEXIBLE,
    MOST_DIMENSIONS,
    MOVING,
    NOT_NEGATIVE,
    OPTIONAL_INPUTS,
    OPTIONS,
    POSITIONS,
    POSITIVE,
    RANKS,
    REFERRING,
    REFERRING_SOURCES,
    RETYPED,
    SHAPES,
    SUBGRAPHS,
    TRUTHS,
    WINDOWS,
    Variables,
    scale_problem,
)
from stoker._src.lite.verification.shapes import BROADCAST, KEPT, combination_problem, disagreement, open_size_problem
from stoker._src.lite.verification.structure import Table, read_model


def verify(content: Any) -> Table:
    """Returns the model in a buffer after checking every part of it.

    Raises:
        ValueError: a check failed. The message names the place and the problem.
    """
    model = read_model(content)
    _Checks(model, len(memoryview(content))).run()
    return model


class Limits(NamedTuple):
    """What a caller may not do with a model, because LiteRT would do it and crash."""

    constants: frozenset[int]
    """The tensors of the first subgraph that have data in the file, which cannot be set."""
    keeps_ranks: bool
    """Whether inputs keep their numbers of dimensions when they are resized."""


def limits(model: Table) -> Limits:
    stored = [buffer.Offset > 1 or bool(buffer.Data) for buffer in model.rows("Buffers")]
    constants = frozenset(n for n, tensor in enumerate(model.Subgraphs[0].rows("Tensors")) if stored[tensor.Buffer])
    operators = (operator for subgraph in model.Subgraphs for operator in subgraph.rows("Operators"))
    return Limits(constants, any(operator_name(model, operator) in RANKS for operator in operators))


def integers(vector: Any, format: str = "<i4") -> list[int]:
    """The elements of a vector of integers. It is empty if the field is not stored."""
    return [] if vector is None else np.frombuffer(vector, format).tolist()


def text(vector: Any) -> str:
    return "" if vector is None else bytes(vector).decode("utf-8", "replace")


def operator_name(model: Table, operator: Table) -> str:
    """The name of an operator's kernel, or CUSTOM for all custom operators."""
    code = model.OperatorCodes[operator.OpcodeIndex]
    # Older files, from the time of at most 127 builtins, have only the older field.
    return members("BuiltinOperator")[max(code.BuiltinCode, code.DeprecatedBuiltinCode)]


# The bytes of a constant that is a parameter of an operator, such as axes or paddings.
_MOST_PARAMETERS = 256


class _Checks:
    def __init__(self, model: Table, size: int) -> None:
        self.model = model
        self.size = size
        self.where = ""
        self.data = [self.buffer_size(buffer) for buffer in model.rows("Buffers")]
        self.memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.variables = Variables()
        self.calls: dict[int, set[int]] = {}

    def fail(self, why: str) -> NoReturn:
        raise ValueError(f"The model is damaged: {self.where}{': ' if self.where else ''}{why}.")

    def run(self) -> None:
        model = self.model
        if model.Version != 3:
            self.fail(
                f"Model provided has model identifier 'TFL3' and schema version {model.Version}, which is not 3, the only one there is"
            )
        if not model.rows("Subgraphs"):
            self.fail("it has no subgraph")
        known = members("BuiltinOperator")
        for position, code in enumerate(model.rows("OperatorCodes")):
            builtin = max(code.BuiltinCode, code.DeprecatedBuiltinCode)
            if builtin not in known:
                self.fail(f"operator code {position} is {builtin}, and the largest builtin is {max(known)}")
            if known[builtin] == "CUSTOM" and not code.CustomCode:
                self.fail(f"operator code {position} is a custom op without a name")
            if not 0 < code.Version < 1000:
                self.fail(f"operator code {position} has version {code.Version}")
        for index, subgraph in enumerate(model.Subgraphs):
            self.calls[index] = set()
            self.subgraph(index, subgraph)
        self.no_recursion()
        self.loops()
        for position, metadata in enumerate(model.rows("Metadata")):
            if metadata.Buffer >= len(self.data):
                self.fail(f"metadata {position} is in buffer {metadata.Buffer} of {len(self.data)}")
        for buffer in integers(model.MetadataBuffer):
            if not 0 <= buffer < len(self.data):
                self.fail(f"metadata is in buffer {buffer} of {len(self.data)}")
        for signature in model.rows("SignatureDefs"):
            self.signature(signature)

    def buffer_size(self, buffer: Table) -> int:
        if buffer.Offset > 1:
            # In models over 2 GB, data is stored after the flatbuffer.
            if buffer.Offset + buffer.Size > self.size:
                self.fail(f"a buffer has {buffer.Size} bytes at {buffer.Offset}, and the file has {self.size}")
            return int(buffer.Size)
        return 0 if buffer.Data is None else len(buffer.Data)

    def signature(self, signature: Table) -> None:
        self.where = f"signature {text(signature.SignatureKey)!r}"
        if signature.SignatureKey is None:
            self.fail("it has no key")
        if signature.SubgraphIndex >= len(self.model.Subgraphs):
            self.fail(f"it is subgraph {signature.SubgraphIndex} of {len(self.model.Subgraphs)}")
        subgraph = self.model.Subgraphs[signature.SubgraphIndex]
        for side, allowed in (("Inputs", subgraph.Inputs), ("Outputs", subgraph.Outputs)):
            for entry in signature.rows(side):
                if entry.Name is None or entry.TensorIndex not in integers(allowed):
                    self.fail(f"{text(entry.Name)!r} is tensor {entry.TensorIndex}, not one of {side.lower()}")

    def no_recursion(self) -> None:
        self.where = ""
        done: set[int] = set()
        for start in self.calls:
            trail, stack = [], [(start, iter(sorted(self.calls[start])))]
            while stack:
                current, callees = stack[-1]
                if current not in trail:
                    trail.append(current)
                callee = next(callees, None)
                if callee is None:
                    done.add(current)
                    trail.pop()
                    stack.pop()
                elif callee in trail:
                    self.fail(f"subgraph {callee} calls itself, by way of subgraph {current}")
                elif callee not in done:
                    stack.append((callee, iter(sorted(self.calls[callee]))))

    def subgraph(self, index: int, subgraph: Table) -> None:
        tensors = subgraph.rows("Tensors")
        constant = []
        for position, tensor in enumerate(tensors):
            self.where = f"subgraph {index}, tensor {position} ({text(tensor.Name)!r})"
            constant.append(self.tensor(tensor))
        self.where = f"subgraph {index}"
        inputs, outputs = integers(subgraph.Inputs), integers(subgraph.Outputs)
        for side, numbers in (("input", inputs), ("output", outputs)):
            for number in numbers:
                if not 0 <= number < len(tensors):
                    self.fail(f"an {side} is tensor {number} of {len(tensors)}")
        for number in inputs:
            if constant[number]:
                self.fail(f"input {number} is a constant")
            wrong = open_size_problem(integers(tensors[number].Shape), integers(tensors[number].ShapeSignature))
            if wrong:
                self.fail(f"input {number}: {wrong}")
        ready = {
            n
            for n, t in enumerate(tensors)
            if constant[n] or t.IsVariable or (t.Shape is not None and 0 in integers(t.Shape))
        } | set(inputs)
        written = set(inputs)
        for position, operator in enumerate(subgraph.rows("Operators")):
            if operator.OpcodeIndex >= len(self.model.rows("OperatorCodes")):
                self.fail(
                    f"operator {position} has code {operator.OpcodeIndex} of {len(self.model.rows('OperatorCodes'))}"
                )
            name = operator_name(self.model, operator)
            self.where = f"subgraph {index}, operator {position} ({name})"
            self.operator(index, name, operator, tensors, ready)
            for number in integers(operator.Outputs):
                if not 0 <= number < len(tensors):
                    self.fail(f"an output is tensor {number} of {len(tensors)}")
                # In half precision, TensorFlow's converter makes the first state of a fused cell by an operator.
                is_state = tensors[number].IsVariable and name != "DEQUANTIZE"
                if constant[number] or number in written or is_state:
                    kind = "a constant" if constant[number] else "a tensor that is written elsewhere, too"
                    self.fail(f"output {number} is {kind}")
                written.add(number)
                ready.add(number)
            wrong = self.variables.visit(
                index, name, operator, integers(operator.Inputs), integers(operator.Outputs), tensors
            )
            if wrong:
                self.fail(wrong)
        self.where = f"subgraph {index}"
        for number in outputs:
            if number not in ready:
                self.fail(f"output {number} is never computed")

    def loops(self) -> None:
        known: dict[int, Subgraph] = {}

        def subgraph(index: int) -> Subgraph:
            if index not in known:
                known[index] = self.for_loops(self.model.Subgraphs[index])
            return known[index]

        for index, outer in enumerate(self.model.Subgraphs):
            for position, operator in enumerate(outer.rows("Operators")):
                if operator_name(self.model, operator) == "WHILE":
                    options = operator.BuiltinOptions
                    condition, body = subgraph(options.CondSubgraphIndex), subgraph(options.BodySubgraphIndex)
                    wrong = loop_problem(subgraph(index), integers(operator.Inputs), condition, body)
                    if wrong:
                        self.where = f"subgraph {index}, operator {position} (WHILE)"
                        self.fail(wrong)

    def for_loops(self, subgraph: Table) -> Subgraph:
        tensors, made = subgraph.rows("Tensors"), {}
        for operator in subgraph.rows("Operators"):
            name, inputs = operator_name(self.model, operator), integers(operator.Inputs)
            made.update(dict.fromkeys(integers(operator.Outputs), (name, inputs)))
        elements = max((math.inf if _is_open(each) else math.prod(integers(each.Shape)) for each in tensors), default=0)
        return Subgraph(
            integers(subgraph.Inputs),
            integers(subgraph.Outputs),
            made,
            lambda number: self.constant(tensors[number]) if number >= 0 else None,
            elements,
        )

    def operator(self, index: int, name: str, operator: Table, tensors: list[Table], ready: set[int]) -> None:
        inputs = integers(operator.Inputs)
        optional = OPTIONAL_INPUTS.get(name, frozenset())
        for place, number in enumerate(inputs):
            if number == -1 and (name == "CUSTOM" or place in optional):
                continue
            if not 0 <= number < len(tensors):
                self.fail(f"input {place} is tensor {number} of {len(tensors)}")
            if number not in ready:
                self.fail(f"input {place} is tensor {number}, which no operator has computed yet")
        for number in integers(operator.Intermediates):
            if not -1 <= number < len(tensors):
                self.fail(f"an intermediate is tensor {number} of {len(tensors)}")
        if operator.MutatingVariableInputs is not None and len(operator.MutatingVariableInputs) not in (0, len(inputs)):
            self.fail(f"it has {len(inputs)} inputs, and marks for {len(operator.MutatingVariableInputs)}")
        if operator.CustomOptionsFormat:
            self.fail(f"custom options have the unknown format {operator.CustomOptionsFormat}")
        if operator.LargeCustomOptionsOffset > 1 and (
            operator.LargeCustomOptionsOffset + operator.LargeCustomOptionsSize > self.size
        ):
            self.fail("its custom options lie outside of the file")
        if name == "CUSTOM":
            self.custom(text(self.model.OperatorCodes[operator.OpcodeIndex].CustomCode), operator, tensors)
        expected = OPTIONS.get(name, "")
        for options in (operator.BuiltinOptions, operator.BuiltinOptions2):
            if options is not None:
                if expected and options.kind != expected:
                    self.fail(f"its options are {options.kind}, not {expected}")
                self.options(index, options)
        if expected and operator.BuiltinOptions is None and operator.BuiltinOptions2 is None:
            self.fail(f"it has no {expected}")

        self.types(name, operator, tensors)
        self.sizes(name, operator, tensors)
        self.scales(name, operator, tensors)

    def custom(self, name: str, operator: Table, tensors: list[Table]) -> None:
        """Checks the custom operators that LiteRT has. Others are unknown to it, and the model does not load."""
        if name not in FLEXIBLE:
            return
        wrong = options_problem(bytes(operator.CustomOptions or b""))
        if wrong:
            self.fail(f"its custom options are damaged: {wrong}")
        for number in integers(operator.Inputs):
            kind = members("TensorType")[tensors[number].Type] if number >= 0 else ""
            if kind not in FLEXIBLE[name]:
                self.fail(f"{name} does not read {kind or 'a missing tensor'}")

    def types(self, name: str, operator: Table, tensors: list[Table]) -> None:
        """Checks that a kernel does not write numbers where others, texts or resources are read."""

        def kinds(numbers: list[int]) -> list[str]:
            return [members("TensorType")[tensors[number].Type] for number in numbers if 0 <= number < len(tensors)]

        given, made = kinds(integers(operator.Inputs)), kinds(integers(operator.Outputs))
        references = (set(made) & REFERRING) - set(given)
        if references and name not in REFERRING_SOURCES:
            self.fail(f"its result has the type {min(references)}, and none of its arguments has")
        if name in RETYPED or not given or not made:
            return
        if name in KEPT | BROADCAST | MOVING:
            expected = "BOOL" if name in TRUTHS else given[0]
            if made[0] != expected:
                self.fail(f"its result has the type {made[0]}, and its kernel makes {expected}")
        if name in BROADCAST and set(given) != {given[0]}:
            self.fail(f"it cannot combine {' and '.join(given)}")

    def sizes(self, name: str, operator: Table, tensors: list[Table]) -> None:
        """Checks counts in options and constants."""
        inputs, outputs = integers(operator.Inputs), integers(operator.Outputs)
        if name in ARGUMENTS and (len(inputs), len(outputs)) != ARGUMENTS[name]:
            self.fail(f"it has {len(inputs)} inputs and {len(outputs)} outputs, not {ARGUMENTS[name]}")
        for place in POSITIONS.get(name, ()):
            if members("TensorType")[tensors[inputs[place]].Type] not in ("INT16", "INT32", "INT64"):
                self.fail(f"input {place} is not of integers")
        if name in RANKS and inputs and len(integers(tensors[inputs[0]].Shape)) not in (0, RANKS[name]):
            self.fail(f"input 0 has the shape {integers(tensors[inputs[0]].Shape)}, not {RANKS[name]} dimensions")
        if name in SHAPES and len(inputs) > SHAPES[name]:
            rank = math.prod(integers(tensors[inputs[SHAPES[name]]].Shape))
            if rank > MOST_DIMENSIONS:
                self.fail(f"its result is to have {rank} dimensions")
        if name in COUNTS:
            option, side = COUNTS[name]
            stated, found = operator.BuiltinOptions.fields[option], len(inputs if side == "Inputs" else outputs)
            if stated != found:
                self.fail(f"{option} is {stated}, and it has {found} {side.lower()}")
        if outputs and 0 <= outputs[0] < len(tensors):
            given = [integers(tensors[number].Shape) if number >= 0 else [] for number in inputs]
            is_open = any(_is_open(tensors[number]) for number in (*inputs, outputs[0]) if number >= 0)
            wrong = "" if is_open else combination_problem(name, given)
            wrong = wrong or disagreement(
                name,
                given,
                lambda place: (
                    self.constant(tensors[inputs[place]]) if place < len(inputs) and inputs[place] >= 0 else None
                ),
                operator.BuiltinOptions,
                integers(tensors[outputs[0]].Shape),
                is_open,
            )
            if wrong:
                self.fail(wrong)

    def scales(self, name: str, operator: Table, tensors: list[Table]) -> None:
        """Checks what kernels compute from scales when they are prepared."""
        sides = []
        kinds = [
            members("TensorType").get(tensors[number].Type, "") for number in integers(operator.Inputs) if number >= 0
        ]
        for side in (operator.Inputs, operator.Outputs):
            numbers = [number for number in integers(side) if 0 <= number < len(tensors)]
            quantized = [
                tensors[n] for n in numbers if members("TensorType").get(tensors[n].Type) == (kinds or [""])[0]
            ]
            sides.append([_scale(tensor) for tensor in quantized])
        problem = scale_problem(name, kinds[0], *sides) if kinds else ""
        if problem:
            self.fail(problem)

    def constant(self, tensor: Table) -> list[int] | None:
        """The value of a constant of a few integers of 32 or 64 bits, or None for other tensors."""
        format = {"INT32": "<i4", "INT64": "<i8"}.get(members("TensorType")[tensor.Type])
        data = self.model.Buffers[tensor.Buffer].Data
        return None if format is None or not data or len(data) > _MOST_PARAMETERS else integers(data, format)

    def options(self, index: int, options: Table) -> None:
        for name, value in options.fields.items():
            if name in POSITIVE and not 0 < value < WINDOWS.get(name, 2**30):
                self.fail(f"{name} is {value}")
            if name in NOT_NEGATIVE and not 0 <= value < NOT_NEGATIVE[name]:
                self.fail(f"{name} is {value}")
            enumeration = ENUMERATIONS.get(name)
            if enumeration and isinstance(value, int) and value not in members(enumeration):
                self.fail(f"{name} is {value}, which is no {enumeration}")
            if name in SUBGRAPHS:
                for callee in [value] if isinstance(value, int) else integers(value):
                    if not 0 <= callee < len(self.model.Subgraphs):
                        self.fail(f"{name} is {callee} of {len(self.model.Subgraphs)}")
                    self.calls[index].add(callee)

    def tensor(self, tensor: Table) -> bool:
        """Checks a tensor. Returns whether it is a constant."""
        kind = members("TensorType").get(tensor.Type)
        if kind is None or kind not in BYTES:
            self.fail(f"its type is {tensor.Type}")
        if tensor.Buffer >= len(self.data):
            self.fail(f"it is in buffer {tensor.Buffer} of {len(self.data)}")
        shape, signature = integers(tensor.Shape), integers(tensor.ShapeSignature)
        if any(size < 0 for size in shape) or any(size < -1 for size in signature):
            self.fail(f"its shape is {shape}, its signature {signature}")
        if signature and len(signature) != len(shape):
            self.fail(f"its shape is {shape}, its signature {signature}")
        count = math.prod(shape)
        # Some kernels compute sizes in 32 bits, also if a dimension is empty.
        if math.prod(max(1, extent) for extent in shape) >= 2**31 or count * max(1, BYTES[kind]) > self.memory:
            self.fail(f"its shape is {shape}, more than the machine has memory for")
        if tensor.VariantTensors:
            for variant in tensor.VariantTensors:
                if variant.Type not in members("TensorType") or any(size < -1 for size in integers(variant.Shape)):
                    self.fail("its variant tensors are of no known type and shape")
        if tensor.Quantization is not None:
            self.quantization(tensor.Quantization, shape, kind)
        size = self.data[tensor.Buffer]
        if not size:
            if tensor.Sparsity is not None:
                self.fail("it is sparse and has no data")
            return False
        if tensor.IsVariable:
            self.fail("it is a variable with data")
        if tensor.Sparsity is not None:
            self.sparsity(tensor.Sparsity, shape, size, BYTES[kind])
        elif kind == "STRING":
            self.strings(self.model.Buffers[tensor.Buffer].Data, count)
        elif kind in ("RESOURCE", "VARIANT"):
            self.fail("it is a resource with data")
        elif size != math.ceil(count * BYTES[kind]):
            self.fail(f"its shape is {shape} of {kind}, and it has {size} bytes of data")
        return True

    def quantization(self, parameters: Table, shape: list[int], kind: str) -> None:
        if parameters.Details is not None and parameters.Details.kind == "BlockwiseQuantization":
            for number in (parameters.Details.Scales, parameters.Details.ZeroPoints):
                if not -1 <= number < 2**31:
                    self.fail("its blockwise quantization refers to no tensor")
            return
        scales = np.frombuffer(parameters.Scale, "<f4") if parameters.Scale is not None else np.zeros(0, np.float32)
        zeros = integers(parameters.ZeroPoint, "<i8")
        if not (np.isfinite(scales).all() and (scales >= 0).all()):
            self.fail("a scale is not a finite number")
        if any(not -(2**31) <= zero < 2**31 for zero in zeros):
            self.fail("a zero point has more than 32 bits")
        if not len(scales):
            return
        if len(zeros) not in (0, 1, len(scales)):
            self.fail(f"it has {len(scales)} scales and {len(zeros)} zero points")
        axis = parameters.QuantizedDimension
        if len(scales) > 1 and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
            self.fail(f"it has {len(scales)} scales for dimension {axis} of the shape {shape}")
        if not 0 <= axis < max(1, len(shape)):
            self.fail(f"its quantized dimension is {axis}, and its shape {shape}")
        limits = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}.get(kind)
        if limits and any(not limits[0] <= zero <= limits[1] for zero in zeros):
            self.fail(f"a zero point is outside of {kind}")

    def strings(self, data: Any, count: int) -> None:
        """Checks a string tensor: the number of strings, the offset of each and of the end, then the bytes."""
        header = integers(data[: len(data) // 4 * 4])
        if not header or header[0] != count or len(header) < count + 2:
            self.fail(f"it has {count} strings, and its data is for {header[0] if header else 0}")
        offsets = header[1 : count + 2]
        if offsets[0] < 4 * (count + 2) or sorted(offsets) != offsets or offsets[-1] > len(data):
            self.fail("its strings lie outside of its data")

    def sparsity(self, parameters: Table, shape: list[int], size: int, item: float) -> None:
        order, blocks = integers(parameters.TraversalOrder), integers(parameters.BlockMap)
        dimensions = parameters.rows("DimMetadata")
        if sorted(order) != list(range(len(dimensions))) or len(dimensions) != len(shape) + len(blocks):
            self.fail(f"its sparsity has {len(dimensions)} dimensions in the order {order}, and its shape is {shape}")
        if any(not 0 <= dimension < len(shape) for dimension in blocks):
            self.fail(f"its blocks are of the dimensions {blocks}, and its shape is {shape}")
        stored = 1
        for dimension in dimensions:
            if dimension.Format not in members("DimensionType"):
                self.fail(f"a dimension of it has the unknown format {dimension.Format}")
            if members("DimensionType")[dimension.Format] == "DENSE":
                if not 0 < dimension.DenseSize < 2**31:
                    self.fail(f"a dense dimension of it has the size {dimension.DenseSize}")
                stored *= dimension.DenseSize
                continue
            segments, indices = (
                list(_sparse_indices(dimension.ArraySegments)),
                list(_sparse_indices(dimension.ArrayIndices)),
            )
            if len(segments) != stored + 1 or segments[0] != 0 or sorted(segments) != segments:
                self.fail("the segments of a sparse dimension of it do not follow each other")
            if segments[-1] != len(indices) or any(not 0 <= place < max(shape, default=1) for place in indices):
                self.fail("the indices of a sparse dimension of it lie outside of it")
            stored = len(indices)
        if size != math.ceil(stored * item):
            self.fail(f"its sparsity says that {stored} values are stored, and it has {size} bytes of data")


def _is_open(tensor: Table) -> bool:
    """Whether some sizes of a tensor are known only when the model runs."""
    return -1 in integers(tensor.ShapeSignature)


def _scale(tensor: Table) -> float:
    """The scale of a tensor, or 0 if it has none."""
    scales = None if tensor.Quantization is None else tensor.Quantization.Scale
    return 0.0 if not scales else float(np.frombuffer(scales, "<f4", 1)[0])


def _sparse_indices(vector: Table | None) -> Iterator[int]:
    if vector is None or vector.Values is None:
        return iter(())
    return iter(
        integers(vector.Values, {"Int32Vector": "<i4", "Uint16Vector": "<u2", "Uint8Vector": "u1"}[vector.kind])
    )
