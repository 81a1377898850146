"""Public names of tf.image."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array.patches import extract_patches as extract_patches
from stoker._src.ops.image.codecs import decode_and_crop_jpeg as decode_and_crop_jpeg
from stoker._src.ops.image.codecs import decode_bmp as decode_bmp
from stoker._src.ops.image.codecs import decode_gif as decode_gif
from stoker._src.ops.image.codecs import decode_image as decode_image
from stoker._src.ops.image.codecs import decode_jpeg as decode_jpeg
from stoker._src.ops.image.codecs import decode_png as decode_png
from stoker._src.ops.image.codecs import encode_jpeg as encode_jpeg
from stoker._src.ops.image.codecs import encode_png as encode_png
from stoker._src.ops.image.codecs import extract_jpeg_shape as extract_jpeg_shape
from stoker._src.ops.image.codecs import is_jpeg as is_jpeg
from stoker._src.ops.image.colour import hsv_to_rgb as hsv_to_rgb
from stoker._src.ops.image.colour import rgb_to_hsv as rgb_to_hsv
from stoker._src.ops.image.drawing import draw_bounding_boxes_v2 as draw_bounding_boxes
from stoker._src.ops.random.sampling import random_crop as random_crop
