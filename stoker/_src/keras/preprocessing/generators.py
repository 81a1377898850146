"""`ImageDataGenerator`: endless batches of randomly transformed images, from arrays, folders and tables of files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator as Iteration
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.base.tf_logging import warning
from stoker._src.keras.base import default_data_format, floatx
from stoker._src.keras.data import Sequence
from stoker._src.keras.preprocessing import transformations
from stoker._src.keras.preprocessing.image import array_to_img, img_to_array, load_img

_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_AFFINE = ("theta", "tx", "ty", "shear", "zx", "zy")


@export("keras.preprocessing.image.Iterator")
class Iterator(Sequence):
    """Endless batches of `n` examples, shuffled anew in each epoch. A subclass has `_get_batches_of_transformed_samples(index_array)`."""

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: int | None) -> None:
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: Any = None
        self.index_generator = self._flow_index()

    def _set_index_array(self) -> None:
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def __getitem__(self, idx: int) -> Any:
        if idx >= len(self):
            raise ValueError(f"Asked to retrieve element {idx}, but the Sequence has length {len(self)}")
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1
        if self.index_array is None:
            self._set_index_array()
        return self._get_batches_of_transformed_samples(
            self.index_array[self.batch_size * idx : self.batch_size * (idx + 1)]
        )

    def on_epoch_end(self) -> None:
        self._set_index_array()

    def reset(self) -> None:
        """Begins again with the first batch."""
        self.batch_index = 0

    def _flow_index(self) -> Iteration[Any]:
        self.reset()
        while True:
            if self.seed is not None:
                np.random.seed(self.seed + self.total_batches_seen)
            if self.batch_index == 0:
                self._set_index_array()
            first = self.batch_index * self.batch_size % self.n if self.n else 0
            self.batch_index = self.batch_index + 1 if self.n > first + self.batch_size else 0
            self.total_batches_seen += 1
            yield self.index_array[first : first + self.batch_size]

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        with self.lock:
            index_array = next(self.index_generator)
        return self._get_batches_of_transformed_samples(index_array)

    next = __next__


class _Saves:
    """Where the images of batches are written to, for a look at them."""

    def __init__(self, folder: Any, prefix: str, file_format: str) -> None:
        self.folder, self.prefix, self.file_format = folder, prefix, file_format

    def __call__(self, batch: np.ndarray, index_array: Any, data_format: str) -> None:
        for image, index in zip(batch, index_array):
            name = f"{self.prefix}_{index}_{np.random.randint(10**7)}.{self.file_format}"
            array_to_img(image, data_format, scale=True).save(os.path.join(self.folder, name))


@export("keras.preprocessing.image.NumpyArrayIterator")
class NumpyArrayIterator(Iterator):
    """Batches of images in an array."""

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        dtype: Any = None,
    ) -> None:
        others = []
        if isinstance(x, (tuple, list)) and len(x) == 2 and np.ndim(x[0]) == 4:  # images, and other arrays beside them
            others = [np.asarray(each) for each in (x[1] if isinstance(x[1], list) else [x[1]])]
            x = x[0]
        x = np.asarray(x)
        for name, each in (("labels", y), ("sample weights", sample_weight), *(("arrays", each) for each in others)):
            if each is not None and len(x) != len(each):
                raise ValueError(
                    f"`x` (images tensor) and {name} should have the same length. Found: x.shape = {x.shape}, {np.shape(each)}"
                )
        y = None if y is None else np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        if subset is not None:
            split = image_data_generator._validation_split
            cut = int(len(x) * split)
            if y is not None and not np.array_equal(np.unique(y[:cut]), np.unique(y[cut:])):
                raise ValueError(
                    "Training and validation subsets have different number of classes after the split. If your numpy arrays are sorted by the label, you might want to shuffle them."
                )
            part = _part(len(x), subset, split)
            x, y, weights = (None if each is None else each[part] for each in (x, y, weights))
            others = [each[part] for each in others]
        self.x = np.asarray(x, dtype=dtype or floatx())
        self.data_format = data_format or default_data_format()
        if self.x.ndim != 4:
            raise ValueError(
                f"Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape {self.x.shape}"
            )
        channels = self.x.shape[1 if self.data_format == "channels_first" else 3]
        if channels not in (1, 3, 4):
            warning(
                "NumpyArrayIterator is set to use the data format convention %r, and the images have %d channels.",
                self.data_format,
                channels,
            )
        self.x_misc, self.y, self.sample_weight = others, y, weights
        self.image_data_generator = image_data_generator
        self.dtype = dtype or floatx()
        self.save_to_dir = save_to_dir
        self._save = _Saves(save_to_dir, save_prefix, save_format)
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        made = np.zeros((len(index_array), *self.x.shape[1:]), dtype=self.dtype)
        for row, index in enumerate(index_array):
            made[row] = self.image_data_generator._changed(self.x[index].astype(self.dtype))
        if self.save_to_dir:
            self._save(made, index_array, self.data_format)
        images = [made, *(each[index_array] for each in self.x_misc)] if self.x_misc else made
        if self.y is None:
            return images
        found = (images, self.y[index_array])
        return found if self.sample_weight is None else (*found, self.sample_weight[index_array])


def _part(count: int, subset: str, split: float) -> slice:
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
    cut = int(count * split)
    return slice(0, cut) if subset == "validation" else slice(cut, None)


class _Files(Iterator):
    """Batches of images in files."""

    def _start(
        self,
        image_data_generator: Any,
        target_size: Any,
        color_mode: str,
        data_format: str | None,
        save: _Saves,
        interpolation: str,
        dtype: Any,
    ) -> None:
        if color_mode not in ("rgb", "rgba", "grayscale"):
            raise ValueError(f'Invalid color mode: {color_mode}; expected "rgb", "rgba", or "grayscale".')
        self.image_data_generator, self.target_size = image_data_generator, tuple(target_size)
        self.color_mode, self.data_format = color_mode, data_format or default_data_format()
        channels = {"rgb": 3, "rgba": 4, "grayscale": 1}[color_mode]
        first = self.data_format == "channels_first"
        self.image_shape = (channels, *self.target_size) if first else (*self.target_size, channels)
        self.save_to_dir, self._save = save.folder, save
        self.interpolation, self.dtype = interpolation, dtype or floatx()

    filepaths: list[str]
    class_mode: Any

    def _targets(self, index_array: Any) -> Any:
        raise NotImplementedError

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        made = np.zeros((len(index_array), *self.image_shape), dtype=self.dtype)
        for row, index in enumerate(index_array):
            img = load_img(
                self.filepaths[index],
                color_mode=self.color_mode,
                target_size=self.target_size,
                interpolation=self.interpolation,
            )
            made[row] = self.image_data_generator._changed(img_to_array(img, self.data_format))
        if self.save_to_dir:
            self._save(made, index_array, self.data_format)
        if self.class_mode == "input":
            return made, made.copy()
        return made if self.class_mode is None else (made, self._targets(index_array))


def _labels(classes: Any, class_mode: Any, count: int, dtype: Any) -> Any:
    """Targets of class numbers: as they are ("sparse"), as 0.0 and 1.0 ("binary"), or one-hot ("categorical")."""
    numbers = np.asarray(classes)
    if class_mode == "categorical":
        made = np.zeros((len(numbers), count), dtype=dtype)
        made[np.arange(len(numbers)), numbers] = 1
        return made
    return numbers.astype(dtype)


@export("keras.preprocessing.image.DirectoryIterator")
class DirectoryIterator(_Files):
    """Batches of the images in a folder that has a folder for each class.

    Raises:
        ValueError: an argument is unknown.
    """

    def __init__(
        self,
        directory: Any,
        image_data_generator: Any,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        dtype: Any = None,
    ) -> None:
        if class_mode not in ("categorical", "binary", "sparse", "input", None):
            raise ValueError(
                f"Invalid class_mode: {class_mode}; expected one of: {{'binary', 'input', 'categorical', None, 'sparse'}}"
            )
        save = _Saves(save_to_dir, save_prefix, save_format)
        self._start(image_data_generator, target_size, color_mode, data_format, save, interpolation, dtype)
        self.directory, self.class_mode = os.fspath(directory), class_mode
        names = list(classes or sorted(each.name for each in os.scandir(directory) if each.is_dir()))
        self.num_classes, self.class_indices = len(names), {name: i for i, name in enumerate(names)}
        found: list[tuple[str, int]] = []
        for number, name in enumerate(names):
            files = sorted(_images_in(os.path.join(self.directory, name), follow_links))
            if subset is not None:
                files = files[_part(len(files), subset, image_data_generator._validation_split)]
            found.extend((path, number) for path in files)
        self.samples, self.filepaths = len(found), [path for path, _ in found]
        self.filenames = [os.path.relpath(path, self.directory) for path in self.filepaths]
        self.classes = np.array([number for _, number in found], dtype="int32")
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        super().__init__(self.samples, batch_size, shuffle, seed)

    @property
    def labels(self) -> Any:
        return self.classes

    def _targets(self, index_array: Any) -> Any:
        return _labels(self.classes[index_array], self.class_mode, self.num_classes, self.dtype)


def _images_in(folder: str, follow_links: bool) -> Iteration[str]:
    for root, _, files in os.walk(folder, followlinks=follow_links):
        yield from (os.path.join(root, name) for name in files if name.lower().endswith(_ENDINGS))


@export("keras.preprocessing.image.ImageDataGenerator")
class ImageDataGenerator:
    """Random transformations of images, and batches of images that were transformed.

    Args:
        featurewise_center, samplewise_center: whether to subtract the mean: of the data that `fit` saw, or of the image.
        featurewise_std_normalization, samplewise_std_normalization: whether to divide by the standard deviation likewise.
        zca_whitening, zca_epsilon: whether to remove the correlations of pixels that `fit` saw.
        rotation_range: the largest angle, in degrees.
        width_shift_range, height_shift_range: how far to move: a part of the size, pixels, or a list to choose from.
        brightness_range: the smallest and largest factor.
        shear_range: the largest angle, in degrees.
        zoom_range: the smallest and largest factor, or how far it is from 1.
        channel_shift_range: the largest number to add.
        fill_mode, cval: what is beyond the borders: "nearest", "reflect", "wrap", or "constant" and its value.
        horizontal_flip, vertical_flip: whether to mirror half of the images.
        rescale: a factor of all values.
        preprocessing_function: a function of an image, before the factor.
        data_format: "channels_last" or "channels_first".
        validation_split: the part that `subset="validation"` gets.
        dtype: the dtype of batches.

    Raises:
        ValueError: an argument is unknown or out of range.
    """

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Any = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        dtype: Any = None,
    ) -> None:
        self.data_format = data_format or default_data_format()
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                f'`data_format` should be `"channels_last"` (channel after row and column) or `"channels_first"` (channel before row and column). Received: {self.data_format}'
            )
        first = self.data_format == "channels_first"
        self.channel_axis, self.row_axis, self.col_axis = (1, 2, 3) if first else (3, 1, 2)
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` must be strictly between 0 and 1.  Received: {validation_split}")
        self._validation_split = validation_split
        if np.isscalar(zoom_range):
            zoom_range = [1 - zoom_range, 1 + zoom_range]
        elif len(zoom_range) != 2:
            raise ValueError(f"`zoom_range` should be a float or a tuple or list of two floats. Received: {zoom_range}")
        self.zoom_range = list(zoom_range)
        if zca_whitening:
            featurewise_center, featurewise_std_normalization = True, False
        featurewise_center = featurewise_center or featurewise_std_normalization
        samplewise_center = samplewise_center or samplewise_std_normalization
        if brightness_range is not None and (
            not isinstance(brightness_range, (tuple, list)) or len(brightness_range) != 2
        ):
            raise ValueError(f"`brightness_range should be tuple or list of two floats. Received: {brightness_range}")
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.fill_mode, self.cval, self.rescale = fill_mode, cval, rescale
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.preprocessing_function = preprocessing_function
        self.dtype = dtype or floatx()
        self.mean: Any = None
        self.std: Any = None
        self.principal_components: Any = None

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
    ) -> NumpyArrayIterator:
        """Batches of images in an array, with labels and weights."""
        return NumpyArrayIterator(
            x,
            y,
            self,
            batch_size,
            shuffle,
            sample_weight,
            seed,
            self.data_format,
            save_to_dir,
            save_prefix,
            save_format,
            subset,
            self.dtype,
        )

    def flow_from_directory(
        self,
        directory: Any,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: Any = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
    ) -> DirectoryIterator:
        """Batches of the images in a folder that has a folder for each class."""
        return DirectoryIterator(
            directory,
            self,
            target_size,
            color_mode,
            classes,
            class_mode,
            batch_size,
            shuffle,
            seed,
            self.data_format,
            save_to_dir,
            save_prefix,
            save_format,
            follow_links,
            subset,
            interpolation,
            self.dtype,
        )

    def flow_from_dataframe(self, dataframe: Any, *args: Any, **kwargs: Any) -> Any:
        """Batches of the images that a table of pandas lists.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "ImageDataGenerator.flow_from_dataframe: use flow_from_directory, or flow with arrays."
        )

    # -- single images -------------------------------------------------------------------------------------------

    def _changed(self, x: np.ndarray) -> np.ndarray:
        """An image as batches hold it: transformed, then standardized."""
        return self.standardize(self.apply_transform(x, self.get_random_transform(x.shape)))

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Applies the function, the factor, and the means and deviations."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x = x * self.rescale
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        for wanted, value, name in (
            (self.featurewise_center, self.mean, "featurewise_center"),
            (self.featurewise_std_normalization, self.std, "featurewise_std_normalization"),
            (self.zca_whitening, self.principal_components, "zca_whitening"),
        ):
            if wanted and value is None:
                warning("This ImageDataGenerator specifies `%s`, but it hasn't been fit on any training data.", name)
        if self.featurewise_center and self.mean is not None:
            x = x - self.mean
        if self.featurewise_std_normalization and self.std is not None:
            x = x / (self.std + 1e-6)
        if self.zca_whitening and self.principal_components is not None:
            x = (x.reshape(1, -1) @ self.principal_components).reshape(x.shape)
        return x

    def get_random_transform(self, img_shape: Any, seed: int | None = None) -> dict[str, Any]:
        """Draws what to do with an image of that shape."""
        if seed is not None:
            np.random.seed(seed)
        rows, columns = img_shape[self.row_axis - 1], img_shape[self.col_axis - 1]
        theta = np.random.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0
        tx, ty = _shift(self.height_shift_range, rows), _shift(self.width_shift_range, columns)
        shear = np.random.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0
        zx, zy = (1, 1) if self.zoom_range == [1, 1] else np.random.uniform(*self.zoom_range, 2)
        flips = (np.random.random() < 0.5) * self.horizontal_flip, (np.random.random() < 0.5) * self.vertical_flip
        spread = self.channel_shift_range
        intensity = np.random.uniform(-spread, spread) if spread != 0 else None
        brightness = None if self.brightness_range is None else np.random.uniform(*self.brightness_range)
        return {
            "theta": theta,
            "tx": tx,
            "ty": ty,
            "shear": shear,
            "zx": zx,
            "zy": zy,
            "flip_horizontal": flips[0],
            "flip_vertical": flips[1],
            "channel_shift_intensity": intensity,
            "brightness": brightness,
        }

    def apply_transform(self, x: np.ndarray, transform_parameters: dict[str, Any]) -> np.ndarray:
        """Does what `get_random_transform` drew, or what a dictionary of its form says."""
        given = transform_parameters
        rows, columns, channels = self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1
        x = transformations.apply_affine_transform(
            x,
            *(given.get(name, 1 if name in ("zx", "zy") else 0) for name in _AFFINE),
            row_axis=rows,
            col_axis=columns,
            channel_axis=channels,
            fill_mode=self.fill_mode,
            cval=self.cval,
        )
        if given.get("channel_shift_intensity") is not None:
            x = transformations.apply_channel_shift(x, given["channel_shift_intensity"], channels)
        if given.get("flip_horizontal"):
            x = np.flip(x, columns)
        if given.get("flip_vertical"):
            x = np.flip(x, rows)
        if given.get("brightness") is not None:
            x = transformations.apply_brightness_shift(x, given["brightness"])
        return x

    def random_transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """A randomly transformed copy of an image."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Learns means, deviations and correlations of images, transformed `rounds` times with `augment`.

        Raises:
            ValueError: it is no array of images.
        """
        x = np.array(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}")
        if seed is not None:
            np.random.seed(seed)
        if augment:
            x = np.stack([self.random_transform(each) for _ in range(rounds) for each in x]).astype(self.dtype)
        spread = [1, 1, 1]
        spread[self.channel_axis - 1] = x.shape[self.channel_axis]
        axes = (0, self.row_axis, self.col_axis)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=axes).reshape(spread)
            x = x - self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=axes).reshape(spread)
            x = x / (self.std + 1e-6)
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            directions, sizes, _ = np.linalg.svd(flat.T @ flat / len(flat))
            self.principal_components = (directions / np.sqrt(sizes + self.zca_epsilon)) @ directions.T


def _shift(given: Any, size: int) -> Any:
    """How far to move along an axis of that size: a number of a list, an integer below a number, or up to a number that is not whole."""
    if np.isscalar(given) and not given:
        return 0
    if isinstance(given, float):
        moved = np.random.uniform(-given, given)
    else:
        moved = np.random.choice(given) * np.random.choice([-1, 1])
    return moved * size if np.max(given) < 1 else moved
