"""From a graph to a TFLite model, node by node.

A scope visits the nodes that its outputs need, in order, and keeps a value for each of their tensors: an array if everything it depends
on is constant, a tensor of the subgraph under construction, or a resource (a variable, a table). A node whose inputs are all arrays is computed at
once by its own kernel. Any other node is lowered by the function that `builtins/` registered for its type, which adds operators.

Shapes come from the ops' shape rules, applied to the shapes known so far. They may be more exact than the graph's (a batch size
that was set for the conversion, a constant that a loop captured).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.base import dtypes
from stoker._src.base.errors import OpError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.attr_values import FunctionRef
from stoker._src.graph.definition import STATEFUL
from stoker._src.graph.function_graph import Function
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.shape_inference import infer_shapes
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite import kernels
from stoker._src.lite.model import TYPE_CODES, Model, Operator, Subgraph, Tensor, numpy_dtype, type_of

# Constants are folded even if the result is larger, up to this many bytes: the result of a tile or a fill may exceed the rest of the model.
_GROWTH = 1 << 16
_MOST_EXPANDED = 4096


@dataclass(eq=False)
class Variable:
    """A variable of the graph: a constant of the model, unless the model itself assigns to it."""

    name: str
    value: np.ndarray
    assigned: bool = False


def constant_name(tensor: GraphTensor) -> str:
    """The name of a constant: that of the variable which it is the value of, or of its op."""
    op = tensor.op
    owner = op.inputs[0].op if op.type == "ReadVariableOp" else op
    return owner.name if owner.type == "VarHandleOp" else op.name


@dataclass(eq=False)
class Table:
    """A lookup table with its initial entries."""

    name: str
    key_dtype: Any
    value_dtype: Any
    keys: np.ndarray | None = None
    values: np.ndarray | None = None


@dataclass(eq=False)
class PendingList:
    """An empty list of tensors whose element shape is unknown until the first element is set.

    `length` is the number of elements, as a constant or a tensor of the subgraph.
    """

    name: str
    type: str
    length: np.ndarray | Tensor
    element: tuple[int, ...] | None


Value = np.ndarray | Tensor | Variable | Table | PendingList


class Unsupported(Exception):
    """A node that TFLite's builtins cannot compute, with the reason and an alternative."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead


@dataclass
class Problem:
    """A node that was not converted."""

    op: Operation
    reason: str
    instead: str


Lowering = Callable[["Scope", Operation], Any]
LOWERINGS: dict[str, Lowering] = {}
# The message for an op without a lowering.
ALTERNATIVES: dict[str, str] = {}
ALTERNATIVE_FAMILIES: dict[re.Pattern[str], str] = {}


def alternative(kind: str) -> str:
    """What to use instead of an op, or ""."""
    found = (text for pattern, text in ALTERNATIVE_FAMILIES.items() if pattern.fullmatch(kind))
    return ALTERNATIVES.get(kind) or next(found, "")


def lowers(*types: str) -> Callable[[Lowering], Lowering]:
    """Registers a function for ops of these types.

    It takes the scope and the op, and returns the values of the op's outputs: one value or a sequence. None leaves an output without a value.
    """

    def attach(function: Lowering) -> Lowering:
        for each in types:
            assert each not in LOWERINGS, each
            LOWERINGS[each] = function
        return function

    return attach


@dataclass
class Rules:
    """The choices that a conversion is allowed."""

    select_ops: bool = False
    custom_ops: bool = False
    user_select_ops: frozenset[str] = frozenset()
    reorder_fake_quant: bool = False
    """Whether fake quantization is moved if it prevents folding."""
    cells: bool = True
    """Whether the LSTM cell of a loop becomes one operator, whose kernel supports only floating point."""
    to_bytes: bool = False
    """Whether activations become integers of 8 bits."""
    runtime: str | None = None
    """The oldest runtime that must have all builtins."""


@dataclass
class Conversion:
    """The state shared by the scopes of one conversion."""

    rules: Rules = field(default_factory=Rules)
    model: Model = field(default_factory=lambda: Model([]))
    variables: dict[str, Variable] = field(default_factory=dict)
    """By the name of the node that owns them."""
    tables: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """The keys and values of tables, by the name of the node that owns them."""
    problems: dict[Operator, Problem] = field(default_factory=dict)
    initial: Subgraph | None = None
    """The subgraph that runs once, before the first call, and initializes variables and tables."""
    initialized: set[Any] = field(default_factory=set)
    """The variables and tables that `initial` initializes."""

    def initializer(self) -> Subgraph:
        if self.initial is None:
            self.initial = Subgraph("initialize")
        return self.initial


class Scope:
    """A subgraph under construction."""

    def __init__(self, conversion: Conversion, subgraph: Subgraph) -> None:
        self.conversion = conversion
        self.subgraph = subgraph
        self.values: dict[GraphTensor, Value | None] = {}
        self._shapes: dict[GraphTensor, Shape] = {}
        self._constants: dict[Any, Tensor] = {}
        self._names: dict[str, int] = {}
        self.handles: dict[Any, Tensor] = {}
        """The tensors that represent variables and tables."""
        self.consumed: set[GraphTensor] = set()
        """The tensors that the visited nodes read or that the scope returns."""

    # -- walking -------------------------------------------------------------------------------------------------

    def run(self, outputs: Iterable[GraphTensor], controls: Iterable[Operation] = ()) -> None:
        """Computes the value of each output and of everything it needs."""
        outputs = list(outputs)
        ops = needed_ops(outputs, controls, self.values)
        self.consumed.update(outputs)
        for op in ops:
            self.consumed.update(op._inputs)
        for op in ops:
            self._lower(op)

    def _lower(self, op: Operation) -> None:
        self._infer(op)
        found = self._computed(op)
        if found is None:
            found = self._lowered(op)
        for tensor, value in zip(op.outputs, found, strict=True):
            self.values[tensor] = value

    def _infer(self, op: Operation) -> None:
        shapes: list[Shape] = [tensor.static_shape for tensor in op.outputs]
        try:
            better = infer_shapes(op, self.shape_of, self._static_value)
        except (OpError, LookupError, ArithmeticError, TypeError, AttributeError, ValueError):
            better = shapes  # the rule needs a value that is unknown here
        for tensor, known, found in zip(op.outputs, shapes, better, strict=True):
            self._shapes[tensor] = found.merge(known) if found.compatible(known) else found

    def _static_value(self, tensor: GraphTensor) -> np.ndarray | None:
        value = self.values.get(tensor)
        return value if isinstance(value, np.ndarray) else constant_value(tensor)

    def _computed(self, op: Operation) -> list[Any] | None:
        """The op's outputs as arrays, if they do not depend on the model's inputs."""
        known = _by_shape(op, self)
        if known is not None:
            return known
        definition = op.definition
        if not op.inputs:
            value = constant_value(op.outputs[0]) if len(op.outputs) == 1 else None
            return None if value is None else [np.asarray(value)]
        if definition.traits & STATEFUL or op.type in NEVER_COMPUTED:
            return None
        if any(tensor.dtype.base_dtype in (dtypes.variant, dtypes.resource) for tensor in (*op.inputs, *op.outputs)):
            return None
        arrays = [value for tensor in op.inputs if isinstance(value := self.values.get(tensor), np.ndarray)]
        if len(arrays) < len(op.inputs):
            return self._small(op)
        sizes = [self.shape_of(tensor).size for tensor in op.outputs]
        given = sum(each.nbytes for each in arrays)
        if any(size is not None and size * 4 > given + _GROWTH for size in sizes):
            return None
        return hooks.evaluate(op, arrays)

    def _small(self, op: Operation) -> list[Any] | None:
        """Sizes known to the graph, such as an element of a partly known shape."""
        if not all(t.dtype in (dtypes.int32, dtypes.int64, dtypes.bool_) for t in op.outputs):
            return None
        values = [constant_value(tensor) for tensor in op.outputs]
        return None if any(value is None for value in values) else values

    def _lowered(self, op: Operation) -> list[Value | None]:
        lowering = LOWERINGS.get(op.type)
        first = len(self.subgraph.operators)
        try:
            if lowering is None:
                raise Unsupported(f"TFLite has no builtin for {op.type}", alternative(op.type))
            found = lowering(self, op)
            self._settle(op, first)
        except Unsupported as problem:
            del self.subgraph.operators[first:]
            return self._foreign(op, problem)
        if isinstance(found, (np.ndarray, Tensor, Variable, Table, PendingList)) or found is None:
            found = [found] * max(len(op.outputs), 1) if found is None else [found]
        return list(found)[: len(op.outputs)]

    def _settle(self, op: Operation, first: int) -> None:
        """Lets the operators from `first` on work on types that they have kernels for."""
        operators = self.subgraph.operators
        for operator in operators[first:]:
            made, reason = kernels.settle(operator, lambda like, type_name: self.temporary(op, type_name, like.shape))
            if reason:
                raise Unsupported(reason, "cast to a type that it has, such as tf.float32 or tf.int32")
            if made[0] is not operator:
                place = operators.index(operator)
                operators[place : place + 1] = made

    def _foreign(self, op: Operation, problem: Unsupported) -> list[Value | None]:
        """Lowers a node without a builtin to a TensorFlow kernel or a custom op if allowed, and otherwise reports a problem."""
        inputs: list[Tensor | None] = []
        for tensor in op.inputs:
            value = self.values.get(tensor)
            inputs.append(self.tensor(tensor) if isinstance(value, (np.ndarray, Tensor)) else None)
        outputs = []
        for position, tensor in enumerate(op.outputs):
            try:
                outputs.append(self.result(op, position))
            except ValueError:
                outputs.append(Tensor(self.unique(tensor.op.name), "FLOAT32", None))
        operator = Operator("CUSTOM", inputs, outputs, custom_code=op.type)
        self.subgraph.operators.append(operator)
        self.conversion.problems[operator] = Problem(op, problem.reason, problem.instead)
        return list(outputs)

    # -- what lowerings read -------------------------------------------------------------------------------------

    def shape_of(self, tensor: GraphTensor) -> Shape:
        """The static shape, as exact as it is known here."""
        value = self.values.get(tensor)
        if isinstance(value, np.ndarray):
            return Shape(value.shape)
        if isinstance(value, Tensor) and tensor.dtype.base_dtype is not dtypes.variant:
            return UNKNOWN_SHAPE if value.shape is None else Shape(None if size < 0 else size for size in value.shape)
        return self._shapes.get(tensor, tensor.static_shape)

    def known(self, tensor: GraphTensor) -> np.ndarray | None:
        """The tensor's value, if it is constant."""
        value = self.values.get(tensor)
        return value if isinstance(value, np.ndarray) else None

    def required(self, tensor: GraphTensor, what: str) -> np.ndarray:
        """The tensor's value, which must be constant."""
        value = self.known(tensor)
        if value is None:
            raise Unsupported(f"{what} must be constant", f"compute {what} from constants and static shapes")
        return value

    def tensor(self, tensor: GraphTensor) -> Tensor:
        """The tensor in the subgraph. An array becomes a constant."""
        value = self.values.get(tensor)
        if isinstance(value, Tensor):
            return value
        if isinstance(value, np.ndarray):
            return self.constant(value, constant_name(tensor))
        kind = "a resource" if value is not None else "no value"
        raise Unsupported(f"its input '{tensor.name}' has {kind} in TFLite")

    def inputs(self, op: Operation) -> list[Tensor]:
        return [self.tensor(tensor) for tensor in op.inputs]

    # -- what lowerings make -------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name

    def constant(self, array: Any, name: str = "constant", dtype: Any = None) -> Tensor:
        """A constant of the subgraph. Small constants with equal values, and uses of the same array, share one tensor."""
        array = np.asarray(array, dtype)
        # A key of the bytes is short for small constants; large ones are kept by identity, and their buffers are merged when written.
        content = array.tobytes() if array.nbytes <= 256 and array.dtype != object else id(array)
        key = (array.dtype.str, array.shape, content)
        found = self._constants.get(key)
        if found is None:
            type_name = "STRING" if array.dtype == object else type_of(array.dtype)
            found = self._constants[key] = Tensor(self.unique(name), type_name, array.shape, array)
        return found

    def result(self, op: Operation, position: int = 0) -> Tensor:
        """The tensor for an output of `op`."""
        tensor = op.outputs[position]
        name = op.name if position == 0 else f"{op.name}:{position}"
        try:
            type_name = type_of(tensor.dtype)
        except ValueError as error:
            raise Unsupported(str(error)) from None
        return Tensor(self.unique(name), type_name, lite_shape(self.shape_of(tensor)))

    def results(self, op: Operation) -> list[Tensor]:
        return [self.result(op, position) for position in range(len(op.outputs))]

    def temporary(self, op: Operation, type_name: str, shape: Sequence[int] | None) -> Tensor:
        """A tensor that only operators of this node use."""
        return Tensor(self.unique(f"{op.name}/"), type_name, None if shape is None else tuple(shape))

    def emit(
        self,
        code: str,
        inputs: Sequence[Tensor | None],
        outputs: Tensor | Sequence[Tensor],
        options: Any = None,
        subgraphs: Sequence[Subgraph] = (),
    ) -> Any:
        """Adds an operator and returns its outputs as they were given."""
        listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        self.subgraph.operators.append(Operator(code, list(inputs), listed, options, subgraphs=list(subgraphs)))
        return outputs

    def cast(self, op: Operation, tensor: Tensor, type_name: str) -> Tensor:
        """The tensor with elements of another type."""
        if tensor.type == type_name:
            return tensor
        numpy = numpy_dtype(type_name)
        if tensor.data is not None and numpy is not None and tensor.data.dtype != object:
            return self.constant(tensor.data.astype(numpy), tensor.name)
        options = schema.CastOptionsT(inDataType=TYPE_CODES[tensor.type], outDataType=TYPE_CODES[type_name])
        return self.emit("CAST", [tensor], self.temporary(op, type_name, tensor.shape), options)

    def int32(self, op: Operation, tensor: GraphTensor) -> Tensor:
        """A size, an index or an axis: many builtins take these as int32 only."""
        known = self.known(tensor)
        if known is not None:
            if known.size and (known.min() < -(2**31) or known.max() >= 2**31):
                if known.max() != np.iinfo(np.int64).max:
                    raise Unsupported(f"its input '{tensor.name}' does not fit 32 bits")
                known = np.minimum(known, 2**31 - 1)
            return self.constant(known.astype(np.int32), constant_name(tensor))
        return self.cast(op, self.tensor(tensor), "INT32")

    # -- functions -----------------------------------------------------------------------------------------------

    def inlined(self, function: Function, given: Sequence[Value | None]) -> list[Value | None]:
        """The outputs of a function, whose operators are added to this subgraph."""
        outer_values, outer_shapes = self.values, self._shapes
        self.values = dict(zip(function.inputs, given, strict=True))
        self._shapes = {}
        try:
            self.run(function.outputs, function.control_outputs)
            return [self.values.get(tensor) for tensor in function.outputs]
        finally:
            self.values, self._shapes = outer_values, outer_shapes

    def child(
        self, function: Function, given: Sequence[Value | None], name: str
    ) -> tuple[Subgraph, list[Value | None]]:
        """A new subgraph for a function. The `given` tensors that are not constants become its inputs. The caller sets the outputs."""
        subgraph = Subgraph(name)
        scope = Scope(self.conversion, subgraph)
        for tensor, value in zip(function.inputs, given, strict=True):
            if isinstance(value, Tensor):
                value = Tensor(scope.unique(tensor.op.name), value.type, value.shape)
                subgraph.inputs.append(value)
            scope.values[tensor] = value
        scope.run(function.outputs, function.control_outputs)
        found = [scope.values.get(tensor) for tensor in function.outputs]
        subgraph.outputs = [
            scope.tensor(tensor)
            for tensor, value in zip(function.outputs, found, strict=True)
            if isinstance(value, (np.ndarray, Tensor))
        ]
        return subgraph, found


# Ops whose results must stay distinct, although their kernels are pure.
NEVER_COMPUTED = frozenset(("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVarsPerChannel"))


def lite_shape(shape: Shape) -> tuple[int, ...] | None:
    return None if shape.dims is None else tuple(-1 if size is None else size for size in shape.dims)


def function_of(op: Operation, ref: FunctionRef) -> Function:
    """The function that an attribute names.

    Raises:
      Unsupported: The graph does not have it.
    """
    found = ref.target or op.graph._functions.get(ref.name)
    if found is None:
        raise Unsupported(f"the function '{ref.name}' is not in the graph's library")
    return found


def needed_ops(outputs: Iterable[GraphTensor], controls: Iterable[Operation], given: Any) -> list[Operation]:
    """The ops that the outputs need, stopping at the tensors in `given`, in topological order and otherwise in order of creation."""
    found: set[Operation] = set()
    waiting = [tensor.op for tensor in outputs if tensor not in given]
    waiting.extend(controls)
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting.extend(tensor.op for tensor in op._inputs if tensor not in given)
    missing = {op: len({t.op for t in op._inputs if t not in given and t.op in found}) for op in found}
    consumers: dict[Operation, list[Operation]] = {}
    for op in found:
        for source in {t.op for t in op._inputs if t not in given}:
            consumers.setdefault(source, []).append(op)
    ready = [(op._id, op.name, op) for op, count in missing.items() if count == 0]
    heapq.heapify(ready)
    ordered: list[Operation] = []
    while ready:
        op = heapq.heappop(ready)[-1]
        ordered.append(op)
        for consumer in consumers.get(op, ()):
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heapq.heappush(ready, (consumer._id, consumer.name, consumer))
    return ordered


def _by_shape(op: Operation, scope: Scope) -> list[Any] | None:
    """The value of an op that returns its input's shape, if the shape is known."""
    if op.type in ("Shape", "ShapeN", "Size", "Rank"):
        shapes = [scope.shape_of(tensor) for tensor in op.inputs]
        if any(shape.dims is None for shape in shapes):
            return None
        if op.type == "Rank":
            return [np.array(shapes[0].rank, np.int32)]
        if any(not shape.known for shape in shapes):
            return None
        dtype = op.attrs["out_type"].as_numpy_dtype
        if op.type == "Size":
            return [np.array(shapes[0].size, dtype)]
        return [np.array(list(shape), dtype) for shape in shapes]
    if op.type in ("ZerosLike", "OnesLike") and op.outputs[0].dtype.as_numpy_dtype is not np.object_:
        shape = scope.shape_of(op.inputs[0])
        if shape.known and (shape.size or 0) <= _MOST_EXPANDED:
            make = np.zeros if op.type == "ZerosLike" else np.ones
            return [make(list(shape), op.outputs[0].dtype.as_numpy_dtype)]  # type: ignore[arg-type]
    return None
