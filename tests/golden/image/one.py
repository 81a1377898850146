"""Cases of the 1.x forms, run in graphs by TensorFlow 1.15."""

import numpy as np

R = np.random.RandomState(9)
BATCH = R.rand(2, 5, 7, 3).astype("float32")
BYTES = R.randint(0, 256, (2, 5, 7, 3)).astype("uint8")
PHOTO = (np.indices((16, 24)).sum(0)[..., None] * np.array([6, 3, 5]) % 256).astype("uint8")
BOXES = np.float32([[[0.1, 0.2, 0.9, 0.8]], [[0, 0, 0.5, 0.5]]])
CORNERS = np.float32(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 10.1, 0, 11.1], [0, 100, 1, 101]]
)
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def cases(case):
    for name, images in (("floats", BATCH), ("bytes", BYTES), ("one", BYTES[0]), ("pixel", BATCH[:, :1, :1])):
        for size in ((3, 4), (9, 2), (5, 7)):
            for align in (False, True):
                for method in range(3 if name == "pixel" else 4):  # AREA of one pixel, aligned, is NaN in 1.15
                    case(
                        f"resize_images {name} {size} {align} {method}",
                        lambda tf, images=images, size=size, align=align, method=method: tf.image.resize_images(
                            images, size, method, align
                        ),
                    )
                case(
                    f"resize_image_with_pad {name} {size} {align}",
                    lambda tf, images=images, size=size, align=align: tf.image.resize_image_with_pad(
                        images, size[0], size[1], align_corners=align
                    ),
                )
            case(
                f"resize_images aspect {name} {size}",
                lambda tf, images=images, size=size: tf.image.resize_images(images, size, preserve_aspect_ratio=True),
            )
            case(
                f"resize_image_with_crop_or_pad {name} {size}",
                lambda tf, images=images, size=size: tf.image.resize_image_with_crop_or_pad(images, size[0], size[1]),
            )
    for op in ("resize_bilinear", "resize_nearest_neighbor", "resize_bicubic"):
        for options in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
            case(f"{op} {options}", lambda tf, op=op, options=options: getattr(tf.image, op)(BATCH, (4, 9), **options))
    case("resize_area", lambda tf: tf.image.resize_area(BYTES, (4, 9)))
    case("resize_area align", lambda tf: tf.image.resize_area(BYTES, (4, 9), True))
    case("transpose_image", lambda tf: tf.image.transpose_image(BATCH))
    for name in ("flip_left_right", "flip_up_down", "rot90", "adjust_gamma"):
        case(name, lambda tf, name=name: getattr(tf.image, name)(BATCH))
        case(name + " bytes", lambda tf, name=name: getattr(tf.image, name)(BYTES))
    case("per_image_standardization", lambda tf: tf.image.per_image_standardization(BATCH[0]))
    case("central_crop", lambda tf: tf.image.central_crop(BATCH, 0.6))
    case("crop_and_resize", lambda tf: tf.image.crop_and_resize(BATCH, CORNERS[:2], box_ind=[0, 1], crop_size=(3, 2)))
    case(
        "crop_and_resize indices",
        lambda tf: tf.image.crop_and_resize(BYTES, CORNERS[:2], crop_size=(3, 2), box_indices=[0, 1], method="nearest"),
    )
    case("draw_bounding_boxes", lambda tf: tf.image.draw_bounding_boxes(BATCH, BOXES))
    case("draw_bounding_boxes colors", lambda tf: tf.image.draw_bounding_boxes(BATCH, BOXES, colors=[[0.5, 0.2, 0.1]]))
    for centered in (False, True):
        for normalized in (False, True):
            case(
                f"extract_glimpse {centered} {normalized}",
                lambda tf, centered=centered, normalized=normalized: tf.image.extract_glimpse(
                    BATCH,
                    (2, 3),
                    np.float32([[1.9, 1.9], [1.4, 1.6]])
                    if not centered and not normalized
                    else np.float32([[0.3, 0.4], [0.35, 0.5]])
                    if not centered
                    else np.zeros((2, 2), "float32"),
                    centered,
                    normalized,
                ),
            )
    for seed in (1, 5):
        for name, args in (
            ("brightness", (0.4,)),
            ("contrast", (0.3, 1.9)),
            ("hue", (0.3,)),
            ("saturation", (0.2, 2.0)),
            ("flip_left_right", ()),
            ("flip_up_down", ()),
            ("crop", ((2, 3, 3),)),
        ):

            def seeded(tf, name=name, args=args, seed=seed):
                tf.set_random_seed(3)
                return getattr(tf.image, "random_" + name)(BATCH[0], *args, seed=seed)

            case(f"random_{name} {seed}", seeded)
        case(f"random_flip batch {seed}", lambda tf, seed=seed: tf.image.random_flip_left_right(BATCH, seed=seed))
        case(
            f"random_jpeg_quality {seed}", lambda tf, seed=seed: tf.image.random_jpeg_quality(PHOTO, 20, 80, seed=seed)
        )
        case(
            f"sample_distorted_bounding_box {seed}",
            lambda tf, seed=seed: tf.image.sample_distorted_bounding_box([40, 50, 3], BOXES[:1], seed=seed, seed2=2),
        )
    case("non_max_suppression", lambda tf: tf.image.non_max_suppression(CORNERS, SCORES, 3))
    case(
        "non_max_suppression_padded",
        lambda tf: tf.image.non_max_suppression_padded(CORNERS, SCORES, 5, pad_to_max_output_size=True),
    )
    case("non_max_suppression_with_scores", lambda tf: tf.image.non_max_suppression_with_scores(CORNERS, SCORES, 5))
    case(
        "combined_non_max_suppression",
        lambda tf: tf.image.combined_non_max_suppression(CORNERS[None, :, None], SCORES[None, :, None], 4, 6),
    )
    large = np.tile(BATCH, (1, 4, 4, 1))
    case("psnr", lambda tf: tf.image.psnr(BYTES, BYTES[::-1].copy(), 255))
    case("ssim", lambda tf: tf.image.ssim(tf.constant(large), tf.constant(large[::-1]), 1.0))
    case(
        "ssim_multiscale",
        lambda tf: tf.image.ssim_multiscale(
            tf.constant(large), tf.constant(large[:, ::-1]), 1.0, power_factors=(0.5, 0.3), filter_size=5
        ),
    )
    case("total_variation", lambda tf: tf.image.total_variation(tf.constant(BATCH)))
    case("sobel_edges", lambda tf: tf.image.sobel_edges(tf.constant(BATCH)))
    case("image_gradients", lambda tf: tf.image.image_gradients(tf.constant(BATCH)))
    for name in (
        "rgb_to_yiq",
        "yiq_to_rgb",
        "rgb_to_yuv",
        "yuv_to_rgb",
        "rgb_to_hsv",
        "hsv_to_rgb",
        "rgb_to_grayscale",
    ):
        case(name, lambda tf, name=name: getattr(tf.image, name)(BATCH))
    case(
        "extract_image_patches",
        lambda tf: tf.image.extract_image_patches(
            BATCH, ksizes=(1, 2, 2, 1), strides=(1, 1, 2, 1), rates=(1, 1, 1, 1), padding="VALID"
        ),
    )
    case("adjust_jpeg_quality", lambda tf: tf.image.adjust_jpeg_quality(PHOTO, 40))
    case("convert_image_dtype", lambda tf: tf.image.convert_image_dtype(BYTES, tf.float32))
    case(
        "convert_image_dtype back", lambda tf: tf.image.convert_image_dtype(BATCH * 1.2 - 0.1, tf.uint8, saturate=True)
    )
