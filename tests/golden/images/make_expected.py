"""Writes what TensorFlow decodes from inputs.npz into expected.json: python make_expected.py (needs TensorFlow)."""

import itertools
import json
import zlib

import numpy as np
import tensorflow as tf

pictures = {name: data.tobytes() for name, data in np.load("inputs.npz").items()}
arrays, errors = {}, {}


def record(key, decode, *arguments, **options):
    try:
        arrays[key] = decode(*arguments, **options).numpy()
    except tf.errors.OpError as error:
        message = error.message.split("}} ")[-1].split(" [Op:")[0]
        errors[key] = [type(error).__name__, message]


# TensorFlow 2.21 dies of a segmentation fault on these, so there is nothing to record.
FATAL = ("bmp_8_top_down", "bmp_24_top_down", "bmp_32_top_down")

for name, data in pictures.items():
    if name in FATAL:
        continue
    kind = name.split("_")[0]
    if kind == "png":
        for channels in (0, 1, 3, 4):
            for dtype in (tf.uint8, tf.uint16):
                record(f"{name}|png|{channels}|{dtype.name}", tf.io.decode_png, data, channels, dtype)
    if kind == "bmp":
        for channels in (0, 1, 3, 4):
            record(f"{name}|bmp|{channels}", tf.io.decode_bmp, data, channels)
    if kind == "gif":
        record(f"{name}|gif", tf.io.decode_gif, data)
        record(f"{name}|png|0|uint8", tf.io.decode_png, data)
        record(f"{name}|first", tf.io.decode_image, data, expand_animations=False)
    if kind == "jpeg":
        for channels, method, fancy, ratio in itertools.product(
            (0, 1, 3), ("", "INTEGER_ACCURATE"), (True, False), (1, 2, 4, 8)
        ):
            record(
                f"{name}|jpeg|{channels}|{method}|{int(fancy)}|{ratio}",
                tf.io.decode_jpeg,
                data,
                channels,
                ratio=ratio,
                fancy_upscaling=fancy,
                dct_method=method,
            )
        record(f"{name}|recovered", tf.io.decode_jpeg, data, try_recover_truncated=True)
        record(f"{name}|accepted", tf.io.decode_jpeg, data, acceptable_fraction=0.1)
        record(f"{name}|shape", tf.io.extract_jpeg_shape, data)
    for channels in (0, 1, 3, 4):
        for dtype in (tf.uint8, tf.uint16, tf.float32):
            if kind == "png" and dtype != tf.float32:
                continue  # as decode_png
            if kind == "jpeg" and (dtype == tf.uint8 or not name.endswith("32x40")):
                continue
            record(f"{name}|image|{channels}|{dtype.name}", tf.io.decode_image, data, channels, dtype)

y, x, k = np.mgrid[0:48, 0:70, 0:3]
gradient = ((x * (3 + k) + y * (5 - k) + x * y % 17) % 256).astype(np.uint8)
encoded = {}
for quality, downsampled, progressive, optimized, channels in itertools.product(
    (0, 1, 50, 95, 100), (False, True), (False, True), (False, True), (1, 3)
):
    data = tf.io.encode_jpeg(
        gradient[:, :, :channels],
        quality=quality,
        chroma_downsampling=downsampled,
        progressive=progressive,
        optimize_size=optimized,
    ).numpy()
    key = f"{quality}|{int(downsampled)}|{int(progressive)}|{int(optimized)}|{channels}"
    encoded[key] = zlib.crc32(data)

# Digests keep the folder small; pixels are kept only where a JPEG library may differ by a few levels.
digests = {
    key: [list(a.shape), a.dtype.name, zlib.crc32(np.ascontiguousarray(a).tobytes())] for key, a in arrays.items()
}
pixels = {key: a for key, a in arrays.items() if "|jpeg|0|" in key and key.endswith("|1") and "32x40" in key}
np.savez_compressed("jpeg_pixels.npz", **pixels)
with open("expected.json", "w") as sink:
    json.dump(
        {"decoded": digests, "errors": errors, "encoded_jpeg": encoded}, sink, sort_keys=True, separators=(",", ":")
    )
    sink.write("\n")
