"""What a plan knows of shapes beyond the graph: the shapes of tensors, and the shapes of the elements of lists.

A plan that is compiled for the shapes of its feeds passes this on to the functions it calls. A loop needs knowledge that holds in every
iteration: `agreed` weakens what is given to the loop until the body returns what it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.tensor import Tensor


class Known(NamedTuple):
    """The shape of a tensor; for a list of tensors also the shape that all of its elements have.

    `elements` is None where the list holds nothing yet: whatever is put into it first decides.
    """

    shape: Shape
    elements: Shape | None = UNKNOWN_SHAPE

    def agreed(self, other: Known) -> Known:
        """What holds for both."""
        if self.elements is None or other.elements is None:
            elements = other.elements if self.elements is None else self.elements
        else:
            elements = _common(self.elements, other.elements)
        return Known(_common(self.shape, other.shape), elements)


UNKNOWN = Known(UNKNOWN_SHAPE)


def _common(a: Shape, b: Shape) -> Shape:
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return UNKNOWN_SHAPE
    return Shape(x if x == y else None for x, y in zip(a.dims, b.dims))


def says_more(given: list[Known], inputs: list[Tensor]) -> bool:
    """Whether the knowledge goes beyond what the graph of a function says of its inputs."""
    return any(
        known.shape.dims != tensor.static_shape.dims or known.elements is None or known.elements.dims is not None
        for known, tensor in zip(given, inputs)
    )


def settled(given: list[Known], returned: Callable[[list[Known]], tuple[list[Known], Any]]) -> tuple[list[Known], Any]:
    """What holds of a loop's variables in every iteration, and what `returned` made of it.

    `returned(given)` plans the body for what is given to it and tells what it returns.
    """
    while True:
        after, made = returned(given)
        weaker = [before.agreed(known) for before, known in zip(given, after)]
        if weaker == given:
            return given, made
        given = weaker
