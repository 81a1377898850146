"""Updates that take a large gradient part by part.

The gradient of a dense layer's weights is a product of two matrices, as large as the weights. A tensor beyond what the allocator keeps
(runtime/memory.py) is mapped anew in each step, which costs a page fault per 4 KiB, and passes through memory twice. If only an update uses the
product, the update computes some rows of it at a time and applies its rule to these: rules work element by element, so the results are the same.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.planning import RowsOfProduct
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.memory import LARGEST_KEPT
from stoker._src.runtime.plan.instructions import Instruction, Value, renumber, values_of

_FEWEST_ROWS = 16  # of a part: fewer are multiplied slowly
_PART = 1 << 22  # bytes of a part, which stays in the processor's caches


def form(
    instructions: list[Instruction], results: list[Value | None], shape_of: Callable[[Tensor], Shape]
) -> list[Instruction]:
    """Returns the instructions of a plan, in which updates take the factors of large products."""
    updates = [each for each in instructions if _takes_parts(each)]
    if not updates:
        return instructions
    makers = {value: each for each in instructions for value in values_of(each.results)}
    uses = Counter(value for each in instructions for value in values_of(each.arguments))
    uses.update(value for value in results if value is not None)
    left_out: set[int] = set()
    for update in updates:
        assert update.op is not None
        at, one, many = update.op.definition.planning.takes_parts  # type: ignore[misc]
        gradients = update.arguments[at] if update.kind == "batch" else [update.arguments[at]]
        products: dict[int, RowsOfProduct] = {}
        for i, gradient in enumerate(gradients):
            maker = makers.get(gradient)
            product = None if maker is None or uses[gradient] > 1 else _large_product(maker, shape_of, makers)
            if maker is not None and product is not None:
                products[i], gradients[i] = product, maker.arguments
                left_out.add(id(maker))
        if products and update.kind == "batch":
            update.kernel = functools.partial(many, products)
        elif products:
            update.kernel, update.arguments[at] = functools.partial(one, products[0]), gradients[0]
            functools.update_wrapper(update.kernel, one)
    if not left_out:
        return instructions
    kept = [each for each in instructions if id(each) not in left_out]
    renumber(kept)
    return kept


def _takes_parts(instruction: Instruction) -> bool:
    op = instruction.op
    return op is not None and instruction.kind in ("kernel", "batch") and op.definition.planning.takes_parts is not None


def _large_product(
    maker: Instruction, shape_of: Callable[[Tensor], Shape], makers: dict[Value, Instruction]
) -> RowsOfProduct | None:
    """Returns how a product is computed in parts, if it is large, much larger than its factors, and not of the values of variables."""
    op = maker.op
    if op is None or maker.kind != "kernel" or op.definition.planning.rows_of_product is None:
        return None
    shape, factors = shape_of(op.outputs[0]), [shape_of(each) for each in op._inputs]
    if not shape.known or not all(each.known for each in factors):
        return None
    rows, columns = (int(size or 0) for size in shape)
    row = columns * op.outputs[0].dtype.size
    is_large = rows * row >= LARGEST_KEPT and 2 * sum(each.size or 0 for each in factors) <= rows * columns
    if not is_large or row * _FEWEST_ROWS > _PART or _of_variables(maker, makers):
        return None
    kernel = op.definition.planning.rows_of_product(op)
    return None if kernel is None else RowsOfProduct(kernel, rows, _PART // row)


def _of_variables(maker: Instruction, makers: dict[Value, Instruction]) -> bool:
    """Whether a factor is the value of a variable, which would have to be copied before the update."""
    for value in values_of(maker.arguments):
        source = makers.get(value)
        while source is not None and source.traits & Trait.VIEW and source.arguments:
            source = makers.get(next(values_of(source.arguments)))
        if source is not None and source.traits & Trait.READS:
            return True
    return False
