"""Draws docs/images.jpg: one photograph-like picture, and what each function of `tf.image` makes of it.

    python scripts/contact_sheet.py [--output docs/images.jpg]

The picture is drawn here (a landscape at dusk with a house and a lake), so it belongs to nobody. docs/images.md shows the sheet.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import stoker as tf

ROOT = Path(__file__).resolve().parent.parent
HEIGHT, WIDTH = 120, 160
TILE, CAPTION, MARGIN, COLUMNS = (HEIGHT, WIDTH), 14, 6, 6


def photograph() -> np.ndarray:
    """uint8 [HEIGHT, WIDTH, 3]: sky, sun, hills, a lake with reflections, a house, some grain."""
    scale = 3
    height, width = HEIGHT * scale, WIDTH * scale
    rows = np.linspace(0, 1, height)[:, None, None]
    sky = (1 - rows) * np.array([38, 64, 140]) + rows * np.array([255, 170, 96])
    canvas = Image.fromarray(np.broadcast_to(sky, (height, width, 3)).astype(np.uint8))
    draw = ImageDraw.Draw(canvas)
    sun = (width * 0.68, height * 0.34)
    for radius, colour in ((46, (255, 196, 110)), (34, (255, 222, 150)), (24, (255, 246, 214))):
        draw.ellipse([sun[0] - radius, sun[1] - radius, sun[0] + radius, sun[1] + radius], fill=colour)
    across = np.arange(0, width + 1, 4)
    for level, swing, period, colour in (
        (0.52, 0.07, 190, (92, 84, 130)),
        (0.60, 0.05, 120, (64, 74, 92)),
        (0.66, 0.03, 70, (38, 66, 48)),
    ):
        crest = height * (level + swing * np.sin(across / period * 2 * np.pi + level * 9))
        draw.polygon([(0, height), *zip(across.tolist(), crest.tolist()), (width, height)], fill=colour)
    picture = np.asarray(canvas).astype(np.float32)
    shore = int(height * 0.72)
    mirrored = picture[shore - (height - shore) : shore][::-1]
    ripple = 0.75 + 0.1 * np.sin(np.arange(height - shore)[:, None, None] ** 1.2)
    picture = np.concatenate([picture[:shore], mirrored * ripple * np.array([0.8, 0.9, 1.05])])
    canvas = Image.fromarray(picture.clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(canvas)
    left, top, right, bottom = (int(each) for each in (width * 0.16, height * 0.50, width * 0.36, height * 0.72))
    draw.rectangle([left, top, right, bottom], fill=(176, 62, 48))
    draw.polygon([(left - 10, top), ((left + right) // 2, top - 42), (right + 10, top)], fill=(70, 40, 44))
    for x in (left + 14, right - 32):
        draw.rectangle([x, top + 18, x + 18, top + 38], fill=(255, 232, 140))
    draw.rectangle([(left + right) // 2 - 9, bottom - 30, (left + right) // 2 + 9, bottom], fill=(52, 36, 32))
    small = np.asarray(canvas.resize((WIDTH, HEIGHT), Image.Resampling.BOX)).astype(np.float32)
    grain = np.random.RandomState(1).normal(0, 3, small.shape)
    return (small + grain).clip(0, 255).astype(np.uint8)


HOUSE = np.array([[[0.34, 0.1, 0.76, 0.42]]], np.float32)
SUN = np.array([[[0.2, 0.55, 0.5, 0.81]]], np.float32)


def tiles(photo: np.ndarray) -> dict[str, Callable[[], Any]]:
    """caption -> what to show: uint8 or float images of any size, one or three channels."""
    image = tf.image
    floats = photo.astype(np.float32) / 255
    batch = floats[None]
    both = np.concatenate([HOUSE, SUN], 1)

    def small_and_back(method: str, antialias: bool = False) -> Any:
        small = image.resize(photo, (15, 20), method=method, antialias=antialias)
        return image.resize(small, TILE, method="nearest") / 255

    def grown(method: str) -> Any:
        return image.resize(photo[42:62, 20:47], TILE, method=method) / 255

    def edges(channel: int) -> Any:
        return abs(image.sobel_edges(batch)[0, ..., channel]) / 2

    def window(seed: int) -> Any:
        _, _, box = image.stateless_sample_distorted_bounding_box(photo.shape, both, (seed, 0), min_object_covered=0.5)
        return image.draw_bounding_boxes(
            image.draw_bounding_boxes(batch, both, [[1.0, 1.0, 1.0]]), box, [[1.0, 0.2, 0.2]]
        )[0]

    def many_boxes() -> tuple[np.ndarray, np.ndarray]:
        r = np.random.RandomState(3)
        around = [(target + r.normal(0, 0.03, (12, 4)))[None] for target in (HOUSE[0, 0], SUN[0, 0])]
        return np.concatenate(around, 1)[0].astype(np.float32), r.rand(24).astype(np.float32)

    def drawn_boxes(boxes: Any) -> Any:
        drawn = image.draw_bounding_boxes(batch, many_boxes()[0][None], [[0.6, 0.6, 0.6]])
        return image.draw_bounding_boxes(drawn, np.asarray(boxes)[None], [[1.0, 1.0, 0.0]])[0]

    def chosen(name: str) -> Any:
        boxes, scores = many_boxes()
        if name == "overlaps":
            top, bottom = np.maximum(boxes[:, None, :2], boxes[:, :2]), np.minimum(boxes[:, None, 2:], boxes[:, 2:])
            shared = np.prod(np.maximum(bottom - top, 0), -1)
            area = np.prod(boxes[:, 2:] - boxes[:, :2], -1)
            kept = image.non_max_suppression_overlaps(shared / (area[:, None] + area - shared), scores, 10, 0.3)
        elif name == "padded":
            found, count = image.non_max_suppression_padded(
                tf.constant(boxes), tf.constant(scores), 10, 0.3, pad_to_max_output_size=True
            )
            kept = found[: int(count)]
        elif name == "with_scores":
            kept, _ = image.non_max_suppression_with_scores(boxes, scores, 5, soft_nms_sigma=0.1, score_threshold=0.3)
        else:
            kept = image.non_max_suppression(boxes, scores, 10, 0.3)
        return drawn_boxes(boxes[np.asarray(kept)])

    def combined() -> Any:
        boxes, scores = many_boxes()
        by_class = np.stack([scores, scores[::-1]], -1)[None]
        found, _, _, count = image.combined_non_max_suppression(boxes[None, :, None], by_class, 2, 4, 0.3)
        return drawn_boxes(found[0, : int(count[0])])

    def seeded(call: Callable[[], Any]) -> Any:
        tf.random.set_seed(7)
        return call()

    def measured(name: str, compute: Callable[[Any, Any], Any]) -> Any:
        worse = image.adjust_jpeg_quality(photo, 12)
        picture = Image.fromarray(np.asarray(worse))
        draw = ImageDraw.Draw(picture)
        draw.rectangle([0, 0, 100, 13], fill=(0, 0, 0))
        draw.text(
            (3, 1), f"{name} {float(np.mean(np.asarray(compute(tf.constant(photo), worse)))):.4g}", fill=(255, 255, 255)
        )
        return np.asarray(picture)

    def similarity() -> Any:
        worse = image.adjust_jpeg_quality(photo, 5)
        found = image.ssim(photo, worse, 255, filter_size=7, return_index_map=True)
        return found[..., None]

    def patches() -> Any:
        cut = image.extract_patches(batch, [1, 40, 40, 1], [1, 40, 40, 1], [1, 1, 1, 1], "VALID")
        joined = np.ones((3 * 44 - 4, 4 * 44 - 4, 3), np.float32)
        for row in range(3):
            for column in range(4):
                joined[row * 44 : row * 44 + 40, column * 44 : column * 44 + 40] = (
                    cut[0, row, column].numpy().reshape(40, 40, 3)
                )
        return joined

    return {
        "the picture": lambda: photo,
        "flip_left_right": lambda: image.flip_left_right(photo),
        "flip_up_down": lambda: image.flip_up_down(photo),
        "rot90": lambda: image.rot90(photo),
        "transpose": lambda: image.transpose(photo),
        "central_crop 0.6": lambda: image.central_crop(photo, 0.6),
        "crop_to_bounding_box": lambda: image.crop_to_bounding_box(photo, 40, 15, 55, 60),
        "pad_to_bounding_box": lambda: image.pad_to_bounding_box(photo, 20, 10, 160, 200),
        "resize_with_crop_or_pad": lambda: image.resize_with_crop_or_pad(photo, 150, 110),
        "resize_with_pad": lambda: image.resize_with_pad(photo, 110, 110) / 255,
        "random_crop": lambda: seeded(lambda: image.random_crop(photo, (70, 90, 3), seed=5)),
        "extract_patches": patches,
        "resize nearest, 8x smaller": lambda: small_and_back("nearest"),
        "bilinear": lambda: small_and_back("bilinear"),
        "bilinear, antialias": lambda: small_and_back("bilinear", True),
        "bicubic, antialias": lambda: small_and_back("bicubic", True),
        "area": lambda: small_and_back("area"),
        "lanczos3, antialias": lambda: small_and_back("lanczos3", True),
        "resize nearest, 6x larger": lambda: grown("nearest"),
        "bilinear, larger": lambda: grown("bilinear"),
        "bicubic, larger": lambda: grown("bicubic"),
        "lanczos5, larger": lambda: grown("lanczos5"),
        "gaussian, larger": lambda: grown("gaussian"),
        "mitchellcubic, larger": lambda: grown("mitchellcubic"),
        "adjust_brightness 0.2": lambda: image.adjust_brightness(photo, 0.2),
        "adjust_contrast 2": lambda: image.adjust_contrast(photo, 2.0),
        "adjust_gamma 0.5": lambda: image.adjust_gamma(photo, 0.5),
        "adjust_hue 0.3": lambda: image.adjust_hue(photo, 0.3),
        "adjust_saturation 2": lambda: image.adjust_saturation(photo, 2.0),
        "adjust_jpeg_quality 5": lambda: image.adjust_jpeg_quality(photo, 5),
        "random_brightness": lambda: seeded(lambda: image.random_brightness(photo, 0.4, seed=1)),
        "random_contrast": lambda: seeded(lambda: image.random_contrast(photo, 0.3, 2.0, seed=4)),
        "random_hue": lambda: seeded(lambda: image.random_hue(photo, 0.5, seed=2)),
        "random_saturation": lambda: seeded(lambda: image.random_saturation(photo, 0.0, 3.0, seed=2)),
        "per_image_standardization": lambda: image.per_image_standardization(photo) / 4 + 0.5,
        "rgb_to_grayscale": lambda: image.rgb_to_grayscale(photo),
        "grayscale_to_rgb": lambda: image.grayscale_to_rgb(tf.constant(photo[..., 2:])),
        "rgb_to_hsv (shown as RGB)": lambda: image.rgb_to_hsv(floats),
        "hsv_to_rgb of it": lambda: image.hsv_to_rgb(image.rgb_to_hsv(floats)),
        "rgb_to_yiq": lambda: image.rgb_to_yiq(floats) * [1.0, 0.8, 0.9] + [0.0, 0.5, 0.5],
        "rgb_to_yuv": lambda: image.rgb_to_yuv(floats) + [0.0, 0.5, 0.5],
        "yiq_to_rgb, I doubled": lambda: image.yiq_to_rgb(image.rgb_to_yiq(floats) * [1.0, 2.0, 1.0]),
        "yuv_to_rgb, V doubled": lambda: image.yuv_to_rgb(image.rgb_to_yuv(floats) * [1.0, 1.0, 2.0]),
        "draw_bounding_boxes": lambda: image.draw_bounding_boxes(batch, both, [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])[0],
        "crop_and_resize, house": lambda: image.crop_and_resize(batch, HOUSE[0], [0], TILE)[0],
        "crop_and_resize, flipped": lambda: image.crop_and_resize(batch, SUN[0, :, [2, 3, 0, 1]].T, [0], TILE, "nearest")[0],
        "non_max_suppression": lambda: chosen("plain"),
        "non_max_suppression_overlaps": lambda: chosen("overlaps"),
        "non_max_suppression_padded": lambda: chosen("padded"),
        "non_max_suppression_with_scores": lambda: chosen("with_scores"),
        "combined_non_max_suppression": combined,
        "sample_distorted_bounding_box": lambda: window(6),
        "extract_glimpse": lambda: image.extract_glimpse(batch, (80, 80), [[-0.4, 0.9]])[0],
        "sobel_edges, dy": lambda: edges(0),
        "sobel_edges, dx": lambda: edges(1),
        "image_gradients, dx": lambda: abs(image.image_gradients(tf.constant(batch))[1][0]) * 3,
        "ssim map with quality 5": similarity,
        "convert_image_dtype": lambda: image.convert_image_dtype(image.convert_image_dtype(photo, tf.float32) * 1.5, tf.uint8, saturate=True),
        "random_flip_left_right": lambda: seeded(lambda: image.random_flip_left_right(photo, seed=3)),
        "random_flip_up_down": lambda: seeded(lambda: image.random_flip_up_down(photo, seed=3)),
        "random_jpeg_quality": lambda: seeded(lambda: image.random_jpeg_quality(photo, 2, 15, seed=3)),
        "encode_png and back": lambda: image.decode_png(image.encode_png(photo)),
        "psnr with quality 12": lambda: measured("psnr", lambda a, b: image.psnr(a, b, 255)),
        "ssim with quality 12": lambda: measured("ssim", lambda a, b: image.ssim(a, b, 255)),
        "ssim_multiscale": lambda: measured("ms-ssim", lambda a, b: image.ssim_multiscale(a, b, 255, (0.3, 0.4, 0.3))),
        "total_variation": lambda: measured("variation", lambda a, b: image.total_variation(image.convert_image_dtype(b, tf.float32))),
        "image_gradients, dy": lambda: abs(image.image_gradients(tf.constant(batch))[0][0]) * 3,
        "1.x resize_bilinear": lambda: tf.compat.v1.image.resize_bilinear(photo[None, 40:90, 15:75], TILE)[0] / 255,
        "1.x resize_bicubic": lambda: tf.compat.v1.image.resize_bicubic(photo[None, 40:90, 15:75], TILE)[0] / 255,
        "1.x resize_nearest_neighbor": lambda: tf.compat.v1.image.resize_nearest_neighbor(photo[None, 40:90, 15:75], TILE)[0],
        "1.x resize_area": lambda: tf.compat.v1.image.resize_area(photo[None, 40:90, 15:75], TILE)[0] / 255,
        "1.x resize_image_with_pad": lambda: tf.compat.v1.image.resize_image_with_pad(photo, 110, 110) / 255,
    }  # fmt: skip


def as_picture(value: Any) -> Image.Image:
    """uint8 as it is, floats of [0, 1] clipped and scaled; fitted into a tile."""
    array = np.asarray(value)
    if array.dtype != np.uint8:
        array = (np.nan_to_num(array).clip(0, 1) * 255).astype(np.uint8)
    if array.shape[-1] == 1:
        array = array.repeat(3, -1)
    picture = Image.fromarray(array)
    picture.thumbnail((TILE[1], TILE[0]))
    return picture


def sheet() -> Image.Image:
    drawn = tiles(photograph())
    rows = -(-len(drawn) // COLUMNS)
    wide, tall = TILE[1] + MARGIN, TILE[0] + CAPTION + MARGIN
    canvas = Image.new("RGB", (COLUMNS * wide + MARGIN, rows * tall + MARGIN), (250, 250, 250))
    draw = ImageDraw.Draw(canvas)
    for number, (caption, make) in enumerate(drawn.items()):
        left, top = MARGIN + number % COLUMNS * wide, MARGIN + number // COLUMNS * tall
        canvas.paste(as_picture(make()), (left, top + CAPTION))
        draw.text((left, top), caption, fill=(20, 20, 20))
    return canvas


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "images.jpg")
    sheet().save(parser.parse_args().output, quality=80)


if __name__ == "__main__":
    main()
