"""Signatures: which tensors go into a model and come out of it, by name."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.formats.protos import SignatureDef, StructuredValue, TensorInfo
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.interchange.meta_graph import prepend_name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor import Operation
from stoker._src.graph.type_spec import type_spec_from_value
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.saved_model import constants
from stoker._src.saved_model.structures import decoded, encoded


def _names(function: str) -> tuple[str, str]:
    return f"saved_model.{function}", f"saved_model.signature_def_utils.{function}"


@export(v1=("saved_model.build_tensor_info", "saved_model.utils.build_tensor_info"))
def build_tensor_info(tensor: Any) -> Any:
    """Returns the TensorInfo of a tensor: its name, dtype and shape. A sparse tensor has the names of its components. A ragged one
    is described by its type and the infos of its components.

    Raises:
        RuntimeError: eager mode is on.
    """
    if context.executing_eagerly():
        raise RuntimeError("`build_tensor_info` is not supported in eager execution.")
    if isinstance(tensor, RaggedTensor):
        info = TensorInfo()
        info.composite_tensor.type_spec.CopyFrom(encoded(type_spec_from_value(tensor)).type_spec_value)
        for part in nest.flatten(tensor, expand_composites=True):
            info.composite_tensor.components.add().CopyFrom(build_tensor_info(part))
        return info
    info = TensorInfo(dtype=tensor.dtype.base_dtype.as_datatype_enum)
    shape = tensor.get_shape() if is_sparse(tensor) else tensor.shape
    info.tensor_shape.CopyFrom(shape.as_proto())
    if is_sparse(tensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def build_op_info(op: Operation) -> Any:
    """Returns a TensorInfo that names an operation. TensorFlow 2 describes the initializer of a model in this way."""
    return TensorInfo(name=op.name)


@export(v1=("saved_model.get_tensor_from_tensor_info", "saved_model.utils.get_tensor_from_tensor_info"))
def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: str | None = None) -> Any:
    """Returns the tensor of a graph that a TensorInfo names.

    Raises:
        KeyError: the graph has no such tensor.
        ValueError: the TensorInfo has an unknown encoding.
    """
    graph = graph or context.get_default_graph()

    def tensor(name: str) -> Any:
        return graph.get_tensor_by_name(prepend_name_scope(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return tensor(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            tensor(parts.indices_tensor_name), tensor(parts.values_tensor_name), tensor(parts.dense_shape_tensor_name)
        )
    if encoding == "composite_tensor":
        spec = decoded(StructuredValue(type_spec_value=tensor_info.composite_tensor.type_spec))
        parts = [tensor(part.name) for part in tensor_info.composite_tensor.components]
        return nest.pack_sequence_as(spec, parts, expand_composites=True)
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}. Expected `coo_sparse`, `composite_tensor` or `name`.")


@export(v1=_names("build_signature_def"))
def build_signature_def(
    inputs: Any = None, outputs: Any = None, method_name: str | None = None, defaults: Any = None
) -> Any:
    """Creates a SignatureDef message.

    Args:
        inputs, outputs: TensorInfos by name.
        method_name: the method by which a server runs the signature.
        defaults: must be empty: the available message type has no field for default values of inputs.

    Raises:
        NotImplementedError: `defaults` is not empty.
    """
    if defaults:
        raise NotImplementedError("Defaults of inputs are not supported in signatures.")
    signature = SignatureDef()
    for given, into in ((inputs, signature.inputs), (outputs, signature.outputs)):
        for name, info in (given or {}).items():
            into[name].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    return signature


def _infos(tensors: dict[str, Any]) -> dict[str, Any]:
    whole = {name: is_sparse(each) or isinstance(each, RaggedTensor) for name, each in tensors.items()}
    return {name: build_tensor_info(each if whole[name] else convert_to_tensor(each)) for name, each in tensors.items()}


def _require(info: Any, dtype: Any, what: str, expected: str) -> None:
    if as_dtype(info.dtype) is not dtype:
        raise ValueError(f"{what} must be {expected}. Found tensors of type {info.dtype}.")


@export(v1=_names("regression_signature_def"))
def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """Creates a signature from serialized examples to numbers.

    Raises:
        ValueError: an argument is None or has the wrong dtype.
    """
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    infos = _infos({"x": examples, "y": predictions})
    _require(infos["x"], dtypes.string, "Regression input tensors", "of type string")
    _require(infos["y"], dtypes.float32, "Regression output tensors", "of type float")
    return build_signature_def(
        {constants.REGRESS_INPUTS: infos["x"]}, {constants.REGRESS_OUTPUTS: infos["y"]}, constants.REGRESS_METHOD_NAME
    )


@export(v1=_names("classification_signature_def"))
def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """Creates a signature from serialized examples to classes, scores or both.

    Raises:
        ValueError: a required argument is None, or an argument has the wrong dtype.
    """
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    inputs = _infos({constants.CLASSIFY_INPUTS: examples})
    _require(inputs[constants.CLASSIFY_INPUTS], dtypes.string, "Classification input tensors", "of type string")
    outputs = {}
    if classes is not None:
        outputs.update(_infos({constants.CLASSIFY_OUTPUT_CLASSES: classes}))
        _require(
            outputs[constants.CLASSIFY_OUTPUT_CLASSES], dtypes.string, "Classification classes", "of type string Tensor"
        )
    if scores is not None:
        outputs.update(_infos({constants.CLASSIFY_OUTPUT_SCORES: scores}))
        _require(outputs[constants.CLASSIFY_OUTPUT_SCORES], dtypes.float32, "Classification scores", "a float Tensor")
    return build_signature_def(inputs, outputs, constants.CLASSIFY_METHOD_NAME)


@export(v1=_names("predict_signature_def"))
def predict_signature_def(inputs: Any, outputs: Any) -> Any:
    """Creates a signature from named tensors to named tensors.

    Raises:
        ValueError: there are no inputs or no outputs.
    """
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), constants.PREDICT_METHOD_NAME)


@export(v1=_names("is_valid_signature"))
def is_valid_signature(signature_def: Any) -> bool:
    """Returns whether TensorFlow Serving can run a signature."""
    if signature_def is None:
        return False
    inputs, outputs = signature_def.inputs, signature_def.outputs
    method = signature_def.method_name
    if method == constants.PREDICT_METHOD_NAME:
        return bool(inputs and outputs)
    if method == constants.REGRESS_METHOD_NAME:
        return (
            set(inputs) == {constants.REGRESS_INPUTS}
            and set(outputs) == {constants.REGRESS_OUTPUTS}
            and as_dtype(inputs[constants.REGRESS_INPUTS].dtype) is dtypes.string
            and as_dtype(outputs[constants.REGRESS_OUTPUTS].dtype) is dtypes.float32
        )
    if method == constants.CLASSIFY_METHOD_NAME:
        expected = {
            constants.CLASSIFY_OUTPUT_CLASSES: dtypes.string,
            constants.CLASSIFY_OUTPUT_SCORES: dtypes.float32,
        }
        return (
            set(inputs) == {constants.CLASSIFY_INPUTS}
            and as_dtype(inputs[constants.CLASSIFY_INPUTS].dtype) is dtypes.string
            and bool(outputs)
            and all(name in expected and as_dtype(info.dtype) is expected[name] for name, info in outputs.items())
        )
    return False
