"""Cases of the functions of tf.image that are composed of ops: dtypes, one image and batches, one pixel, odd sizes, empty batches."""

import numpy as np

SHAPES = [(5, 7, 3), (2, 6, 4, 3), (1, 1, 3), (3, 1, 5, 3), (0, 4, 5, 3)]
DTYPES = ["float32", "uint8", "int32", "float16", "float64", "int8", "int16", "uint16", "int64"]


def picture(shape, dtype="float32"):
    r = np.random.RandomState(sum(shape))
    if np.dtype(dtype).kind == "f":
        return r.rand(*shape).astype(dtype)
    return r.randint(0, np.iinfo(dtype).max if dtype != "int64" else 2**31, shape).astype(dtype)


def cases(case):
    I = lambda tf: tf.image  # noqa: E731
    for shape in SHAPES:
        for dtype in DTYPES:
            x = picture(shape, dtype)
            label = f"{shape} {dtype}"

            def of(name, *args, x=x, label=label, **kwargs):
                extra = f" {args} {kwargs}" if args or kwargs else ""
                case(f"{name} {label}{extra}", lambda tf: getattr(I(tf), name)(tf.constant(x), *args, **kwargs))

            for name in (
                "flip_left_right",
                "flip_up_down",
                "transpose",
                "per_image_standardization",
                "rgb_to_grayscale",
            ):
                of(name)
            for k in (0, 1, 2, 3, -1, 7):
                of("rot90", k)
            if shape[-2] > 1 and shape[-3] > 3:
                of("central_crop", 0.5)
                of("central_crop", 0.87)
                of("crop_to_bounding_box", 1, 2, 3, 2)
            of("pad_to_bounding_box", 1, 2, 9, 10)
            for target in ((3, 3), (9, 2), (8, 11)):
                of("resize_with_crop_or_pad", *target)
                of("resize_with_pad", *target)
            of("resize_with_pad", 9, 4, "nearest")
            of("resize_with_pad", 3, 4, "bilinear", True)
            of("adjust_brightness", 0.3)
            of("adjust_brightness", -0.4)
            of("adjust_contrast", 1.7)
            of("adjust_gamma", 0.6, 1.2)
            of("adjust_hue", 0.2)
            of("adjust_saturation", 1.8)
            of("total_variation")
            if len(shape) == 4:
                of("image_gradients")
            if len(shape) == 4 and np.dtype(dtype).kind == "f" and min(shape[1:3]) > 1:
                of("sobel_edges")
            for wanted in DTYPES:
                for saturate in (False, True):
                    if not (np.dtype(dtype).kind == "f" and wanted == "int64"):
                        of("convert_image_dtype", wanted, saturate)
            if np.dtype(dtype).kind == "f" and dtype != "float16":
                for name in ("rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb", "rgb_to_hsv", "hsv_to_rgb"):
                    of(name)
            case(f"grayscale_to_rgb {label}", lambda tf, x=x: I(tf).grayscale_to_rgb(tf.constant(x[..., :1])))
            for method in (
                "bilinear",
                "nearest",
                "bicubic",
                "area",
                "lanczos3",
                "lanczos5",
                "gaussian",
                "mitchellcubic",
            ):
                if dtype in ("float32", "uint8"):
                    for options in ({}, {"antialias": True}, {"preserve_aspect_ratio": True}):
                        of("resize", (3, 5), method, **options)
                    of("resize", (13, 8), method)
                    of("resize", shape[-3:-1], method)
            wide = tuple(12 if i >= len(shape) - 3 and i < len(shape) - 1 else size for i, size in enumerate(shape))
            a, b = picture(wide, dtype), picture(wide[:-1] + (4,), dtype)[..., :3]
            case(
                f"psnr {label}",
                lambda tf, a=a, b=b, dtype=dtype: I(tf).psnr(
                    tf.constant(a), tf.constant(b), 1.0 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
                ),
            )
            if dtype in ("float32", "uint8", "float64"):
                top = 1.0 if dtype != "uint8" else 255
                case(f"ssim {label}", lambda tf, a=a, b=b, top=top: I(tf).ssim(tf.constant(a), tf.constant(b), top))
                case(
                    f"ssim-map {label}",
                    lambda tf, a=a, b=b, top=top: I(tf).ssim(
                        tf.constant(a), tf.constant(b), top, filter_size=5, return_index_map=True
                    ),
                )
                case(
                    f"ssim-same {label}",
                    lambda tf, a=a, top=top: I(tf).ssim(
                        tf.constant(a), tf.constant(a), top, filter_size=4, filter_sigma=0.7, k1=0.02, k2=0.05
                    ),
                )
                case(
                    f"ssim_multiscale {label}",
                    lambda tf, a=a, b=b, top=top: I(tf).ssim_multiscale(
                        tf.constant(a), tf.constant(b), top, power_factors=(0.4, 0.3), filter_size=5
                    ),
                )
                odd = np.concatenate([a, a[..., :7, :]], -2)[..., :11, :, :]
                case(
                    f"ssim_multiscale-odd {label}",
                    lambda tf, odd=odd, top=top: I(tf).ssim_multiscale(
                        tf.constant(odd),
                        tf.constant(odd[..., ::-1, :].copy()),
                        top,
                        power_factors=(0.4, 0.3),
                        filter_size=3,
                    ),
                )
    photo = (np.indices((16, 24)).sum(0)[..., None] * np.array([6, 3, 5]) % 256).astype("uint8")
    for quality in (0, 30, 95, 100):
        case(
            f"adjust_jpeg_quality {quality}",
            lambda tf, quality=quality: I(tf).adjust_jpeg_quality(tf.constant(photo), quality),
        )
        case(
            f"adjust_jpeg_quality gray {quality}",
            lambda tf, quality=quality: I(tf).adjust_jpeg_quality(tf.constant(photo[..., :1]), quality),
        )
        case(
            f"adjust_jpeg_quality float {quality}",
            lambda tf, quality=quality: I(tf).adjust_jpeg_quality(tf.constant(photo / np.float32(255)), quality),
        )
    clips = np.float32([[-1.0, -0.01, 0.0, 0.5, 0.999, 1.0, 1.01, 2.5]]).reshape(1, 8, 1)
    for wanted in ("uint8", "int8", "uint16", "int16", "int32"):
        case(
            f"convert_image_dtype clips {wanted}",
            lambda tf, wanted=wanted: I(tf).convert_image_dtype(tf.constant(clips), wanted, saturate=True),
        )
    for _sign in (True,):
        case(
            "convert_image_dtype negative",
            lambda tf: I(tf).convert_image_dtype(tf.constant(np.int8([[[-5], [7]]])), "uint8", saturate=True),
        )
    for seed in (1, 7, 12345):
        x = picture((4, 5, 3))
        batch = picture((6, 4, 5, 3))
        pair = (seed, 5)
        for name, args in (
            ("brightness", (0.4,)),
            ("contrast", (0.3, 1.9)),
            ("hue", (0.3,)),
            ("saturation", (0.2, 2.0)),
            ("flip_left_right", ()),
            ("flip_up_down", ()),
        ):
            case(
                f"stateless_random_{name} {seed}",
                lambda tf, name=name, args=args, pair=pair, x=x: getattr(I(tf), "stateless_random_" + name)(
                    tf.constant(x), *args, seed=pair
                ),
            )
            if "flip" in name:
                case(
                    f"stateless_random_{name} batch {seed}",
                    lambda tf, name=name, pair=pair, batch=batch: getattr(I(tf), "stateless_random_" + name)(
                        tf.constant(batch), seed=pair
                    ),
                )
                case(
                    f"stateless_random_{name} bytes {seed}",
                    lambda tf, name=name, pair=pair, batch=batch: getattr(I(tf), "stateless_random_" + name)(
                        tf.constant((batch * 200).astype("uint8")), seed=pair
                    ),
                )
        case(
            f"stateless_random_jpeg_quality {seed}",
            lambda tf, pair=pair: I(tf).stateless_random_jpeg_quality(tf.constant(photo), 10, 90, seed=pair),
        )
        case(
            f"stateless_random_crop {seed}",
            lambda tf, pair=pair: I(tf).stateless_random_crop(tf.constant(photo), (5, 6, 3), seed=pair),
        )

        def seeded(name, *args, x=x, seed=seed):
            def run(tf):
                tf.random.set_seed(17)
                return [getattr(I(tf), "random_" + name)(tf.constant(x), *args, seed=seed) for _ in range(3)]

            case(f"random_{name} {seed} {x.shape}", run)

        for name, args in (
            ("brightness", (0.4,)),
            ("contrast", (0.3, 1.9)),
            ("hue", (0.3,)),
            ("saturation", (0.2, 2.0)),
            ("flip_left_right", ()),
            ("flip_up_down", ()),
        ):
            seeded(name, *args)
        seeded("crop", (2, 3, 3))
        seeded("flip_left_right", x=batch)
        seeded("jpeg_quality", 10, 90, x=photo)
    boxes = np.float32(
        [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
    )
    scores = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
    case("non_max_suppression", lambda tf: I(tf).non_max_suppression(boxes, scores, 3))
    case("non_max_suppression threshold", lambda tf: I(tf).non_max_suppression(boxes, scores, 3, 0.9, 0.55))
    case(
        "non_max_suppression_with_scores",
        lambda tf: I(tf).non_max_suppression_with_scores(boxes, scores, 5, soft_nms_sigma=0.3),
    )
    case(
        "non_max_suppression_overlaps",
        lambda tf: I(tf).non_max_suppression_overlaps(np.eye(6, dtype="float32") * 0.6 + 0.3, scores, 4, 0.25),
    )
    for pad in (False, True):
        case(
            f"non_max_suppression_padded {pad}",
            lambda tf, pad=pad: I(tf).non_max_suppression_padded(
                tf.constant(boxes), tf.constant(scores), 5, 0.5, 0.4, pad
            ),
        )
        case(
            f"non_max_suppression_padded sorted {pad}",
            lambda tf, pad=pad: I(tf).non_max_suppression_padded(
                tf.constant(boxes), tf.constant(scores), 5, 0.5, 0.4, pad, sorted_input=True
            ),
        )
        case(
            f"non_max_suppression_padded batch {pad}",
            lambda tf, pad=pad: I(tf).non_max_suppression_padded(
                tf.constant(np.stack([boxes, boxes[::-1]])), tf.constant(np.stack([scores, scores])), 5, 0.5, 0.4, pad
            ),
        )
    case(
        "combined_non_max_suppression",
        lambda tf: I(tf).combined_non_max_suppression(boxes[None, :, None], scores[None, :, None], 4, 6),
    )
    image = picture((2, 5, 6, 3))
    case(
        "crop_and_resize",
        lambda tf: I(tf).crop_and_resize(image, boxes[:3], [0, 1, 1], (3, 4), extrapolation_value=2.0),
    )
    case(
        "crop_and_resize bytes",
        lambda tf: I(tf).crop_and_resize(
            tf.constant(picture((2, 5, 6, 3), "uint8")), boxes[:3], [0, 1, 1], (3, 4), method="nearest"
        ),
    )
    case(
        "draw_bounding_boxes",
        lambda tf: I(tf).draw_bounding_boxes(
            image, np.float32([[[0.1, 0.2, 0.9, 0.8]], [[0, 0, 0.5, 0.5]]]), np.float32([[0.3, 0.6, 0.9]])
        ),
    )
    case(
        "draw_bounding_boxes plain",
        lambda tf: I(tf).draw_bounding_boxes(image, np.float32([[[0.1, 0.2, 0.9, 0.8]], [[0, 0, 0.5, 0.5]]]), None),
    )
    case("extract_patches", lambda tf: I(tf).extract_patches(image, (1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1), "SAME"))
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        for centered in (False, True):
            for normalized in (False, True):
                for offsets in (((0, 0), (0.5, -0.5)), ((1, 1), (-2, 3)), ((-0.2, 0.7), (2.6, -3.4))):
                    attrs = {
                        "centered": centered,
                        "normalized": normalized,
                        "noise": "zero",
                        "uniform_noise": False,
                        "offsets": np.float32(offsets),
                    }
                    case(
                        f"{op} {centered} {normalized} {offsets}",
                        lambda tf, op=op, attrs=attrs: getattr(tf.raw_ops, op)(input=image, size=(3, 4), **attrs),
                    )
    case("extract_glimpse", lambda tf: I(tf).extract_glimpse(image, (2, 2), np.float32([[0, 0], [0.1, 0.3]])))
    objects = np.float32([[[0.2, 0.3, 0.6, 0.8], [0.5, 0.1, 0.9, 0.4]]])
    for seed in range(12):
        for number, (size, options) in enumerate(
            (
                ((50, 60, 3), {}),
                ((17, 9, 1), {"min_object_covered": 0.7}),
                ((100, 100, 3), {"area_range": (0.1, 0.4), "aspect_ratio_range": (0.5, 2.0)}),
                ((33, 64, 3), {"min_object_covered": 1.0, "max_attempts": 5}),
            )
        ):
            case(
                f"stateless_sample_distorted_bounding_box {seed} {number}",
                lambda tf, seed=seed, size=size, options=options: I(tf).stateless_sample_distorted_bounding_box(
                    np.int32(size), objects, (seed, 3), **options
                ),
            )

            def repeated(tf, seed=seed, size=size, options=options):
                tf.random.set_seed(4)
                return [
                    each
                    for _ in range(3)
                    for each in I(tf).sample_distorted_bounding_box(np.int32(size), objects, seed=seed + 1, **options)
                ]

            case(f"sample_distorted_bounding_box {seed} {number}", repeated)
