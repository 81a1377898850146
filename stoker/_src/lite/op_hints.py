"""`tf.lite.OpHint` marks the arguments and results of a part of a graph, so that the converter can replace the part by one op.

A hint wraps each input and output of the part in an `Identity` node whose attributes hold the name of the function, an id of this
use of it, and the number of the argument. `op_hint_stubs` finds these nodes in a GraphDef again.
"""

from __future__ import annotations

import collections
import json
import uuid
from typing import Any, ClassVar

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping

_MAPPING_KEYS = {
    "parent_first_child_input": ("parent_ophint_input_index", "first_child_ophint_input_index"),
    "parent_last_child_output": ("parent_output_index", "child_output_index"),
    "internal_children_input_output": ("child_input_index", "child_output_index"),
}
# Constant attributes of a hint are stored on its output nodes under this prefix, because unknown attributes of nodes must start with it.
ATTRIBUTE_PREFIX = "_tflite_attr_"


@export(v1="lite.OpHint")
class OpHint:
    """A pseudo function in a graph that the converter may replace by one op.

        hint = tf.lite.OpHint("cool_activation")
        x, scale = hint.add_inputs(x, scale)
        y = tf.sigmoid(x) * scale            # computed by the graph before conversion
        y, = hint.add_outputs(y)

    Args:
        function_name: the name of the op in the converted model.
        level: 1 for a hint that contains no others. A hint of a higher level contains hints of lower levels.
        children_inputs_mappings: how the arguments of a hint of level 2 or more map to those of the hints it contains: a dictionary with the keys
            "parent_first_child_input" (a list of {"parent_ophint_input_index": n, "first_child_ophint_input_index": n}),
            "parent_last_child_output" (of {"parent_output_index": n, "child_output_index": n}) and
            "internal_children_input_output" (of {"child_input_index": n, "child_output_index": n}).
        **kwargs: constant attributes of the op.

    Raises:
        ValueError: a mapping is given at level 1, or is missing or has other keys at a higher level.
    """

    FUNCTION_NAME_ATTR: ClassVar[str] = "_tflite_function_name"
    FUNCTION_UUID_ATTR: ClassVar[str] = "_tflite_function_uuid"
    FUNCTION_INPUT_INDEX_ATTR: ClassVar[str] = "_tflite_function_input_index"
    FUNCTION_OUTPUT_INDEX_ATTR: ClassVar[str] = "_tflite_function_output_index"
    FUNCTION_SORT_INDEX_ATTR: ClassVar[str] = "_tflite_function_sort_index"
    FUNCTION_AGGREGATE_ATTR: ClassVar[str] = "_tflite_function_aggregate"
    FUNCTION_LEVEL_ATTR: ClassVar[str] = "_tflite_ophint_level"
    CHILDREN_INPUTS_MAPPINGS: ClassVar[str] = "_tflite_children_ophint_inputs_mapping"
    TFLITE_INPUT_INDICES: ClassVar[str] = "_tflite_input_indices"
    AGGREGATE_STACK: ClassVar[str] = "stack"
    AGGREGATE_FIRST: ClassVar[str] = "first"
    AGGREGATE_LAST: ClassVar[str] = "last"

    class OpHintArgumentTracker:
        """Numbers the inputs or the outputs of one use of a function.

        Args:
            function_name: the name of the function.
            unique_function_id: the id of this use.
            node_name_prefix: the prefix of the node names.
            attr_name: the attribute that holds an argument's number.
            level: the level of the hint.
            children_inputs_mappings: see `OpHint`.
        """

        def __init__(
            self,
            function_name: str,
            unique_function_id: str,
            node_name_prefix: str,
            attr_name: str,
            level: int = 1,
            children_inputs_mappings: dict[str, list[dict[str, int]]] | None = None,
        ) -> None:
            self._function_name, self._unique_function_id = function_name, unique_function_id
            self._node_name_prefix, self._attr_name = node_name_prefix, attr_name
            self._level, self._children_inputs_mappings = level, children_inputs_mappings
            self._next_global_index = 0
            self._used_global_indices: set[int] = set()
            self._tag_to_global_index: dict[str, int] = {}
            self._tag_to_next_sort_index: dict[str, int] = collections.defaultdict(int)

        def _index(self, override: int | None) -> int:
            if override is None:
                while self._next_global_index in self._used_global_indices:
                    self._next_global_index += 1
                index = self._next_global_index
            elif override in self._used_global_indices:
                raise ValueError(f"Index {override} was already used by another call to add")
            else:
                index = override
            self._used_global_indices.add(index)
            return index

        def add(
            self,
            arg: Any,
            tag: str | None = None,
            name: str | None = None,
            aggregate: str | None = None,
            index_override: int | None = None,
        ) -> Tensor:
            """Marks a tensor as an argument of the function.

            Args:
                arg: the tensor.
                tag: a name shared by the tensors that form one argument.
                name: a name for the argument, which the node's name contains.
                aggregate: how the tensors with one tag are combined: `OpHint.AGGREGATE_FIRST`, `AGGREGATE_LAST` or `AGGREGATE_STACK`.
                index_override: the number of the argument. By default, arguments are numbered in the order of the calls.

            Raises:
                ValueError: a number is used twice, a tag has two numbers, or only one of `tag` and `aggregate` is given.
            """
            sort_index = None
            if tag is None:
                if aggregate is not None:
                    raise ValueError("You must specify `tag` if using aggregate.")
                index = self._index(index_override)
            else:
                if aggregate is None:
                    raise ValueError("You must specify `aggregate` if using tag.")
                if aggregate not in (OpHint.AGGREGATE_FIRST, OpHint.AGGREGATE_LAST, OpHint.AGGREGATE_STACK):
                    raise ValueError(f"aggregate is 'first', 'last' or 'stack', not {aggregate!r}.")
                if tag not in self._tag_to_global_index:
                    self._tag_to_global_index[tag] = self._index(index_override)
                elif index_override is not None and index_override != self._tag_to_global_index[tag]:
                    raise ValueError(
                        f"Tag {tag!r} was called with two indices {index_override} and {self._tag_to_global_index[tag]}"
                    )
                index = self._tag_to_global_index[tag]
                sort_index = self._tag_to_next_sort_index[tag]
                self._tag_to_next_sort_index[tag] += 1
            label = (
                f"{self._node_name_prefix}-{self._function_name}-{self._unique_function_id}-{index}-{sort_index}-{name}"
            )
            wrapped = shaping.identity(arg, name=label)
            if context.executing_eagerly():
                return wrapped  # hints mark nodes of graphs
            node = wrapped.op
            node._set_attr(OpHint.FUNCTION_NAME_ATTR, self._function_name)
            node._set_attr(OpHint.FUNCTION_UUID_ATTR, self._unique_function_id)
            node._set_attr(self._attr_name, index)
            node._set_attr(OpHint.FUNCTION_LEVEL_ATTR, self._level)
            if self._children_inputs_mappings:
                node._set_attr(OpHint.CHILDREN_INPUTS_MAPPINGS, json.dumps(self._children_inputs_mappings))
            if sort_index is not None:
                node._set_attr(OpHint.FUNCTION_SORT_INDEX_ATTR, sort_index)
                node._set_attr(OpHint.FUNCTION_AGGREGATE_ATTR, aggregate)
            return wrapped

    def __init__(
        self,
        function_name: str,
        level: int = 1,
        children_inputs_mappings: dict[str, list[dict[str, int]]] | None = None,
        **kwargs: Any,
    ) -> None:
        self._function_name = function_name
        self._level = level
        self._attrs = kwargs
        _check_mappings(level, children_inputs_mappings)
        self._children_inputs_mappings = children_inputs_mappings
        self._unique_function_id = uuid.uuid1().hex
        common = (level, children_inputs_mappings)
        self._inputs = OpHint.OpHintArgumentTracker(
            function_name, self._unique_function_id, "InputHint", OpHint.FUNCTION_INPUT_INDEX_ATTR, *common
        )
        self._outputs = OpHint.OpHintArgumentTracker(
            function_name, self._unique_function_id, "OutputHint", OpHint.FUNCTION_OUTPUT_INDEX_ATTR, *common
        )

    def add_input(self, *args: Any, **kwargs: Any) -> Tensor:
        """Marks an input. Takes the arguments of `OpHintArgumentTracker.add`: `add_input(tensor, name=, tag=, aggregate=, index_override=)`."""
        return self._inputs.add(*args, **kwargs)

    def add_output(self, *args: Any, **kwargs: Any) -> Tensor:
        """Marks an output. Takes the arguments of `OpHintArgumentTracker.add`: `add_output(tensor, name=, tag=, aggregate=, index_override=)`."""
        wrapped = self._outputs.add(*args, **kwargs)
        for name, value in () if context.executing_eagerly() else self._attrs.items():
            wrapped.op._set_attr(ATTRIBUTE_PREFIX + name, value)
        return wrapped

    def add_inputs(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Marks several inputs. `names` is a list with one name per input."""
        return [self.add_input(arg, name=name) for arg, name in zip(args, _names(args, **kwargs), strict=True)]

    def add_outputs(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Marks several outputs. `names` is a list with one name per output."""
        return [self.add_output(arg, name=name) for arg, name in zip(args, _names(args, **kwargs), strict=True)]


def _names(args: tuple[Any, ...], names: list[str] | None = None) -> list[str | None]:
    if names is None:
        return [None] * len(args)
    if len(names) != len(args):
        raise ValueError(f"There are {len(args)} tensors and {len(names)} names.")
    return list(names)


def _check_mappings(level: int, mappings: Any) -> None:
    if not isinstance(level, int) or level < 1:
        raise ValueError(f"The level of a hint is 1 or more, not {level!r}.")
    if level == 1:
        if mappings:
            raise ValueError("A hint of level 1 has no hints inside, so that it has no children_inputs_mappings.")
        return
    if not isinstance(mappings, dict) or set(mappings) != set(_MAPPING_KEYS):
        raise ValueError(
            f"A hint of level {level} needs children_inputs_mappings with the keys {', '.join(_MAPPING_KEYS)}, not {mappings!r}."
        )
    for key, fields in _MAPPING_KEYS.items():
        for entry in mappings[key]:
            if set(entry) != set(fields):
                raise ValueError(
                    f"The entries of {key} have the keys {fields[0]!r} and {fields[1]!r}, not {sorted(entry)}."
                )
