"""Cases of resizing: every method and option over odd sizes and dtypes."""

import itertools

import numpy as np

R = np.random.RandomState(7)
SHAPES = [((1, 1, 1, 1), (3, 2)), ((2, 5, 7, 3), (3, 4)), ((1, 4, 3, 2), (9, 5)), ((2, 3, 3, 3), (1, 1)), ((0, 3, 4, 3), (2, 5)), ((1, 8, 6, 3), (8, 3))]  # fmt: skip
CENTRES = [(False, False), (True, False), (False, True)]
KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]


def picture(shape, dtype="float32"):
    """Pixels that depend on the shape alone."""
    values = np.random.RandomState(sum(shape) + 1).randint(0, 128, shape)
    return values.astype(dtype) if dtype != "float32" else (values / np.float32(100)).astype("float32")


def cases(case):
    for shape, size in SHAPES:
        x = picture(shape)
        for align, half in CENTRES:
            attrs = {"align_corners": align, "half_pixel_centers": half}
            label = f"{shape}-{size}-{align:d}{half:d}"
            for op in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic"):
                case(
                    f"{op} {label}",
                    lambda tf, op=op, x=x, size=size, attrs=attrs: getattr(tf.raw_ops, op)(
                        images=x, size=size, **attrs
                    ),
                )
            grads = picture((shape[0], *size, shape[3]))
            for op in ("ResizeBilinear", "ResizeBicubic"):
                case(
                    f"{op}Grad {label}",
                    lambda tf, op=op, x=x, grads=grads, attrs=attrs: getattr(tf.raw_ops, op + "Grad")(
                        grads=grads, original_image=x, **attrs
                    ),
                )
            case(
                f"ResizeNearestNeighborGrad {label}",
                lambda tf, x=x, grads=grads, attrs=attrs: tf.raw_ops.ResizeNearestNeighborGrad(
                    grads=grads, size=x.shape[1:3], **attrs
                ),
            )
        for align in (False, True):
            case(
                f"ResizeArea {shape}-{size}-{align:d}",
                lambda tf, x=x, size=size, align=align: tf.raw_ops.ResizeArea(images=x, size=size, align_corners=align),
            )
        for kernel, antialias in itertools.product(KERNELS, (False, True)):
            for scale, moved in (((0.9, 0.4), (0.3, -0.2)), ((1.7, 2.0), (0.0, 1.5))):
                attrs = {"scale": scale, "translation": moved, "kernel_type": kernel, "antialias": antialias}
                case(
                    f"ScaleAndTranslate {shape}-{size}-{kernel}-{antialias:d}-{scale}",
                    lambda tf, x=x, size=size, attrs=attrs: tf.raw_ops.ScaleAndTranslate(images=x, size=size, **attrs),
                )
            grads = picture((shape[0], *size, shape[3]))
            attrs = {"scale": (0.9, 0.4), "translation": (0.3, -0.2), "kernel_type": kernel, "antialias": antialias}
            case(
                f"ScaleAndTranslateGrad {shape}-{size}-{kernel}-{antialias:d}",
                lambda tf, x=x, grads=grads, attrs=attrs: tf.raw_ops.ScaleAndTranslateGrad(
                    grads=grads, original_image=x, **attrs
                ),
            )
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float64"):
        x = picture((2, 5, 7, 3), dtype)
        for op in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"):
            case(f"{op} {dtype}", lambda tf, op=op, x=x: getattr(tf.raw_ops, op)(images=x, size=(4, 6)))
        case(
            f"ScaleAndTranslate {dtype}",
            lambda tf, x=x: tf.raw_ops.ScaleAndTranslate(
                images=x, size=(4, 6), scale=(0.8, 0.9), translation=(0.0, 0.0)
            ),
        )
