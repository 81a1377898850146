"""`assert_shapes`: checks sizes and symbolic dimensions across several tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stoker._src.base.export import export
from stoker._src.base.shapes import Dimension
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import assertions, debugging, grouping
from stoker._src.ops.math import comparison, reductions


class _Spec(NamedTuple):
    """One tensor with the expected sizes of its last dimensions. `open_ended` allows any dimensions before them."""

    tensor: Any
    sizes: tuple[Any, ...]
    open_ended: bool


class _Size(NamedTuple):
    """A size that others must equal: a number or a tensor, and where it comes from."""

    size: Any
    source: str


def _is_size(entry: Any) -> bool:
    try:
        return int(entry) == entry
    except (TypeError, ValueError):
        return False


def _read(tensor: Any, spec: Any, message: str) -> _Spec:
    label = debugging.tensor_label(tensor)
    if not hasattr(spec, "__iter__") and not hasattr(spec, "__getitem__"):
        raise ValueError(
            f"{message}Tensor {label}.  Specified shape must be an iterable.  An iterable has the attribute "
            f"`__iter__` or `__getitem__`.  Received specified shape: {spec}"
        )
    entries = tuple(entry.value if isinstance(entry, Dimension) else entry for entry in spec)
    for i, entry in enumerate(entries):
        if i and (entry is ... or entry == "*"):
            raise ValueError(
                f"{message}Tensor {label} specified shape index {i}.  Symbol `...` or `*` for a variable number of "
                "unspecified dimensions is only allowed as the first entry"
            )
    open_ended = bool(entries and (entries[0] is ... or entries[0] == "*"))
    # An empty specification means one dimension of size 1, like a scalar.
    return _Spec(tensor, entries[open_ended:] or (1,), open_ended)


def _rank_checks(spec: _Spec, data: Any, summarize: int | None, message: str | None) -> Any:
    wanted = len(spec.sizes)
    tensor, options = spec.tensor, {"data": data, "summarize": summarize, "message": message}
    if spec.open_ended:
        # A scalar counts as one dimension.
        return None if wanted <= 1 else debugging.assert_rank_at_least(tensor, wanted, **options)
    if wanted == 1:
        return debugging.assert_rank_in(tensor, (0, 1), **options)
    return debugging.assert_rank(tensor, wanted, **options)


class _Sizes:
    """The sizes of one tensor: static if known, else elements of its shape tensor."""

    def __init__(self, spec: _Spec) -> None:
        self.static = spec.tensor.static_shape
        self.spec = spec
        self._tensor: Any = None

    def dynamic_shape(self) -> Tensor:
        if self._tensor is None:
            tensor = self.spec.tensor
            self._tensor = tensor.dense_shape if isinstance(tensor, SparseTensor) else shaping.shape(tensor)
        return self._tensor

    def at(self, position: int) -> Any:
        """The size of the dimension that corresponds to entry `position` of the specification."""
        count = len(self.spec.sizes)
        if self.static.rank == 0:
            return 1
        if self.static.rank is not None:
            known = self.static[position - count]
            return self.dynamic_shape()[position - count] if known is None else known
        if count == 1:
            # A vector, or a scalar with size 1; if leading dimensions are open, the last size.
            return self.dynamic_shape()[-1] if self.spec.open_ended else reductions.reduce_prod(self.dynamic_shape())
        return self.dynamic_shape()[position - count]


def _assert_shapes(shapes: Any, data: Any, summarize: int | None, message: str | None, name: str | None) -> Any:
    if isinstance(shapes, Mapping):
        shapes = shapes.items()
    prefix = f"{message}.  " if message else ""
    with name_scope(name, "assert_shapes", None):
        specs = []
        for tensor, spec in shapes:
            # In eager mode, TensorFlow holds tensors as keys by reference.
            tensor = tensor.deref() if hasattr(tensor, "deref") else tensor
            tensor = tensor if isinstance(tensor, SparseTensor) else convert_to_tensor(tensor)
            specs.append(_read(tensor, spec, prefix))
        checks = [_rank_checks(spec, data, summarize, message) for spec in specs]
        symbols: dict[Any, _Size] = {}
        for spec in specs:
            checks += _size_checks(spec, symbols, data, summarize, prefix)
    if context.executing_eagerly():
        return None
    return grouping.group(*[check for check in checks if check is not None])


def _size_checks(spec: _Spec, symbols: dict[Any, _Size], data: Any, summarize: int | None, prefix: str) -> list[Any]:
    label = debugging.tensor_label(spec.tensor)
    sizes, checks = _Sizes(spec), []
    for i, entry in enumerate(spec.sizes):
        if entry is None or entry == ".":
            continue
        number = i - len(spec.sizes) if spec.open_ended else i
        size = sizes.at(i)
        if _is_size(entry):
            wanted = _Size(int(entry), "Specified explicitly")
        elif entry in symbols:
            wanted = symbols[entry]
        else:
            symbols[entry] = _Size(size, f"Specified by tensor {label} dimension {number}")
            continue
        if not isinstance(size, Tensor) and not isinstance(wanted.size, Tensor):
            if size != wanted.size:
                raise ValueError(
                    f"{prefix}{wanted.source}.  Tensor {label} dimension {number} must have size {wanted.size}.  "
                    f"Received size {size}, shape {spec.tensor.shape}"
                )
            continue
        shown = data
        if shown is None:
            shown = [
                prefix, wanted.source, f"Tensor {label} dimension", number, "must have size", wanted.size,
                "Received shape: ", sizes.dynamic_shape(),
            ]  # fmt: skip
        checks.append(assertions.assert_op(comparison.equal(size, wanted.size), shown, summarize=summarize))
    return checks


@export(v1="debugging.assert_shapes")
def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Asserts the shapes of tensors and the relations between them.

    Args:
        shapes: a dictionary, or a list of pairs, from tensors to expected shapes. In an expected shape, a number is an exact
            size, None or "." is any size, and anything else is a symbol that stands for the same size everywhere. A
            first entry `...` or "*" allows any leading dimensions. Scalars, and empty expected shapes, count as one
            dimension of size 1. Strings work too: "NC" is ("N", "C").
        data: tensors to show on failure.
        summarize: how many elements of them to show.
        message: a prefix for the error message.
        name: a prefix for the names of the ops.

    Returns:
        An op that checks what is not statically known (None in eager mode).

    Raises:
        ValueError: a static shape is wrong, or a specification is invalid.
    """
    return _assert_shapes(shapes, data, summarize, message, name)


@export(v2="debugging.assert_shapes")
def assert_shapes_v2(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Asserts the shapes of tensors and the relations between them. See the 1.x form. Returns None."""
    _assert_shapes(shapes, data, summarize, message, name)
