"""Operators on elements of uncommon types: whether LiteRT computes them, and in which type it does.

Kernels take 8-bit and 16-bit integers for quantized numbers: they read scales, and crash or compute something else where there are none. Such operators
work on 32 bits here. Other kernels look at the type only when they run, so a model that loads may still fail: operators with uncommon types
are tried, each in a model of its own.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.flatbuffer import write_model
from stoker._src.lite.interpreter import Interpreter, OpResolverType
from stoker._src.lite.model import TYPE_CODES, Model, Operator, Subgraph, Tensor, numpy_dtype
from stoker._src.lite.versions import assign_versions

_SCALED = frozenset(("INT8", "UINT8", "INT16"))
# The type that has the kernels, and all values, of a smaller one.
_WIDER = dict.fromkeys(("INT8", "UINT8", "INT16", "UINT16"), "INT32") | dict.fromkeys(
    ("FLOAT16", "BFLOAT16"), "FLOAT32"
)
_UNCOMMON = _WIDER.keys() | {"FLOAT64", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "STRING"}
# Kernels that move elements of any type, or convert them.
_MOVING = frozenset(
    (
        "BATCH_TO_SPACE_ND BITCAST BROADCAST_TO CAST CONCATENATION DEPTH_TO_SPACE DEQUANTIZE DYNAMIC_UPDATE_SLICE EXPAND_DIMS FILL GATHER GATHER_ND "
        "PACK QUANTIZE RANK RESHAPE REVERSE_SEQUENCE REVERSE_V2 SHAPE SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE "
        "TRANSPOSE UNPACK ZEROS_LIKE FAKE_QUANT"
    ).split()
)
# Kernels that take elements of every type and write wrong ones where the type is uncommon.
_WRONG = frozenset(("MATRIX_DIAG", "MATRIX_SET_DIAG"))
# Arithmetic that lacks kernels for one or both of the integers that most operators have.
_PARTLY = frozenset(
    (
        "ABS ADD_N AVERAGE_POOL_2D CUMSUM DIV FLOOR_DIV FLOOR_MOD LEAKY_RELU L2_POOL_2D MAX_POOL_2D MEAN NEG POW PRELU RELU RELU6 RELU_0_TO_1 "
        "RELU_N1_TO_1 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SIGN SQUARE SQUARED_DIFFERENCE"
    ).split()
)
# Messages about types. Others come from the values that the operator is tried with.
_ABOUT_TYPES = re.compile(r"type|support|failed to prepare|data\.raw", re.IGNORECASE)


def settle(operator: Operator, temporary: Callable[[Tensor, str], Tensor]) -> tuple[list[Operator], str]:
    """The operators that compute one, and the reason why there are none, or "".

    Args:
        operator: an operator of a model that is not quantized.
        temporary: makes a tensor like another one with elements of a type.
    """
    tensors = [*(each for each in operator.inputs if each is not None), *operator.outputs]
    uncommon = {each.type for each in tensors} & _UNCOMMON
    if operator.code in _PARTLY:
        uncommon |= {tensors[0].type} & {"INT32", "INT64"}
    if not uncommon or operator.code == "CUSTOM" or operator.subgraphs:
        return [operator], ""
    if any(numpy_dtype(each.type) is None for each in tensors):
        return [operator], ""
    is_right = operator.code in _MOVING or not (uncommon & _SCALED or operator.code in _WRONG)
    if is_right and _runs(operator):
        return [operator], ""
    made = _widened(operator, temporary) if uncommon & _WIDER.keys() and operator.code not in _MOVING else []
    if made and all(map(_runs, made)):
        return made, ""
    return [], f"{operator.code} has no kernel for {' and '.join(sorted(uncommon))}"


def _widened(operator: Operator, temporary: Callable[[Tensor, str], Tensor]) -> list[Operator]:
    made: list[Operator] = []
    inputs: list[Tensor | None] = []
    for tensor in operator.inputs:
        if tensor is None or tensor.type not in _WIDER:
            inputs.append(tensor)
            continue
        wide = temporary(tensor, _WIDER[tensor.type])
        if tensor.data is not None:
            wide.data = tensor.data.astype(numpy_dtype(wide.type))
        else:
            made.append(_cast(tensor, wide))
        inputs.append(wide)
    wide_operator, after = copy.copy(operator), []
    wide_operator.inputs, wide_operator.outputs = inputs, []
    for tensor in operator.outputs:
        wide = temporary(tensor, _WIDER[tensor.type]) if tensor.type in _WIDER else tensor
        wide_operator.outputs.append(wide)
        if wide is not tensor:
            after.append(_cast(wide, tensor))
    return [*made, wide_operator, *after]


def _cast(source: Tensor, result: Tensor) -> Operator:
    options = schema.CastOptionsT(inDataType=TYPE_CODES[source.type], outDataType=TYPE_CODES[result.type])
    return Operator("CAST", [source], [result], options)


def _runs(operator: Operator) -> bool:
    """Whether LiteRT runs an operator by itself."""
    alone = copy.copy(operator)
    alone.inputs = [None if each is None else copy.copy(each) for each in operator.inputs]
    alone.outputs = [Tensor(each.name, each.type, each.shape) for each in operator.outputs]
    given = [each for each in alone.inputs if each is not None and not each.is_constant]
    model = Model([Subgraph("main", given, list(alone.outputs), [alone])])
    assign_versions(model)
    try:
        interpreter = Interpreter(
            model_content=write_model(model),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            # Ones are divisors without an error.
            is_text = detail["dtype"] in (np.bytes_, np.object_)
            value = np.full(detail["shape"], b"1", object) if is_text else np.ones(detail["shape"], detail["dtype"])
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    except ValueError as error:
        return not _ABOUT_TYPES.search(str(error))
    return True
