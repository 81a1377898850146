"""Shapes that a plan knows in addition to the graph: the shapes of tensors, and the shapes of the elements of lists.

A plan that is compiled for the shapes of its feeds passes them on to the functions it calls. In a loop, shapes must hold in every
iteration: `agreed` weakens the shapes of the loop's inputs until the body returns the shapes it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, common_shape
from stoker._src.graph.planning import Elements
from stoker._src.graph.tensor import Tensor


class Known(NamedTuple):
    """The shape of a tensor. For a list of tensors, also what is known of its elements."""

    shape: Shape
    elements: Elements = Elements()

    def agreed(self, other: Known) -> Known:
        """Returns the shapes that are true of both."""
        return Known(common_shape(self.shape, other.shape), self.elements.agreed(other.elements))


UNKNOWN = Known(UNKNOWN_SHAPE)


def says_more(given: list[Known], inputs: list[Tensor]) -> bool:
    """Whether the known shapes are more specific than the ones a function's graph has for its inputs."""
    return any(
        known.shape.dims != tensor.static_shape.dims or known.elements != Elements()
        for known, tensor in zip(given, inputs)
    )


def settled(given: list[Known], returned: Callable[[list[Known]], tuple[list[Known], Any]]) -> tuple[list[Known], Any]:
    """Returns the shapes of a loop's variables that hold in every iteration, and the result of `returned` for them.

    `returned(given)` plans the body for the given shapes and returns the shapes of its outputs.
    """
    while True:
        after, made = returned(given)
        weaker = [before.agreed(known) for before, known in zip(given, after)]
        if weaker == given:
            return given, made
        given = weaker
