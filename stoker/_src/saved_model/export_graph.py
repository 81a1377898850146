"""The graph of a SavedModel that is made from objects: a node for each captured value, and calls of the model's functions.

Functions capture eager tensors: handles of variables and tables, paths of assets, constants. In the exported graph each of them is a node, and
a call of a function receives these nodes as its last arguments.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.formats.protos import AssetFileDef, SaverDef, SignatureDef
from stoker._src.graph.function_graph import Function
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import referenced_functions
from stoker._src.graph.scopes import control_dependencies, device
from stoker._src.ops.array import constants
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.control_flow.functional_gradients import call
from stoker._src.ops.variables import state_ops
from stoker._src.saved_model import constants as names
from stoker._src.saved_model.signatures import build_op_info, build_tensor_info


class ExportGraph:
    """The graph under construction. `nodes` maps the id of a captured eager tensor to the node that stands for it."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.nodes: dict[int, Any] = {}
        self.assets: list[Any] = []
        self.signatures: dict[str, Any] = {}
        self._kept: list[Any] = []  # eager tensors whose ids are keys
        self._asset_paths: dict[int, Any] = {}
        self._initializers: list[Any] = []

    def _stands_for(self, tensor: Any, node: Any) -> None:
        self._kept.append(tensor)
        self.nodes[id(tensor)] = node

    def add_variable(self, variable: Any) -> None:
        with self.graph.as_default(), device(None):
            name = self.graph.unique_name(variable._shared_name or "Variable", mark_as_used=False)
            handle = state_ops.VAR_HANDLE_OP(
                dtype=variable.dtype.base_dtype, shape=variable.shape, shared_name=name, name=name
            )
        self._stands_for(variable.handle, handle)

    def add_constant(self, tensor: Any) -> str:
        """Adds a constant and returns the name of its node."""
        with self.graph.as_default():
            node = constants.constant(tensor.static_array(), tensor.dtype)
        self._stands_for(tensor, node)
        return node.op.name

    def add_resource(self, resource: Any, creator: Any) -> None:
        """Adds a resource by the ops of the function that creates it. TensorFlow 1.15 cannot take the handle from a call."""
        function = creator._function
        nodes = dict(zip(function.inputs, (self.nodes[id(each)] for each in creator.captured_inputs)))
        with self.graph.as_default():
            for op in function.needed_ops():
                if op.outputs and op.outputs[0] in nodes:
                    continue
                inputs = [nodes[tensor] for tensor in op._inputs]
                made = self.graph.add(op.definition, inputs, dict(op.attrs), self.graph.unique_name(op.name))
                nodes.update(zip(op.outputs, made.outputs))
        self._stands_for(resource.resource_handle, nodes[function.outputs[0]])

    def add_asset(self, asset: Any, filename: str) -> int:
        """Adds the path of an asset, which is fed when the model is loaded, and returns the number of the asset."""
        with self.graph.as_default():
            path = constants.placeholder(dtypes.string, [], name="asset_path_initializer")
            name = self.graph.unique_name("Variable", mark_as_used=False)
            handle = state_ops.VAR_HANDLE_OP(dtype=dtypes.string, shape=[], shared_name=name, name=name)
            assign = state_ops.ASSIGN_VARIABLE_OP(handle, path, name=f"{name}/Assign")
            read = state_ops.READ_VARIABLE_OP(handle, dtype=dtypes.string, name=f"{name}/Read/ReadVariableOp")
            with control_dependencies([assign]):
                # Initializers run together with the assignment and read after it.
                self._asset_paths[id(asset.asset_path)] = state_ops.READ_VARIABLE_OP(handle, dtype=dtypes.string)
        self._initializers.append(assign)
        self._stands_for(asset.asset_path, read)
        described = AssetFileDef(filename=filename)
        described.tensor_info.name = path.name
        self.assets.append(described)
        return len(self.assets) - 1

    def add_functions(self, functions: list[Function]) -> None:
        """Adds functions, and those that they refer to, to the library."""
        for function in functions:
            found = {function.name: function}
            referenced_functions(function.needed_ops(), found)
            self.graph._functions.update(found)

    def _call(self, concrete: Any, arguments: list[Any], paths: dict[int, Any] | None = None) -> list[Any]:
        captured = [(paths or {}).get(id(each), self.nodes[id(each)]) for each in concrete.captured_inputs]
        return list(call(concrete._function, [*arguments, *captured]))

    def add_signature(self, key: str, concrete: Any, infos: dict[str, Any]) -> None:
        """Adds a call of a signature's function.

        Args:
            key: the name of the signature.
            concrete: its function, whose tensors are the arguments in order.
            infos: maps the name of each argument to its TensorSpec.
        """
        signature = SignatureDef(method_name=names.PREDICT_METHOD_NAME)
        with self.graph.as_default():
            fed = [constants.placeholder(spec.dtype, spec.shape, name=f"{key}_{name}") for name, spec in infos.items()]
            results = self._call(concrete, fed)
            for name, tensor in zip(infos, fed):
                signature.inputs[name].CopyFrom(build_tensor_info(tensor))
            for name, tensor in concrete.packed(results).items():
                signature.outputs[name].CopyFrom(build_tensor_info(tensor))
        self.signatures[key] = signature

    def add_initializers(self, functions: list[Any]) -> str:
        """Adds calls of the functions that fill resources. Returns the name of the op that runs all initializers."""
        with self.graph.as_default():
            for concrete in functions:
                called = self._call(concrete, [], self._asset_paths)
                self._initializers += [tensor.op for tensor in called]
            init = (
                grouping.group(*self._initializers, name="init") if self._initializers else grouping.no_op(name="init")
            )
        self.signatures[names.INIT_OP_SIGNATURE_KEY] = SignatureDef(
            outputs={names.INIT_OP_SIGNATURE_KEY: build_op_info(init)}
        )
        return init.name

    def add_saver(self, save: Any, restore: Any) -> Any:
        """Adds calls of the functions that save and restore. Returns the SaverDef that names them."""
        with self.graph.as_default():
            path = constants.placeholder(dtypes.string, [], name="saver_filename")
            saved, restored = self._call(save, [path])[0], self._call(restore, [path])[0]
        return SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.op.name,
            version=SaverDef.V2,
        )
