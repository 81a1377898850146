"""The pooling functions of `tf.nn`."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.nn.arguments import (
    either,
    for_each_dimension,
    in_two_dimensions,
    layout,
    split_padding,
    starts_with_channels,
    whole,
)
from stoker._src.ops.nn.dilated import with_space_to_batch
from stoker._src.ops.nn.pooling import AVG_POOL, AVG_POOL_3D, MAX_POOL, MAX_POOL_3D, MAX_POOL_WITH_ARGMAX


def _max_pool_2d(value: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, scope: str) -> Tensor:
    data_format = "NHWC" if data_format is None else data_format
    axis = 1 if starts_with_channels(data_format) else 3
    word, explicit = split_padding(padding)
    return MAX_POOL(
        value,
        ksize=for_each_dimension(ksize, 2, axis, "ksize"),
        strides=for_each_dimension(strides, 2, axis, "strides"),
        padding=word,
        explicit_paddings=explicit,
        data_format=data_format,
        name=scope,
    )


def _avg_pool_2d(value: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, scope: str) -> Tensor:
    data_format = "NHWC" if data_format is None else data_format
    axis = 1 if starts_with_channels(data_format) else 3
    return AVG_POOL(
        value,
        ksize=for_each_dimension(ksize, 2, axis, "ksize"),
        strides=for_each_dimension(strides, 2, axis, "strides"),
        padding=padding,
        data_format=data_format,
        name=scope,
    )


def _pool_1d(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, scope: str, largest: bool
) -> Tensor:
    first = starts_with_channels(data_format)
    at = 2 if first else 1
    sizes = for_each_dimension(ksize, 1, 1 if first else 2, "ksize")
    steps = for_each_dimension(strides, 1, 1 if first else 2, "strides")
    sizes, steps = [*sizes[:at], 1, *sizes[at:]], [*steps[:at], 1, *steps[at:]]
    if isinstance(padding, (list, tuple)) and len(padding) == 3:
        padding = [*padding[:at], [0, 0], *padding[at:]]
    pool_2d = _max_pool_2d if largest else _avg_pool_2d
    data_format = "NCHW" if first else "NHWC"
    return in_two_dimensions(
        convert_to_tensor(value, name="input"), first, lambda x: pool_2d(x, sizes, steps, padding, data_format, scope)
    )


def _pool_3d(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, scope: str, largest: bool
) -> Tensor:
    axis = 1 if starts_with_channels(data_format) else 4
    return (MAX_POOL_3D if largest else AVG_POOL_3D)(
        value,
        ksize=for_each_dimension(ksize, 3, axis, "ksize"),
        strides=for_each_dimension(strides, 3, axis, "strides"),
        padding=padding,
        data_format="NDHWC" if data_format is None else data_format,
        name=scope,
    )


# ---- maxima -----------------------------------------------------------------------------------------------------


@export(v1="nn.max_pool")
def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Max pooling of images.

    `ksize` and `strides` are one number, two numbers (height and width), or four numbers (one per dimension).

    Raises:
        ValueError: a size of the window is 0.
    """
    value = either(value, "value", input, "input")
    with name_scope(name, "MaxPool", [value]) as scope:
        sizes = for_each_dimension(ksize, 2, 1 if starts_with_channels(data_format) else 3, "ksize")
        if any(size == 0 for size in sizes):
            raise ValueError(f"`ksize` cannot be zero. Received: ksize={list(sizes)}")
        return _max_pool_2d(value, ksize, strides, padding, data_format, scope)


@export(v1="nn.max_pool_v2", v2="nn.max_pool")
def max_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Max pooling over one, two or three spatial dimensions, depending on the input."""
    value = convert_to_tensor(input)
    count = _spatial_count(value, data_format)
    make = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}[count]
    return make(value, ksize, strides, padding, data_format or {1: "NWC", 2: "NHWC", 3: "NDHWC"}[count], name)


def _spatial_count(value: Tensor, data_format: str | None) -> int:
    """The number of spatial dimensions.

    Raises:
        ValueError: it is not 1, 2 or 3, or is given by neither the rank nor the layout.
    """
    rank = value.static_shape.rank
    count = rank - 2 if rank is not None else (None if data_format is None else len(data_format) - 2)
    if count is None:
        raise ValueError("`input` must have a static shape or `data_format` must be given.")
    if not 1 <= count <= 3:
        raise ValueError(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={value.shape} of rank {count + 2}."
        )
    return count


@export("nn.max_pool1d")
def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Max pooling of sequences."""
    with name_scope(name, "MaxPool1d", [input]) as scope:
        return _pool_1d(input, ksize, strides, padding, data_format, scope, True)


@export("nn.max_pool2d")
def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Max pooling of images."""
    with name_scope(name, "MaxPool2d", [input]) as scope:
        return _max_pool_2d(input, ksize, strides, padding, data_format, scope)


@export("nn.max_pool3d")
def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Max pooling of volumes."""
    with name_scope(name, "MaxPool3D", [input]) as scope:
        return _pool_3d(input, ksize, strides, padding, data_format, scope, True)


@export(v1="nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """Returns (maxima, their positions in the flattened image, or in the flattened batch with `include_batch_in_index`)."""
    _only_channels_last(data_format)
    wanted = either(Targmax, "Targmax", output_dtype, "output_dtype")
    return MAX_POOL_WITH_ARGMAX(
        input,
        ksize=ksize,
        strides=strides,
        padding=padding,
        Targmax=dtypes.int64 if wanted is None else as_dtype(wanted),
        include_batch_in_index=include_batch_in_index,
        name=name,
    )


def _only_channels_last(data_format: str) -> None:
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other than 'NHWC' are not supported. Received: data_format={data_format}"
        )


@export(v2="nn.max_pool_with_argmax")
def max_pool_with_argmax_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: Any = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> Any:
    """Returns (maxima, their positions in the flattened image, or in the flattened batch with `include_batch_in_index`)."""
    sizes, steps = for_each_dimension(ksize, 2, 3, "ksize"), for_each_dimension(strides, 2, 3, "strides")
    return max_pool_with_argmax(
        input, sizes, steps, padding, data_format, output_dtype, name, None, include_batch_in_index
    )


# ---- averages ---------------------------------------------------------------------------------------------------


@export(v1=("nn.avg_pool", "nn.avg_pool2d"))
def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Average pooling of images. Padding is not counted."""
    value = either(value, "value", input, "input")
    with name_scope(name, "AvgPool", [value]) as scope:
        return _avg_pool_2d(value, ksize, strides, padding, data_format, scope)


@export(v1="nn.avg_pool_v2", v2="nn.avg_pool")
def avg_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Average pooling over one, two or three spatial dimensions, depending on the input."""
    value = convert_to_tensor(input)
    count = _spatial_count(value, data_format)
    make = {1: avg_pool1d, 2: avg_pool, 3: avg_pool3d}[count]
    return make(value, ksize, strides, padding, data_format or {1: "NWC", 2: "NHWC", 3: "NDHWC"}[count], name)


@export("nn.avg_pool1d")
def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Average pooling of sequences."""
    with name_scope(name, "AvgPool1D", [input]) as scope:
        return _pool_1d(input, ksize, strides, padding, data_format, scope, False)


@export(v2="nn.avg_pool2d")
def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Average pooling of images. Padding is not counted."""
    with name_scope(name, "AvgPool2D", [input]) as scope:
        return avg_pool(input, ksize, strides, padding, data_format, scope)


@export("nn.avg_pool3d")
def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Average pooling of volumes."""
    with name_scope(name, "AvgPool3D", [input]) as scope:
        return _pool_3d(input, ksize, strides, padding, data_format, scope, False)


# ---- any number of dimensions -----------------------------------------------------------------------------------


@export(v1="nn.pool")
def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling (`pooling_type` MAX or AVG) over windows of `window_shape`, which may be dilated.

    Raises:
        ValueError: SAME padding or strides are combined with dilation, or the pooling type is unknown.
    """
    rate = either(dilation_rate, "dilation_rate", dilations, "dilations")
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"Value for attr `pooling_type` must be 'MAX' or 'AVG'. Received: {pooling_type}")
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        value = convert_to_tensor(input, name="input")
        count = len(window_shape)
        if not 1 <= count <= 3:
            raise ValueError(f"`window_shape` must have 1, 2 or 3 entries. Received: {window_shape}")
        value.shape.assert_has_rank(count + 2)
        window = [whole(size, "window_shape") for size in window_shape]
        steps = _filled(strides, count, "strides")
        rates = _filled(rate, count, "dilation_rate")
        dilated = any(each > 1 for each in rates)
        if dilated and any(step > 1 for step in steps):
            raise ValueError(
                f"strides > 1 not supported in conjunction with dilation_rate > 1. Received: strides={steps}, "
                f"dilation_rate={rates}"
            )
        if dilated and padding == "SAME":
            raise ValueError(
                f"pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. Received: padding={padding} "
                f"and dilation_rate={rates}"
            )
        if any(step > size for step, size in zip(steps, window)):
            raise ValueError(
                f"`strides` > `window_shape` not supported. Received: strides={steps}, window_shape={window}"
            )

        def apply(x: Tensor, _: int, word: str) -> Tensor:
            if count == 1:
                return _pool_1d(x, window, steps, word, data_format, scope, pooling_type == "MAX")
            if count == 2:
                make = _max_pool_2d if pooling_type == "MAX" else _avg_pool_2d
                return make(x, window, steps, word, layout(data_format, 2), scope)
            return _pool_3d(x, window, steps, word, layout(data_format, 3), scope, pooling_type == "MAX")

        return with_space_to_batch(value, rates, padding, apply, None, None, data_format)


def _filled(value: Any, count: int, label: str) -> list[int]:
    if value is None:
        return [1] * count
    given = list(value)
    if len(given) != count:
        raise ValueError(f"`{label}` must have {count} entries, one for each spatial dimension. Received: {value}")
    if any(isinstance(each, str) for each in given):
        raise ValueError(f"`{label}` must be integers. Received: {value!r}")
    numbers = [whole(each, label) for each in given]
    if any(number < 1 for number in numbers):
        raise ValueError(f"all values of `{label}` must be positive. Received: {value}")
    return numbers


@export(v2="nn.pool")
def pool_v2(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Pooling (`pooling_type` MAX or AVG) over windows of `window_shape`, which may be dilated."""
    return pool(input, window_shape, pooling_type, padding, dilations, strides, name, data_format)
