"""Shapes: `Shape`, which shape rules compute with, and `TensorShape`/`Dimension`, the public classes.

A `Shape` is an immutable tuple of sizes. An unknown size is None, and a shape of unknown rank is `Shape(None)`.
`TensorShape` wraps one with TensorFlow's methods. Iterating it gives `Dimension` objects with 1.x behaviour, and plain
integers with 2.x behaviour (`enable_v2_tensorshape`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stoker._src.base.errors import InvalidArgumentError

Dim = int | None


class Shape:
    """The known sizes of a tensor. `dims` is None if the rank is unknown."""

    __slots__ = ("dims",)

    dims: tuple[Dim, ...] | None

    def __init__(self, dims: Iterable[Dim] | None) -> None:
        self.dims = None if dims is None else tuple(dims)

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    @property
    def known(self) -> bool:
        """Whether every size is known."""
        return self.dims is not None and None not in self.dims

    @property
    def size(self) -> int | None:
        """The number of elements, or None if it is unknown."""
        if self.dims is None or None in self.dims:
            return None
        total = 1
        for dim in self.dims:
            total *= dim  # type: ignore[operator]
        return total

    @property
    def mT(self) -> Shape:
        """The shape with the last two sizes swapped."""
        dims = self.at_least(2).dims
        if dims is None:
            return self
        return Shape((*dims[:-2], dims[-1], dims[-2]))

    def of_rank(self, rank: int) -> Shape:
        """Checks that the shape has `rank` dimensions. An unknown shape becomes that many unknown sizes."""
        if self.dims is None:
            return Shape((None,) * rank)
        if len(self.dims) != rank:
            raise InvalidArgumentError(None, None, f"Shape must be rank {rank} but is rank {len(self.dims)}: {self}.")
        return self

    def at_least(self, rank: int) -> Shape:
        """Checks that the shape has at least `rank` dimensions. An unknown shape stays unknown."""
        if self.dims is not None and len(self.dims) < rank:
            raise InvalidArgumentError(
                None, None, f"Shape must be at least rank {rank} but is rank {len(self.dims)}: {self}."
            )
        return self

    def at_most(self, rank: int) -> Shape:
        if self.dims is not None and len(self.dims) > rank:
            raise InvalidArgumentError(
                None, None, f"Shape must be at most rank {rank} but is rank {len(self.dims)}: {self}."
            )
        return self

    def merge(self, other: Shape) -> Shape:
        """Combines the known sizes of both. Raises InvalidArgumentError if they contradict each other."""
        if self.dims is None:
            return other
        if other.dims is None:
            return self
        if len(self.dims) != len(other.dims):
            raise InvalidArgumentError(None, None, f"Shapes must be equal rank, but are {self} and {other}.")
        return Shape(merge_dims(a, b, self, other) for a, b in zip(self.dims, other.dims))

    def compatible(self, other: Shape) -> bool:
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims)
        )

    def concat(self, other: Shape) -> Shape:
        if self.dims is None or other.dims is None:
            return UNKNOWN_SHAPE
        return Shape(self.dims + other.dims)

    def normalize_axis(self, axis: int, *, extra: int = 0) -> int:
        """`axis` as a non-negative number. The rank must be known. `extra` allows that many positions past the end."""
        rank = len(self) + extra
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                None, None, f"Axis {axis} is out of range [{-rank}, {rank}) for a tensor of shape {self}."
            )
        return axis + rank if axis < 0 else axis

    def __len__(self) -> int:
        if self.dims is None:
            raise ValueError("The rank of this shape is not known.")
        return len(self.dims)

    def __iter__(self) -> Iterator[Dim]:
        if self.dims is None:
            raise ValueError("The rank of this shape is not known.")
        return iter(self.dims)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if self.dims is None:
                return UNKNOWN_SHAPE
            return Shape(self.dims[key])
        return None if self.dims is None else self.dims[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __repr__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        return "[" + ",".join("?" if dim is None else str(dim) for dim in self.dims) + "]"


def merge_dims(a: Dim, b: Dim, *where: Any) -> Dim:
    """The common size. Raises InvalidArgumentError if two known sizes differ."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    shapes = " and ".join(str(each) for each in where)
    raise InvalidArgumentError(
        None, None, f"Dimensions must be equal, but are {a} and {b}{' in shapes ' + shapes if shapes else ''}."
    )


UNKNOWN_SHAPE = Shape(None)
SCALAR = Shape(())


def common_shape(a: Shape, b: Shape) -> Shape:
    """The most specific shape that is compatible with both."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return UNKNOWN_SHAPE
    return Shape(x if x == y else None for x, y in zip(a.dims, b.dims))


def broadcast(a: Shape, b: Shape) -> Shape:
    """The broadcast shape of `a` and `b`. Raises InvalidArgumentError if they are incompatible."""
    if a.dims is None or b.dims is None:
        return UNKNOWN_SHAPE
    if a.dims == b.dims and None not in a.dims:
        return a
    longer, shorter = (a.dims, b.dims) if len(a.dims) >= len(b.dims) else (b.dims, a.dims)
    lead = len(longer) - len(shorter)
    dims = list(longer[:lead])
    for x, y in zip(longer[lead:], shorter):
        if x == 1:
            dims.append(y)
        elif y == 1 or x == y:
            dims.append(x)
        elif x is None or y is None:
            # A known size above one determines the result, because the unknown size must equal it or be one.
            dims.append(y if x is None else x)
        else:
            raise InvalidArgumentError(
                None, None, f"Dimensions must be equal, but are {x} and {y}: shapes {a} and {b} do not broadcast."
            )
    return Shape(dims)


_v2_behavior = True


def set_v2_tensorshape(enabled: bool) -> None:
    """Sets whether iterating and indexing a TensorShape gives integers (2.x) or Dimension objects (1.x)."""
    global _v2_behavior
    _v2_behavior = enabled


class Dimension:
    """One size of a 1.x TensorShape. `value` is None if it is unknown."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        if isinstance(value, Dimension):
            self._value: Dim = value._value
        elif value is None:
            self._value = None
        else:
            try:
                self._value = operator.index(value)
            except TypeError:
                raise TypeError(
                    f"Dimension value must be integer or None or have an __index__ method, got value "
                    f"'{value!r}' with type '{type(value)!r}'"
                ) from None
            if self._value < 0:
                raise ValueError(f"Dimension {self._value} must be >= 0")

    @property
    def value(self) -> Dim:
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        other = as_dimension(other)
        return self._value == other._value or self._value is None or other._value is None

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {as_dimension(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        self.assert_is_compatible_with(other)
        return as_dimension(other) if self._value is None else self

    def _arithmetic(self, other: Any, function: Any) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return Dimension(None)
        return Dimension(function(self._value, other._value))

    def __add__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return as_dimension(other) - self

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return as_dimension(other) // self

    def __div__(self, other: Any) -> Any:
        return self // other

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: 'Dimension' and '{type(other).__name__}', please use // instead"
        )

    def __mod__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return as_dimension(other) % self

    def _compare(self, other: Any, function: Any) -> Any:
        other = as_dimension(other)
        if self._value is None or other._value is None:
            return None
        return function(self._value, other._value)

    def __eq__(self, other: object) -> Any:
        try:
            return self._compare(other, operator.eq)
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> Any:
        try:
            return self._compare(other, operator.ne)
        except (TypeError, ValueError):
            return NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        return self._value  # type: ignore[return-value]

    def __index__(self) -> int:
        return self._value  # type: ignore[return-value]

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)


def as_dimension(value: Any) -> Dimension:
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension: Any) -> Dim:
    """The integer or None from a Dimension, an integer or None."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The Dimension at an index of a shape; unknown if the rank is unknown."""
    dims = as_shape(shape).dims
    return Dimension(None) if dims is None else Dimension(dims[index])


class TensorShape:
    """The static shape of a tensor: fully known, partly known, or of unknown rank."""

    __slots__ = ("_shape",)

    def __init__(self, dims: Any) -> None:
        self._shape = as_shape(dims)

    @property
    def rank(self) -> int | None:
        return self._shape.rank

    @property
    def ndims(self) -> int | None:
        return self._shape.rank

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self._shape.dims is None else [Dimension(dim) for dim in self._shape.dims]

    def __len__(self) -> int:
        if self._shape.dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._shape.dims)

    def __bool__(self) -> bool:
        return self._shape.dims is not None

    def __iter__(self) -> Iterator[Any]:
        if self._shape.dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        if _v2_behavior:
            return iter(self._shape.dims)
        return iter([Dimension(dim) for dim in self._shape.dims])

    def __getitem__(self, key: Any) -> Any:
        dims = self._shape.dims
        if dims is not None:
            found = dims[key]
            if isinstance(key, slice):
                return TensorShape(found)
            return found if _v2_behavior else Dimension(found)
        if isinstance(key, slice):
            start = key.start if key.start is not None else 0
            stop = key.stop
            if key.step is not None:
                raise ValueError("Steps are not yet handled")
            if stop is None or start < 0 or stop < 0:
                return TensorShape(None)
            return TensorShape([None] * max(0, stop - start))
        return None if _v2_behavior else Dimension(None)

    def num_elements(self) -> int | None:
        return self._shape.size

    def merge_with(self, other: Any) -> TensorShape:
        other = as_shape(other)
        try:
            return TensorShape(self._shape.merge(other))
        except InvalidArgumentError:
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are not compatible") from None

    def concatenate(self, other: Any) -> TensorShape:
        return TensorShape(self._shape.concat(as_shape(other)))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def assert_same_rank(self, other: Any) -> None:
        other = as_shape(other)
        if None not in (self._shape.rank, other.rank) and self._shape.rank != other.rank:
            raise ValueError(f"Shapes {self} and {TensorShape(other)} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        if self._shape.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: int) -> TensorShape:
        try:
            return self.merge_with(TensorShape([None] * rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def is_compatible_with(self, other: Any) -> bool:
        return self._shape.compatible(as_shape(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def is_subtype_of(self, other: TensorShape) -> bool:
        if other._shape.dims is None:
            return True
        if self._shape.dims is None or len(self._shape.dims) != len(other._shape.dims):
            return False
        return all(b is None or a == b for a, b in zip(self._shape.dims, other._shape.dims))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        other = as_shape(other)
        mine = self._shape.dims
        if mine is None or other.dims is None or len(mine) != len(other.dims):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(mine, other.dims)])

    def is_fully_defined(self) -> bool:
        return self._shape.known

    def assert_is_fully_defined(self) -> None:
        if not self._shape.known:
            raise ValueError(f"Shape {self} is not fully defined")

    def as_list(self) -> list[Dim]:
        if self._shape.dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._shape.dims)

    def as_proto(self) -> Any:
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto  # pyright: ignore[reportAttributeAccessIssue]

        if self._shape.dims is None:
            return TensorShapeProto(unknown_rank=True)
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=-1 if dim is None else dim) for dim in self._shape.dims])

    def __eq__(self, other: object) -> Any:
        try:
            other_shape = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._shape.dims == other_shape.dims

    def __ne__(self, other: object) -> Any:
        same = self == other
        if same is NotImplemented:
            return NotImplemented
        if not _v2_behavior:
            theirs = as_shape(other)
            if self.rank is None or theirs.rank is None:
                raise ValueError("The inequality of unknown TensorShapes is undefined.")
        return not same

    def __hash__(self) -> int:
        return hash(self._shape)

    def __reduce__(self) -> Any:
        return TensorShape, (None if self._shape.dims is None else list(self._shape.dims),)

    def __repr__(self) -> str:
        if _v2_behavior:
            return "TensorShape(None)" if self._shape.dims is None else f"TensorShape({list(self._shape.dims)})"
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        dims = self._shape.dims
        if dims is None:
            return "<unknown>"
        if _v2_behavior:
            return "(%s%s)" % (", ".join(str(dim) for dim in dims), "," if len(dims) == 1 else "")
        return "(%s%s)" % (", ".join("?" if dim is None else str(dim) for dim in dims), "," if len(dims) == 1 else "")


def as_shape(value: Any) -> Shape:
    """Converts a user's description to a `Shape`.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is negative.
    """
    if type(value) is Shape:
        return value
    if isinstance(value, TensorShape):
        return value._shape
    if value is None:
        return UNKNOWN_SHAPE
    if hasattr(value, "unknown_rank"):  # a TensorShapeProto
        if value.unknown_rank:
            return UNKNOWN_SHAPE
        return Shape(None if dim.size == -1 else dim.size for dim in value.dim)
    if isinstance(value, (str, bytes)):
        raise TypeError(f"A shape must be a sequence of integers, got {value!r}.")
    try:
        elements: Sequence[Any] = list(value)
    except TypeError:
        elements = [value]
    dims: list[Dim] = []
    for element in elements:
        element = dimension_value(element)
        if element is None:
            dims.append(None)
            continue
        try:
            dim = operator.index(element)
        except TypeError:
            raise TypeError(
                f"Dimension value must be integer or None or have an __index__ method, got value "
                f"'{element!r}' with type '{type(element)!r}'"
            ) from None
        if dim < 0:
            raise ValueError(f"Dimension {dim} must be >= 0")
        dims.append(dim)
    return Shape(dims)


def as_tensor_shape(value: Any) -> TensorShape:
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None, **kwargs: Any) -> TensorShape:
    """A TensorShape of unknown rank, or with `rank` (`ndims` in older programs) unknown sizes."""
    rank = kwargs.pop("ndims", rank)
    if kwargs:
        raise TypeError(f"Unknown argument: {kwargs}")
    return TensorShape(None if rank is None else [None] * rank)
