"""`tf.contrib.image`: projective transforms of images, and images warped by a field of displacements."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import conversion, scopes
from stoker._src.ops.array import casting, gathering, joining, ranges, shaping
from stoker._src.ops.image import projective
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, clipping, sequences, unary_functions

_IMAGES = (dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


def _rows(value: Any, size: int, name: str) -> Any:
    """`value` as a matrix with rows of `size` numbers.

    Raises:
        TypeError: its rank is unknown or neither 1 nor 2.
    """
    tensor = conversion.convert_to_tensor(value, dtypes.float32, name=name)
    rank = tensor.get_shape().ndims
    if rank is None:
        raise TypeError(f"{name} rank must be statically known")
    if rank not in (1, 2):
        raise TypeError(f"{name} should have rank 1 or 2, not {rank}.")
    return tensor[None] if rank == 1 else tensor


@export(v1="contrib.image.angles_to_projective_transforms")
def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: str | None = None) -> Any:
    """Rotations by `angles` radians, counter-clockwise around the centre of images of a size, as rows of 8 numbers."""
    with scopes.name_scope(name, "angles_to_projective_transforms"):
        angle = conversion.convert_to_tensor(angles, dtypes.float32, name="angles")
        rank = angle.get_shape().ndims
        if rank is None or rank > 1:
            raise TypeError(f"Angles should have rank 0 or 1, not {rank}.")
        angle = angle[None] if rank == 0 else angle
        high, wide = (casting.cast(size, dtypes.float32) - 1 for size in (image_height, image_width))
        cos, sin = unary_functions.cos(angle), unary_functions.sin(angle)
        x = (wide - (cos * wide - sin * high)) / 2.0
        y = (high - (sin * wide + cos * high)) / 2.0
        zero = shaping.zeros_like(angle)
        return joining.stack([cos, -sin, x, sin, cos, y, zero, zero], 1)


@export(v1="contrib.image.translations_to_projective_transforms")
def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Translations by (dx, dy), to the right and down, as rows of 8 numbers."""
    with scopes.name_scope(name, "translations_to_projective_transforms"):
        moved = _rows(translations, 2, "translations")
        one, zero = shaping.ones_like(moved[:, 0]), shaping.zeros_like(moved[:, 0])
        return joining.stack([one, zero, -moved[:, 0], zero, one, -moved[:, 1], zero, zero], 1)


@export(v1="contrib.image.flat_transforms_to_matrices")
def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Rows of 8 numbers as matrices of 3 rows; the last number of each is 1."""
    with scopes.name_scope("flat_transforms_to_matrices"):
        flat = _rows(transforms, 8, "transforms")
        return shaping.reshape(joining.concat([flat, shaping.ones_like(flat[:, :1])], 1), [-1, 3, 3])


@export(v1="contrib.image.matrices_to_flat_transforms")
def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Matrices of 3 rows as rows of 8 numbers, divided by the last number of each matrix.

    Raises:
        ValueError: it is neither a matrix nor a batch of matrices.
    """
    with scopes.name_scope("matrices_to_flat_transforms"):
        matrices = conversion.convert_to_tensor(transform_matrices, name="transform_matrices")
        if matrices.get_shape().ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        flat = shaping.reshape(matrices, [-1, 9])
        return (flat / flat[:, 8:9])[:, :8]


@export(v1="contrib.image.compose_transforms")
def compose_transforms(*transforms: Any) -> Any:
    """One transform that does what the given ones do, in their order. A row of 8 numbers applies to each of a batch.

    Raises:
        ValueError: there are none.
    """
    if not transforms:
        raise ValueError("transforms cannot be empty")
    with scopes.name_scope("compose_transforms"):
        product = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            product = matrix_products.matmul(product, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(product)


@export(v1="contrib.image.transform")
def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: str | None = None
) -> Any:
    """Moves pixels: the pixel at (x, y) comes from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), with k = c0 x + c1 y + 1.

    Args:
        images: [batch, height, width, channels], [height, width, channels] or [height, width].
        transforms: 8 numbers a0, a1, a2, b0, b1, b2, c0, c1 for all images, or a row of them for each.
        interpolation: "NEAREST" or "BILINEAR". Outside of an image pixels are 0.
        output_shape: height and width of the result; None for those of the images.
        name: the name scope.

    Raises:
        TypeError: the images have an unsupported dtype, or a rank is unknown or not supported.
    """
    with scopes.name_scope(name, "transform"):
        given = conversion.convert_to_tensor(images, name="images")
        if given.dtype.base_dtype not in _IMAGES:
            raise TypeError(f"Invalid dtype {given.dtype}.")
        rank = given.get_shape().ndims
        if rank not in (2, 3, 4):
            raise TypeError(
                "Images should have rank between 2 and 4." if rank else "image_or_images rank must be known"
            )
        batch = {2: lambda: given[None, :, :, None], 3: lambda: given[None], 4: lambda: given}[rank]()
        sizes = shaping.shape(batch)[1:3] if output_shape is None else output_shape
        moved = projective.TRANSFORM(
            batch, _rows(transforms, 8, "transforms"), sizes, interpolation=interpolation.upper()
        )
        return {2: lambda: moved[0, :, :, 0], 3: lambda: moved[0], 4: lambda: moved}[rank]()


@export(v1="contrib.image.rotate")
def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Rotates images by radians, counter-clockwise around their centres; arguments as in `transform`."""
    with scopes.name_scope(name, "rotate"):
        given = conversion.convert_to_tensor(images, name="images")
        rank = given.get_shape().ndims
        if rank not in (2, 3, 4):
            raise TypeError(
                "Images should have rank between 2 and 4." if rank else "image_or_images rank must be known"
            )
        sizes = shaping.shape(given)
        first = 1 if rank == 4 else 0
        turns = angles_to_projective_transforms(angles, sizes[first], sizes[first + 1])
        return transform(given, turns, interpolation=interpolation)


@export(v1="contrib.image.translate")
def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """Moves images by (dx, dy), to the right and down; arguments as in `transform`."""
    with scopes.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation=interpolation)


@export(v1="contrib.image.dense_image_warp")
def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Any:
    """Reads each pixel (row, column) from (row, column) - flow[row, column], between pixels by bilinear interpolation.

    Args:
        image: [batch, height, width, channels], with at least 2 rows and columns.
        flow: [batch, height, width, 2]: how far to go, in rows and columns.
        name: the name scope.
    """
    with scopes.name_scope(name):
        image, flow = conversion.convert_to_tensor(image), conversion.convert_to_tensor(flow)
        sizes = shaping.shape(image)
        batch, height, width, channels = (sizes[i] for i in range(4))
        columns, rows = sequences.meshgrid(ranges.range(width), ranges.range(height))
        grid = casting.cast(joining.stack([rows, columns], 2), flow.dtype)
        places = shaping.reshape(shaping.expand_dims(grid, 0) - flow, [batch, height * width, 2])
        lows, fractions = [], []
        for i, size in enumerate((height, width)):
            place = places[:, :, i]
            last = casting.cast(size - 2, flow.dtype)
            low = arithmetic.minimum(arithmetic.maximum(0.0, unary_functions.floor(place)), last)
            lows.append(casting.cast(low, dtypes.int32))
            fraction = casting.cast(place - low, image.dtype)
            fractions.append(shaping.expand_dims(clipping.clip_by_value(fraction, 0.0, 1.0), 2))
        flat = shaping.reshape(image, [batch * height * width, channels])
        starts = shaping.reshape(ranges.range(batch) * height * width, [batch, 1])

        def read(row: Any, column: Any) -> Any:
            return gathering.gather(flat, starts + row * width + column)

        (top, left), (down, right) = lows, fractions
        above = right * (read(top, left + 1) - read(top, left)) + read(top, left)
        below = right * (read(top + 1, left + 1) - read(top + 1, left)) + read(top + 1, left)
        return shaping.reshape(down * (below - above) + above, [batch, height, width, channels])
