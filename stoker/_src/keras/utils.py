"""`tf.keras.utils`: small helpers for data."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export


@export("keras.utils.to_categorical")
def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """One-hot vectors of integer labels."""
    labels = np.array(y, dtype="int")
    shape = labels.shape[:-1] if labels.ndim > 1 and labels.shape[-1] == 1 else labels.shape
    flat = labels.ravel()
    count = num_classes or int(flat.max()) + 1
    found = np.zeros((flat.size, count), dtype=dtype)
    found[np.arange(flat.size), flat] = 1
    return found.reshape((*shape, count))


@export("keras.utils.normalize")
def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """Vectors of norm 1 along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)
