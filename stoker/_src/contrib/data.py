"""`tf.contrib.data`: the transformations that later became `tf.data.experimental`."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export, export_constant
from stoker._src.data import experimental

_SAME = (
    "bucket_by_sequence_length choose_from_datasets enumerate_dataset get_single_element group_by_window ignore_errors "
    "make_batched_features_dataset map_and_batch parallel_interleave prefetch_to_device sample_from_datasets scan "
    "shuffle_and_repeat unbatch unique"
)
for _name in _SAME.split():
    export_constant(experimental.__name__, _name, v1=f"contrib.data.{_name}")
export_constant(experimental.__name__, "counter", v1="contrib.data.Counter")


@export(v1="contrib.data.batch_and_drop_remainder")
def batch_and_drop_remainder(batch_size: Any) -> experimental.Transformation:
    """Returns a transformation into batches that are all full."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


@export(v1="contrib.data.padded_batch_and_drop_remainder")
def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> experimental.Transformation:
    """Returns a transformation into padded batches that are all full."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)
