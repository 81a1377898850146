"""Constants and placeholders, and the conversion of Python values to tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, ResourceExhaustedError
from stoker._src.base.export import export
from stoker._src.base.shapes import Dimension, Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, is_tensor, is_uneven, register_tensor_conversion_function
from stoker._src.graph.definition import ANY, PASSES, SHAPE, STATEFUL, TENSOR, TYPE, define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support import movement
from stoker._src.ops.support.values import from_numpy, to_numpy, torch_dtype

# ---- Const ------------------------------------------------------------------------------------------------------

CONST = define("Const() -> (output: dtype)", value=TENSOR, dtype=TYPE).not_differentiable()
CONST.static_value(lambda op: op.attrs["value"])


@CONST.kernel
def const_kernel(*, value: np.ndarray, dtype: DType) -> Any:
    """The value itself. The planner calls this once, and nothing writes to the result."""
    return from_numpy(value)


@CONST.shape
def const_shape(*, value: np.ndarray) -> Shape:
    return Shape(value.shape)


# ---- Placeholder ------------------------------------------------------------------------------------------------

PLACEHOLDER = define("Placeholder() -> (output: dtype)", STATEFUL, dtype=TYPE, shape=SHAPE(Shape(None)))


@PLACEHOLDER.kernel
def placeholder_kernel(*, dtype: DType, shape: Shape, ctx: Any) -> Any:
    described = f"dtype {dtype.name}" + ("" if shape.dims is None else f" and shape {shape}")
    raise InvalidArgumentError(
        None, None, f"You must feed a value for placeholder tensor '{ctx.name}' with {described}"
    )


@PLACEHOLDER.shape
def placeholder_shape(*, shape: Shape) -> Shape:
    return shape


PLACEHOLDER_V2 = define("PlaceholderV2() -> (output: dtype)", STATEFUL, dtype=TYPE, shape=SHAPE).same_as(PLACEHOLDER)


PLACEHOLDER_WITH_DEFAULT = define(
    "PlaceholderWithDefault(input: dtype) -> (output: dtype)", PASSES, dtype=ANY, shape=SHAPE
)
PLACEHOLDER_WITH_DEFAULT.kernel(lambda input: input)
PLACEHOLDER_WITH_DEFAULT.static_value(lambda op: None)  # a run may feed another value


@PLACEHOLDER_WITH_DEFAULT.shape
def placeholder_with_default_shape(input: Shape, *, shape: Shape) -> Shape:
    input.merge(shape)
    return shape


@PLACEHOLDER_WITH_DEFAULT.grad
def placeholder_with_default_grad(op: Any, g: Tensor) -> Tensor:
    return g


@export(v1="placeholder")
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed in every run.

    Raises:
        RuntimeError: in eager mode, which has nothing to feed.
    """
    if context.executing_eagerly():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return PLACEHOLDER(dtype=as_dtype(dtype), shape=as_shape(shape), name=name)


@export(v1="placeholder_with_default")
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that may be fed. If it is not, it has the value of `input`."""
    return PLACEHOLDER_WITH_DEFAULT(input, shape=as_shape(shape), name=name)


# ---- from Python values -----------------------------------------------------------------------------------------


def _python_dtype(value: Any) -> DType | None:
    """TensorFlow's default dtype for Python values: int32 and float32 for numbers (int64 if the number needs it), string for text.

    NumPy is not asked what text is: its own type of bytes drops zeros at the end.
    """
    while isinstance(value, (list, tuple)):
        if not value:
            return dtypes.float32
        value = next((item for item in value if not isinstance(item, (list, tuple)) or item), value[0])
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, (int, Dimension)):
        return dtypes.int32
    if isinstance(value, float):
        return dtypes.float32
    if isinstance(value, (str, bytes)):
        return dtypes.string
    return None


def _flat(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _check_elements(value: Any, dtype: DType) -> None:
    """Refuses elements of another kind than `dtype`. As in TensorFlow, there is no silent promotion."""
    for item in _flat(value):
        if isinstance(item, (np.ndarray, np.generic, Dimension)):
            continue
        if dtype is dtypes.string:
            fits = isinstance(item, (str, bytes))
        elif dtype is dtypes.bool_:
            fits = isinstance(item, bool)
        elif dtype.is_integer or dtype.is_quantized:
            fits = isinstance(item, int)
        elif dtype.is_complex:
            fits = isinstance(item, (int, float, complex))
        else:
            fits = isinstance(item, (int, float)) and dtype not in (dtypes.resource, dtypes.variant)
        if not fits:
            raise TypeError(f"Expected {dtype.name}, got {item!r} of type '{type(item).__name__}' instead.")


def to_array(value: Any, dtype: DType | None = None) -> tuple[np.ndarray, DType]:
    """Converts a Python or NumPy value to an array of a TensorFlow dtype.

    Raises:
        TypeError: elements of another kind than `dtype`, or of no kind that tensors hold (ValueError in eager mode).
        ValueError: a ragged list, None, or a value that does not fit.
    """
    if value is None:
        raise ValueError("None values not supported.")
    try:
        return _to_array(value, dtype)
    except TypeError:
        explained = _eager_error(value) if context.executing_eagerly() else None
        if explained is None:
            raise
        raise explained from None


def _eager_error(value: Any) -> ValueError | None:
    """The message of TensorFlow's eager mode for values that no dtype can hold."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ValueError(f"Failed to convert a NumPy array to a Tensor (Unsupported elements: {value.dtype}).")
    kinds = set()
    for item in _flat(value):
        if isinstance(item, int) and not -(2**63) <= item < 2**63:
            return ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
        kind = _kind(item)
        if kind is None:
            return ValueError(
                f"Attempt to convert a value ({item!r}) with an unsupported type ({type(item)}) to a Tensor."
            )
        kinds.add(kind)
    if len(kinds) > 1:
        return ValueError("Can't convert Python sequence with mixed types to Tensor.")
    try:
        np.array(value)
    except ValueError:
        return ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}.")
    return None


def _kind(item: Any) -> str | None:
    """ "number", "complex" or "string"; None for objects that a tensor cannot hold."""
    if isinstance(item, (str, bytes, np.str_, np.bytes_)):
        return "string"
    if isinstance(item, (complex, np.complexfloating)):
        return "complex"
    if isinstance(item, (bool, int, float, Dimension)) or hasattr(item, "__array__"):
        return "number"
    return None


def _to_array(value: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, torch.Tensor):
        value = to_numpy(value.detach())
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_array(np.asarray(value), dtype)
    if dtype is not None:
        _check_elements(value, dtype)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (str, bytes)) for item in _flat(value)):
        if is_uneven(value):
            raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}.")
        _check_elements(value, dtypes.string)
    guessed = dtype or _python_dtype(value)
    if dtype is None and isinstance(value, (list, tuple)):
        guessed = _widest(value, guessed)
    try:
        if guessed is dtypes.string:
            array = np.array(value, dtype=object)
        elif guessed is not None:
            array = np.array(_plain(value), dtype=guessed.as_numpy_dtype)
        else:
            array = np.array(value)
    except NotImplementedError:
        raise TypeError(f"Expected any non-tensor type, but got a tensor instead: {value!r}.") from None
    except OverflowError:
        if dtype is None and guessed is dtypes.int32:
            if isinstance(value, int) and 2**63 <= value < 2**64 and not context.executing_eagerly():
                return np.array(value, dtype=np.uint64), dtypes.uint64
            try:
                return np.array(_plain(value), dtype=np.int64), dtypes.int64
            except OverflowError:
                raise TypeError(f"Failed to convert elements of {value!r} to Tensor.") from None
        raise ValueError(f"{value!r} does not fit in {guessed.name if guessed else 'any dtype'}.") from None
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}.") from None
        raise TypeError(f"Failed to convert {value!r} (type {type(value).__name__}) to a tensor: {error}") from None
    if guessed is None:
        return _from_array(array, None)
    if guessed is dtypes.string:
        if any(isinstance(item, (list, tuple)) for item in array.flat):
            raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}.")
        array = _bytes_array(array)
    return array, guessed


def _plain(value: Any) -> Any:
    if isinstance(value, Dimension):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _widest(value: Any, guessed: DType | None) -> DType | None:
    """The dtype of a mixed list: [1, 2.0] is float32. Other mixtures are refused."""
    if any(isinstance(item, (np.ndarray, np.number)) for item in _flat(value)):
        return _of_numpy_values(value)
    if guessed is dtypes.int32 and any(isinstance(item, float) for item in _flat(value)):
        return dtypes.float32
    if guessed is dtypes.bool_ and not all(isinstance(item, bool) for item in _flat(value)):
        if context.executing_eagerly():
            raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
        guessed = dtypes.int32
    if guessed is not None and guessed in (dtypes.int32, dtypes.float32):
        for item in _flat(value):
            if isinstance(item, (str, bytes)):
                raise TypeError(f"Expected {guessed.name}, got {item!r} of type '{type(item).__name__}' instead.")
            if isinstance(item, complex):
                return dtypes.complex128
    return guessed


def _of_numpy_values(value: Any) -> DType | None:
    """The dtype of a list that holds NumPy values: NumPy's own dtype in a graph, that of the first value in eager mode.

    As for lists of Python's numbers the wide types give way: int64 where all values fit in 32 bits, float64 in a graph.
    """
    try:
        array = np.array(_plain(value))
    except ValueError:  # rows of different lengths
        return None
    kind = array.dtype
    if kind.kind not in "iuf":
        return None
    first = next(iter(_flat(value)))
    if kind.kind == "f" and context.executing_eagerly() and isinstance(first, (float, np.floating, np.ndarray)):
        return dtypes.float32 if type(first) is float else as_dtype(np.asarray(first).dtype)
    if kind == np.float64:
        return dtypes.float32
    small = np.iinfo(np.int32)
    if kind.kind != "f" and (not array.size or small.min <= array.min() <= array.max() <= small.max):
        return dtypes.int32 if kind == np.int64 or context.executing_eagerly() else as_dtype(kind)
    return as_dtype(kind)


def _from_array(array: np.ndarray, dtype: DType | None) -> tuple[np.ndarray, DType]:
    if dtype is not None and dtype is not dtypes.string:
        return array.astype(dtype.as_numpy_dtype), dtype
    found = as_dtype(array.dtype)
    if found is dtypes.string:
        return _bytes_array(array), found
    if dtype is dtypes.string:
        raise TypeError(f"Expected string, got an array of {found.name} instead.")
    return array, found


def _bytes_array(array: np.ndarray) -> np.ndarray:
    """Converts to an object array whose elements are bytes."""
    items = array.ravel().tolist()
    kinds = set(map(type, items))
    if array.dtype == np.object_ and kinds <= {bytes}:
        return array.copy()
    result = np.empty(len(items), dtype=object)
    if kinds <= {str}:
        result[:] = list(map(str.encode, items))
        return result.reshape(array.shape)
    for i, item in enumerate(items):
        if isinstance(item, str):
            item = item.encode()
        elif not isinstance(item, bytes):
            raise TypeError(f"Expected string, got {item!r} of type '{type(item).__name__}' instead.")
        result[i] = bytes(item)  # Python's bytes, not NumPy's subclass
    return result.reshape(array.shape)


@export(v1="constant")
def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = "Const", verify_shape: bool = False
) -> Tensor:
    """Creates a constant tensor.

    Args:
        value: a Python, NumPy or torch value; eagerly a torch tensor keeps its memory.
        dtype: its dtype; by default int32 or float32 for Python numbers.
        shape: a shape to give it; a single element fills it (with `verify_shape`, the value must have that shape).
        name: the op's name.
        verify_shape: see `shape`.

    Raises:
        TypeError: `verify_shape` and another shape; elements that are not of `dtype`.
        ValueError: too many or too few elements for `shape`.
    """
    if not context.executing_eagerly() and is_tensor(value):
        raise TypeError(f"Expected any non-tensor type, but got a tensor instead: {value!r}.")
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype is not wanted:
            raise TypeError(f"Expected tensor {value} with dtype {wanted!r}, but got dtype {value.dtype!r}.")
        value = value.numpy()  # type: ignore[attr-defined]
    array, found = to_array(value, wanted)
    if shape is not None:
        stated = array.size
        array = _reshaped(array, _sizes(shape), verify_shape)
        if 0 < stated < array.size and not context.executing_eagerly():
            filled = constant_of(array, found, name)
            filled.op.stated_elements = stated
            return filled
    elif isinstance(value, torch.Tensor) and context.executing_eagerly() and value.dtype is torch_dtype(found):
        return context.target().share(value.detach().resolve_conj().resolve_neg(), found)
    if dtype is None and isinstance(value, (np.ndarray, torch.Tensor)) and not context.executing_eagerly():
        array = np.array(array)  # Copied for the graph, because the caller may later write to the original.
    return constant_of(array, found, name)


@export(v2="constant")
def constant_v2(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """Creates a constant tensor. A single element fills `shape`.

    Raises:
        TypeError: several elements, and not as many as `shape` holds.
    """
    if shape is not None and not is_tensor(value):
        array, _ = to_array(value, None if dtype is None else as_dtype(dtype).base_dtype)
        sizes = _sizes(shape)
        if array.size != 1 and math.prod(sizes) not in (0, array.size):
            raise TypeError(f"Expected Tensor's shape: {tuple(sizes)}, but got {array.shape}.")
    return constant(value, dtype, shape, name)


def constant_of(array: np.ndarray, dtype: DType, name: str | None = "Const") -> Tensor:
    """A constant from an array that already has the right dtype and shape."""
    target = context.target()
    return target.add_constant(array, dtype, name)


def message_sizes(shape: Any) -> list[int]:
    """Converts sizes to integers as a TensorProto does: fractions are truncated.

    Raises:
        NotImplementedError: a symbolic tensor.
        TypeError: not a vector of numbers.
        ValueError: text that is not a number.
    """
    sizes = np.array(shape if not isinstance(shape, (TensorShape, Shape)) else as_shape(shape).dims)
    if sizes.ndim != 1 and sizes.dtype.kind != "U":
        raise TypeError(f"A shape must be a sequence of integers, got {shape!r}.")
    return [int(size) for size in sizes.reshape(-1).tolist()]


def _sizes(shape: Any) -> list[int]:
    """The sizes of a constant: parsed as those of a TensorProto in a graph, as those of a tensor in eager mode."""
    if not context.executing_eagerly():
        return message_sizes(shape)
    found = as_shape(shape)
    if not found.known:
        raise TypeError(f"Eager execution of tf.constant with unsupported shape: {found} is not fully known.")
    return [int(size) for size in found]  # type: ignore[arg-type]


def _reshaped(array: np.ndarray, sizes: list[int], verify_shape: bool) -> np.ndarray:
    count = math.prod(sizes)
    if verify_shape and array.shape != tuple(sizes):
        raise TypeError(f"Expected Tensor's shape: {tuple(sizes)}, got {array.shape}.")
    if array.size == count:
        return array.reshape(sizes)
    if context.executing_eagerly() and array.size != 1:
        raise TypeError(
            f"Eager execution of tf.constant with unsupported shape. Tensor {array} has {array.size} elements, but got "
            f"`shape` {tuple(sizes)} with {count} elements)."
        )
    if count == 0:
        return array.reshape(-1)[:0].reshape(sizes)
    if array.size > count:
        raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
    if array.size == 0:  # as in TensorFlow 1, missing elements are zeros
        array = np.zeros(1, array.dtype) if array.dtype != object else np.array([b""], object)
    movement.allocatable(sizes, array.itemsize)
    try:
        # As in TensorFlow 1, the last element repeats.
        flat = np.concatenate([array.ravel(), np.repeat(array.ravel()[-1:], count - array.size)])
    except MemoryError as error:
        raise ResourceExhaustedError(None, None, f"OOM when allocating a constant of shape {sizes}: {error}") from None
    return flat.reshape(sizes)


def _convert(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    return constant(value, dtype, name=name or "Const")


def _convert_shape(
    value: TensorShape, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    shape = as_shape(value)
    if not shape.known:
        raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
    if dtype not in (None, dtypes.int32, dtypes.int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype {dtype.name}")
    large = any(size > np.iinfo(np.int32).max for size in shape)  # type: ignore[operator]
    return constant(list(shape), dtype or (dtypes.int64 if large else dtypes.int32), name=name or "shape_as_tensor")


register_tensor_conversion_function((TensorShape, Shape), _convert_shape, 50)
register_tensor_conversion_function(object, _convert, 200)


def number(value: float, like: Tensor) -> Tensor:
    """A constant with the dtype of `like`."""
    return convert_to_tensor(value, like.dtype.base_dtype)
