"""Rebuilds the objects of a SavedModel from its SavedObjectGraph: variables, containers, tables, assets, constants and functions.

The whole message is untrusted. Node numbers and names are checked before they are used, an attribute gets only objects that this
module created, and a failure to interpret the message is a `DataLossError`.
"""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf import message

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import DataLossError, OpError
from stoker._src.base.shapes import TensorShape, as_shape
from stoker._src.formats import gfile
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.formats.tensor_bundle import index_filename
from stoker._src.formats.tensor_proto import from_tensor_proto
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.gradient_registry import register_gradient
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import init_scope
from stoker._src.graph.trackable import STATE_ATTRIBUTE, VARIABLE_VALUE_KEY, Trackable
from stoker._src.graph.tracked_structures import AutoTrackable, DictWrapper, ListWrapper, wrapped
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow.functional_gradients import call
from stoker._src.ops.resources.trackable_resources import Asset, CapturableResource
from stoker._src.ops.variables.creators import VariableAggregation, VariableSynchronization
from stoker._src.ops.variables.variables import Variable, uninitialized_variable
from stoker._src.saved_model import files
from stoker._src.saved_model.function_loading import LoadedLibrary
from stoker._src.saved_model.function_specs import parameters_of
from stoker._src.saved_model.options import LoadOptions
from stoker._src.saved_model.restored_functions import RestoredConcreteFunction, RestoredFunction
from stoker._src.saved_model.structures import decoded
from stoker._src.train.checkpoints.object_graph import OBJECT_GRAPH_KEY
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.restoration import restore_ops


class LoadedObject(AutoTrackable):
    """An object of a loaded SavedModel: its attributes are the children that the saved object had."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function `__call__` of the saved object.

        Raises:
            TypeError: it had none.
        """
        function = self.__dict__.get("__call__")
        if function is None:
            raise TypeError(
                f"{type(self).__name__!r} object is not callable: the saved object has no function `__call__`."
            )
        return function(*args, **kwargs)


class SignatureMap(Mapping[str, Any], Trackable):
    """The signatures of a SavedModel by name. It cannot be changed."""

    def __init__(self) -> None:
        self._signatures: dict[str, Any] = {}

    def _add(self, name: str, function: Any) -> None:
        self._signatures[name] = function

    def __getitem__(self, key: str) -> Any:
        return self._signatures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return f"_SignatureMap({self._signatures})"

    __hash__: Any = object.__hash__
    __eq__ = object.__eq__

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        return dict(self._signatures) if save_type == "savedmodel" else {}


class LoadedResource(CapturableResource):
    """A table or another resource of a loaded SavedModel. Functions of the model create and fill it."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._functions: dict[str, Any] = {}
        self._restorers: dict[
            str, tuple[Any, Any]
        ] = {}  # attribute in the checkpoint -> functions that save and restore it

    @property
    def resource_handle(self) -> Any:
        if self._handle is None:
            with init_scope():
                self._handle = self._create_resource()
        return self._handle

    def _run(self, name: str) -> Any:
        function = self._functions.get(name)
        return None if function is None else function()

    def _create_resource(self) -> Any:
        return self._run("_create_resource")

    def _initialize(self) -> Any:
        return self._run("_initialize")

    def _destroy_resource(self) -> Any:
        return self._run("_destroy_resource")

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        return {
            attribute: functools.partial(_ResourceSaveable, self, *functions)
            for attribute, functions in self._restorers.items()
        }

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)
        return {**children, **self._functions} if save_type == "savedmodel" else children


class _ResourceSaveable(SaveableObject):
    """Saves and restores a resource by functions of the model.

    Args:
        resource: the resource.
        saver: takes a checkpoint key and lists the tensors to save, with their names and slices.
        restorer: takes the tensors.
        name: the checkpoint key.
    """

    def __init__(self, resource: LoadedResource, saver: Any, restorer: Any, name: str = "") -> None:
        self._restorer = restorer
        with init_scope():  # names must be known, also where a graph is being built
            described = saver.call_flat([convert_to_tensor(name)])
        listed = described if context.executing_eagerly() else saver.call_flat([convert_to_tensor(name)])
        specs = [
            SaveSpec(each["tensor"], os.fsdecode(known["slice_spec"].numpy()), os.fsdecode(known["name"].numpy()))
            for each, known in zip(listed, described)
        ]
        super().__init__(resource.resource_handle, specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        return self._restorer.call_flat(list(restored_tensors))


class _TupleInTheMaking:
    """Collects the elements of a tuple, which cannot change once it exists."""

    def __init__(self) -> None:
        self.items: dict[int, Any] = {}


_CONTAINERS: dict[str, Callable[[], Any]] = {
    "trackable_list_wrapper": ListWrapper,
    "trackable_dict_wrapper": DictWrapper,
    "trackable_tuple_wrapper": _TupleInTheMaking,
    "signature_map": SignatureMap,
}


def _damaged(what: str) -> DataLossError:
    return DataLossError(None, None, f"The SavedModel is damaged: {what}.")


class ObjectLoader:
    """One load of the objects of a SavedModel.

    Args:
        meta: its MetaGraphDef.
        directory: where it is.
        assets: the paths of its assets, in the order of `asset_file_def`.
        options: the LoadOptions.
    """

    def __init__(self, meta: Any, directory: str, assets: list[str], options: LoadOptions) -> None:
        self._graph, self._directory, self._assets, self._options = meta.object_graph_def, directory, assets, options
        self._graph_def = meta.graph_def
        self._check()
        self._library = LoadedLibrary(meta.graph_def.library)
        self._concrete: dict[str, RestoredConcreteFunction] = {}
        self._constants: dict[str, Any] | None = None
        self._objects: list[Any] = [None] * len(self._graph.nodes)

    def load(self) -> Any:
        """Returns the root.

        Raises:
            DataLossError: the model is damaged.
            NotImplementedError: it holds an object of a kind that is not supported.
        """
        with init_scope():
            self._make_objects()
            self._make_functions()
            self._register_gradients()
            self._connect()
            if not self._options.experimental_skip_checkpoint:
                self._restore()
            for each in self._objects:
                if isinstance(each, LoadedResource):
                    each._initialize()
        return self._objects[0]

    def concrete_functions(self, names: Any) -> list[Any]:
        """Returns the traces of these names in the file."""
        return [self._concrete[name] for name in names if name in self._concrete]

    def _check(self) -> None:
        count = len(self._graph.nodes)

        def check(numbers: Any) -> None:
            for number in numbers:
                if not 0 <= number < count:
                    raise _damaged(f"it refers to object {number} of {count}")

        for node in self._graph.nodes:
            check(child.node_id for child in node.children)
            for slot in node.slot_variables:
                check((slot.original_variable_node_id, slot.slot_variable_node_id))
            for functions in node.saveable_objects.values():
                check((functions.save_function, functions.restore_function))
        for function in self._graph.concrete_functions.values():
            check(function.bound_inputs)

    # -- objects ---------------------------------------------------------------------------------------------------

    def _make_objects(self) -> None:
        for number, node in enumerate(self._graph.nodes):
            kind = node.WhichOneof("kind")
            if kind in ("function", "bare_concrete_function"):
                continue
            make = getattr(self, f"_make_{kind}", None) if kind in _KINDS else None
            if make is None:
                raise NotImplementedError(f"A SavedModel with objects of the kind {kind!r} is not supported.")
            try:
                self._objects[number] = make(node)
            except (TypeError, ValueError) as error:
                raise _damaged(f"object {number} ({kind}): {error}") from error

    def _make_user_object(self, node: Any) -> Any:
        return _CONTAINERS.get(node.user_object.identifier, LoadedObject)()

    def _make_variable(self, node: Any) -> Any:
        saved = node.variable
        return uninitialized_variable(
            as_dtype(saved.dtype),
            as_shape(saved.shape),
            trainable=saved.trainable,
            name=saved.name or None,
            synchronization=VariableSynchronization(saved.synchronization),
            aggregation=VariableAggregation(saved.aggregation),
        )

    def _make_asset(self, node: Any) -> Any:
        number = node.asset.asset_file_def_index
        if not 0 <= number < len(self._assets):
            raise ValueError(f"asset {number} of {len(self._assets)}")
        return Asset(self._assets[number])

    def _make_constant(self, node: Any) -> Any:
        if self._constants is None:
            self._constants = {each.name: each for each in self._graph_def.node if each.op == "Const"}
        found = self._constants.get(node.constant.operation)
        if found is None:
            raise ValueError(f"the graph has no constant {node.constant.operation!r:.200}")
        proto = found.attr["value"].tensor
        return _Constant(convert_to_tensor(from_tensor_proto(proto), as_dtype(proto.dtype)))

    def _make_captured_tensor(self, node: Any) -> Any:
        return _CapturedTensor(node.captured_tensor.name)

    def _make_resource(self, node: Any) -> Any:
        return LoadedResource()

    # -- functions -------------------------------------------------------------------------------------------------

    def _make_functions(self) -> None:
        for name in self._graph.concrete_functions:
            if name not in self._library:
                raise _damaged(f"it has no function {name!r:.200}")
        for number, node in enumerate(self._graph.nodes):
            kind = node.WhichOneof("kind")
            if kind == "function":
                traces = [self._trace(name) for name in node.function.concrete_functions]
                parameters = parameters_of(node.function.function_spec)
                self._objects[number] = RestoredFunction(self._label(number), parameters, traces)
            elif kind == "bare_concrete_function":
                self._objects[number] = self._bare(node.bare_concrete_function)

    def _label(self, number: int) -> str:
        if not hasattr(self, "_labels"):
            self._labels = {child.node_id: child.local_name for node in self._graph.nodes for child in node.children}
        return self._labels.get(number, "function")

    def _trace(self, name: str) -> RestoredConcreteFunction:
        found = self._concrete.get(name)
        if found is not None:
            return found
        if name not in self._graph.concrete_functions:
            raise _damaged(f"it does not describe the function {name!r:.200}")
        saved = self._graph.concrete_functions[name]
        bound = list(saved.bound_inputs)
        signature = decoded(saved.canonicalized_input_signature)
        if not isinstance(signature, tuple) or len(signature) != 2 or not isinstance(signature[1], dict):
            raise _damaged(f"the arguments of {name} are not described as positional and keyword arguments")
        self._describe_handles(self._library.proto(name), bound)
        try:
            function = self._library.function(name)
        except OpError:
            raise
        except (ValueError, TypeError, LookupError) as error:
            raise _damaged(f"function {name}: {error}") from error

        def captures() -> list[Any]:
            return [self._captured(number, name) for number in bound]

        made = RestoredConcreteFunction(function, len(bound), captures, signature, decoded(saved.output_signature))
        self._concrete[name] = made
        return made

    def _describe_handles(self, proto: Any, bound: list[int]) -> None:
        """Notes the shapes of captured variables with the arguments that stand for them, so that reads have static shapes."""
        first = len(proto.signature.input_arg) - len(bound)
        for position, number in enumerate(bound, first):
            variable = self._objects[number]
            if position >= 0 and isinstance(variable, Variable):
                attrs = proto.arg_attr[position].attr
                del attrs["_handle_shapes"].list.shape[:], attrs["_handle_dtypes"].list.type[:]
                attrs["_handle_shapes"].list.shape.add().CopyFrom(TensorShape(variable.shape).as_proto())
                attrs["_handle_dtypes"].list.type.append(variable.dtype.base_dtype.as_datatype_enum)

    def _captured(self, number: int, name: str) -> Any:
        held = self._objects[number]
        if isinstance(held, Variable):
            return held.handle
        if isinstance(held, CapturableResource):
            return held.resource_handle
        if isinstance(held, Asset):
            return held.asset_path
        if isinstance(held, _Constant):
            return held.value
        raise _damaged(f"function {name} captures object {number}, which is a {type(held).__name__}")

    def _register_gradients(self) -> None:
        """Registers the gradient functions of `tf.custom_gradient` under the names that the nodes of this model have for them."""
        for name, function in self._library.registered_gradients():
            if function not in self._graph.concrete_functions or function not in self._library:
                raise _damaged(f"it has no gradient function {function!r:.200}")
            register_gradient(name, functools.partial(self._custom_gradient, function))

    def _custom_gradient(self, name: str, op: Any, *grads: Any) -> list[Any]:
        trace = self._trace(name)
        given = []
        for i, (grad, argument) in enumerate(zip(grads, trace._arguments)):
            if grad is None:
                output = op.outputs[i]
                whole = output.dtype.base_dtype is argument.dtype.base_dtype
                grad = shaping.zeros_like(output) if whole else shaping.zeros(argument.shape, argument.dtype)
            given.append(grad)
        captured = []
        for number in self._graph.concrete_functions[name].bound_inputs:
            held = self._objects[number]
            captured.append(
                op.graph.get_tensor_by_name(held.name)
                if isinstance(held, _CapturedTensor)
                else self._captured(number, name)
            )
        results = trace.packed(call(trace._function, [*given, *captured]))
        return list(results) if isinstance(results, (list, tuple)) else [results]

    def _bare(self, saved: Any) -> RestoredConcreteFunction:
        made = self._trace(saved.concrete_function_name)
        parameters = parameters_of(saved.function_spec) if saved.HasField("function_spec") else None
        made.take_form(parameters, list(saved.argument_keywords), saved.allowed_positional_arguments)
        return made

    # -- the object graph ------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        for number, node in enumerate(self._graph.nodes):
            held = self._objects[number]
            for child in node.children:
                part = self._objects[child.node_id]
                if isinstance(part, _TupleInTheMaking):
                    part = self._tuple(child.node_id, ())
                elif isinstance(part, _Constant):
                    part = part.value
                self._attach(held, child.local_name, part)
            if isinstance(held, LoadedObject):
                # The object that stands for an optimizer holds its slots.
                for i, slot in enumerate(node.slot_variables):
                    part = self._objects[slot.slot_variable_node_id]
                    if isinstance(part, Variable):
                        held._track_trackable(part, f"slot-{i}", overwrite=True)
            if isinstance(held, LoadedResource):
                for attribute, each in node.saveable_objects.items():
                    functions = self._objects[each.save_function], self._objects[each.restore_function]
                    if not all(isinstance(function, RestoredConcreteFunction) for function in functions):
                        raise _damaged(f"object {number} is saved and restored by something else than functions")
                    held._restorers[attribute] = functions

    def _attach(self, held: Any, name: str, part: Any) -> None:
        if isinstance(held, ListWrapper):
            if name.isdecimal() and len(name) < 10:
                # Elements that are not trackable are not saved: their places stay empty.
                while len(held) <= int(name) < len(self._graph.nodes):
                    held.append(None)
                if int(name) < len(held):
                    list.__setitem__(held._origin, int(name), part)
                    list.__setitem__(held, int(name), part)
                    held._track(int(name))
        elif isinstance(held, DictWrapper):
            held[name] = part
        elif isinstance(held, SignatureMap):
            held._add(name, part)
        elif isinstance(held, LoadedResource):
            if isinstance(part, RestoredFunction):
                held._functions[name] = part
            elif isinstance(part, Trackable):
                held._track_trackable(part, name, overwrite=True)
        elif isinstance(held, LoadedObject):
            if name in _RESERVED or (name.startswith("__") and name != "__call__"):
                if isinstance(part, Trackable):
                    held._track_trackable(part, name, overwrite=True)
            else:
                setattr(held, name, part)

    def _tuple(self, number: int, above: tuple[int, ...]) -> Any:
        """Returns the tuple of a node, which is created when it is first needed."""
        making = self._objects[number]
        if not isinstance(making, _TupleInTheMaking):
            return making
        if number in above:
            raise _damaged(f"the tuple {number} contains itself")
        items: dict[int, Any] = {}
        for child in self._graph.nodes[number].children:
            if child.local_name.isdecimal() and int(child.local_name[:9]) < len(self._graph.nodes):
                part = self._tuple(child.node_id, (*above, number))
                items[int(child.local_name)] = part.value if isinstance(part, _Constant) else part
        made = wrapped(tuple(items.get(i) for i in range(max(items, default=-1) + 1)))
        self._objects[number] = made
        return made

    # -- values ----------------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Assigns the values of the checkpoint to variables and resources."""
        path = files.variables_path(self._directory)
        wanted = [n for n, each in enumerate(self._objects) if isinstance(each, Variable) or _has_values(each)]
        if not wanted:
            return
        if not gfile.exists(index_filename(path)):
            if self._options.allow_partial_checkpoint:
                return
            raise _damaged(f"it has {len(wanted)} variables and tables, but no checkpoint {path}")
        reader = CheckpointReader(path)
        keys = self._keys(reader)
        saveables = []
        for number in wanted:
            held = self._objects[number]
            attributes = [VARIABLE_VALUE_KEY] if isinstance(held, Variable) else list(held._restorers)
            for attribute in attributes:
                key = keys.get((number, attribute))
                if key is None:
                    if self._options.allow_partial_checkpoint:
                        continue
                    raise _damaged(f"its checkpoint has no value for object {number} ({held!r:.200})")
                make = (
                    held._saveable if isinstance(held, Variable) else held._gather_saveables_for_checkpoint()[attribute]
                )
                saveables.append(make(key))
        restore_ops(path, saveables, self._options.experimental_io_device)

    def _keys(self, reader: CheckpointReader) -> dict[tuple[int, str], str]:
        """Returns the checkpoint keys of values, by node and attribute.

        The checkpoint has an object graph of its own. Both graphs are walked from the root by the names of children.
        """
        try:
            saved = TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
        except (message.DecodeError, TypeError) as error:
            raise _damaged(f"the object graph of its checkpoint: {error}") from error
        keys: dict[tuple[int, str], str] = {}
        matched = {0: 0}  # nodes of the model -> nodes of the checkpoint
        todo = collections.deque([(0, 0)])

        def match(mine: int, its: int) -> None:
            if mine not in matched and 0 <= its < len(saved.nodes):
                matched[mine] = its
                todo.append((mine, its))

        while todo:
            mine, its = todo.popleft()
            if its >= len(saved.nodes):
                raise _damaged("the object graph of its checkpoint is empty")
            for attribute in saved.nodes[its].attributes:
                keys[mine, attribute.name] = attribute.checkpoint_key
            children = {child.local_name: child.node_id for child in saved.nodes[its].children}
            for child in self._graph.nodes[mine].children:
                if child.local_name in children:
                    match(child.node_id, children[child.local_name])
        # Slots belong to an optimizer and a variable. Both are matched by now.
        for mine, its in list(matched.items()):
            slots = {
                (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
                for slot in saved.nodes[its].slot_variables
            }
            for slot in self._graph.nodes[mine].slot_variables:
                found = slots.get((matched.get(slot.original_variable_node_id, -1), slot.slot_name))
                if found is not None and 0 <= found < len(saved.nodes):
                    for attribute in saved.nodes[found].attributes:
                        keys[slot.slot_variable_node_id, attribute.name] = attribute.checkpoint_key
        return keys


# Attributes with a meaning of their own. A file must not set them.
_RESERVED = frozenset((STATE_ATTRIBUTE, "_setattr_tracking"))
_KINDS = frozenset(("user_object", "variable", "asset", "constant", "resource", "captured_tensor"))


class _CapturedTensor:
    """A tensor inside a function, which the gradient function of one of its ops uses."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Constant:
    """A tensor that functions capture."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _has_values(held: Any) -> bool:
    return isinstance(held, LoadedResource) and bool(held._restorers)
