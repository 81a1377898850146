"""Layers that prepare inputs: numbers, images and categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.image import resize
from stoker._src.keras.base import Layer, floatx
from stoker._src.keras.sessions import batch_set_value
from stoker._src.layers.base import dims
from stoker._src.ops.array import casting, constants, selection, shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.resources import tables

_PLACES = ("keras.layers.", "keras.layers.experimental.preprocessing.")


def _public(name: str) -> Any:
    return export(*(f"{place}{name}" for place in _PLACES))


class _Prepares(Layer):
    """The base: results are floating-point numbers, whatever the inputs are."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dtype": floatx(), **kwargs})

    def _numbers(self, inputs: Any) -> Any:
        return casting.cast(inputs, as_dtype(self.dtype))


@_public("Rescaling")
class Rescaling(_Prepares):
    """inputs * scale + offset."""

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        kind = as_dtype(self.dtype).as_numpy_dtype
        return self._numbers(inputs) * np.asarray(self.scale, kind) + np.asarray(self.offset, kind)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@_public("Normalization")
class Normalization(_Prepares):
    """(inputs - mean) / sqrt(variance) for each position along `axis`. Mean and variance are given, or learned by `adapt`.

    Args:
        axis: the dimensions that keep statistics of their own; None for one mean and one variance.
        mean: the mean.
        variance: the variance.
        invert: whether to undo it: inputs * sqrt(variance) + mean.
        **kwargs: arguments of every layer.

    Raises:
        ValueError: only one of mean and variance is given.
    """

    def __init__(
        self, axis: Any = -1, mean: Any = None, variance: Any = None, invert: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError(
                f"When setting values directly, both `mean` and `variance` must be set. Received mean={mean}, variance={variance}"
            )
        self.axis = axis if axis is None else tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
        self.mean: Any = None if mean is None else np.asarray(mean, np.float32)
        self.variance: Any = None if variance is None else np.asarray(variance, np.float32)
        self.invert, self._learns = invert, mean is None

    def _axes(self, rank: int) -> list[int]:
        return sorted(each % rank for each in self.axis or ())

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)
        kept = [sizes[axis] for axis in self._axes(len(sizes))]
        if None in kept:
            raise ValueError(
                f"All `axis` values to be kept must have known shape. Got axis: {self.axis}, input shape: {tuple(sizes)}"
            )
        if self._learns:
            self.mean = self.add_weight("mean", kept, None, "zeros", trainable=False)
            self.variance = self.add_weight("variance", kept, None, "ones", trainable=False)
            self.count = self.add_weight("count", (), dtypes.int64, "zeros", trainable=False)
        self.built = True

    def adapt(self, data: Any) -> None:
        """Learns mean and variance of an array or of the batches of a dataset (in eager mode)."""
        if not self._learns:
            raise RuntimeError(
                "Cannot `adapt` a Normalization layer that is initialized with static `mean` and `variance`."
            )
        batches = (
            [np.asarray(data)] if isinstance(data, (np.ndarray, list, tuple)) else [np.asarray(each) for each in data]
        )
        array = np.concatenate(batches).astype(np.float64)
        if array.ndim == 1:
            array = array[:, None]
        if not self.built:
            self.build([None, *array.shape[1:]])
        others = tuple(i for i in range(array.ndim) if i not in self._axes(array.ndim))
        mean, variance = array.mean(others), array.var(others)
        batch_set_value([(self.mean, mean), (self.variance, variance), (self.count, len(array))])

    def call(self, inputs: Any) -> Any:
        rank = inputs.static_shape.rank
        axes = self._axes(rank)
        along = [inputs.static_shape[i] if i in axes else 1 for i in range(rank)]
        x = self._numbers(inputs)
        if self._learns:
            mean, variance = (shaping.reshape(each, along) for each in (self.mean, self.variance))
            spread = arithmetic.maximum(unary_functions.sqrt(variance), 1e-7)
        else:
            mean, variance = (
                np.broadcast_to(each, along).reshape(along) if np.size(each) == 1 else np.reshape(each, along)
                for each in (self.mean, self.variance)
            )
            mean, spread = (constants.constant(each, x.dtype) for each in (mean, np.maximum(np.sqrt(variance), 1e-7)))
        return x * spread + mean if self.invert else (x - mean) / spread

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


# ---- images ---------------------------------------------------------------------------------------------------------


@_public("Resizing")
class Resizing(_Prepares):
    """Images of the size [height, width].

    Raises:
        NotImplementedError: the images should be cut to keep their proportions.
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if crop_to_aspect_ratio:
            raise NotImplementedError("Resizing(crop_to_aspect_ratio=True).")
        self.height, self.width, self.interpolation = height, width, interpolation
        self.crop_to_aspect_ratio = crop_to_aspect_ratio

    def call(self, inputs: Any) -> Any:
        outputs = resize.resize_v2(inputs, [self.height, self.width], method=self.interpolation)
        return self._numbers(outputs)


@_public("CenterCrop")
class CenterCrop(_Prepares):
    """The middle of images. Images that are smaller are enlarged such that one side fits."""

    def __init__(self, height: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.height, self.width = height, width

    def call(self, inputs: Any) -> Any:
        rank = inputs.static_shape.rank
        known = list(inputs.static_shape)[rank - 3 : rank - 1]
        if None in known:
            raise ValueError(f"CenterCrop needs images of known size, and its input has the shape {inputs.shape}.")
        top, left = (known[0] - self.height) // 2, (known[1] - self.width) // 2
        x = self._numbers(inputs)
        if top < 0 or left < 0:
            return self._enlarged(x, known)
        return x[..., top : top + self.height, left : left + self.width, :]

    def _enlarged(self, x: Any, known: list[int]) -> Any:
        """The largest part with the proportions that are wanted, resized."""
        height = min(known[0], int(known[1] * self.height / self.width))
        width = min(known[1], int(known[0] * self.width / self.height))
        top, left = (known[0] - height) // 2, (known[1] - width) // 2
        return resize.resize_v2(x[..., top : top + height, left : left + width, :], [self.height, self.width])


# ---- categories -----------------------------------------------------------------------------------------------------


@_public("CategoryEncoding")
class CategoryEncoding(_Prepares):
    """Vectors of `num_tokens` numbers: which categories an example has ("multi_hot"), how often ("count"), or one for each ("one_hot")."""

    def __init__(self, num_tokens: int, output_mode: str = "multi_hot", sparse: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if output_mode not in ("one_hot", "multi_hot", "count"):
            raise ValueError(
                f"Unknown argument for output_mode: {output_mode}. Expected one of ('one_hot', 'multi_hot', 'count')."
            )
        if sparse:
            raise NotImplementedError("CategoryEncoding(sparse=True).")
        self.num_tokens, self.output_mode, self.sparse = num_tokens, output_mode, sparse

    def call(self, inputs: Any) -> Any:
        hot = selection.one_hot(casting.cast(inputs, dtypes.int32), self.num_tokens, dtype=as_dtype(self.dtype))
        if self.output_mode == "one_hot":
            return shaping.squeeze(hot, [-2]) if inputs.static_shape.rank and inputs.static_shape[-1] == 1 else hot
        return (reductions.reduce_max if self.output_mode == "multi_hot" else reductions.reduce_sum)(hot, axis=-2)


class _Lookup(Layer):
    """The base of numbers of terms by a table: first the mask, then terms that are not in it, then the vocabulary."""

    _key: Any
    """The dtype of terms."""

    def __init__(
        self, max_tokens: Any, num_oov_indices: int, mask_token: Any, oov_token: Any, vocabulary: Any, kwargs: Any
    ) -> None:
        mode = kwargs.pop("output_mode", "int")
        unusual = {
            f"output_mode={mode!r}": mode != "int",
            "invert=True": kwargs.pop("invert", False),
            f"num_oov_indices={num_oov_indices}": num_oov_indices not in (0, 1),
        }
        found = [name for name, is_set in unusual.items() if is_set]
        if found:
            raise NotImplementedError(f"{type(self).__name__} with the settings {found}.")
        if vocabulary is not None and not isinstance(vocabulary, (list, tuple, np.ndarray)):
            raise NotImplementedError(f"{type(self).__name__} with the vocabulary in a file: {vocabulary}.")
        for name in ("sparse", "pad_to_max_tokens", "idf_weights", "vocabulary_dtype", "encoding"):
            kwargs.pop(name, None)
        super().__init__(**{**kwargs, "dtype": "int64"})
        self.max_tokens, self.num_oov_indices = max_tokens, num_oov_indices
        self.mask_token, self.oov_token = mask_token, oov_token
        self.vocabulary: Any = None
        if vocabulary is not None:
            self.set_vocabulary(vocabulary)

    def set_vocabulary(self, vocabulary: Any) -> None:
        """The terms in the order of their numbers."""
        special = {self.mask_token, self.oov_token}
        self.vocabulary = [plain for each in vocabulary if (plain := _plain(each)) not in special]

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The terms in the order of their numbers, also those that stand for padding and for unknown terms."""
        first = [self.mask_token] if self.mask_token is not None else []
        special = [*first, *([self.oov_token] if self.num_oov_indices else [])] if include_special_tokens else []
        return [*special, *(self.vocabulary or [])]

    def adapt(self, data: Any) -> None:
        """Takes the terms of an array or of the batches of a dataset (in eager mode) as vocabulary, the most frequent first."""
        batches = [data] if isinstance(data, (np.ndarray, list, tuple)) else [np.asarray(each) for each in data]
        terms, counts = np.unique(np.concatenate([np.ravel(each) for each in batches]), return_counts=True)
        order = sorted(range(len(terms)), key=lambda i: (-counts[i], _backwards(_plain(terms[i]))))
        special = {self.mask_token, self.oov_token}
        found = [plain for i in order if (plain := _plain(terms[i])) not in special]
        self.set_vocabulary(found if self.max_tokens is None else found[: self.max_tokens - self._first])

    @property
    def _first(self) -> int:
        return self.num_oov_indices + (self.mask_token is not None)

    def call(self, inputs: Any) -> Any:
        if self.vocabulary is None:
            raise RuntimeError(f"The layer {self.name} has no vocabulary: give it one, or call `adapt`.")
        pairs = [] if self.mask_token is None else [(self.mask_token, 0)]
        pairs += [(each, self._first + i) for i, each in enumerate(self.vocabulary)]
        keys, numbers = [each for each, _ in pairs], [number for _, number in pairs]
        made = tables.KeyValueTensorInitializer(
            constants.constant(keys, self._key), constants.constant(numbers, dtypes.int64)
        )
        table = tables.StaticHashTable(made, int(self.mask_token is not None) if self.num_oov_indices else -1)
        return table.lookup(inputs if self._key is dtypes.string else casting.cast(inputs, dtypes.int64))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {**config, "vocabulary": self.vocabulary}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode() if isinstance(value, bytes) else value


def _backwards(value: Any) -> Any:
    """A key that sorts the other way round: of terms that are equally frequent, the larger comes first."""
    return [-ord(each) for each in value] if isinstance(value, str) else -value


@_public("StringLookup")
class StringLookup(_Lookup):
    """Numbers of strings."""

    _key = dtypes.string

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str = "[UNK]",
        vocabulary: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, kwargs)


@_public("IntegerLookup")
class IntegerLookup(_Lookup):
    """Numbers of integers."""

    _key = dtypes.int64

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, kwargs)
