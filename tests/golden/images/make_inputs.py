"""Writes the encoded pictures of this folder's test into inputs.npz: python make_inputs.py (needs Pillow).

PNG and BMP files are put together by hand, so that every colour type, depth and oddity of the formats occurs.
"""

import io
import struct
import zlib

import numpy as np
from PIL import Image

rng = np.random.RandomState(7)
pictures = {}


def smooth(height, width, channels, top=255):
    y, x = np.mgrid[0:height, 0:width]
    planes = [0.5 + 0.3 * np.sin(x / (3 + k)) + 0.2 * np.cos(y / (4 + k)) for k in range(channels)]
    noisy = np.stack(planes, -1) + rng.randn(height, width, channels) * 0.03
    return (np.clip(noisy, 0, 1) * top).astype(np.uint16 if top > 255 else np.uint8)


# ---- PNG ----

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def scanlines(samples, depth, first_filter):
    """Packed and filtered rows; the filter type changes from row to row."""
    height, _, channels = samples.shape
    bpp = max(1, channels * depth // 8)
    above = None
    out = bytearray()
    for r in range(height):
        flat = samples[r].reshape(-1)
        if depth == 16:
            row = flat.astype(">u2").tobytes()
        elif depth == 8:
            row = flat.astype("u1").tobytes()
        else:
            bits = np.unpackbits(flat.astype("u1")[:, None], axis=1)[:, 8 - depth :]
            row = np.packbits(bits.reshape(-1)).tobytes()
        above = above or bytes(len(row))
        kind = (r + first_filter) % 5
        out.append(kind)
        for i, value in enumerate(row):
            a = row[i - bpp] if i >= bpp else 0
            b = above[i]
            c = above[i - bpp] if i >= bpp else 0
            guess = (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]
            out.append((value - guess) & 255)
        above = row
    return bytes(out)


def png(samples, color, depth, interlaced=False, extra=b"", first_filter=0):
    height, width, _ = samples.shape
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    if interlaced:
        raw = b""
        for y, x, dy, dx in ADAM7:
            part = samples[y::dy, x::dx]
            if part.size:
                raw += scanlines(part, depth, first_filter)
    else:
        raw = scanlines(samples, depth, first_filter)
    data = zlib.compress(raw)
    # Two IDAT chunks, as the format allows.
    parts = chunk(b"IDAT", data[: len(data) // 2]) + chunk(b"IDAT", data[len(data) // 2 :])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + parts + chunk(b"IEND", b"")


for color, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
    for depth in depths:
        for interlaced in (False, True):
            samples = rng.randint(0, 2**depth, (11, 13, CHANNELS[color]))
            if color != 3:
                samples[2:9] = smooth(7, 13, CHANNELS[color], 2**depth - 1)
            palette = b""
            if color == 3:
                palette = chunk(b"PLTE", rng.randint(0, 256, 3 * 2**depth).astype("u1").tobytes())
            name = f"png_c{color}_d{depth}{'_i' if interlaced else ''}"
            pictures[name] = png(samples, color, depth, interlaced, palette, first_filter=depth)
            if color in (0, 2, 3):
                if color == 3:
                    alpha = rng.randint(0, 256, min(2**depth, 5)).astype("u1").tobytes()
                else:
                    alpha = b"".join(struct.pack(">H", int(v)) for v in samples[5, 5])
                pictures[name + "_trns"] = png(
                    samples, color, depth, interlaced, palette + chunk(b"tRNS", alpha), first_filter=depth
                )
pictures["png_1x1"] = png(rng.randint(0, 256, (1, 1, 3)), 2, 8)
pictures["png_1x1_i"] = png(rng.randint(0, 256, (1, 1, 3)), 2, 8, True)
pictures["png_gamma"] = png(smooth(6, 7, 3), 2, 8, extra=chunk(b"gAMA", struct.pack(">I", 45455)))
pictures["png_text"] = png(smooth(6, 7, 3), 2, 8, extra=chunk(b"tEXt", b"Title\0x"))
good = pictures["png_c2_d8"]
pictures["png_bad_header_crc"] = good[:29] + bytes([good[29] ^ 1]) + good[30:]
pictures["png_bad_crc"] = good[:-20] + bytes([good[-20] ^ 1]) + good[-19:]
pictures["png_no_end"] = good[:-12]
pictures["png_after_end"] = good + b"trailing"
pictures["png_short_data"] = png(smooth(6, 7, 3), 2, 8)[:-40]
pictures["png_huge"] = good[:16] + struct.pack(">II", 2**30, 2**30) + good[24:]
pictures["png_zero"] = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 5, 8, 2, 0, 0, 0))
pictures["png_bad_depth"] = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 5, 5, 3, 2, 0, 0, 0))
pictures["png_no_palette"] = png(rng.randint(0, 4, (5, 5, 1)), 3, 8)
pictures["png_few_rows"] = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 7, 9, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(scanlines(smooth(6, 7, 3), 8, 0)))
    + chunk(b"IEND", b"")
)
pictures["png_extra_rows"] = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 7, 4, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(scanlines(smooth(6, 7, 3), 8, 0)))
    + chunk(b"IEND", b"")
)
pictures["png_bad_filter"] = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\x09\x01\x02\x00\x03\x04"))
    + chunk(b"IEND", b"")
)
pictures["png_palette_overrun"] = png(rng.randint(0, 8, (5, 5, 1)), 3, 8, extra=chunk(b"PLTE", bytes(range(12))))

# ---- BMP ----


def bmp(height, width, bits, rows, header_size=40, offset=None, palette=b"", compression=0):
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 2835, 2835, 0, 0)
    info += bytes(header_size - 40)
    info = struct.pack("<I", header_size) + info[4:]
    start = 14 + header_size + len(palette) if offset is None else offset
    body = info + palette + rows
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, start) + body


def bmp_rows(height, width, bits):
    stride = (width * bits // 8 + 3) // 4 * 4
    return rng.randint(0, 256, stride * height).astype("u1").tobytes()


gray_palette = b"".join(bytes([i, i, i, 0]) for i in range(256))
for bits in (8, 24, 32):
    for sign in (1, -1):
        palette = gray_palette if bits == 8 else b""
        tag = f"bmp_{bits}{'' if sign > 0 else '_top_down'}"
        pictures[tag] = bmp(sign * 5, 7, bits, bmp_rows(5, 7, bits), palette=palette)
pictures["bmp_v5"] = bmp(4, 3, 24, bmp_rows(4, 3, 24), header_size=124)
pictures["bmp_color_palette"] = bmp(
    4, 3, 8, bmp_rows(4, 3, 8), palette=rng.randint(0, 256, 1024).astype("u1").tobytes()
)
pictures["bmp_1_bit"] = bmp(4, 8, 1, bytes(16), palette=bytes(8))
pictures["bmp_16_bit"] = bmp(4, 4, 16, bytes(32))
pictures["bmp_short"] = bmp(5, 7, 24, bmp_rows(5, 7, 24)[:-10])
pictures["bmp_zero_width"] = bmp(5, 0, 24, b"")
pictures["bmp_zero_height"] = bmp(0, 5, 24, b"")
pictures["bmp_negative_width"] = bmp(5, -7, 24, bmp_rows(5, 7, 24))
pictures["bmp_huge"] = bmp(2**30, 2**30, 24, bytes(100))
pictures["bmp_far_offset"] = bmp(5, 7, 24, bmp_rows(5, 7, 24), offset=100000)
pictures["bmp_early_offset"] = bmp(5, 7, 24, bmp_rows(5, 7, 24), offset=10)
pictures["bmp_rle"] = bmp(4, 4, 8, bytes(64), palette=gray_palette, compression=1)

# ---- GIF ----


def gif(frames, **options):
    sink = io.BytesIO()
    frames[0].save(sink, "GIF", save_all=True, append_images=frames[1:], **options)
    return sink.getvalue()


def flat_gif(size, blocks, palette, background=0, local=None, version=b"GIF89a", flags=None):
    """A GIF put together by hand: blocks is [(x, y, indices, transparent or None, disposal, interlaced, palette)]."""
    bits = max(1, (len(palette) // 3 - 1).bit_length())
    out = version + struct.pack("<HHBBB", size[0], size[1], (0x80 if palette else 0) | (bits - 1), background, 0)
    out += palette + bytes(3 * 2**bits - len(palette)) if palette else b""
    for x, y, indices, transparent, disposal, interlaced, own in blocks:
        has = transparent is not None
        out += b"\x21\xf9\x04" + struct.pack("<BHBB", disposal << 2 | int(has), 5, transparent or 0, 0)
        rows = indices
        if interlaced:
            order = [*range(0, len(indices), 8), *range(4, len(indices), 8), *range(2, len(indices), 4)]
            order += [*range(1, len(indices), 2)]
            rows = indices[order]
        own_bits = max(1, (len(own) // 3 - 1).bit_length()) if own else 0
        out += b"," + struct.pack(
            "<HHHHB",
            x,
            y,
            indices.shape[1],
            indices.shape[0],
            (0x80 | own_bits - 1 if own else 0) | (0x40 if interlaced else 0),
        )
        if own:
            out += own + bytes(3 * 2**own_bits - len(own))
        out += lzw(rows.reshape(-1), 8)
    return out + b";"


def lzw(values, width):
    """LZW without compression: a clear code before the table could grow."""
    clear, end = 1 << width, (1 << width) + 1
    codes = []
    for i, value in enumerate(values):
        if i % 250 == 0:
            codes.append(clear)
        codes.append(int(value))
    codes.append(end)
    bits = "".join(format(code, f"0{width + 1}b")[::-1] for code in codes)
    bits += "0" * (-len(bits) % 8)
    data = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    out = bytes([width])
    for i in range(0, len(data), 255):
        out += bytes([len(data[i : i + 255])]) + data[i : i + 255]
    return out + b"\0"


colors = rng.randint(0, 256, 24).astype("u1").tobytes()
other = rng.randint(0, 256, 12).astype("u1").tobytes()
full = rng.randint(0, 8, (9, 10)).astype("u1")
part = rng.randint(0, 8, (4, 5)).astype("u1")
small = rng.randint(0, 4, (3, 3)).astype("u1")
pictures["gif_still"] = flat_gif((10, 9), [(0, 0, full, None, 0, False, b"")], colors)
pictures["gif_interlaced"] = flat_gif((10, 9), [(0, 0, full, None, 0, True, b"")], colors)
pictures["gif_transparent"] = flat_gif((10, 9), [(0, 0, full, 3, 0, False, b"")], colors)
pictures["gif_two_full"] = flat_gif(
    (10, 9), [(0, 0, full, None, 0, False, b""), (0, 0, full[::-1], None, 0, False, b"")], colors
)
pictures["gif_local_palette"] = flat_gif(
    (10, 9), [(0, 0, full, None, 0, False, b""), (0, 0, full % 4, None, 0, False, other)], colors
)
for disposal in range(4):
    pictures[f"gif_parts_{disposal}"] = flat_gif(
        (10, 9),
        [
            (0, 0, full, None, disposal, False, b""),
            (3, 2, part, None, disposal, False, b""),
            (6, 5, small, 1, disposal, False, other),
            (0, 0, full[:, ::-1], 2, disposal, True, b""),
        ],
        colors,
        background=5,
    )
pictures["gif_first_partial"] = flat_gif(
    (10, 9), [(3, 2, part, None, 0, False, b""), (0, 0, full, None, 0, False, b"")], colors, background=5
)
pictures["gif_only_partial"] = flat_gif((10, 9), [(3, 2, part, None, 0, False, b"")], colors, background=5)
pictures["gif_outside"] = flat_gif(
    (10, 9), [(0, 0, full, None, 0, False, b""), (7, 6, part, None, 0, False, b"")], colors
)
pictures["gif_no_palette"] = flat_gif((10, 9), [(0, 0, full, None, 0, False, b"")], b"")
pictures["gif_index_overrun"] = flat_gif((10, 9), [(0, 0, full, None, 0, False, other)], colors)
pictures["gif_no_frames"] = flat_gif((10, 9), [], colors)
pictures["gif_truncated"] = pictures["gif_two_full"][:-40]
pictures["gif_truncated_first"] = pictures["gif_still"][:-40]
pictures["gif_no_trailer"] = pictures["gif_two_full"][:-1]
pictures["gif_87"] = b"GIF87a" + pictures["gif_still"][6:]
pictures["gif_zero_size"] = flat_gif((0, 0), [(0, 0, full, None, 0, False, b"")], colors)
photo = Image.fromarray(smooth(40, 50, 3)).quantize(200)
pictures["gif_photo"] = gif([photo, photo.transpose(Image.Transpose.FLIP_TOP_BOTTOM), photo.rotate(90)])

# ---- JPEG ----


def jpeg(image, **options):
    sink = io.BytesIO()
    image.save(sink, "JPEG", **options)
    return sink.getvalue()


for height, width in ((1, 1), (17, 13), (32, 40)):
    rgb = Image.fromarray(smooth(height, width, 3))
    tag = f"{height}x{width}"
    pictures["jpeg_420_" + tag] = jpeg(rgb, quality=90, subsampling=2)
    pictures["jpeg_422_" + tag] = jpeg(rgb, quality=90, subsampling=1)
    pictures["jpeg_444_" + tag] = jpeg(rgb, quality=90, subsampling=0)
    pictures["jpeg_gray_" + tag] = jpeg(rgb.convert("L"), quality=90)
    pictures["jpeg_progressive_" + tag] = jpeg(rgb, quality=60, progressive=True)
    pictures["jpeg_cmyk_" + tag] = jpeg(rgb.convert("CMYK"), quality=90)
pictures["jpeg_rgb"] = jpeg(rgb, quality=90, keep_rgb=True)
pictures["jpeg_cut"] = pictures["jpeg_444_32x40"][:-300]
pictures["jpeg_cut_420"] = pictures["jpeg_420_32x40"][:-100]
pictures["jpeg_no_end"] = pictures["jpeg_444_32x40"][:-2]
pictures["jpeg_header_only"] = pictures["jpeg_444_32x40"][:200]
pictures["jpeg_trailing"] = pictures["jpeg_444_32x40"] + b"trailing"
pictures["jpeg_restart"] = jpeg(rgb, quality=80, restart_marker_rows=1)
scan = pictures["jpeg_444_32x40"].index(b"\xff\xda")
pictures["jpeg_damaged"] = (
    pictures["jpeg_444_32x40"][: scan + 200] + b"\xff\x01" + pictures["jpeg_444_32x40"][scan + 202 :]
)
pictures["empty"] = b""
pictures["junk"] = b"hello world, not an image"

np.savez_compressed("inputs.npz", **{name: np.frombuffer(data, "u1") for name, data in pictures.items()})
