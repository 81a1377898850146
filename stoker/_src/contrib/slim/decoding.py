"""Decoders of serialized Examples in slim: handlers make items from parsed features."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import sparse_tensor
from stoker._src.graph import tensor as graph_tensor
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.control_flow import branches_and_loops, functional_loops
from stoker._src.ops.image import codecs
from stoker._src.ops.io import decoding
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.ragged import feature_specs
from stoker._src.ops.sparse import sparse_functions


def _decoder(name: str) -> str:
    return f"contrib.slim.tfexample_decoder.{name}"


@export(v1=("contrib.slim.data_decoder.DataDecoder", _decoder("DataDecoder")))
class DataDecoder:
    """Turns records into items."""

    def decode(self, data: Any, items: Any) -> list[Any]:
        """The items of a record, in the order of `items`."""
        raise NotImplementedError(f"{type(self).__name__} has no method `decode`.")

    def list_items(self) -> list[str]:
        """The names of the items."""
        raise NotImplementedError(f"{type(self).__name__} has no method `list_items`.")


@export(v1=_decoder("ItemHandler"))
class ItemHandler:
    """Makes an item from the features `keys`."""

    def __init__(self, keys: Any) -> None:
        self._keys = list(keys) if isinstance(keys, (tuple, list)) else [keys]

    @property
    def keys(self) -> list[str]:
        return self._keys

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        """The item."""
        raise NotImplementedError(f"{type(self).__name__} has no method `tensors_to_item`.")


@export(v1=_decoder("ItemHandlerCallback"))
class ItemHandlerCallback(ItemHandler):
    """An item made by a function of the parsed features."""

    def __init__(self, keys: Any, func: Any) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        return self._func(keys_to_tensors)


@export(v1=_decoder("BoundingBox"))
class BoundingBox(ItemHandler):
    """Boxes [count, 4] from four features with the sides: by default `ymin`, `xmin`, `ymax` and `xmax` after `prefix`."""

    def __init__(self, keys: Any = None, prefix: str = "") -> None:
        keys = ["ymin", "xmin", "ymax", "xmax"] if keys is None else keys
        if len(keys) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(keys)}")
        super().__init__([prefix + key for key in keys])

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        sides = []
        for key in self.keys:
            side = keys_to_tensors[key]
            side = side.values if isinstance(side, sparse_tensor.SparseTensor) else side
            sides.append(shaping.expand_dims(side, 0))
        return shaping.transpose(joining.concat(sides, 0))


@export(v1=_decoder("Tensor"))
class Tensor(ItemHandler):
    """The feature itself, reshaped.

    Args:
        tensor_key: the feature.
        shape_keys: features with its sizes.
        shape: its shape.
        default_value: fills a sparse feature.

    Raises:
        ValueError: both kinds of shapes are given.
    """

    def __init__(self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        if shape_keys and not isinstance(shape_keys, list):
            shape_keys = [shape_keys]
        super().__init__([tensor_key, *(shape_keys or [])])
        self._tensor_key, self._shape_keys, self._shape = tensor_key, shape_keys, shape
        self._default_value = default_value

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        tensor, shape = keys_to_tensors[self._tensor_key], self._shape
        if self._shape_keys:
            shape = joining.stack([self._size(keys_to_tensors[key]) for key in self._shape_keys])
        if isinstance(tensor, sparse_tensor.SparseTensor):
            tensor = tensor if shape is None else sparse_functions.reshape(tensor, shape)
            return sparse_functions.to_dense(tensor, self._default_value)
        return tensor if shape is None else shaping.reshape(tensor, shape)

    @staticmethod
    def _size(feature: Any) -> Any:
        value = feature.values if isinstance(feature, sparse_tensor.SparseTensor) else feature
        return casting.cast(shaping.reshape(value, []), dtypes.int64)


@export(v1=_decoder("LookupTensor"))
class LookupTensor(Tensor):
    """The entries of a table for the words of a feature. The other arguments are those of `Tensor`."""

    def __init__(
        self, tensor_key: str, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = ""
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


@export(v1=_decoder("BackupHandler"))
class BackupHandler(ItemHandler):
    """The item of a handler or, if it is empty, that of another one."""

    def __init__(self, handler: Any, backup: Any) -> None:
        if not isinstance(handler, ItemHandler) or not isinstance(backup, ItemHandler):
            raise ValueError("Primary and backup handlers must be of type ItemHandler.")
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        return branches_and_loops.cond(
            comparison.equal(reductions.reduce_prod(shaping.shape(item)), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


@export(v1=_decoder("SparseTensor"))
class SparseTensor(ItemHandler):
    """A SparseTensor from features with its positions and its values.

    Args:
        indices_key, values_key: the features ("ids" and "values").
        shape_key: a feature with the shape; or
        shape: the shape; by default that of the feature of positions.
        densify: whether the item is dense.
        default_value: fills a dense item.
    """

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        indices_key, values_key = indices_key or "indices", values_key or "values"
        super().__init__([indices_key, values_key, *([shape_key] if shape_key else [])])
        self._indices_key, self._values_key, self._shape_key = indices_key, values_key, shape_key
        self._shape, self._densify, self._default_value = shape, densify, default_value

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        if self._shape_key:
            shape = keys_to_tensors[self._shape_key]
            shape = shape.values if isinstance(shape, sparse_tensor.SparseTensor) else shape
        else:
            shape = indices.dense_shape if self._shape is None else self._shape
        columns = casting.cast(shaping.expand_dims(shaping.reshape(indices.values, [-1]), 1), dtypes.int64)
        rows = shaping.zeros_like(columns) if len(_static(shape)) > 1 else None
        places = columns if rows is None else joining.concat([rows, columns], 1)
        found = sparse_tensor.SparseTensor(places, values.values, casting.cast(shape, dtypes.int64))
        return sparse_functions.to_dense(found, self._default_value) if self._densify else found


def _static(shape: Any) -> list[Any]:
    """The sizes of a shape, as far as their number is known."""
    if isinstance(shape, graph_tensor.Tensor):
        return [None] * (shape.get_shape().num_elements() or 1)
    return list(shape)


@export(v1=_decoder("Image"))
class Image(ItemHandler):
    """A decoded image.

    Args:
        image_key: the feature with the encoded bytes ("image/encoded").
        format_key: the feature with the format ("image/format"): "jpeg", "png", "raw" and so on.
        shape: the shape of the result.
        channels: the number of channels.
        dtype: of the pixels; "raw" images may have any.
        repeated: whether there are several images in an Example.
        dct_method: how JPEGs are decoded.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        image_key, format_key = image_key or "image/encoded", format_key or "image/format"
        super().__init__([image_key, format_key])
        self._image_key, self._format_key = image_key, format_key
        self._shape, self._channels, self._dtype = shape, channels, dtype
        self._repeated, self._dct_method = repeated, dct_method

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        encoded, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return functional_loops.map_fn(lambda each: self._decoded(each, kind), encoded, dtype=self._dtype)
        return self._decoded(encoded, kind)

    def _decoded(self, encoded: Any, kind: Any) -> Any:
        def raw() -> Any:
            return decoding.decode_raw_v1(encoded, out_type=self._dtype)

        def compressed() -> Any:
            if self._dtype == dtypes.uint8:
                return _any_image(encoded, self._channels, self._dct_method)
            return casting.cast(codecs.decode_png(encoded, self._channels, dtype=dtypes.uint16), self._dtype)

        is_raw = comparison.logical_or(comparison.equal(kind, "raw"), comparison.equal(kind, "RAW"))
        image = branches_and_loops.cond(is_raw, raw, compressed)
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else shaping.reshape(image, self._shape)


def _any_image(encoded: Any, channels: int, dct_method: str) -> Any:
    """Decodes JPEG with the chosen method, and anything else by its first bytes."""
    return branches_and_loops.cond(
        codecs.is_jpeg(encoded),
        lambda: codecs.decode_jpeg(encoded, channels, dct_method=dct_method),
        lambda: codecs.decode_image(encoded, channels),
        name="image",
    )


@export(v1=_decoder("TFExampleDecoder"))
class TFExampleDecoder(DataDecoder):
    """Decodes serialized Examples.

    Args:
        keys_to_features: the features to parse.
        items_to_handlers: the handler of each item.
    """

    def __init__(self, keys_to_features: dict[str, Any], items_to_handlers: dict[str, Any]) -> None:
        self._keys_to_features, self._items_to_handlers = keys_to_features, items_to_handlers

    def list_items(self) -> list[str]:
        return sorted(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Any = None) -> list[Any]:
        """The items of a serialized Example, in the order of `items`; by default in that of `list_items`."""
        example = feature_specs.parse_single_example_v1(serialized_example, self._keys_to_features)
        # Features of fixed length are reshaped to the shape that was asked for.
        for key in sorted(self._keys_to_features):
            feature = self._keys_to_features[key]
            if isinstance(feature, feature_specs.FixedLenFeature):
                example[key] = shaping.reshape(example[key], feature.shape)
        outputs = []
        for item in items or self.list_items():
            handler = self._items_to_handlers[item]
            outputs.append(handler.tensors_to_item({key: example[key] for key in handler.keys}))
        return outputs
