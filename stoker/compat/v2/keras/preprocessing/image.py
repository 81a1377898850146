"""Public names of tf.keras.preprocessing.image."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.preprocessing.generators import DirectoryIterator as DirectoryIterator
from stoker._src.keras.preprocessing.generators import ImageDataGenerator as ImageDataGenerator
from stoker._src.keras.preprocessing.generators import Iterator as Iterator
from stoker._src.keras.preprocessing.generators import NumpyArrayIterator as NumpyArrayIterator
from stoker._src.keras.preprocessing.image import array_to_img as array_to_img
from stoker._src.keras.preprocessing.image import img_to_array as img_to_array
from stoker._src.keras.preprocessing.image import load_img as load_img
from stoker._src.keras.preprocessing.image import save_img as save_img
from stoker._src.keras.preprocessing.transformations import apply_affine_transform as apply_affine_transform
from stoker._src.keras.preprocessing.transformations import apply_brightness_shift as apply_brightness_shift
from stoker._src.keras.preprocessing.transformations import apply_channel_shift as apply_channel_shift
from stoker._src.keras.preprocessing.transformations import random_brightness as random_brightness
from stoker._src.keras.preprocessing.transformations import random_channel_shift as random_channel_shift
from stoker._src.keras.preprocessing.transformations import random_rotation as random_rotation
from stoker._src.keras.preprocessing.transformations import random_shear as random_shear
from stoker._src.keras.preprocessing.transformations import random_shift as random_shift
from stoker._src.keras.preprocessing.transformations import random_zoom as random_zoom
