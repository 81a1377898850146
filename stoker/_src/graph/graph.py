"""`Graph`: nodes with unique names, the scopes that apply to new nodes, and collections."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from stoker._src.base.devices import DeviceSpec, canonical_name, merge_device
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.faults import own_fault
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.formats.protos import VersionDef
from stoker._src.graph import context
from stoker._src.graph.create_op import check_inputs, complete_attrs, definition_of
from stoker._src.graph.definition import OpDefinition, find_definition
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.interchange.graph_def import graph_def_of
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION
from stoker._src.graph.shape_inference import infer_shapes
from stoker._src.graph.source_lines import user_frames
from stoker._src.graph.stacks import NameScope, Stacks
from stoker._src.graph.tapes import tapes
from stoker._src.graph.tensor import Operation, Tensor

_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*\Z")


_WRONG_RANK = re.compile("arrays can be converted|over a 0-d array|of unsized object")


class _Controller:
    """A `with control_dependencies(...)` block: the operations that new ops must wait for, and the ops created inside it."""

    def __init__(self, inputs: list[Operation]) -> None:
        self.inputs = inputs
        self.seen: set[Operation] = set()


class Graph:
    """A set of operations. Constructing a graph is not thread-safe; running it is."""

    building_function = False
    adopts_eager_ops = False
    """Whether an op that is called in eager mode with one of its tensors is added to it (networks of Keras)."""
    tensor_type = Tensor

    def __init__(self) -> None:
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names_in_use: dict[str, int] = {}
        self._name_scope = NameScope()
        self._stacks = Stacks()
        self._attr_overrides: dict[str, Any] = {}
        self._gradient_overrides: dict[str, str] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._seed: int | None = None
        self._random_ops = 0
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Any] = set()
        self._functions: dict[str, Any] = {}
        self._container = ""
        self.changes = 0
        """Grows with every change to existing nodes; plans made before are stale."""

    # -- state of the enclosing `with` blocks ------------------------------------------------------------------------

    @property
    def _scope(self) -> str:
        return self._name_scope.current

    @_scope.setter
    def _scope(self, scope: str) -> None:
        self._name_scope.current = scope

    @property
    def _controllers(self) -> list[_Controller]:
        return self._stacks.controllers

    @_controllers.setter
    def _controllers(self, controllers: list[_Controller]) -> None:
        self._stacks.controllers = controllers

    @property
    def _devices(self) -> list[Any]:
        return self._stacks.devices

    @_devices.setter
    def _devices(self, devices: list[Any]) -> None:
        self._stacks.devices = devices

    @property
    def _colocation(self) -> list[Operation]:
        return self._stacks.colocation

    @_colocation.setter
    def _colocation(self, colocation: list[Operation]) -> None:
        self._stacks.colocation = colocation

    def switch_to_thread_local(self) -> None:
        """Makes the device, control dependency and colocation blocks thread-local. Name scopes always are.

        Each thread starts with the blocks that were open at this call.
        """
        self._stacks = self._stacks.per_thread()

    # -- adding nodes --------------------------------------------------------------------------------------------

    def add(self, definition: OpDefinition, inputs: list[Tensor], attrs: dict[str, Any], name: str) -> Operation:
        """Adds a node. Its inputs and attributes must be converted and complete, and `name` must be its unique, full name.

        Raises:
            ValueError: the inputs' shapes are invalid for the op.
            RuntimeError: the graph is finalized.
        """
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        if name in self._by_name:
            raise ValueError(f"Duplicate node name in graph: '{name}'")
        inputs = self._adopt(inputs, name)
        if self._attr_overrides:
            attrs.update(self._attr_overrides)
        if self._gradient_overrides and definition.name in self._gradient_overrides:
            attrs["_gradient_op_type"] = self._gradient_overrides[definition.name]
        if self._container and attrs.get("container") == "":
            attrs["container"] = self._container
        op = Operation(self, definition, name, inputs, attrs, self._control_inputs_for(inputs), user_frames())
        try:
            shapes = infer_shapes(op)
        except InvalidArgumentError as error:
            found = ", ".join(str(tensor.static_shape) for tensor in inputs)
            if not definition.shape_rule.late:
                raise ValueError(
                    f"{error.message} (node '{name}', op {definition.name}, input shapes: {found})"
                ) from error
            shapes = [UNKNOWN_SHAPE] * len(op.outputs)
        except (LookupError, ArithmeticError, TypeError, AttributeError, NameError, MemoryError) as error:
            # NumPy raises a TypeError for values of a rank that the rule does not expect.
            misfit = isinstance(error, TypeError) and _WRONG_RANK.search(str(error))
            fault = None if misfit else own_fault(error, op)
            if fault is not None:
                raise fault from error
            # The shape rule relies on conditions that it does not check.
            found = ", ".join(str(tensor.static_shape) for tensor in inputs)
            if not definition.shape_rule.late:
                raise ValueError(
                    f"Shapes or values of the inputs do not fit {definition.name} (node '{name}', input shapes: {found})"
                ) from error
            shapes = [UNKNOWN_SHAPE] * len(op.outputs)
        for tensor, shape in zip(op.outputs, shapes):
            tensor._static_shape = shape
        self._register(op)
        stacks = self._stacks
        if stacks.devices or stacks.colocation:
            self._place(op)
        for tape in tapes.active:
            tape.record(op)
        return op

    def create_op(
        self,
        op_type: str,
        inputs: Any,
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: Any = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds a node of type `op_type`.

        Args:
            op_type: the name of the op.
            inputs: its input tensors, as a flat list.
            dtypes: the dtypes of its outputs. This is ignored, since the op determines them.
            input_types: the required dtypes of the inputs.
            name: the op's name. A name that ends in a slash is used without the current scope or a suffix.
            attrs: AttrValue messages by name. Attributes that can be inferred from the inputs or have a default may be omitted.
            op_def: the op's OpDef. It is not needed, since `op_type` determines it.
            compute_shapes: ignored: shapes are always computed.
            compute_device: if False, the enclosing `device` blocks do not apply to the op.

        Raises:
            TypeError: an input is not a tensor, or its dtype differs from `input_types`.
            ValueError: an attribute is missing, or the inputs are invalid.
            NotFoundError: the op does not exist. This error is also a RuntimeError.
        """
        del dtypes, op_def, compute_shapes
        inputs = list(inputs)
        check_inputs(op_type, inputs, input_types)
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        definition = definition_of(op_type)
        unique = self.op_name(name, op_type)
        complete = complete_attrs(definition, inputs, attrs, self._functions)
        if compute_device:
            return self.add(definition, inputs, complete, unique)
        devices, self._devices = self._devices, []
        try:
            return self.add(definition, inputs, complete, unique)
        finally:
            self._devices = devices

    def _register(self, op: Operation) -> None:
        op._id = len(self._ops)
        self._ops.append(op)
        self._by_name[op.name] = op
        for tensor in op._inputs:
            tensor._consumers.append(op)
        for control in op._control_inputs:
            control._control_outputs.append(op)
        for controller in self._stacks.controllers:
            controller.seen.add(op)

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Removes the nodes that were added in the block, and their names, if the block raises."""
        count, names = len(self._ops), dict(self._names_in_use)
        try:
            yield
        except BaseException:
            for op in reversed(self._ops[count:]):
                for tensor in op._inputs:
                    tensor._consumers.remove(op)
                for control in op._control_inputs:
                    control._control_outputs.remove(op)
                del self._by_name[op.name]
            del self._ops[count:]
            self._names_in_use = names
            self.note_change()
            raise

    def _adopt(self, inputs: list[Tensor], name: str) -> list[Tensor]:
        """Checks that the inputs belong to this graph. Function graphs capture foreign tensors instead."""
        for tensor in inputs:
            if tensor.op.graph is not self:
                beside = next((other for other in inputs if other.op.graph is self), f"the op {name!r}")
                raise ValueError(f"{tensor} must be from the same graph as {beside}.")
        return inputs

    def _control_inputs_for(self, inputs: list[Tensor]) -> list[Operation]:
        """Returns the control inputs that the open blocks require, except those that an input already waits for, as in TensorFlow."""
        controllers = self._stacks.controllers
        if not controllers:
            return []
        found: list[Operation] = []
        input_ops = {tensor.op for tensor in inputs}
        for controller in controllers:
            if not controller.seen.isdisjoint(input_ops):
                continue
            found.extend(op for op in controller.inputs if op not in input_ops and op not in found)
        return found

    def add_constant(self, array: Any, dtype: Any, name: str | None) -> Tensor:
        """Adds a Const node. Constants are common, so this skips the general path of calling a definition."""
        definition = find_definition("Const")
        assert definition is not None
        return self.add(definition, [], {"value": array, "dtype": dtype}, self.op_name(name, "Const")).outputs[0]

    def capture_eager(self, tensor: Any) -> Tensor:
        """Converts an eager tensor for use in this graph. Function graphs make it an input.

        Raises:
            RuntimeError: this is a plain graph, which cannot hold eager tensors.
        """
        raise RuntimeError(f"Attempting to capture an EagerTensor without building a function: {tensor!r}.")

    def note_change(self) -> None:
        self.changes += 1

    # -- names ---------------------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Returns `name` inside the current scope, with a suffix if it is taken. Names are case-insensitive."""
        scope = self._name_scope.current
        if scope:
            name = f"{scope}/{name}"
        key = name.lower()
        count = self._names_in_use.get(key, 0)
        if mark_as_used:
            self._names_in_use[key] = count + 1
        if count == 0:
            return name
        base, base_key = name, key
        while key in self._names_in_use:
            name = f"{base}_{count}"
            key = name.lower()
            count += 1
        if mark_as_used:
            self._names_in_use[base_key] = count
            self._names_in_use[key] = 1
        return name

    def op_name(self, name: str | None, op_type: str) -> str:
        """Returns the unique name for a new op. A `name` that ends in a slash is used unchanged, without the slash."""
        if isinstance(name, bytes):
            name = name.decode()
        if name and name[-1:] == "/":
            return name[:-1]
        name = name or op_type
        if not (_SCOPE_NAME if self._name_scope.current else _OP_NAME).match(name):
            raise ValueError(f"'{name}' is not a valid node name")
        return self.unique_name(name)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Adds a prefix to the names of ops created inside; yields the prefix with its slash."""
        if name:
            if isinstance(name, bytes):
                name = name.decode()
            if self._scope:
                if not _SCOPE_NAME.match(name):
                    raise ValueError(f"'{name}' is not a valid scope name")
            elif not _OP_NAME.match(name):
                raise ValueError(f"'{name}' is not a valid root scope name")
        outer = self._scope
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name[:-1]
        else:
            scope = self.unique_name(name)
        self._scope = scope
        try:
            yield scope + "/" if scope or name == "/" else ""
        finally:
            self._scope = outer

    def get_name_scope(self) -> str:
        return self._scope

    # -- scopes --------------------------------------------------------------------------------------------------

    def control_dependencies(self, control_inputs: Any) -> AbstractContextManager[None]:
        """Makes ops created inside run after `control_inputs` (operations, tensors, variables). None clears the enclosing blocks.

        Raises:
            TypeError: an item is not a graph element.
            KeyError: a name that is not in this graph.
        """
        if control_inputs is None:
            return self._uncontrolled()
        ops: list[Operation] = []
        for item in control_inputs:
            op = self._control_op(item)
            if op is not None and op not in ops:
                ops.append(op)
        return self._controlled(_Controller(ops))

    @contextmanager
    def _controlled(self, controller: _Controller) -> Iterator[None]:
        self._controllers.append(controller)
        try:
            yield
        finally:
            self._controllers.remove(controller)

    @contextmanager
    def _uncontrolled(self) -> Iterator[None]:
        outer, self._controllers = self._controllers, []
        try:
            yield
        finally:
            self._controllers = outer

    def _control_op(self, item: Any) -> Operation | None:
        """Returns the operation of `item`. For a variable, this is the op that owns it, not one that reads it."""
        element = self.as_graph_element(control_element(item))
        return element.op if isinstance(element, Tensor) else element

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Sets the device of ops created inside. A function receives each op and returns its device; None clears enclosing devices."""
        if not callable(device_name_or_function):
            canonical_name(device_name_or_function)  # rejects invalid device names
        self._devices.append(device_name_or_function)
        try:
            yield
        finally:
            self._devices.pop()

    def _place(self, op: Operation) -> None:
        # Innermost first: inner blocks take precedence, and a function sees the device that inner blocks have set.
        for spec in reversed(self._devices):
            if spec is None:
                break
            if callable(spec) and not isinstance(spec, DeviceSpec):
                device = spec(op)
                if not isinstance(device, (str, bytes, DeviceSpec)):
                    raise TypeError(f"Expected binary or unicode string, got {device!r}: a device function's result.")
                op._device = canonical_name(device)
            else:
                op._device = merge_device(spec, op._device)
        if self._colocation:
            groups = list(op.attrs.get("_class", ()))
            for other in self._colocation:
                groups.extend(g.decode() for g in other.colocation_groups() if g.decode() not in groups)
            op.attrs["_class"] = tuple(sorted(set(groups)))
            op._device = self._colocation[-1]._device or op._device

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Colocates ops created inside with `op`, ignoring enclosing device blocks. None clears enclosing colocation."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        saved, devices = self._colocation, self._devices
        target = None if op is None else self._control_op(op)
        self._colocation = ([] if ignore_existing else list(saved)) + ([] if target is None else [target])
        self._devices = []
        try:
            yield
        finally:
            self._colocation, self._devices = saved, devices

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Makes ops of the given types created inside use the gradient registered under the mapped name."""
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        saved = self._gradient_overrides
        self._gradient_overrides = {**saved, **op_type_map}
        try:
            yield
        finally:
            self._gradient_overrides = saved

    @contextmanager
    def _attr_scope(self, attrs: dict[str, Any]) -> Iterator[None]:
        """Sets attributes of the ops created inside; None removes an attribute set by an enclosing block."""
        saved = self._attr_overrides
        merged = {**saved, **attrs}
        self._attr_overrides = {key: value for key, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._attr_overrides = saved

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Sets the resource container for stateful ops created inside."""
        saved, self._container = self._container, container_name
        try:
            yield container_name
        finally:
            self._container = saved

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        with context.enter_graph(self):
            yield self

    # -- lookup ------------------------------------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False, allow_operation=True)

    def get_tensor_by_name(self, name: str) -> Tensor:
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=True, allow_operation=False)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """Returns the Tensor or Operation that `obj` is, names, or converts to (as variables do).

        Raises:
            TypeError: `obj` cannot be converted, or its kind is not allowed.
            ValueError: it is not an element of this graph, or the name is malformed.
            KeyError: the name does not exist.
        """
        kinds = " or ".join(k for k, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed)
        if not kinds:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        if hasattr(obj, "_as_graph_element"):
            element = obj._as_graph_element()
            obj = obj if element is None else element
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._element_by_name(obj, kinds, allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    def _element_by_name(self, name: str, kinds: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name and allow_tensor:
            op_name, _, index = name.partition(":")
            try:
                at = int(index)
            except ValueError:
                raise ValueError(
                    f'The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names must be of the form "<op_name>:<output_index>".'
                ) from None
            op = self._by_name.get(op_name)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, does not exist in the graph."
                )
            if not -len(op.outputs) <= at < len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {op_name!r}, exists but only has {len(op.outputs)} outputs."
                )
            return op.outputs[at]
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a {kinds}.")
        op = self._by_name.get(name)
        if allow_operation:
            if op is None:
                raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
            return op
        if op is not None:
            raise ValueError(
                f'The name {name!r} refers to an Operation, not a {kinds}. Tensor names must be of the form "<op_name>:<output_index>".'
            )
        raise ValueError(
            f'The name {name!r} looks like an (invalid) Operation name, not a {kinds}. Tensor names must be of the form "<op_name>:<output_index>".'
        )

    # -- collections ---------------------------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Adds `value` once to each of the named collections."""
        names = (names,) if isinstance(names, str) else names
        for name in dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Returns a copy of the collection; with `scope`, only the items whose names match it (re.match)."""
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_all_collection_keys(self) -> list[str]:
        return [key for key in self._collections if isinstance(key, str)]

    @property
    def collections(self) -> list[str]:
        return self.get_all_collection_keys()

    def clear_collection(self, name: Any) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        self._collections.pop(name, None)

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def seed(self) -> int | None:
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    def next_random_op(self) -> int:
        """Returns the number of preceding random ops without an op seed. It serves as the op seed when a graph seed is set."""
        self._random_ops += 1
        return self._random_ops - 1

    @property
    def _last_id(self) -> int:
        return len(self._ops)

    @property
    def version(self) -> int:
        """A number that increases when operations are added."""
        return len(self._ops)

    @property
    def finalized(self) -> bool:
        return self._finalized

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)
        self.note_change()

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Any) -> None:
        self._unfetchable.add(op)
        self.note_change()

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        if isinstance(tensor_or_op, Tensor):
            return tensor_or_op not in self._unfetchable and tensor_or_op.op not in self._unfetchable
        return tensor_or_op not in self._unfetchable

    @property
    def graph_def_versions(self) -> Any:
        return VersionDef(producer=PRODUCER_VERSION)

    def as_graph_def(
        self, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
    ) -> Any:
        """Returns this graph as a GraphDef; with `from_version`, only the nodes added since then."""
        return graph_def_of(self, from_version=from_version, add_shapes=add_shapes)

    # -- the default session -------------------------------------------------------------------------------------

    def default_session(self) -> Any:
        return current_session()


def control_element(item: Any) -> Any:
    """Returns the graph element that ops wait for when they wait for `item`. For a variable, this is its own op, not one that reads it."""
    if isinstance(item, IndexedSlices):
        return item.values
    return item._control_element() if hasattr(item, "_control_element") else item


class _Sessions(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_sessions = _Sessions()


def current_session() -> Any:
    """Returns the session made current by `with session:` or `as_default`, or None."""
    return _sessions.stack[-1] if _sessions.stack else None


@contextmanager
def enter_session(session: Any) -> Iterator[Any]:
    _sessions.stack.append(session)
    try:
        yield session
    finally:
        _sessions.stack.remove(session)
