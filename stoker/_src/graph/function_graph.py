"""Functions: graphs with inputs and outputs, which ops (If, While, PartitionedCall, ...) hold as attributes.

`FuncGraph` is the graph that a body is traced into. Outer tensors, eager tensors and variables that the body uses
become additional inputs ("captures"). `Function` gives a body a name, inputs and outputs. Several
functions may share one body, such as a loop's body with and without the values that its gradient needs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes, settings
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InaccessibleTensorError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph import context
from stoker._src.graph.attr_values import FunctionRef
from stoker._src.graph.definition import STATEFUL, find_definition
from stoker._src.graph.graph import Graph, control_element
from stoker._src.graph.interchange.function_def import function_def_of
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.source_lines import recent_frames
from stoker._src.graph.tapes import no_tapes
from stoker._src.graph.tensor import Operation, Tensor, out_of_scope

_uid = itertools.count()
# Collections that a body shares with the outer graph, which owns the variables.
_SHARED_COLLECTIONS = frozenset(
    (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MODEL_VARIABLES)
)


def unique_function_name(prefix: str) -> str:
    """A function name that is unique in this process."""
    return f"{prefix.replace('/', '_')}_{next(_uid)}"


class FuncGraph(Graph):
    """The body of a function while it is traced, and after.

    Attributes:
        outer: the target that was current when it was created.
        inputs: placeholders for the arguments and captures, in order of creation.
        control_captures: outer operations that ops of the body must wait for.
        part_of_outer: whether this is a branch or loop of 1.x, whose ops TensorFlow keeps in the outer graph.
    """

    building_function = True

    def __init__(
        self,
        name: str,
        outer: Any = None,
        *,
        copies_constants: bool = False,
        automatic: bool = False,
        always_function: bool = False,
    ) -> None:
        """Creates a body named `name`.

        Args:
            name: the name for messages and functions.
            outer: the target that captures come from; the current target by default.
            copies_constants: whether to copy outer constants instead of capturing them (gradient functions).
            automatic: whether every stateful op runs, in order of creation (`tf.function`).
            always_function: whether the body is a separate function in 1.x as well (`switch_case`).
        """
        super().__init__()
        self.name = name
        self.outer = context.target() if outer is None else outer
        self.automatic = automatic or getattr(self.outer, "automatic", False)
        self.inputs: list[Tensor] = []
        self.control_captures: list[Operation] = []
        self._copies_constants = copies_constants
        self._captured: dict[int, tuple[Any, Tensor]] = {}  # id of an outer tensor -> (what the caller passes, input)
        self._kept: list[Any] = []  # outer tensors whose id is a key above
        self._seed = self.outer.seed
        # Without control flow v2, what a loop or a branch makes counts as made in the graph around it.
        around = self.outer
        plain = around.part_of_outer if isinstance(around, FuncGraph) else isinstance(around, Graph)
        functional = self.automatic or always_function or settings.control_flow_v2
        self.part_of_outer: bool = plain and not functional

    def next_random_op(self) -> int:
        return self.outer.next_random_op() if self.part_of_outer else super().next_random_op()

    # -- inputs --------------------------------------------------------------------------------------------------

    def add_input(self, dtype: DType, shape: Shape, name: str | None = None) -> Tensor:
        """Adds an argument: a placeholder that ignores the open scopes.

        Gradients of functions that nest deeply add many, so this skips the general path of adding a node.
        """
        definition = find_definition("Placeholder")
        assert definition is not None
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        with self._plain_scope():
            unique = self.op_name(name, "Placeholder")
            op = Operation(
                self, definition, unique, [], {"dtype": dtype.base_dtype, "shape": shape}, [], recent_frames()
            )
            self._register(op)
        tensor = op.outputs[0]
        tensor._static_shape = shape
        tensor.dtype = dtype  # a reference stays one: bodies may assign to 1.x variables
        self.inputs.append(tensor)
        return tensor

    @contextmanager
    def _plain_scope(self) -> Iterator[None]:
        saved = self._scope, self._controllers, self._devices, self._colocation, self._attr_overrides
        self._scope, self._controllers, self._devices, self._colocation, self._attr_overrides = "", [], [], [], {}
        try:
            with no_tapes():
                yield
        finally:
            self._scope, self._controllers, self._devices, self._colocation, self._attr_overrides = saved

    def capture(self, tensor: Any) -> Tensor:
        """The input that represents an outer tensor or an eager tensor.

        Raises:
            ValueError: the tensor belongs to a graph that does not enclose this one.
            TypeError: the same, for functions called eagerly.
            InaccessibleTensorError: it belongs to a branch or loop inside this function.
        """
        if getattr(tensor, "is_eager", False):
            return self.capture_eager(tensor)
        if tensor.op.graph is self:
            return tensor
        found = self._captured.get(id(tensor))
        if found is not None:
            return found[1]
        if self._copies_constants and tensor.op.type == "Const":
            with self._plain_scope():
                inner = self.add_constant(tensor.op.attrs["value"], tensor.dtype, None)
            return self._note(tensor, tensor, inner)
        passed = tensor
        if tensor.op.graph is not self.outer:
            if not isinstance(self.outer, FuncGraph):
                raise self._out_of_scope(tensor)
            passed = self.outer.capture(tensor)
            found = self._captured.get(id(passed))
            if found is not None:
                return self._note(tensor, *found)
        inner = self.add_input(tensor.dtype, tensor.static_shape)
        note_handle(inner, tensor)
        if tensor.op.type == "Const":
            inner.op.static_value = [tensor.op.attrs["value"]]
        elif tensor.op.type == "Placeholder" and tensor.op.static_value is not None:
            inner.op.static_value = tensor.op.static_value
        self._note(tensor, passed, inner)
        return inner if passed is tensor else self._note(passed, passed, inner)

    def capture_eager(self, tensor: Any) -> Tensor:
        found = self._captured.get(id(tensor))
        if found is not None:
            return found[1]
        passed = tensor
        if isinstance(self.outer, Graph):
            if not isinstance(self.outer, FuncGraph) and tensor.dtype not in (dtypes.resource, dtypes.variant):
                return self._note(tensor, tensor, self.add_constant(tensor.static_array(), tensor.dtype, None))
            passed = self.outer.capture_eager(tensor)
            found = self._captured.get(id(passed))
            if found is not None:
                return self._note(tensor, *found)
        static = SCALAR if tensor.dtype in (dtypes.resource, dtypes.variant) else tensor.static_shape
        inner = self.add_input(tensor.dtype, static)
        note_handle(inner, tensor)
        self._note(tensor, passed, inner)
        return inner if passed is tensor else self._note(passed, passed, inner)

    def _note(self, key: Any, passed: Any, inner: Tensor) -> Tensor:
        self._kept.append(key)
        self._captured[id(key)] = (passed, inner)
        return inner

    def _out_of_scope(self, tensor: Tensor) -> Exception:
        if isinstance(self.outer, Graph):
            return ValueError(f'Tensor("{tensor.name}") must be from the same graph as the function {self.name!r}.')
        inside, around = False, getattr(tensor.op.graph, "outer", None)
        while isinstance(around, FuncGraph):
            inside, around = inside or around is self, around.outer
        return (InaccessibleTensorError if inside else TypeError)(out_of_scope(tensor))

    @property
    def captures(self) -> list[tuple[Any, Tensor]]:
        """(value that the caller passes, input that represents it) for every capture, in order of creation."""
        by_input = {id(inner): (passed, inner) for passed, inner in self._captured.values() if inner.op.graph is self}
        return [by_input[id(tensor)] for tensor in self.inputs if id(tensor) in by_input]

    @property
    def captured_values(self) -> dict[int, Any]:
        """The values of captures that have one (eager tensors, variables), across all graphs in between, by id of the input."""
        return {id(self._captured[id(key)][1]): key for key in self._kept if getattr(key, "is_eager", False)}

    @property
    def external_captures(self) -> list[Any]:
        return [passed for passed, _ in self.captures]

    # -- as a graph ----------------------------------------------------------------------------------------------

    def _adopt(self, inputs: list[Tensor], name: str) -> list[Tensor]:
        return [tensor if tensor.op.graph is self else self.capture(tensor) for tensor in inputs]

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        element = obj._as_graph_element() if hasattr(obj, "_as_graph_element") else obj
        if isinstance(element, Tensor) and allow_tensor:
            if getattr(element, "is_eager", False) or element.op.graph is not self:
                return self.capture(element)
            return element
        return super().as_graph_element(obj, allow_tensor, allow_operation)

    def _control_op(self, item: Any) -> Operation | None:
        if getattr(item, "is_eager", False):
            return None
        element = control_element(item)
        op = element.op if isinstance(element, Tensor) and not getattr(element, "is_eager", False) else element
        if isinstance(op, Operation) and op.graph is not self:
            # The op that calls this function waits instead.
            if op not in self.control_captures:
                self.control_captures.append(op)
            return None
        if element is None or getattr(element, "is_eager", False):
            return None
        return super()._control_op(element)

    def _home(self, name: Any) -> Graph | None:
        """The outer graph that owns a shared collection, or None if this graph does."""
        shared = not isinstance(name, str) or name in _SHARED_COLLECTIONS
        return self.outer if shared and isinstance(self.outer, Graph) else None

    def add_to_collection(self, name: Any, value: Any) -> None:
        home = self._home(name)
        super().add_to_collection(name, value) if home is None else home.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        home = self._home(name)
        if home is not None:
            return home.get_collection_ref(name)
        if name not in self._collections and isinstance(self.outer, Graph):
            self._collections[name] = list(self.outer.get_collection(name))
        return super().get_collection_ref(name)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        home = self._home(name)
        if home is not None:
            return home.get_collection(name, scope)
        self.get_collection_ref(name)
        return super().get_collection(name, scope)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        with context.enter_graph(self), no_tapes():
            yield self

    @contextmanager
    def continued(self) -> Iterator[Graph]:
        """Like `as_default`, for adding to a finished body. Tapes keep recording."""
        with context.enter_graph(self):
            yield self

    def stateful_ops(self) -> list[Operation]:
        """The ops that must run because of their side effects."""
        return [op for op in self._ops if op.definition.traits & STATEFUL and op.type != "Placeholder"]


def note_handle(inner: Tensor, outer: Any) -> None:
    """Copies what is known about a resource to the handle inside the function."""
    base = outer.dtype.base_dtype
    if base not in (dtypes.resource, dtypes.variant) and not (base is dtypes.string and outer.dtype._is_ref_dtype):
        return
    noted = getattr(outer, "handle_shape", None)
    noted_dtype = getattr(outer, "handle_dtype", None)
    if noted is None:
        state = getattr(outer, "_value", None)
        if state is not None:
            noted, noted_dtype = getattr(state, "shape", None), getattr(state, "dtype", None)
        elif outer.op.type == "VarHandleOp":
            noted, noted_dtype = outer.op.attrs["shape"], outer.op.attrs["dtype"]
    if noted is not None:
        inner.handle_shape, inner.handle_dtype = noted, noted_dtype  # type: ignore[attr-defined]
    variable = getattr(outer, "variable", None)
    if variable is not None:
        inner.variable = variable  # type: ignore[attr-defined]
    elif not getattr(outer, "is_eager", False):
        inner.made_by = getattr(outer, "made_by", outer.op)  # type: ignore[attr-defined]


class Function:
    """A body with a name, inputs and outputs.

    Attributes:
        graph: the body.
        inputs, outputs: tensors of the body. An output may be an input.
        control_outputs: operations that run even if no output needs them.
        gradient: its gradient function, if a library names one.
        derived_from: the function that an op names when it calls this one instead (SymbolicGradient).
        attributes: the attributes of its FunctionDef.
        steps: compiled forms, kept by the eager executor.
        gradient_recipes: how calls are differentiated, by the outputs that have gradients and their types.
        accumulators: positions of loop variables that collect values for a gradient.
        captures: positions of the inputs that a branch or loop of 1.x has from the graph around it, whose gradients may
            be IndexedSlices; None for control flow of 2.x and calls.
    """

    def __init__(
        self,
        name: str,
        graph: FuncGraph,
        inputs: list[Tensor],
        outputs: list[Tensor],
        control_outputs: list[Operation] | None = None,
    ) -> None:
        self.name = name
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs
        self.control_outputs = list(control_outputs or ())
        self.gradient: Function | None = None
        self.derived_from: Function | None = None
        self.attributes: dict[str, Any] = {}
        self.steps: dict[Any, Any] = {}
        self.gradient_recipes: dict[Any, Any] = {}
        self.accumulators: set[int] = set()
        self.captures: frozenset[int] | None = None

    @property
    def ref(self) -> FunctionRef:
        return FunctionRef(self.name, {}, self)

    @functools.cached_property
    def stateful(self) -> bool:
        inputs = {tensor.op for tensor in self.inputs}
        return any(op.definition.traits & STATEFUL for op in self.needed_ops() if op not in inputs)

    def needed_ops(self) -> list[Operation]:
        """The operations that outputs and control outputs depend on, in order of creation."""
        found: set[Operation] = set()
        stack = [*(tensor.op for tensor in self.outputs), *self.control_outputs]
        while stack:
            op = stack.pop()
            if op not in found:
                found.add(op)
                stack.extend(tensor.op for tensor in op._inputs)
                stack.extend(op._control_inputs)
        return sorted(found, key=lambda op: op._id)

    def extended(self, inputs: list[Tensor], outputs: list[Tensor], suffix: str = "rewritten") -> Function:
        """The same body with more inputs and outputs, under another name."""
        made = Function(
            unique_function_name(f"{self.name}_{suffix}"),
            self.graph,
            [*self.inputs, *inputs],
            [*self.outputs, *outputs],
            self.control_outputs,
        )
        made.accumulators, made.captures = set(self.accumulators), self.captures
        return made

    def to_function_def(self) -> Any:
        return function_def_of(self)

    def __repr__(self) -> str:
        return f"<function {self.name} of {len(self.inputs)} inputs, {len(self.outputs)} outputs>"
