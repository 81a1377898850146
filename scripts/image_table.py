"""A table of `tf.image`: every function over dtypes, shapes and odd values, compared between two implementations.

    python scripts/image_table.py run two stoker OURS.npz                  # the 2.x functions, eagerly, with gradients
    python scripts/image_table.py run two tensorflow THEIRS.npz
    python scripts/image_table.py run one stoker.compat.v1 OURS.npz        # the 1.x functions in graphs, shapes known and unknown
    python scripts/image_table.py run one tensorflow[.compat.v1] THEIRS.npz
    python scripts/image_table.py compare [--markdown] OURS.npz THEIRS.npz ...

Sizes include images of one pixel, of one row or column, without pixels, and batches without images. Values include NaN, infinities, numbers outside
[0, 1] and the limits of integers. `compare` wants integers, moves of pixels and chosen boxes to be equal, and floating-point numbers to agree to 1e-5
(16-bit ones to the precision of their type). Refusals must be of the same class. With several others, a case is equal if it equals one of them.
"""

import functools
import importlib
import json
import os
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np

SHAPES = [
    (5, 7, 3),
    (2, 6, 4, 3),
    (1, 1, 3),
    (2, 1, 1, 3),
    (3, 1, 5, 3),
    (1, 9, 1, 3),
    (0, 4, 5, 3),
    (2, 0, 3, 3),
    (0, 4, 3),
    (6, 5, 1),
    (2, 3, 5, 4),
]
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "uint16", "int16", "int32", "int64"]
METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]
DIFFERENTIATED = """
    adjust_brightness adjust_contrast adjust_gamma central_crop convert_image_dtype crop_and_resize
    crop_to_bounding_box extract_patches flip_left_right flip_up_down grayscale_to_rgb image_gradients
    pad_to_bounding_box per_image_standardization psnr resize resize_with_crop_or_pad resize_with_pad
    rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90 sobel_edges ssim ssim_multiscale total_variation
    transpose yiq_to_rgb yuv_to_rgb
""".split()
DERIVED = " gradient"


def is_float(dtype):
    return dtype in FLOATS or dtype == "bfloat16"


def picture(shape, dtype, odd=False, seed=0):
    """Values of the usual range; with `odd` also those outside of it. bfloat16 is made from float32 by the runner."""
    r = np.random.RandomState(sum(shape) * 7 + seed)
    size = int(np.prod(shape))
    if is_float(dtype):
        values = r.rand(size)
        if odd:
            values = np.where(
                r.rand(size) < 0.3, r.choice([np.nan, np.inf, -np.inf, -0.5, 2.0, 0.0, 1.0], size), values
            )
        return values.reshape(shape).astype("float32" if dtype == "bfloat16" else dtype)
    limits = np.iinfo(dtype)
    high = min(limits.max, 2**31 - 1)
    values = r.randint(0, high, size)
    if odd:
        values = np.where(
            r.rand(size) < 0.4,
            r.choice([limits.min, limits.max, 0, 1, limits.max // 2], size).astype(dtype),
            values.astype(dtype),
        )
    return values.astype(dtype).reshape(shape)


class Cases:
    """A list of (function, label, arrays, dtypes, call). `call(tf, *tensors)` returns tensors."""

    def __init__(self):
        self.all = []

    def add(self, function, label, arrays, call, dtypes=None):
        arrays = [np.asarray(each) for each in arrays]
        self.all.append((function, label, arrays, dtypes or [each.dtype.name for each in arrays], call))

    def of(self, name, image, dtype, label, *args, **kwargs):
        text = "".join(" %s" % (each,) for each in args) + "".join(" %s=%s" % each for each in sorted(kwargs.items()))
        self.add(name, label + text, [image], lambda tf, x: getattr(tf.image, name)(x, *args, **kwargs), [dtype])


def everywhere(cases, image, dtype, label, form):
    """The functions that take any image."""
    shape = image.shape
    of = lambda name, *args, **kwargs: cases.of(name, image, dtype, label, *args, **kwargs)  # noqa: E731
    for name in (
        "flip_left_right",
        "flip_up_down",
        "transpose",
        "per_image_standardization",
        "total_variation",
        "image_gradients",
    ):
        of(name)
    for name in (
        "sobel_edges",
        "rgb_to_grayscale",
        "grayscale_to_rgb",
        "rgb_to_hsv",
        "hsv_to_rgb",
        "rgb_to_yiq",
        "yiq_to_rgb",
        "rgb_to_yuv",
        "yuv_to_rgb",
    ):
        of(name)
    cases.add(
        "grayscale_to_rgb",
        label + " one channel",
        [image[..., :1]],
        lambda tf, x: tf.image.grayscale_to_rgb(x),
        [dtype],
    )
    for k in (0, 1, 2, 3, -1, 7):
        of("rot90", k)
    for fraction in (0.5, 0.87, 1.0, 0.01, 0.0, 1.5):
        of("central_crop", fraction)
    of("crop_to_bounding_box", 1, 2, 3, 2)
    of("crop_to_bounding_box", 0, 0, 1, 1)
    of("crop_to_bounding_box", -1, 0, 1, 1)
    of("pad_to_bounding_box", 1, 2, 9, 10)
    of("pad_to_bounding_box", 0, 0, shape[-3], shape[-2])
    of("pad_to_bounding_box", 0, 0, 2, 2)
    for target in ((3, 3), (9, 2), (8, 11), (1, 1), (0, 2)):
        of("resize_with_crop_or_pad", *target)
    for delta in (0.3, -0.4):
        of("adjust_brightness", delta)
    for factor in (1.7, 0.0, -1.0):
        of("adjust_contrast", factor)
    for gamma, gain in ((0.6, 1.2), (0, 1), (2, 0.5), (-1, 1)):
        of("adjust_gamma", gamma, gain)
    for delta in (0.2, -0.7, 1.0):
        of("adjust_hue", delta)
    for factor in (1.8, 0.0):
        of("adjust_saturation", factor)
    for wanted in FLOATS + INTEGERS if form == "two" else ("float16", "float32", "uint8", "int16"):
        for saturate in (False, True):
            of("convert_image_dtype", wanted, saturate)
    patches = [(1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1), "SAME"], [(1, 1, 3, 1), (1, 1, 1, 1), (1, 1, 1, 1), "VALID"]
    for each in patches:
        of("extract_patches", *each)
        if form == "one":
            of("extract_image_patches", *each)
    if form == "two":
        for method in METHODS:
            for options in ({}, {"antialias": True}, {"preserve_aspect_ratio": True}):
                of("resize", (3, 5), method, **options)
            for size in ((13, 8), (1, 1), shape[-3:-1], (0, 3)):
                of("resize", size, method)
            of("resize", (2, 9), method, antialias=True)
        for target in ((3, 3), (9, 2), (8, 11)):
            of("resize_with_pad", *target)
        of("resize_with_pad", 9, 4, "nearest")
        of("resize_with_pad", 3, 4, "bicubic", True)
    else:
        of("transpose_image")
        for method in range(4):
            for align in (False, True):
                for size in ((3, 5), (13, 8), (1, 1), shape[-3:-1]):
                    of("resize_images", size, method, align)
            of("resize", (3, 9), method, preserve_aspect_ratio=True)
        for name in ("resize_bilinear", "resize_nearest_neighbor", "resize_bicubic", "resize_area"):
            for options in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
                if name != "resize_area" or "half_pixel_centers" not in options:
                    for size in ((3, 5), (13, 8), (1, 1)):
                        of(name, size, **options)
        for align in (False, True):
            of("resize_image_with_pad", 3, 4, align_corners=align)
            of("resize_image_with_pad", 9, 2, 1, align)
        of("resize_image_with_crop_or_pad", 4, 4)


def pairs(cases, shape, dtype, odd, label):
    """The functions of two images."""
    wide = tuple(
        12 if i in (len(shape) - 3, len(shape) - 2) and size not in (0, 1) else size for i, size in enumerate(shape)
    )
    a, b = picture(wide, dtype, odd), picture(wide, dtype, odd, 1)
    top = 1.0 if is_float(dtype) else float(np.iinfo(dtype).max)
    two = [dtype, dtype]
    cases.add("psnr", label, [a, b], lambda tf, a, b: tf.image.psnr(a, b, top), two)
    cases.add("psnr", label + " same", [a, a], lambda tf, a, b: tf.image.psnr(a, b, top), two)
    for options in ({}, {"filter_size": 5}, {"filter_size": 4, "filter_sigma": 0.7, "k1": 0.02, "k2": 0.05}):
        cases.add(
            "ssim",
            "%s %s" % (label, options),
            [a, b],
            lambda tf, a, b, options=options: tf.image.ssim(a, b, top, **options),
            two,
        )
    cases.add("ssim", label + " same", [a, a], lambda tf, a, b: tf.image.ssim(a, b, top, filter_size=3), two)
    for size in (3, 5):
        cases.add(
            "ssim_multiscale",
            "%s %s" % (label, size),
            [a, b],
            lambda tf, a, b, size=size: tf.image.ssim_multiscale(a, b, top, power_factors=(0.4, 0.3), filter_size=size),
            two,
        )


def cropping(cases, form):
    """crop_and_resize, draw_bounding_boxes, extract_glimpse."""
    third = "box_ind" if form == "one" else "box_indices"
    boxes = np.float32([[0, 0, 1, 1], [0.9, 0.8, 0.1, 0.2], [-0.3, 0.2, 1.4, 0.6], [0.5, 0.5, 0.5, 0.5]])
    strange = np.float32([[np.nan, 0, 1, 1], [0, -np.inf, 1, np.inf]])
    for shape in ((2, 5, 6, 3), (1, 1, 1, 1), (3, 1, 7, 2), (0, 3, 3, 1), (2, 0, 3, 1)):
        for dtype in FLOATS + INTEGERS if form == "two" else ("float32", "uint8"):
            for odd in (False, True):
                image = picture(shape, dtype, odd)
                for method in ("bilinear", "nearest"):
                    for outside in (0.0, -2.5) if form == "two" else (-2.5,):
                        for number, group in enumerate((boxes, boxes[:0], strange)):
                            for size in ((3, 4), (1, 1), (1, 6)):
                                index = np.int32([i % max(shape[0], 1) for i in range(len(group))])
                                label = "%s %s odd=%d %s %s %d %s" % (shape, dtype, odd, method, outside, number, size)
                                if number == 2 and size != (3, 4):
                                    continue
                                cases.add(
                                    "crop_and_resize",
                                    label,
                                    [image, group],
                                    lambda tf, x, b, i=index, s=size, m=method, o=outside: tf.image.crop_and_resize(
                                        x, b, crop_size=s, method=m, extrapolation_value=o, **{third: i}
                                    ),
                                    [dtype, "float32"],
                                )
    image = picture((2, 5, 6, 3), "float32")
    for index in ([0, 2], [-1, 0], [0], [0, 0, 0]):
        cases.add(
            "crop_and_resize",
            "indices %s" % index,
            [image, boxes[:2]],
            lambda tf, x, b, i=index: tf.image.crop_and_resize(x, b, crop_size=(2, 2), **{third: np.int32(i)}),
        )
    colours = [
        None,
        np.float32([[0.3, 0.6, 0.9, 0.5], [0.1, 0.2, 0.8, 1]]),
        np.float32([[0.5, 0.25, 1.0]]),
        np.float32([[1], [0.2]]),
    ]
    for shape in ((2, 8, 9, 3), (1, 1, 1, 1), (1, 6, 5, 4), (0, 4, 4, 3), (2, 1, 7, 3), (1, 5, 5, 2)):
        for dtype in ("float32", "float16", "float64", "uint8") if form == "two" else ("float32", "float16"):
            for odd in (False, True) if form == "two" else (False,):
                image = picture(shape, dtype, odd)
                for number, corners in enumerate(
                    (
                        [[0.1, 0.2, 0.9, 0.8], [0, 0, 0.5, 0.5], [0.3, 0.3, 0.3, 0.6]],
                        [[-0.5, -0.2, 1.3, 0.5], [0.5, 0.5, 0.2, 0.9], [2, 2, 3, 3]],
                        [[np.nan, 0, 1, 1], [0, 0, np.inf, 1], [0, 0, 1, 1]],
                    )
                ):
                    group = np.tile(np.float32(corners)[None], (shape[0], 1, 1))
                    for which, colour in enumerate(colours):
                        cases.add(
                            "draw_bounding_boxes",
                            "%s %s odd=%d %d %d" % (shape, dtype, odd, number, which),
                            [image, group],
                            lambda tf, x, b, c=colour: tf.image.draw_bounding_boxes(x, b, colors=c),
                            [dtype, "float32"],
                        )
    for shape in ((2, 5, 6, 3), (1, 1, 1, 1), (0, 4, 4, 2), (2, 3, 1, 2)):
        image = picture(shape, "float32")
        for centered in (False, True):
            for normalized in (False, True):
                for offset in ((0.0, 0.0), (0.4, -0.3), (1.0, 1.0), (2.6, -3.4), (np.nan, 0.0)):
                    offsets = np.tile(np.float32(offset)[None], (shape[0], 1))
                    noise = {"uniform_noise": False} if form == "one" else {"noise": "zero"}
                    for size in ((1, 1), (3, 4)):
                        # The 1.x form fills with noise whatever `uniform_noise` says: only glimpses within the image can be compared.
                        if form == "one" and not inside(shape, size, offset, centered, normalized):
                            continue
                        cases.add(
                            "extract_glimpse",
                            "%s %s %s %s %s" % (shape, centered, normalized, offset, size),
                            [image, offsets],
                            lambda tf, x, o, s=size, c=centered, n=normalized, noise=noise: tf.image.extract_glimpse(
                                x, s, o, c, n, **noise
                            ),
                        )


def inside(shape, size, offset, centered, normalized):
    for extent, length, place in zip(shape[1:3], size, offset):
        middle = place * extent if normalized else place
        if centered:
            middle = middle / 2 + extent / 2.0
        if not (length / 2.0 <= middle <= extent - length / 2.0):
            return False
    return True


def choice(cases, name, label, boxes, scores, limits):
    cases.add(
        name,
        " ".join(map(str, (label, *limits[3:]))),
        [boxes, scores],
        lambda tf, b, s: getattr(tf.image, name)(b, s, *limits),
    )


def suppression(cases, form):
    """non_max_suppression and its kin."""
    for count in (0, 1, 6, 30) if form == "two" else (0, 30):
        r = np.random.RandomState(count)
        corner = r.rand(count, 2)
        plain = np.concatenate([corner, corner + r.rand(count, 2) * 0.5], 1).astype("float32")
        turned = np.where(r.rand(count, 1) < 0.5, plain, plain[:, [2, 3, 0, 1]])
        scores = r.rand(count).astype("float32")
        ties = np.round(scores * 3) / np.float32(3)
        strange = scores.copy()
        strange[: count // 3] = np.nan
        for number, (boxes, score) in enumerate(
            (
                (plain, scores),
                (turned, scores),
                (plain, ties),
                (plain, strange),
                (np.where(r.rand(count, 4) < 0.1, np.float32(np.nan), plain), scores),
            )
        ):
            for kind in ("float32", "float16") if form == "two" else ("float32",):
                b, s = boxes.astype(kind), score.astype(kind)
                for size in (0, 3, 40, -1) if form == "two" else (3, 40):
                    for iou, threshold in ((0.5, float("-inf")), (0.2, 0.4), (0.0, 0.0), (1.0, 2.0), (1.5, 0.0)):
                        label = "%d boxes %d %s %s %s %s" % (count, number, kind, size, iou, threshold)

                        choice(cases, "non_max_suppression", label, b, s, (size, iou, threshold))
                        choice(cases, "non_max_suppression_with_scores", label, b, s, (size, iou, threshold))
                        choice(cases, "non_max_suppression_with_scores", label, b, s, (size, iou, threshold, 0.3))
                        if kind == "float32" and size >= 0 and iou <= 1:
                            choice(cases, "non_max_suppression_padded", label, b, s, (size, iou, threshold))
                            choice(cases, "non_max_suppression_padded", label, b, s, (size, iou, threshold, True))
        overlaps = r.rand(count, count).astype("float32")
        for size in (0, 3, 40):
            for overlap, threshold in ((0.5, float("-inf")), (0.2, 0.4)):
                cases.add(
                    "non_max_suppression_overlaps",
                    "%d %d %s %s" % (count, size, overlap, threshold),
                    [overlaps, scores],
                    lambda tf, o, s, size=size, overlap=overlap, threshold=threshold: (
                        tf.image.non_max_suppression_overlaps(o, s, size, overlap, threshold)
                    ),
                )
        for batch, classes, shared in ((1, 1, True), (2, 3, True), (2, 3, False), (0, 2, True)):
            b = np.tile(plain[None, :, None] * 1.3 - 0.1, (batch, 1, 1 if shared else classes, 1)).astype("float32")
            s = r.rand(batch, count, classes).astype("float32")
            for each, total in ((3, 5), (2, 40), (1, 1), (10, 2)):
                for iou, threshold in ((0.5, float("-inf")), (0.2, 0.4)):
                    for per_class in (False, True):
                        for clip in (False, True) if form == "two" else (False,):
                            cases.add(
                                "combined_non_max_suppression",
                                "%s %d %d %s %d %d %s %s %s %s"
                                % (count, batch, classes, shared, each, total, iou, threshold, per_class, clip),
                                [b, s],
                                lambda tf, b, s, a=(each, total, iou, threshold, per_class, clip): (
                                    tf.image.combined_non_max_suppression(b, s, *a)
                                ),
                            )


def with_seeds(cases, form, seed, whole, name, image, *args):
    """Three calls with a seed of their own, and perhaps one of the whole program."""
    if (whole is None and form == "two") or (whole is None and seed == 0):
        return

    def call(tf, x):
        if whole is not None:
            (tf.set_random_seed if hasattr(tf, "set_random_seed") else tf.random.set_seed)(whole)
        return [getattr(tf.image, "random_" + name)(x, *args, seed=seed) for _ in range(3)]

    cases.add("random_" + name, "%s seed %s %s %s %s" % (image.shape, seed, whole, image.dtype, args), [image], call)


def random_functions(cases, form):
    """The random functions, with seeds. A case gives the values of three calls."""
    photo = (np.indices((16, 24)).sum(0)[..., None] * np.array([6, 3, 5]) % 256).astype("uint8")
    calls = (
        ("brightness", (0.4,)),
        ("contrast", (0.3, 1.9)),
        ("hue", (0.3,)),
        ("saturation", (0.2, 2.0)),
        ("flip_left_right", ()),
        ("flip_up_down", ()),
    )
    for seed in (0, 1, 7, 12345) if form == "two" else (0, 7):
        for whole in (None, 17):
            seeded = functools.partial(with_seeds, cases, form, seed, whole)
            for shape in ((4, 5, 3), (6, 4, 5, 3), (1, 1, 3), (0, 4, 5, 3)):
                for dtype in ("float32", "uint8", "float64", "float16"):
                    for name, args in calls:
                        seeded(name, picture(shape, dtype), *args)
                    seeded("crop", picture(shape, dtype), shape[:-3] + (1, 1, 2))
            seeded("crop", photo, (5, 6, 3))
            seeded("crop", photo, (16, 24, 3))
            seeded("crop", photo, (17, 2, 3))
            seeded("jpeg_quality", photo, 10, 90)
            seeded("jpeg_quality", photo / np.float32(255), 0, 100)
            seeded("brightness", photo, -0.1)
            seeded("contrast", photo, 2.0, 1.0)
            seeded("hue", photo, 0.6)
            seeded("saturation", photo, -1.0, 1.0)
            seeded("jpeg_quality", photo, 90, 10)
        if form == "two":
            pair = (seed, 5)
            for shape in ((4, 5, 3), (6, 4, 5, 3), (1, 1, 3)):
                for dtype in ("float32", "uint8", "float64", "float16"):
                    image = picture(shape, dtype)
                    for name, args in calls:
                        cases.of("stateless_random_" + name, image, dtype, "%s %s" % (shape, dtype), *args, seed=pair)
                    cases.of(
                        "stateless_random_crop",
                        image,
                        dtype,
                        "%s %s" % (shape, dtype),
                        shape[:-3] + (1, 1, 2),
                        seed=pair,
                    )
            cases.of("stateless_random_jpeg_quality", photo, "uint8", "photo", 10, 90, seed=pair)
        objects = np.float32([[[0.2, 0.3, 0.6, 0.8], [0.5, 0.1, 0.9, 0.4]]])
        for size, boxes, options in (
            ((50, 60, 3), objects, {}),
            ((17, 9, 1), objects, {"min_object_covered": 0.7}),
            ((100, 100, 3), objects, {"area_range": (0.1, 0.4), "aspect_ratio_range": (0.5, 2.0)}),
            ((33, 64, 3), objects, {"min_object_covered": 1.0, "max_attempts": 5}),
            ((20, 20, 3), objects[:, :0], {"use_image_if_no_bounding_boxes": True}),
            ((20, 20, 3), objects[:, :0], {}),
            ((1, 1, 3), objects, {}),
            ((20, 20, 3), objects + 1, {}),
        ):
            if seed:
                label = "%s %s %s %s" % (size, boxes.shape, sorted(options.items()), seed)

                def sampled(tf, s, b, seed=seed, options=options):
                    if form == "two":
                        tf.random.set_seed(4)
                        return [
                            part
                            for _ in range(2)
                            for part in tf.image.sample_distorted_bounding_box(s, b, seed=seed, **options)
                        ]
                    return tf.image.sample_distorted_bounding_box(s, b, seed=seed, seed2=3, **options)

                cases.add("sample_distorted_bounding_box", label, [np.int32(size), boxes], sampled)
            if form == "two":
                cases.add(
                    "stateless_sample_distorted_bounding_box",
                    "%s %s %s %s" % (size, boxes.shape, sorted(options.items()), seed),
                    [np.int32(size), boxes],
                    lambda tf, s, b, seed=seed, options=options: tf.image.stateless_sample_distorted_bounding_box(
                        s, b, (seed, 3), **options
                    ),
                )


def encoded(cases, form):
    """adjust_jpeg_quality and encode_png."""
    r = np.random.RandomState(5)
    for shape in ((16, 24, 3), (1, 1, 3), (7, 3, 1), (9, 1, 3), (8, 8, 2), (0, 4, 3)):
        smooth = (np.indices(shape).sum(0) * 9 % 256).astype("uint8")
        for dtype in ("uint8", "float32", "uint16", "float64"):
            image = (
                smooth
                if dtype == "uint8"
                else (smooth / 255.0).astype(dtype)
                if is_float(dtype)
                else smooth.astype(dtype) * 257
            )
            for quality in (0, 30, 95, 100, 101):
                cases.of("adjust_jpeg_quality", image, dtype, "%s %s" % (shape, dtype), quality)
    for shape in ((3, 5, 1), (3, 5, 2), (1, 1, 3), (4, 2, 4), (2, 2, 5), (0, 3, 3)):
        for dtype in ("uint8", "uint16", "int32"):
            for compression in (-1, 0, 9, 10):
                image = r.randint(0, np.iinfo("uint8").max, shape).astype(dtype)

                def call(tf, x, compression=compression, dtype=dtype):
                    return tf.image.decode_png(
                        tf.image.encode_png(x, compression), dtype=dtype if dtype == "uint16" else "uint8"
                    )

                cases.add("encode_png", "%s %s %s" % (shape, dtype, compression), [image], call)


def every_case(form):
    cases = Cases()
    # A case in a graph takes longer, so there are fewer of them.
    dtypes = [*FLOATS, "bfloat16", *INTEGERS] if form == "two" else [*FLOATS, "uint8", "int16", "int32"]
    for dtype in dtypes:
        for shape in SHAPES if form == "two" else [SHAPES[i] for i in (0, 1, 2, 4, 6, 10)]:
            for odd in (False, True) if form == "two" or dtype in ("float32", "uint8") else (False,):
                label = "%s %s%s" % (shape, dtype, " odd" if odd else "")
                everywhere(cases, picture(shape, dtype, odd), dtype, label, form)
                if shape[-1] == 3:
                    pairs(cases, shape, dtype, odd, label)
    everywhere(cases, picture((1, 2, 3, 4, 5), "float32"), "float32", "rank 5", form)
    for shape in ((), (3,), (4, 5)):
        ranks(cases, shape)
    cropping(cases, form)
    suppression(cases, form)
    random_functions(cases, form)
    encoded(cases, form)
    return cases.all


def ranks(cases, shape):
    """Images of too few dimensions."""
    image = picture(shape, "float32")
    for name, args in (
        ("flip_left_right", ()),
        ("flip_up_down", ()),
        ("transpose", ()),
        ("rot90", ()),
        ("central_crop", (0.5,)),
        ("crop_to_bounding_box", (0, 0, 1, 1)),
        ("pad_to_bounding_box", (0, 0, 9, 9)),
        ("resize_with_crop_or_pad", (2, 2)),
        ("resize", ((2, 2),)),
        ("adjust_brightness", (0.1,)),
        ("adjust_contrast", (2.0,)),
        ("adjust_gamma", ()),
        ("adjust_hue", (0.1,)),
        ("adjust_saturation", (2.0,)),
        ("per_image_standardization", ()),
        ("rgb_to_grayscale", ()),
        ("grayscale_to_rgb", ()),
        ("rgb_to_hsv", ()),
        ("hsv_to_rgb", ()),
        ("rgb_to_yiq", ()),
        ("yuv_to_rgb", ()),
        ("image_gradients", ()),
        ("total_variation", ()),
        ("extract_patches", ((1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), "VALID")),
    ):
        cases.of(name, image, "float32", "rank %d" % len(shape), *args)


# ---- running ----------------------------------------------------------------------------------------------------


def outputs(value):
    return [part for each in value for part in outputs(each)] if isinstance(value, (tuple, list)) else [value]


def plain(value):
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


def run_two(tf, cases, keep):
    for function, label, arrays, kinds, call in cases:
        tensors = [
            tf.cast(tf.constant(each), kind) if kind == "bfloat16" else tf.constant(each)
            for each, kind in zip(arrays, kinds)
        ]
        try:
            keep(function, label, [(plain(each), kind_of(each)) for each in outputs(call(tf, *tensors))])
        except Exception as error:
            keep(function, label, error)
            continue
        if function in DIFFERENTIATED and kinds[0] in ("float32", "float64") and "odd" not in label:
            with tf.GradientTape() as tape:
                tape.watch(tensors[0])
                try:
                    found = [each for each in outputs(call(tf, *tensors)) if each.dtype.is_floating]
                    if not found:
                        continue
                    total = sum(
                        tf.reduce_sum(each * tf.constant(weights(each.shape.as_list()), each.dtype)) for each in found
                    )
                except Exception as error:
                    keep(function, label + DERIVED, error)
                    continue
            try:
                gradient = tape.gradient(total, tensors[0])
                keep(function, label + DERIVED, [] if gradient is None else [(plain(gradient), kind_of(gradient))])
            except Exception as error:
                keep(function, label + DERIVED, error)


def weights(shape):
    return np.cos(np.arange(int(np.prod(shape))) * 1.3).reshape(shape)


def run_one(tf, cases, keep):
    for function, label, arrays, kinds, call in cases:
        for known in (True, False) if kinds[0] in ("float32", "uint8", "int32") else (True,):
            full = label + ("" if known else ", shape unknown")
            try:
                with tf.Graph().as_default(), tf.Session() as session:
                    fed = [tf.placeholder(each.dtype, each.shape if known else [None] * each.ndim) for each in arrays]
                    found = outputs(call(tf, *fed))
                    for each in found:
                        tf.convert_to_tensor(each)
                    values = session.run(found, dict(zip(fed, arrays)))
                    static = [None if each.shape.ndims is None else each.shape.as_list() for each in found]
                    for value, shape in zip(values, static):
                        assert shape is None or all(size in (None, real) for size, real in zip(shape, value.shape)), (
                            shape,
                            value.shape,
                        )
                keep(function, full, [(plain(each), each.dtype.name) for each in values])
            except Exception as error:
                keep(function, full, error)


def kind_of(tensor):
    return tensor.dtype.name


def run(form, module, out, only=None):
    warnings.filterwarnings("ignore")
    tf = importlib.import_module(module)
    if form == "one":
        if hasattr(tf, "disable_v2_behavior"):
            tf.disable_v2_behavior()
        (tf.compat.v1 if hasattr(tf, "compat") else tf).logging.set_verbosity("ERROR")
    index, flat = [], {}

    def keep(function, label, result):
        if isinstance(result, Exception):
            index.append([function, label, type(result).__name__, str(result)[:200]])
            return
        entry = []
        for array, kind in result:
            flat.setdefault(array.dtype.name, []).append(array.reshape(-1))
            entry.append([array.dtype.name, kind, list(array.shape)])
        index.append([function, label, entry])

    cases = [each for each in every_case(form) if only is None or each[0] in only.split(",")]
    (run_two if form == "two" else run_one)(tf, cases, keep)
    arrays = {kind: np.concatenate(parts) for kind, parts in flat.items() if kind != "object"}
    np.savez_compressed(out, index=np.frombuffer(json.dumps(index).encode(), np.uint8), **arrays)
    print(len(index), "results")


# ---- comparing --------------------------------------------------------------------------------------------------


def read(path):
    with np.load(path) as file:
        flat = {name: file[name] for name in file.files}
    index = json.loads(flat.pop("index").tobytes().decode())
    places = dict.fromkeys(flat, 0)
    results = {}
    for function, label, *entry in index:
        if isinstance(entry[0], str):
            results[function, label] = tuple(entry)
            continue
        arrays = []
        for stored, kind, shape in entry[0]:
            count = int(np.prod(shape))
            arrays.append((kind, flat[stored][places[stored] : places[stored] + count].reshape(shape)))
            places[stored] += count
        results[function, label] = arrays
    return results


TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}
ORDER = ["equal", "close", "refused", "known"]
# Integer images are converted to float32 here, so results may differ by one or by the rounding of float32.
IN_FLOAT32 = {"contrast", "gamma", "hue", "saturation", "grayscale"}
NAN_DIFFERS = {
    "adjust_hue",
    "adjust_saturation",
    "rgb_to_hsv",
    "resize",
    "resize_with_pad",
    "resize_area",
    "resize_images",
}
NO_KERNEL = {"NotFoundError", "UnimplementedError"}


def is_known(function, label, ours, theirs):
    """Whether docs/images.md states that the two differ in such a case."""
    odd, refused = " odd" in label, isinstance(theirs, tuple) and not isinstance(ours, tuple)
    if isinstance(theirs, tuple) and (
        theirs[0] in NO_KERNEL or (" float16" in label and function.split("_")[-1] in IN_FLOAT32)
    ):
        return True
    if odd and function in NAN_DIFFERS:
        return True
    if function.startswith("non_max_suppression"):
        # NaN among boxes or scores; in padded suppression, corners in any order.
        if "boxes 4 " in label or ("padded" in function and ("boxes 1 " in label or "boxes 3 " in label)):
            return True
        return refused and (label.startswith("0 boxes") or " float16 " in label)
    if function == "random_crop":
        return isinstance(ours, tuple) and isinstance(theirs, tuple)
    if " int64" in label and (function.startswith("adjust") or odd):
        return True
    if odd and function in ("convert_image_dtype", "adjust_gamma"):
        return True
    if function == "sobel_edges" or label.endswith(DERIVED):
        return (refused and label.startswith("(0, ")) or function == "ssim_multiscale"
    return label.startswith("rank 0") and isinstance(ours, tuple) and isinstance(theirs, tuple)


def verdict(function, label, ours, theirs):
    """One of ORDER, or what differs."""
    found = difference(function, ours, theirs)
    return "known" if found not in ORDER and is_known(function, label, ours, theirs) else found


def difference(function, ours, theirs):
    if isinstance(ours, tuple) or isinstance(theirs, tuple):
        if isinstance(ours, tuple) and isinstance(theirs, tuple) and ours[0] == theirs[0]:
            return "refused"
        return "refusal"
    if len(ours) != len(theirs) or any(a[0] != b[0] or a[1].shape != b[1].shape for a, b in zip(ours, theirs)):
        return "type or shape"
    found = "equal"
    for (kind, a), (_, b) in zip(ours, theirs):
        if np.array_equal(a, b) or (
            a.dtype.kind == "f"
            and bool((np.isnan(a) == np.isnan(b)).all() and (np.nan_to_num(a) == np.nan_to_num(b)).all())
        ):
            continue
        if a.dtype.kind != "f":
            if function.split("_")[-1] not in IN_FLOAT32:
                return "values"
            # Of 64-bit integers, the largest float32 is just outside of the range and wraps around.
            apart = np.abs(a.astype("float64") - b.astype("float64"))
            if (
                apart
                > np.maximum(
                    1, np.abs(a.astype("float64")) * 4e-7 + 4e-7 * float(np.iinfo(a.dtype).max) * (a.dtype.itemsize > 2)
                )
            ).any():
                return "values"
            found = "close"
            continue
        limit = TOLERANCE.get(kind, 1e-5)
        with np.errstate(all="ignore"):
            finite = b[np.isfinite(b)]
            scale = max(1.0, float(np.abs(finite.astype("float64")).max()) if finite.size else 1.0)
            if not np.allclose(
                a.astype("float64"), b.astype("float64"), rtol=limit, atol=limit * scale, equal_nan=True
            ):
                return "values"
        found = "close"
    return found


def compare(paths, markdown):
    ours, *others = [read(path) for path in paths]
    table, differing = {}, []
    for key, mine in ours.items():
        found = [verdict(*key, mine, other[key]) for other in others if key in other]
        if not found:
            continue
        best = min(found, key=lambda each: ORDER.index(each) if each in ORDER else 9)
        row = table.setdefault(key[0], dict.fromkeys(("cases", *ORDER, "differ"), 0))
        row["cases"] += 1
        row[best if best in ORDER else "differ"] += 1
        if best not in ORDER:
            differing.append((key, best, mine, [other.get(key) for other in others]))
    if not markdown:
        for key, kind, mine, theirs in differing:
            print("-- %s [%s]: %s\n   ours   %s" % (key[0], key[1], kind, short(mine)))
            for each in theirs:
                print("   theirs %s" % short(each))
    print(
        "| function | cases | equal | to 1e-5 | refused alike | known to differ | differ |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    total = dict.fromkeys(("cases", *ORDER, "differ"), 0)
    for name, row in sorted(table.items()):
        print("| `%s` | %d | %d | %d | %d | %d | %d |" % (name, *row.values()))
        for each in total:
            total[each] += row[each]
    print("| all | %d | %d | %d | %d | %d | %d |" % tuple(total.values()))
    return 1 if differing else 0


def short(result):
    if result is None or isinstance(result, tuple):
        return str(result)[:200]
    return " ".join(
        "%s%s %s" % (kind, list(array.shape), np.array2string(array.reshape(-1)[:8], precision=6).replace("\n", ""))
        for kind, array in result
    )[:300]


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(*sys.argv[2:])
    else:
        sys.exit(compare([each for each in sys.argv[2:] if each != "--markdown"], "--markdown" in sys.argv))
