"""`Operation` and `Tensor`: the nodes of a graph and the values on their edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import OperatorNotAllowedInGraphError
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.attr_values import from_attr_value, public_value
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.interchange.node_def import node_def_of, op_def_of
from stoker._src.graph.source_lines import Frames, describe, line_number

if TYPE_CHECKING:
    from stoker._src.graph.graph import Graph


class Operation:
    """A node: an op definition with inputs and attributes. Created by calling the definition.

    Attributes that scripts use (`name`, `type`, `inputs`, `outputs`, `control_inputs`, `graph`, `device`, `node_def`,
    `get_attr`, `run`) are TensorFlow's.
    """

    stated_elements: int | None = None  # for a constant: the number of given elements, the last of which is repeated

    def __init__(
        self,
        graph: Graph,
        definition: OpDefinition,
        name: str,
        inputs: list[Tensor],
        attrs: dict[str, Any],
        control_inputs: list[Operation],
        frames: Frames,
    ) -> None:
        self.graph = graph
        self.definition = definition
        self.name = name
        self.attrs = attrs
        self._inputs = inputs
        self._control_inputs = control_inputs
        self._control_outputs: list[Operation] = []
        self._frames = frames
        self._device = ""
        self._id = -1
        self.static_value: Any = None  # cache of static_values.constant_value
        self.outputs = [Tensor(self, i, dtype) for i, dtype in enumerate(definition.output_dtypes(attrs))]

    @property
    def type(self) -> str:
        return self.definition.name

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(self._inputs)

    @property
    def control_inputs(self) -> list[Operation]:
        return list(self._control_inputs)

    @property
    def _control_output_list(self) -> list[Operation]:
        return list(self._control_outputs)

    @property
    def device(self) -> str:
        return self._device

    def _set_device(self, device: Any) -> None:
        self._device = str(device) if device is not None else ""

    @property
    def user_line(self) -> str:
        """The line of the user's program that created this op, as `train.py:41 in build_model`."""
        return describe(self._frames)

    @property
    def traceback(self) -> list[tuple[str, int, str, None]]:
        """(file, line, function, None) of each of the user's frames, outermost first."""
        return [
            (code.co_filename, line_number(code, instruction), code.co_name, None)
            for code, instruction in reversed(self._frames)
        ]

    def attr(self, name: str) -> Any:
        """The attribute as kernels and gradients use it (text for strings, `Shape` for shapes)."""
        return self.attrs[name]

    def get_attr(self, name: str) -> Any:
        """The attribute as TensorFlow returns it (bytes for strings, a proto for shapes).

        Raises:
            ValueError: there is no such attribute.
        """
        if name not in self.attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return public_value(self.attrs[name])

    def _set_attr(self, name: str, value: Any) -> None:
        self.stated_elements = None
        self.attrs[name] = from_attr_value(value) if hasattr(value, "SerializeToString") else value

    @property
    def node_def(self) -> Any:
        return node_def_of(self)

    @property
    def op_def(self) -> Any:
        return op_def_of(self.definition)

    def colocation_groups(self) -> list[bytes]:
        groups = self.attrs.get("_class")
        if groups:
            return [group.encode() if isinstance(group, str) else group for group in groups]
        return [b"loc:@" + self.name.encode()]

    def values(self) -> tuple[Tensor, ...]:
        return tuple(self.outputs)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: list[Operation]) -> None:
        for op in ops:
            if op.graph is not self.graph:
                raise ValueError(f"Control input {op.name!r} belongs to another graph than {self.name!r}.")
            if op not in self._control_inputs:
                self._control_inputs.append(op)
                op._control_outputs.append(self)
        self.graph.note_change()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor.name!r} belongs to another graph than {self.name!r}.")
        self._inputs[index]._consumers.remove(self)
        self._inputs[index] = tensor
        tensor._consumers.append(self)
        self.graph.note_change()

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs this operation in `session`, or in the default session."""
        _default_session(session, self.graph, "Cannot execute operation using `run()`").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)


def _default_session(session: Any, graph: Any, action: str) -> Any:
    if session is None:
        session = graph.default_session()
        if session is None:
            raise ValueError(
                f"{action}: No default session is registered. Use `with sess.as_default()` or pass an explicit "
                f"session to `{'eval' if 'eval()' in action else 'run'}(session=sess)`."
            )
    if session.graph is not graph:
        raise ValueError(f"{action}: the session's graph is different from the tensor's or operation's graph.")
    return session


class Tensor:
    """A value on an edge of a graph: output `value_index` of `op`. Operators and methods are added by the ops room."""

    # Makes NumPy arrays on the left of an operator defer to Tensor.
    __array_priority__ = 100
    OVERLOADABLE_OPERATORS: set[str] = set()

    if TYPE_CHECKING:  # the ops room defines these
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __floordiv__: Any
        __rfloordiv__: Any
        __mod__: Any
        __rmod__: Any
        __pow__: Any
        __rpow__: Any
        __matmul__: Any
        __rmatmul__: Any
        __and__: Any
        __rand__: Any
        __or__: Any
        __ror__: Any
        __xor__: Any
        __rxor__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any
        __neg__: Any
        __invert__: Any
        __abs__: Any
        __getitem__: Any

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self._static_shape: Shape = _UNKNOWN
        self._consumers: list[Operation] = []

    @property
    def graph(self) -> Any:
        return self.op.graph

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def static_shape(self) -> Shape:
        """The shape in the form that shape rules use."""
        return self._static_shape

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._static_shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def ndim(self) -> int:
        rank = self.static_shape.rank
        if rank is None:
            raise ValueError(f"The rank of {self.name} is not known.")
        return rank

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape.

        Raises:
            ValueError: `shape` contradicts the static shape.
        """
        wanted, known = as_shape(shape), self._static_shape
        if not known.compatible(wanted):
            if known.rank != wanted.rank:
                raise ValueError(f"Shapes must be equal rank, but are {known.rank} and {wanted.rank}")
            axis = next(i for i, (a, b) in enumerate(zip(known, wanted)) if None not in (a, b) and a != b)
            raise ValueError(
                f"Dimension {axis} in both shapes must be equal, but are {known[axis]} and {wanted[axis]}. "
                f"Shapes are {known} and {wanted}."
            )
        self._static_shape = known.merge(wanted)

    def consumers(self) -> list[Operation]:
        return list(self._consumers)

    def _as_node_def_input(self) -> str:
        return self.name if self.value_index else self.op.name

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value in `session`, or in the default session."""
        return _default_session(session, self.graph, "Cannot evaluate tensor using `eval()`").run(self, feed_dict)

    def ref(self) -> TensorReference:
        """A hashable reference to the tensor, for sets and dictionary keys."""
        return TensorReference(self)

    experimental_ref = ref

    def __iter__(self) -> Iterator[Any]:
        raise OperatorNotAllowedInGraphError(
            f"Iterating over a symbolic `tf.Tensor` is not allowed. Found {self.name}. In a function that tf.function converts, a `for` "
            "statement does it; elsewhere use tf.map_fn, tf.unstack or tf.while_loop, or run in eager mode."
        )

    def __bool__(self) -> bool:
        raise OperatorNotAllowedInGraphError(
            f"Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. Found {self.name}. Use `if t is not None:` instead of "
            "`if t:` to test if a tensor is defined. In a function that tf.function converts (its source must be there), `if` and "
            "`while` take tensors; elsewhere use tf.cond and tf.while_loop, or run in eager mode."
        )

    __nonzero__ = __bool__

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). Please call `x.shape` rather than `len(x)` for shape information."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise NotImplementedError(f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array.")

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError(f"cannot copy the symbolic tensor {self.name}: a graph has each of its tensors once")

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        parts = [f'"{self.name}"']
        if self.static_shape.rank is not None:
            parts.append(f"shape={self.shape}")
        parts.append(f"dtype={self.dtype.name}")
        if self.device:
            parts.append(f"device={self.device}")
        return f"Tensor({', '.join(parts)})"


_UNKNOWN = Shape(None)


def out_of_scope(tensor: Tensor) -> str:
    """The error message for a tensor that is used outside of the function that it was traced in."""
    graph: Any = tensor.op.graph
    return (
        f"{tensor!r} is out of scope and cannot be used here. Use return values, explicit Python locals or TensorFlow "
        f"collections to access it.\n{tensor!r} was defined at {tensor.op.user_line}, in the function "
        f"{graph.name!r}, and has no value outside of it."
    )


class TensorReference:
    """A tensor or variable as a dictionary key: equal when it refers to the same object."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def deref(self) -> Any:
        return self._target

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorReference):
            raise TypeError("Cannot compare wrapped object with unwrapped object")
        return self._target is other._target

    def __hash__(self) -> int:
        return id(self._target)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"
