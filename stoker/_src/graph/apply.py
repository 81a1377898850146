"""Calling an op definition: binds arguments, converts inputs, infers attributes and adds the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph import context
from stoker._src.graph.attributes import MISSING, DTypeNotAllowedError, ValueNotAllowedError
from stoker._src.graph.conversion import convert_to_tensor, dtype_of, is_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.signature import Arg
from stoker._src.graph.tensor import Tensor


def apply_op(definition: OpDefinition, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None) -> Any:
    """`_apply_op`, with the errors of TensorFlow's eager mode where a graph raises TypeError and ValueError."""
    if context.executing_eagerly():
        key = _eager_key(definition, args, kwargs) if definition.plain else None
        known = None if key is None else definition.known_calls.get(key)
        if known is not None:
            return _repeated(definition, known, args, name)
        if definition.by_reference:
            raise RuntimeError(
                f"{definition.name} does not support eager execution: it takes a reference to a variable."
            )
    try:
        return _apply_op(definition, args, kwargs, name)
    except (DTypeNotAllowedError, ValueNotAllowedError) as error:
        if context.executing_eagerly():
            raise InvalidArgumentError(None, None, str(error)) from error
        plain = TypeError if isinstance(error, TypeError) else ValueError
        raise plain(str(error)) from error


_PLAIN_KINDS = frozenset((bool, int, str, type(None)))
_MOST_KNOWN_CALLS = 256  # of one op, with different attributes


def _repeated(definition: OpDefinition, known: Any, inputs: Sequence[Any], name: str | None) -> Any:
    """Runs an op eagerly as in an earlier call."""
    outputs = known.run(definition, inputs, name)
    if definition.single:
        return outputs[0]
    return definition.pack_outputs(outputs, known.attrs) if definition.outputs else None


def _eager_key(definition: OpDefinition, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What determines the attributes of an eager call: the dtypes of its inputs, and the attributes that are given.

    Returns None for a call that must be looked at in detail: an input is not a tensor, or an attribute is not a plain value.
    """
    if definition.plain and len(inputs) != len(definition.inputs):
        return None
    tensor_type = hooks.eager_target.tensor_type
    key: list[Any] = []
    for value in inputs:
        if type(value) is not tensor_type:
            return None
        key.append(value.dtype._enum)
    for attr, value in kwargs.items():
        kind = type(value)
        key.append(attr)
        if kind is DType:
            key.append(kind)
            key.append(value._enum)
        elif kind in _PLAIN_KINDS:
            key.append(kind)  # True and 1 are equal
            key.append(value)
        elif kind in (list, tuple):
            kinds = tuple(map(type, value))
            if not _PLAIN_KINDS.issuperset(kinds):
                return None
            key.append(kinds)
            key.append(tuple(value))
        else:
            return None
    return tuple(key)


def _apply_op(definition: OpDefinition, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None) -> Any:
    """Adds the op to the current target and returns its outputs (the Operation if it has none; None in eager mode).

    Inputs may be given by position or name. All other keywords are attributes. Values that are not tensors become
    constants that are named after the argument, inside the new op's name scope.

    Raises:
        TypeError: arguments are missing or unknown, or the dtypes of inputs differ.
        ValueError: an attribute is out of range, or shapes are incompatible.
    """
    bound = _bind(definition, args, kwargs)
    target = context.target()
    unique = target.op_name(name, definition.name)
    attrs: dict[str, Any] = {}
    for key, value in kwargs.items():
        if value is not None or definition.attrs[key].kind == "shape":
            attrs[key] = definition.check_attr(key, value)
    tensor_type = target.tensor_type
    # Eager mode checks dtypes after all inputs are converted; a graph checks them one by one.
    unchecked: list[str] | None = [] if context.executing_eagerly() else None
    inputs: list[Tensor] = []
    for arg, value in zip(definition.inputs, bound):
        if type(value) is tensor_type and not arg.is_list and not arg.is_ref:
            dtype = value.dtype.base_dtype
            expected = arg.dtype if arg.dtype is not None else attrs.get(arg.type_attr or "")
            if expected is None:
                attr = arg.type_attr or ""
                attrs[attr] = _taken(definition, attr, dtype, unchecked)
            elif expected is not dtype:
                raise _mismatch(definition, arg, dtype, expected)
            inputs.append(value)
        elif arg.is_list:
            inputs.extend(_convert_list(definition, arg, value, attrs, target, unique))
        else:
            inputs.append(_convert(definition, arg, value, attrs, target, unique, bound, unchecked))
    if unchecked is not None:
        for tensor in inputs:
            if type(tensor) is Tensor:  # of a graph that adopts ops
                with context.enter_graph(tensor.op.graph):
                    return _apply_op(
                        definition, tuple(definition.group(inputs, attrs)), kwargs, name and name.rstrip("/")
                    )
    for attr in unchecked or ():
        definition.check_attr(attr, attrs[attr])
    for key, spec in definition.attrs.items():
        if key not in attrs:
            if spec.default is not MISSING:
                attrs[key] = spec.default
            elif key in kwargs and spec.kind.startswith("list(") and context.executing_eagerly():
                attrs[key] = definition.check_attr(key, ())  # the value that None stands for
            else:
                raise TypeError(f"{definition.name}() is missing the attribute {key!r}.")
    if unchecked is not None:
        known = _known_call(definition, inputs, kwargs, attrs, target)
        if known is not None:
            return _repeated(definition, known, inputs, name)
    if definition.by_reference:
        with target.colocate_with(inputs[0].op):  # references cannot move between devices
            op = target.add(definition, inputs, attrs, unique)
    else:
        op = target.add(definition, inputs, attrs, unique)
    if not definition.outputs:
        return None if context.executing_eagerly() else op
    if definition.single:
        return op.outputs[0]
    return definition.pack_outputs(op.outputs, attrs)


def _known_call(
    definition: OpDefinition, inputs: list[Any], kwargs: dict[str, Any], attrs: dict[str, Any], target: Any
) -> Any:
    """How to run this eager call and equal ones; None if each call of the op is different."""
    key = _eager_key(definition, inputs, kwargs)
    if key is None:
        return None
    if not definition.plain:  # how the flat inputs form lists
        key = (
            *key,
            *[attrs[name] for arg in definition.inputs if (name := arg.number_attr or arg.list_attr) is not None],
        )
    known = definition.known_calls.get(key)
    if known is None and len(definition.known_calls) < _MOST_KNOWN_CALLS:
        known = target.known_call(definition, attrs)
        if known is not None:
            definition.known_calls[key] = known
    return known


def _taken(definition: OpDefinition, attr: str, dtype: DType, unchecked: list[str] | None) -> DType:
    """The dtype that an input gives to a type attribute. In eager mode it is recorded and checked later."""
    if unchecked is None:
        return definition.check_attr(attr, dtype)
    unchecked.append(attr)
    return dtype


def _bind(definition: OpDefinition, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The inputs in order. What remains in `kwargs` are attributes."""
    if len(args) > len(definition.inputs):
        raise TypeError(
            f"{definition.name}() takes {len(definition.inputs)} inputs but {len(args)} were given; attributes go by name."
        )
    bound = list(args)
    for arg in definition.inputs[len(args) :]:
        if arg.name not in kwargs:
            raise TypeError(f"{definition.name}() is missing the input {arg.name!r}.")
        bound.append(kwargs.pop(arg.name))
    for key in kwargs:
        if key not in definition.attrs:
            raise TypeError(f"{definition.name}() has no input or attribute {key!r}.")
    return bound


# The names of these types in messages of TensorFlow's eager mode, which is written in C++.
_C_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def _mismatch(definition: OpDefinition, arg: Arg, found: DType, expected: DType) -> TypeError:
    if context.executing_eagerly():
        was, wanted = (_C_NAMES.get(dtype.name, dtype.name) for dtype in (found, expected))
        return DTypeNotAllowedError(
            f"cannot compute {definition.name} as input #{definition.inputs.index(arg)}(zero-based) was expected to be a "
            f"{wanted} tensor but is a {was} tensor [Op:{definition.name}]"
        )
    if arg.type_attr is None:
        return DTypeNotAllowedError(
            f"Input '{arg.name}' of '{definition.name}' Op has type {found.name} that does not match expected type of {expected.name}."
        )
    first = next((other.name for other in definition.inputs if other.type_attr == arg.type_attr), arg.name)
    if first == arg.name:
        return DTypeNotAllowedError(
            f"Input '{arg.name}' of '{definition.name}' Op has type {found.name} that does not match attr '{arg.type_attr}' = {expected.name}."
        )
    return DTypeNotAllowedError(
        f"Input '{arg.name}' of '{definition.name}' Op has type {found.name} that does not match type {expected.name} of argument '{first}'."
    )


def _convert(
    definition: OpDefinition,
    arg: Arg,
    value: Any,
    attrs: dict[str, Any],
    target: Any,
    unique: str,
    bound: list[Any],
    unchecked: list[str] | None,
) -> Tensor:
    expected = arg.dtype if arg.dtype is not None else attrs.get(arg.type_attr or "")
    hint = None
    if expected is None and context.executing_eagerly():  # tensors determine the dtype, even later ones
        expected = _dtype_of_tensors(definition, arg, bound)
        if expected is not None:
            attrs[arg.type_attr or ""] = _taken(definition, arg.type_attr or "", expected, unchecked)
    if expected is None and arg.type_attr is not None:
        spec = definition.attrs[arg.type_attr]
        own = _own_dtype(value, spec.default)
        # The attribute's default applies to values without a dtype, or with one that the op does not support.
        if spec.default is not MISSING and (own is None or (spec.allowed and own not in spec.allowed)):
            # Integers are int32 in a graph, regardless of the default.
            hint = dtypes.int32 if spec.default is dtypes.int64 and not context.executing_eagerly() else spec.default
            if isinstance(value, float) and hint.is_integer and context.executing_eagerly():
                raise TypeError(f"Cannot convert {value} to EagerTensor of dtype {hint.name}")
    tensor = _tensor(definition, arg, value, expected, hint, target, unique, arg.name)
    dtype = tensor.dtype.base_dtype
    if expected is None:
        attrs[arg.type_attr] = _taken(definition, arg.type_attr, dtype, unchecked)  # type: ignore[index,arg-type]
    elif dtype is not expected:
        raise _mismatch(definition, arg, dtype, expected)
    if arg.is_ref and not tensor.dtype._is_ref_dtype:
        raise TypeError(
            f"'{definition.name}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a tf.Variable)"
        )
    return tensor


def _tensor(
    definition: OpDefinition,
    arg: Arg,
    value: Any,
    expected: DType | None,
    hint: Any,
    target: Any,
    unique: str,
    label: str,
) -> Tensor:
    if isinstance(value, Tensor):
        return convert_to_tensor(value)
    found = dtype_of(value)
    if expected is not None and found is not None and found is not expected and not _plain_array(value):
        raise _mismatch(definition, arg, found, expected)
    try:
        with target.name_scope(unique + "/"):
            return convert_to_tensor(value, expected, label, dtype_hint=hint, as_ref=arg.is_ref)
    except (TypeError, ValueError) as error:
        if arg.is_list and not context.executing_eagerly():
            raise TypeError(
                f"Tensors in list passed to '{arg.name}' of '{definition.name}' Op are invalid: {value!r} is not convertible to a "
                f"tensor. Error: {error}"
            ) from error
        if expected is None:
            raise
        raise type(error)(f"Tried to convert '{label}' to a tensor and failed. Error: {error}") from error


def _dtype_of_tensors(definition: OpDefinition, arg: Arg, bound: list[Any]) -> DType | None:
    """The dtype of the first tensor or variable among the inputs that share the type attribute of `arg`."""
    for other, beside in zip(definition.inputs, bound):
        if other.type_attr == arg.type_attr and not other.is_list and is_tensor(beside):
            return dtype_of(beside)
    return None


def _own_dtype(value: Any, default: Any) -> DType | None:
    """The dtype of a value, if it has one; Python's complex numbers do."""
    if default is not MISSING and default.is_complex and _has_complex(value):
        return dtype_of(value) or dtypes.complex128
    return dtype_of(value)


def _has_complex(value: Any) -> bool:
    return isinstance(value, complex) or (isinstance(value, (list, tuple)) and any(map(_has_complex, value)))


def _plain_array(value: Any) -> bool:
    """NumPy values are converted to the wanted dtype, as in TensorFlow. Tensors and variables never are."""
    return type(value).__module__ == "numpy"


def _convert_list(
    definition: OpDefinition, arg: Arg, values: Any, attrs: dict[str, Any], target: Any, unique: str
) -> list[Tensor]:
    if context.executing_eagerly() and isinstance(values, Iterable):
        values = list(values)
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Expected list for '{arg.name}' argument to '{definition.name}' Op, not {values!r}.")
    tensors: list[Tensor] = []
    if arg.list_attr is not None:
        expected_list = attrs.get(arg.list_attr)
        if expected_list is not None and len(expected_list) != len(values):
            raise ValueError(
                f"'{definition.name}' Op expects {len(expected_list)} tensors for '{arg.name}', not {len(values)}."
            )
        for i, value in enumerate(values):
            expected = None if expected_list is None else expected_list[i]
            tensors.append(_tensor(definition, arg, value, expected, None, target, unique, f"{arg.name}_{i}"))
        attrs[arg.list_attr] = definition.check_attr(arg.list_attr, [tensor.dtype.base_dtype for tensor in tensors])
        return tensors
    if arg.number_attr in attrs and attrs[arg.number_attr] != len(values):
        raise ValueNotAllowedError(
            f"List argument '{arg.name}' to '{definition.name}' Op with length {len(values)} must match length {attrs[arg.number_attr]} of the earlier argument."
        )
    attrs[arg.number_attr] = definition.check_attr(arg.number_attr, len(values))  # type: ignore[index,arg-type]
    expected = arg.dtype if arg.dtype is not None else attrs.get(arg.type_attr or "")
    if expected is None:  # a tensor determines the dtype of the other values, else any value with a dtype does
        expected = next((value.dtype.base_dtype for value in values if isinstance(value, Tensor)), None)
    if expected is None:
        expected = next((dtype for value in values if (dtype := dtype_of(value)) is not None), None)
    for i, value in enumerate(values):
        tensor = _tensor(definition, arg, value, expected, None, target, unique, f"{arg.name}_{i}")
        if expected is None:
            expected = tensor.dtype.base_dtype
        elif tensor.dtype.base_dtype is not expected:
            found = ", ".join(getattr(v, "dtype", tensor.dtype).name for v in tensors + [tensor])
            raise DTypeNotAllowedError(
                f"Tensors in list passed to '{arg.name}' of '{definition.name}' Op have types [{found}] that don't all match."
            )
        tensors.append(tensor)
    if arg.type_attr is not None and arg.type_attr not in attrs:
        if expected is not None:
            attrs[arg.type_attr] = definition.check_attr(arg.type_attr, expected)
        elif definition.attrs[arg.type_attr].default is MISSING:
            raise ValueError(f"'{definition.name}' Op needs at least one tensor in '{arg.name}' to know its dtype.")
    return tensors
