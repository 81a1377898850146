"""Random ops whose numbers are TensorFlow's for the same seeds. The arithmetic is in `random_bits`."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, is_tensor
from stoker._src.graph.definition import STATEFUL, OpDefinition, define, unregistered
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.math import arithmetic
from stoker._src.ops.random.bits import cuda, fills
from stoker._src.ops.random.bits.philox import PhiloxState, Stream
from stoker._src.ops.random.bits.seeds import EagerSeeds, op_seeds
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import torch_dtype

_FEW = 8  # outputs of an execution that may be drawn together with those of the next ones

# -- seeds -------------------------------------------------------------------------------------------------------


class _Eager:
    """The sequence of op seeds in eager mode. `tf.random.set_seed` starts it."""

    sequence: EagerSeeds | None = None


@export(v1=("set_random_seed", "random.set_random_seed"), v2="random.set_seed")
def set_random_seed(seed: int) -> None:
    """Sets the seed of the default graph (the global seed in eager mode), from which ops without a seed derive theirs."""
    if context.executing_eagerly():
        _Eager.sequence = EagerSeeds(seed)
        context.target().start_seed(seed)
    else:
        context.get_default_graph().seed = seed


@export(v1=("get_seed", "random.get_seed"))
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The pair of seeds for an op with seed `op_seed`; (None, None) for a random stream."""
    if context.executing_eagerly():
        sequence = _Eager.sequence
        return op_seeds(context.target().seed, op_seed, sequence.next_op_seed if sequence is not None else lambda: 0)
    graph = context.get_default_graph()
    return op_seeds(graph.seed, op_seed, graph.next_random_op)


def op_seed_attrs(seed: int | None) -> dict[str, Any]:
    """The seed attributes for a stateful random op created now."""
    first, second = get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


def generator(ctx: Any, seed: int, seed2: int) -> PhiloxState:
    """The state of the node's generator, started from its seeds on first use."""
    if ctx.state is None:
        ctx.state = PhiloxState(seed, seed2)
    return ctx.state


# -- definitions -------------------------------------------------------------------------------------------------


def checked_count(shape: list[int]) -> int:
    """The number of elements of a tensor of that shape.

    Raises:
        InvalidArgumentError: a size is negative.
        ResourceExhaustedError: the elements do not fit into memory.
    """
    return numbers.prod(allocatable(shape, 4))


def _filled(name: str, fill: Callable[..., torch.Tensor]) -> OpDefinition:
    definition = define(
        f"{name}(shape: host T) -> (output: dtype)", STATEFUL, seed=0, seed2=0, dtype=FLOATS, T=INDEX
    ).not_differentiable()

    def kernel(shape: list[int], *, seed: int, seed2: int, dtype: DType, ctx: Any) -> torch.Tensor:
        count = checked_count(shape)
        if 0 < count <= _FEW:

            def draw(stream: Stream, times: int) -> torch.Tensor:
                return fill(stream, count, torch_dtype(dtype), times).view(times, *shape)

            return generator(ctx, seed, seed2).few((shape, dtype), count, draw)
        stream = generator(ctx, seed, seed2).reserve_outputs(count)
        return fill(stream, count, torch_dtype(dtype)).view(shape)

    def repeated(
        times: int, shape: list[int], *, wanted: bool, seed: int, seed2: int, dtype: DType, ctx: Any
    ) -> torch.Tensor | None:
        count = checked_count(shape)
        stream = generator(ctx, seed, seed2).reserve_outputs(times * count)
        return fill(stream, count, torch_dtype(dtype), times).view(times, *shape) if wanted else None

    def on_gpu(
        shape: list[int], *, seed: int, seed2: int, dtype: DType, ctx: Any, device: torch.device
    ) -> torch.Tensor:
        checked_count(shape)
        return cuda.filled(fill.__name__, generator(ctx, seed, seed2), shape, device)

    if fill in (fills.uniform, fills.normal):
        definition.planning.on_gpu = lambda op: on_gpu if cuda.can_fill(torch_dtype(op.attrs["dtype"])) else None
    kernel.__name__ = f"{name.lower()}_kernel"
    definition.planning.repeats = repeated
    definition.planning.repeated = many = unregistered(
        f"{name}OfRows(times: host int32, shape: host T) -> (output: dtype)",
        STATEFUL,
        seed=0,
        seed2=0,
        dtype=FLOATS,
        T=INDEX,
    ).not_differentiable()
    many.kernel(
        lambda times, shape, *, seed, seed2, dtype, ctx: repeated(
            times, shape, wanted=True, seed=seed, seed2=seed2, dtype=dtype, ctx=ctx
        )
    )
    many.shape(_of_rows, as_shapes=["shape"])
    definition.kernel(kernel)
    definition.shape(lambda shape: shape, as_shapes=["shape"])
    return definition


def _of_rows(times: Shape, shape: Shape, *_: Shape) -> Shape:
    return Shape((None, *shape.dims)) if shape.dims is not None else UNKNOWN_SHAPE


RANDOM_UNIFORM = _filled("RandomUniform", fills.uniform)
RANDOM_STANDARD_NORMAL = _filled("RandomStandardNormal", fills.normal)
TRUNCATED_NORMAL = _filled("TruncatedNormal", fills.truncated_normal)

RANDOM_UNIFORM_INT = define(
    "RandomUniformInt(shape: host T, minval: host Tout, maxval: host Tout) -> (output: Tout)",
    STATEFUL,
    seed=0,
    seed2=0,
    Tout=INDEX,
    T=INDEX,
)


@RANDOM_UNIFORM_INT.kernel
def random_uniform_int_kernel(
    shape: list[int], minval: int, maxval: int, *, seed: int, seed2: int, Tout: DType, ctx: Any
) -> torch.Tensor:
    if minval >= maxval:
        raise InvalidArgumentError(None, None, f"Need minval < maxval, got {minval} >= {maxval}")
    count = checked_count(shape)
    if 0 < count <= _FEW:

        def draw(stream: Stream, times: int) -> torch.Tensor:
            drawn = fills.uniform_int_of_runs(stream, count, minval, maxval, torch_dtype(Tout), times)
            return drawn.view(times, *shape)

        return generator(ctx, seed, seed2).few((shape, minval, maxval, Tout), count, draw)
    stream = generator(ctx, seed, seed2).reserve_outputs(count)
    return fills.uniform_int(stream, count, minval, maxval, torch_dtype(Tout)).reshape(shape)


RANDOM_UNIFORM_INT.planning.repeated = _INTS_OF_ROWS = unregistered(
    "RandomUniformIntOfRows(times: host int32, shape: host T, minval: host Tout, maxval: host Tout) -> (output: Tout)",
    STATEFUL,
    seed=0,
    seed2=0,
    Tout=INDEX,
    T=INDEX,
).not_differentiable()
_INTS_OF_ROWS.shape(_of_rows, as_shapes=["shape"])


@_INTS_OF_ROWS.kernel
def random_uniform_int_of_rows_kernel(
    times: int, shape: list[int], minval: int, maxval: int, *, seed: int, seed2: int, Tout: DType, ctx: Any
) -> torch.Tensor:
    if minval >= maxval:
        raise InvalidArgumentError(None, None, f"Need minval < maxval, got {minval} >= {maxval}")
    count = checked_count(shape)
    stream = generator(ctx, seed, seed2).reserve_outputs(times * count)
    drawn = fills.uniform_int_of_runs(stream, count, minval, maxval, torch_dtype(Tout), times)
    return drawn.view(times, *shape)


@RANDOM_UNIFORM_INT.shape(as_shapes=["shape"])
def random_uniform_int_shape(shape: Shape, minval: Shape, maxval: Shape) -> Shape:
    minval.of_rank(0)
    maxval.of_rank(0)
    return shape


# -- functions ---------------------------------------------------------------------------------------------------


def shape_tensor(shape: Any) -> Tensor:
    """Converts a shape to a tensor: int32 for plain numbers; tensors and arrays keep their dtype."""
    plain = isinstance(shape, (list, tuple)) and not any(is_tensor(each) for each in shape)
    hint = dtypes.int32 if plain else None
    return convert_to_tensor(shape, dtype_hint=hint, name="shape")


def _scaled_draw(
    definition: OpDefinition, default: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: Any, name: str | None
) -> Tensor:
    """Draws standard numbers, then scales and shifts them, with the same ops and names as TensorFlow."""
    with name_scope(name, default, [shape, mean, stddev]) as scope:
        sizes, kind = shape_tensor(shape), as_dtype(dtype)
        centre, width = convert_to_tensor(mean, kind, "mean"), convert_to_tensor(stddev, kind, "stddev")
        drawn = definition(sizes, dtype=kind, **op_seed_attrs(seed))
        return arithmetic.ADD_V2(drawn * width, centre, name=scope)


@export("random.normal", v1="random_normal")
def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws normal random numbers."""
    return _scaled_draw(RANDOM_STANDARD_NORMAL, "random_normal", shape, mean, stddev, dtype, seed, name)


@export("random.truncated_normal", v1="truncated_normal")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws normal random numbers. Those more than two standard deviations from the mean are drawn again."""
    return _scaled_draw(TRUNCATED_NORMAL, "truncated_normal", shape, mean, stddev, dtype, seed, name)


@export("random.uniform", v1="random_uniform")
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws uniform random numbers in [minval, maxval).

    Raises:
        ValueError: an integer dtype is given without `maxval`, or the dtype is neither floating point nor integer.
    """
    kind = as_dtype(dtype)
    if kind not in (*FLOATS, *INDEX):
        raise ValueError(
            f"Argument `dtype` got invalid value {kind.name}. Accepted dtypes are float16, bfloat16, float32, float64, int32, int64."
        )
    if maxval is None:
        if kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind.name}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        sizes = shape_tensor(shape)
        low, high = convert_to_tensor(minval, kind, "min"), convert_to_tensor(maxval, kind, "max")
        if kind.is_integer:
            return RANDOM_UNIFORM_INT(sizes, low, high, name=scope, **op_seed_attrs(seed))
        drawn = RANDOM_UNIFORM(sizes, dtype=kind, **op_seed_attrs(seed))
        if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
            return drawn
        return arithmetic.ADD_V2(drawn * (high - low), low, name=scope)
