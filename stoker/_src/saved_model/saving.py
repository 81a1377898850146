"""`tf.saved_model.save`: objects, their variables and their functions as a SavedModel of TensorFlow 2.

The object graph is walked from the root. Each variable, container, table, asset, function and trace becomes a node of the SavedObjectGraph;
each trace becomes a function in the library of the graph (`export_graph.py`), with the numbers of the objects that it captures.
"""

from __future__ import annotations

import collections
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from stoker._src.base import dtypes, nest, tf_logging
from stoker._src.base import version as versions
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import MetaGraphDef, SavedModel, SavedObjectGraph
from stoker._src.graph import context
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.gradient_registry import gradient_function
from stoker._src.graph.interchange.meta_graph import export_scoped_meta_graph
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.tracked_structures import (
    AutoTrackable,
    DictWrapper,
    ListWrapper,
    OrderedDictWrapper,
    TupleWrapper,
)
from stoker._src.graph.type_spec import TypeSpec, type_spec_from_value
from stoker._src.ops.array import constants, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.io import checkpoints
from stoker._src.ops.resources.trackable_resources import Asset, CapturableResource
from stoker._src.ops.strings import string_ops
from stoker._src.ops.variables.variables import Variable
from stoker._src.runtime.functions.arguments import Parameters
from stoker._src.runtime.functions.concrete_function import ConcreteFunction
from stoker._src.runtime.functions.def_function import PolymorphicFunction, function
from stoker._src.saved_model import constants as names
from stoker._src.saved_model import files
from stoker._src.saved_model.builder import copy_assets, free_name
from stoker._src.saved_model.export_graph import ExportGraph
from stoker._src.saved_model.fingerprints import write_fingerprint
from stoker._src.saved_model.function_specs import spec_of
from stoker._src.saved_model.object_loader import SignatureMap
from stoker._src.saved_model.options import DEFAULT_SAVE, SaveOptions
from stoker._src.saved_model.structures import NotEncodableError, encoded
from stoker._src.train.checkpoints.object_graph import OBJECT_GRAPH_KEY, ObjectGraph, children_of, saveable_of
from stoker._src.train.checkpoints.object_saver import ObjectSaver
from stoker._src.train.checkpoints.options import CheckpointOptions
from stoker._src.train.checkpoints.restoration import PythonSaveable, restore_ops
from stoker._src.train.checkpoints.saver_ops import texts

_RESOURCE_FUNCTIONS = ("_create_resource", "_initialize", "_destroy_resource")
_IDENTIFIERS = (
    (ListWrapper, "trackable_list_wrapper"),
    ((DictWrapper, OrderedDictWrapper), "trackable_dict_wrapper"),
    (TupleWrapper, "trackable_tuple_wrapper"),
    (SignatureMap, "signature_map"),
)


@export("saved_model.save", v1=("saved_model.save", "saved_model.experimental.save"))
def save(obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Writes a trackable object, such as a `tf.Module`, as a SavedModel.

        tf.saved_model.save(module, "export", signatures=module.__call__.get_concrete_function(tf.TensorSpec([None, 2])))

    The model holds all variables, tables, assets and traces of `tf.function`s that can be reached from the object.

    Args:
        obj: the object.
        export_dir: the directory. A SavedModel that is there already is replaced.
        signatures: a `tf.function` with an input signature or a concrete function, which becomes `serving_default`, or a dictionary of
            them by name. By default the only `tf.function` of the object that has an input signature.
        options: how to write it.

    Raises:
        ValueError: the object is not trackable, or a signature is not a function with known arguments.
        AssertionError: a function captures a variable or table that cannot be reached from the object, or the call is inside a
            `tf.function`.
        NotImplementedError: a graph is being built.
    """
    if isinstance(context.target(), FuncGraph):
        raise AssertionError(
            "`tf.saved_model.save` is not supported inside a traced @tf.function. Move the call to the outer "
            "eagerly-executed context."
        )
    if not context.executing_eagerly():
        raise NotImplementedError(
            "`tf.saved_model.save` works in eager mode; in a graph, use tf.compat.v1.saved_model.Builder."
        )
    if not isinstance(obj, Trackable):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for export. "
            f"Got {obj} with type {type(obj)}."
        )
    options = options or DEFAULT_SAVE
    directory = path_text(export_dir)
    exporter = _Exporter(obj, signatures, options)
    model = SavedModel(saved_model_schema_version=names.SAVED_MODEL_SCHEMA_VERSION)
    model.meta_graphs.add().CopyFrom(exporter.meta_graph())
    with files.writing(directory) as place:
        gfile.makedirs(os.path.dirname(files.variables_path(place)))
        exporter.write_variables(files.variables_path(place))
        copy_assets(exporter.asset_names, place)
        write_message(os.path.join(place, names.SAVED_MODEL_FILENAME_PB), model, as_text=False)
        write_fingerprint(place, model)
    tf_logging.info("Assets written to: %s", files.assets_directory(directory))


class _Wrapped(ConcreteFunction):
    """The function of a signature: it takes tensors by name and returns a dictionary of tensors."""


def _wrapped_signature(key: str, concrete: ConcreteFunction) -> _Wrapped:
    """Wraps a function so that it takes and returns tensors by name.

    Raises:
        ValueError: an argument has no name of its own, or a result is not a tensor.
    """
    own = concrete._argument_names()
    repeated = [name for name, count in collections.Counter(own).items() if count > 1]
    if repeated:
        raise ValueError(
            f"Got non-flat/non-unique argument names for SavedModel signature '{key}': more than one argument to "
            f"'{concrete.name}' was named '{repeated[0]}'. Signatures have one Tensor per named input, so to have predictable "
            "names Python functions used to generate these signatures should avoid *args and Tensors in nested structures unless "
            "unique names are specified for each. Use tf.TensorSpec(..., name=...) to provide a name for a Tensor input."
        )
    graph = FuncGraph("signature_wrapper", automatic=True)
    by_name = {
        name: graph.add_input(tensor.dtype, tensor.static_shape, name) for name, tensor in zip(own, concrete._arguments)
    }

    def body() -> Any:
        return _by_name(key, concrete, concrete.call_flat(list(by_name.values())))

    traced = branches_and_loops.trace(graph, body)
    parameters = Parameters.of_signature(
        inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(own)])
    )
    arguments = [by_name[name] for name in sorted(own)]
    specs = {name: TensorSpec(by_name[name].static_shape, by_name[name].dtype, name) for name in sorted(own)}
    return _Wrapped(
        "signature_wrapper",
        graph,
        traced,
        arguments,
        ((), specs),
        branches_and_loops.control_outputs(graph),
        parameters,
    )


def _by_name(key: str, concrete: ConcreteFunction, results: Any) -> dict[str, Any]:
    if isinstance(results, Mapping):
        named = dict(results)
    else:
        listed = list(results) if isinstance(results, (list, tuple)) else [] if results is None else [results]
        named = {f"output_{i}": each for i, each in enumerate(listed)}
    for name, value in named.items():
        if not isinstance(name, str):
            raise ValueError(
                f"Got a dictionary with a non-string key {name!r} in the output of the function {concrete.name} used to "
                f"generate the SavedModel signature '{key}'."
            )
        if isinstance(value, (list, tuple, Mapping)) or value is None:
            raise ValueError(
                f"Got a non-Tensor value {value!r} for key '{name}' in the output of the function {concrete.name} used to "
                f"generate the SavedModel signature '{key}'. Outputs for functions used as signatures must be a single Tensor, "
                "a sequence of Tensors, or a dictionary from string to Tensor."
            )
    return named


def _functions_of(trackable: Any) -> dict[str, Any]:
    """Returns the functions among the attributes of an object, and of its class, by name."""
    found: dict[str, Any] = {}
    kinds = (PolymorphicFunction, ConcreteFunction)
    for owner in (*reversed(type(trackable).__mro__), None):
        attributes = (
            vars(trackable) if owner is None and hasattr(trackable, "__dict__") else vars(owner) if owner else {}
        )
        for name, value in attributes.items():
            if isinstance(value, kinds):
                found[name] = value
            elif name in found:
                del found[name]  # a subclass or the object itself hides it
    return {name: getattr(trackable, name) for name in sorted(found)}


class _Exporter:
    """One SavedModel in the making.

    Args:
        root: the object to save.
        signatures: as `save` takes them.
        options: the SaveOptions.
    """

    def __init__(self, root: Any, signatures: Any, options: SaveOptions) -> None:
        self._root, self._options = root, options
        self._functions: dict[int, dict[str, Any]] = {}  # id of an object -> its functions, which are created on access
        self._traces: dict[int, list[ConcreteFunction]] = {}
        self._constants: dict[int, dict[str, Any]] = {}  # id of a trace -> the constants that it captures
        self.asset_names: dict[str, str] = {}
        self.signatures = self._signature_map(signatures)
        self._objects = ObjectGraph(root, {"signatures": self.signatures}, self._children)
        self._gradients: dict[str, ConcreteFunction] = {}  # custom gradients by the names that nodes have for them
        self._inner: list[tuple[str, str]] = []  # tensors inside functions that gradients capture: (function, tensor)
        self._inner_numbers: dict[int, int] = {}
        self._numbers = {id(each): number for number, each in enumerate(self._objects.objects)}
        self._extra: list[Any] = []  # traces that belong to no object: they save and restore resources
        self._saving: dict[int, dict[str, tuple[Any, Any]]] = {}
        self._graph = ExportGraph()
        self._asset_numbers: dict[int, int] = {}
        self._constant_names: dict[int, str] = {}
        self._saver = ObjectSaver(root, children=_checkpoint_children)

    # -- what there is to save -------------------------------------------------------------------------------------

    def _signature_map(self, signatures: Any) -> SignatureMap:
        found = SignatureMap()
        present = self._root._lookup_dependency("signatures") or vars(self._root).get("signatures")
        if signatures is None and isinstance(present, SignatureMap):
            signatures = dict(present)
        if signatures is None:
            typed = [
                each
                for each in _functions_of(self._root).values()
                if isinstance(each, PolymorphicFunction) and each.input_signature is not None
            ]
            signatures = typed[0] if len(typed) == 1 else {}
        if not isinstance(signatures, Mapping):
            signatures = {names.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
        for key, given in signatures.items():
            if isinstance(given, PolymorphicFunction) and given.input_signature is not None:
                given = given.get_concrete_function()
            if not isinstance(given, ConcreteFunction):
                raise ValueError(
                    f"Expected a TensorFlow function for which to generate a signature, but got {given}. Only `tf.functions` "
                    "with an input signature or concrete functions can be used as a signature."
                )
            if key in (names.INIT_OP_SIGNATURE_KEY, names.TRAIN_OP_SIGNATURE_KEY):
                raise KeyError(f"The signature key '{key}' is reserved for internal usage.")
            found._add(key, _wrapped_signature(key, given))
        return found

    def _children(self, trackable: Any, attached: dict[str, Any]) -> dict[str, Any]:
        """Returns the children of an object in a SavedModel: those of checkpoints, functions, traces and captured constants."""
        if isinstance(trackable, ConcreteFunction):
            return self._captured_constants(trackable)
        if hasattr(trackable, "get_slot_names"):
            return _checkpoint_children(trackable, attached)
        if isinstance(trackable, PolymorphicFunction):
            return {f"trace_{i}": trace for i, trace in enumerate(self._traces_of(trackable))}
        found = dict(trackable._trackable_children("savedmodel"))
        if isinstance(trackable, CapturableResource):
            found.update(self._resource_functions(trackable))
        elif isinstance(trackable, AutoTrackable):
            if id(trackable) not in self._functions:
                self._functions[id(trackable)] = _functions_of(trackable)
            for name, each in self._functions[id(trackable)].items():
                found.pop(name, None)
                found[name] = each
        found.update(attached)
        return {name: child for name, child in found.items() if isinstance(child, Trackable)}

    def _resource_functions(self, resource: Any) -> dict[str, Any]:
        if id(resource) not in self._functions:
            known = resource._trackable_children("savedmodel")
            made = {}
            for name in _RESOURCE_FUNCTIONS:
                present = known.get(name)
                made[name] = present if present is not None else _traced_method(resource, name)
            self._functions[id(resource)] = made
        return self._functions[id(resource)]

    def _traces_of(self, each: PolymorphicFunction) -> list[ConcreteFunction]:
        """Returns the traces of a function. One with an input signature is traced now if it has not been."""
        found = self._traces.get(id(each))
        if found is None:
            if each.input_signature is not None and not each.concrete_functions():
                each.get_concrete_function()
            found = [trace for trace in each.concrete_functions() if _is_encodable(trace)]
            self._traces[id(each)] = found
        return found

    def _captured_constants(self, trace: ConcreteFunction) -> dict[str, Any]:
        found = self._constants.get(id(trace))
        if found is None:
            found = self._constants[id(trace)] = {}
            for i, tensor in enumerate(trace.captured_inputs):
                if tensor.dtype.base_dtype not in (dtypes.resource, dtypes.variant):
                    found[f"capture_{i}"] = self._constant(tensor)
        return found

    def _constant(self, tensor: Any) -> Any:
        """Returns the object that stands for a captured tensor: the asset whose path it is, or a constant."""
        if not hasattr(self, "_held"):
            self._held: dict[int, Any] = {}
            for each in ObjectGraph(self._root, children=_checkpoint_children).objects:
                if isinstance(each, Asset):
                    self._held[id(each.asset_path)] = each
        return self._held.setdefault(id(tensor), _Constant(tensor))

    # -- the messages ----------------------------------------------------------------------------------------------

    def meta_graph(self) -> Any:
        """Returns the MetaGraphDef."""
        objects = self._objects.objects
        for each in objects:
            if isinstance(each, Variable):
                self._graph.add_variable(each)
            elif isinstance(each, Asset):
                self._asset_numbers[id(each)] = self._graph.add_asset(each, self._asset_name(each))
            elif isinstance(each, _Constant):
                self._constant_names[id(each)] = self._graph.add_constant(each.value)
        for each in objects:
            if isinstance(each, CapturableResource):
                creator = self._traces_of(self._functions[id(each)]["_create_resource"])[0]
                self._check_captures(creator)
                self._graph.add_resource(each, creator)
            self._prepare_saving(each)
        traces = {id(each): each for each in (*objects, *self._extra) if isinstance(each, ConcreteFunction)}
        for trace in traces.values():
            self._check_captures(trace)
        if self._options.experimental_custom_gradients:
            for trace in list(traces.values()):
                self._add_gradients(trace)
            traces.update({id(each): each for each in self._gradients.values()})
        self._graph.add_functions([trace._function for trace in traces.values()])
        for key, signature in self.signatures.items():
            self._graph.add_signature(key, signature, signature.structured_input_signature[1])
        init = self._graph.add_initializers(
            [
                self._traces_of(self._functions[id(each)]["_initialize"])[0]
                for each in objects
                if isinstance(each, CapturableResource)
            ]
        )
        saver = None if self._options.experimental_skip_saver else self._add_saver()
        meta: MetaGraphDef = export_scoped_meta_graph(
            graph=self._graph.graph, saver_def=saver, strip_default_attrs=True
        )
        meta.meta_info_def.tensorflow_version = versions.API_VERSION_2
        meta.meta_info_def.tags.extend([names.SERVING, *(self._options.extra_tags or ())])
        meta.collection_def[names.MAIN_OP_KEY].node_list.value.append(init)
        meta.asset_file_def.extend(self._graph.assets)
        for key, signature in self._graph.signatures.items():
            meta.signature_def[key].CopyFrom(signature)
        for alias, given in self._options.function_aliases.items():
            for trace in given.concrete_functions() if isinstance(given, PolymorphicFunction) else [given]:
                meta.meta_info_def.function_aliases[trace.name] = alias
        for name, gradient in self._gradients.items():
            meta.graph_def.library.registered_gradients.add(gradient_func=gradient.name, registered_op_type=name)
        meta.object_graph_def.CopyFrom(self._object_graph(list(traces.values())))
        return meta

    def _asset_name(self, asset: Asset) -> str:
        source = os.fsdecode(asset.asset_path.numpy())  # type: ignore[attr-defined]
        if source not in self.asset_names:
            self.asset_names[source] = free_name(os.path.basename(source), set(self.asset_names.values()))
        return self.asset_names[source]

    def _check_captures(self, trace: ConcreteFunction) -> None:
        for tensor, inner in zip(trace.captured_inputs, trace.inputs[len(trace._arguments) :]):
            if id(tensor) not in self._graph.nodes:
                reference = getattr(tensor, "variable", None)
                raise AssertionError(
                    "Tried to export a function which references an 'untracked' resource. TensorFlow objects (e.g. tf.Variable) "
                    "captured by functions must be 'tracked' by assigning them to an attribute of a tracked object or assigned to "
                    f"an attribute of the main object directly. See the information below:\n\tFunction name = {trace.name}\n\t"
                    f"Captured Tensor = {tensor!r}\n\tTrackable referencing this tensor = "
                    f"{None if reference is None else reference()}\n\tInternal Tensor = {inner}"
                )

    def _add_gradients(self, trace: ConcreteFunction) -> None:
        """Traces the custom gradients of a function's ops. They may use tensors of the function."""
        for op in trace._function.needed_ops():
            name = op.attrs.get("_gradient_op_type")
            if op.type != "IdentityN" or name is None or name in self._gradients:
                continue
            try:
                gradient = gradient_function(op)
            except LookupError:
                continue  # the gradient of a loaded model that was saved without it
            if gradient is None:
                continue
            made = _traced_gradient(op, gradient)
            self._gradients[name] = made
            definition = trace._function.to_function_def()
            arguments = dict(zip(trace._function.inputs, definition.signature.input_arg))
            for tensor in made.captured_inputs:
                if not getattr(tensor, "is_eager", False) and id(tensor) not in self._inner_numbers:
                    self._inner_numbers[id(tensor)] = len(self._inner)
                    place = f"{arguments[tensor].name}:0" if tensor in arguments else tensor.name
                    self._inner.append((trace.name, place))

    def _object_graph(self, traces: list[ConcreteFunction]) -> Any:
        proto = SavedObjectGraph()
        capturing = {id(self._captured_key(each)): number for number, each in enumerate(self._objects.objects)}
        objects = [*self._objects.objects, *self._extra]
        numbers = {id(each): number for number, each in enumerate(objects)}
        for number, each in enumerate(objects):
            node = proto.nodes.add()
            for name, child in (self._objects.children[number] if number < len(self._objects.objects) else {}).items():
                node.children.add(node_id=child, local_name=name)
                if isinstance(each, (PolymorphicFunction, ConcreteFunction)):
                    node.dependencies.add(node_id=child, local_name=name)
            self._describe(each, node)
            for attribute, (saver, restorer) in self._saving.get(id(each), {}).items():
                functions = node.saveable_objects[attribute]
                functions.save_function, functions.restore_function = numbers[id(saver)], numbers[id(restorer)]
        for owner, name in self._inner:
            inner = proto.nodes.add().captured_tensor
            inner.concrete_function, inner.name = owner, name
        for trace in traces:
            function = proto.concrete_functions[trace.name]
            function.bound_inputs.extend(
                capturing[id(tensor)] if id(tensor) in capturing else len(objects) + self._inner_numbers[id(tensor)]
                for tensor in trace.captured_inputs
            )
            function.canonicalized_input_signature.CopyFrom(encoded(trace.structured_input_signature))
            function.output_signature.CopyFrom(encoded(_specs(trace.structured_outputs)))
        return proto

    def _captured_key(self, each: Any) -> Any:
        """Returns the tensor by which functions capture an object."""
        if isinstance(each, Variable):
            return each.handle
        if isinstance(each, CapturableResource):
            return each.resource_handle
        if isinstance(each, Asset):
            return each.asset_path
        return each.value if isinstance(each, _Constant) else each

    def _describe(self, each: Any, node: Any) -> None:
        if isinstance(each, Variable):
            saved = node.variable
            saved.dtype = each.dtype.base_dtype.as_datatype_enum
            saved.shape.CopyFrom(each.shape.as_proto())
            saved.trainable, saved.name = each.trainable, each._shared_name
            saved.synchronization, saved.aggregation = each.synchronization.value, each.aggregation.value
            if self._options.experimental_variable_policy._save_variable_devices():
                saved.device = each.device
        elif isinstance(each, _Constant):
            node.constant.operation = self._constant_names[id(each)]
            node.registered_name = "tf.TrackableConstant"
        elif isinstance(each, Asset):
            node.asset.asset_file_def_index = self._asset_numbers[id(each)]
        elif isinstance(each, ConcreteFunction):
            _describe_trace(each, node.bare_concrete_function)
        elif isinstance(each, PolymorphicFunction):
            node.function.concrete_functions.extend(trace.name for trace in self._traces_of(each))
            node.function.function_spec.CopyFrom(spec_of(each._parameters))
        elif isinstance(each, CapturableResource):
            node.resource.SetInParent()
        else:
            node.user_object.identifier = next(
                (identifier for kinds, identifier in _IDENTIFIERS if isinstance(each, kinds)), "_generic_user_object"
            )
            node.user_object.version.producer = node.user_object.version.min_consumer = 1

    # -- values ----------------------------------------------------------------------------------------------------

    def _prepare_saving(self, each: Any) -> None:
        """Traces the functions that save and restore the values of an object that is not a variable."""
        if isinstance(each, Variable):
            return
        for attribute, make in each._gather_saveables_for_checkpoint().items():
            if isinstance(saveable_of(make, ""), PythonSaveable):
                continue
            present = getattr(each, "_restorers", {}).get(attribute)
            if present is None:
                present = _saving_functions(make)
                self._extra += present
            else:
                self._extra += [trace for trace in present if id(trace) not in self._numbers]
            self._saving.setdefault(id(each), {})[attribute] = present

    def _add_saver(self) -> Any:
        graph = ObjectGraph(self._root, children=_checkpoint_children)
        values = graph.values()
        description = graph.message(values).SerializeToString(deterministic=True)

        def _traced_save(file_prefix: Any) -> Any:
            specs = [spec for value in values for spec in value.saveable().specs]
            op = checkpoints.SAVE_V2(
                file_prefix,
                texts([*(spec.name for spec in specs), OBJECT_GRAPH_KEY]),
                texts([*(spec.slice_spec for spec in specs), ""]),
                [*(spec.tensor for spec in specs), constants.constant(description, dtypes.string)],
            )
            with control_dependencies([op]):
                return shaping.identity(file_prefix)

        def _traced_restore(file_prefix: Any) -> Any:
            saveables = [value.saveable() for value in values]
            ops = restore_ops(file_prefix, [each for each in saveables if not isinstance(each, PythonSaveable)])
            with control_dependencies([op for op in ops if op is not None]):
                return shaping.identity(file_prefix)

        made = [
            function(body, [TensorSpec([], dtypes.string, "file_prefix")], autograph=False).get_concrete_function()
            for body in (_traced_save, _traced_restore)
        ]
        return self._graph.add_saver(*made)

    def write_variables(self, path: str) -> None:
        """Writes the checkpoint of the model."""
        self._saver.save(path, None, CheckpointOptions(experimental_io_device=self._options.experimental_io_device))


def _checkpoint_children(trackable: Any, attached: dict[str, Any]) -> dict[str, Any]:
    """Returns the children of an object in the checkpoint of a SavedModel. The slots of an optimizer are children of their own.

    TensorFlow cannot load slots otherwise: the objects that it rebuilds are no optimizers.
    """
    found = children_of(trackable, attached)
    if hasattr(trackable, "get_slot_names") and hasattr(trackable, "variables"):
        known = {id(each) for each in found.values()}
        slots = [each for each in trackable.variables() if isinstance(each, Variable) and id(each) not in known]
        found.update({f"slot-{i}": each for i, each in enumerate(slots)})
    return found


def _traced_gradient(op: Any, gradient: Callable[..., Any]) -> ConcreteFunction:
    """Traces the gradient function of an op: gradients of its outputs -> gradients of its inputs."""
    graph = FuncGraph("internal_grad_fn", op.graph, automatic=True)
    arguments = []
    for i, tensor in enumerate(op.outputs):
        handle = tensor.dtype.base_dtype is dtypes.resource
        source = op.inputs[i]
        dtype = getattr(source, "handle_dtype", dtypes.float32) if handle else tensor.dtype.base_dtype
        shape = getattr(source, "handle_shape", None) if handle else tensor.static_shape
        arguments.append(graph.add_input(dtype, Shape(None) if shape is None else shape, f"result_grads_{i}"))
    traced = branches_and_loops.trace(graph, lambda: list(gradient(op, *arguments)))
    specs = [TensorSpec(each.static_shape, each.dtype, each.op.name) for each in arguments]
    controls = branches_and_loops.control_outputs(graph)
    return ConcreteFunction("internal_grad_fn", graph, traced, arguments, ((None, *specs), {}), controls)


class _Constant(Trackable):
    """A tensor that functions capture."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _traced_method(resource: Any, name: str) -> PolymorphicFunction:
    """Turns a method of a resource into a function without arguments. Only the one that creates the resource returns a handle."""
    method: Callable[[], Any] = getattr(resource, name)

    def traced() -> Any:
        result = method()
        return result if name == "_create_resource" else constants.constant(1, dtypes.int32)

    traced.__name__ = {"_create_resource": "_creator", "_initialize": "_initializer"}.get(name, "_destroyer")
    made = function(traced, [], autograph=False)
    made.get_concrete_function()
    return made


def _saving_functions(make: Any) -> tuple[ConcreteFunction, ConcreteFunction]:
    """Returns the functions that save and restore one attribute of an object: key -> tensors by name, and tensors -> 1."""

    def save_fn(checkpoint_key: Any) -> Any:
        return [
            {
                "name": string_ops.string_join([checkpoint_key, spec.name]),
                "slice_spec": constants.constant(spec.slice_spec, dtypes.string),
                "tensor": shaping.identity(spec.tensor),
            }
            for spec in saveable_of(make, "").specs
        ]

    def restore_fn(*restored_tensors: Any) -> Any:
        op = saveable_of(make, "").restore(list(restored_tensors), None)
        with control_dependencies([op]):
            return constants.constant(1, dtypes.int32)

    kinds = [spec.dtype for spec in saveable_of(make, "").specs]
    save = function(save_fn, [TensorSpec([], dtypes.string, "checkpoint_key")], autograph=False)
    specs = [TensorSpec(None, dtype, f"restored_tensors_{i}") for i, dtype in enumerate(kinds)]
    restore = function(restore_fn, specs, autograph=False)
    return save.get_concrete_function(), restore.get_concrete_function()


def _describe_trace(trace: ConcreteFunction, proto: Any) -> None:
    proto.concrete_function_name = trace.name
    own = trace._argument_names()
    proto.argument_keywords.extend(own)
    proto.allowed_positional_arguments = len(own) if not isinstance(trace, _Wrapped) or len(own) == 1 else 0
    if trace._parameters is not None:
        proto.function_spec.CopyFrom(spec_of(Parameters.of_signature(trace._parameters.signature)))


def _specs(structure: Any) -> Any:
    """Returns the specs of results in their structure."""

    def spec(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return TensorSpec(leaf.static_shape, leaf.dtype)
        return leaf if leaf is None or isinstance(leaf, TypeSpec) else type_spec_from_value(leaf)

    return nest.map_structure(spec, structure)


def _is_encodable(trace: ConcreteFunction) -> bool:
    """Returns whether a SavedModel can describe a trace. One that was made for some Python object cannot be called again."""
    try:
        encoded(trace.structured_input_signature)
        encoded(_specs(trace.structured_outputs))
    except NotEncodableError:
        return False
    return True
