"""`Graph.create_op`: adds a node of any op type from flat inputs and AttrValues, as generated 1.x wrappers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, NotFoundError
from stoker._src.graph.attr_values import FunctionRef, from_attr_value, typed_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import OpDefinition, find_definition
from stoker._src.graph.signature import Arg
from stoker._src.graph.tensor import Tensor


class UnregisteredOpError(NotFoundError, RuntimeError):
    """An unregistered op type. TensorFlow 1 raises NotFoundError, TensorFlow 2 RuntimeError."""


def definition_of(op_type: str) -> OpDefinition:
    """The definition of an op type.

    Raises:
        UnregisteredOpError: there is no such op.
    """
    definition = find_definition(op_type)
    if definition is None:
        raise UnregisteredOpError(
            None,
            None,
            f"Op type not registered '{op_type}' in binary running on this host: stoker does not know this op.",
        )
    return definition


def check_inputs(op_type: str, inputs: Sequence[Any], input_types: Sequence[Any] | None) -> None:
    """Refuses inputs that are not tensors, or do not have the dtypes that the caller states.

    Raises:
        TypeError: an input is invalid.
    """
    for position, value in enumerate(inputs):
        if not isinstance(value, Tensor):
            raise TypeError(f"Input #{position} is not a tensor: {value}")
    if input_types is None:
        return
    found, expected = [tensor.dtype for tensor in inputs], [as_dtype(each) for each in input_types]
    if len(found) != len(expected) or any(
        a.base_dtype is not b.base_dtype or (b._is_ref_dtype and not a._is_ref_dtype) for a, b in zip(found, expected)
    ):
        raise TypeError(f"In op '{op_type}', input types ({found}) are not compatible with expected types ({expected})")


def complete_attrs(
    definition: OpDefinition, inputs: Sequence[Tensor], given: Mapping[str, Any] | None, functions: Mapping[str, Any]
) -> dict[str, Any]:
    """All attributes of a node: those given as AttrValues, those inferred from the inputs, and defaults.

    Raises:
        ValueError: attributes are missing or invalid, or do not match the inputs.
    """
    attrs: dict[str, Any] = {}
    try:
        for key, proto in (given or {}).items():
            attrs[key] = _attr(definition, key, proto, functions)
    except InvalidArgumentError as error:
        raise ValueError(error.message) from error
    position = 0
    for arg in definition.inputs:
        count = _count(definition, arg, attrs)
        taken = inputs[position : position + count]
        if len(taken) < count:
            raise ValueError(
                f"Op '{definition.name}' takes {count} tensors for '{arg.name}', but {len(inputs)} inputs in all were given."
            )
        _note_dtypes(definition, arg, [tensor.dtype for tensor in taken], attrs)
        position += count
    if position != len(inputs):
        raise ValueError(f"Op '{definition.name}' takes {position} inputs, but {len(inputs)} were given.")
    for key, spec in definition.attrs.items():
        if key not in attrs:
            if spec.default is MISSING:
                raise ValueError(f"NodeDef missing attr '{key}' from Op<name={definition.name}>")
            attrs[key] = spec.default
    return attrs


def _attr(definition: OpDefinition, key: str, proto: Any, functions: Mapping[str, Any]) -> Any:
    spec = definition.attrs.get(key)
    if spec is None:
        return from_attr_value(proto)
    value = typed_attr_value(proto, spec.kind, key)
    if isinstance(value, FunctionRef):
        value = replace(value, target=functions.get(value.name))
    return definition.check_attr(key, value)


def _count(definition: OpDefinition, arg: Arg, attrs: dict[str, Any]) -> int:
    key = arg.number_attr or arg.list_attr
    if key is None:
        return 1
    if key not in attrs:
        raise ValueError(f"NodeDef missing attr '{key}' from Op<name={definition.name}>")
    return attrs[key] if arg.number_attr is not None else len(attrs[key])


def _note_dtypes(definition: OpDefinition, arg: Arg, found: list[DType], attrs: dict[str, Any]) -> None:
    """Infers the type attribute of an input from its tensors, or compares them with the inferred value."""
    if arg.is_ref and not all(dtype._is_ref_dtype for dtype in found):
        raise ValueError(f"Input '{arg.name}' of Op '{definition.name}' must be a reference (a 1.x variable).")
    if arg.type_attr is not None and arg.type_attr not in attrs and found:
        attrs[arg.type_attr] = definition.check_attr(arg.type_attr, found[0].base_dtype)
    for dtype, expected in zip(found, arg.dtypes(attrs)):
        if dtype.base_dtype is expected.base_dtype:
            continue
        if arg.type_attr is None:
            raise ValueError(
                f"Input '{arg.name}' of Op '{definition.name}' is {dtype.base_dtype.name}, but must be {expected.base_dtype.name}."
            )
        raise ValueError(
            f"Inconsistent values for attr '{arg.type_attr}' {_enum(expected)} vs. {_enum(dtype)} while building NodeDef "
            f"of Op<name={definition.name}>"
        )


_ENUMS = {"float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE"}


def _enum(dtype: DType) -> str:
    name = dtype.base_dtype.name
    return _ENUMS.get(name, f"DT_{name.upper()}")
