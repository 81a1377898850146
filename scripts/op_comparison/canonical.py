"""What an op leaves free (the signs of vectors, their order, a compressor's choices) brought into one form before it is compared."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from stoker._src.formats.protos import Example

Form = Callable[[list[np.ndarray]], list[np.ndarray]]


def _phases(vectors: np.ndarray) -> np.ndarray:
    """For each column the factor of size one that makes its largest element positive."""
    if not vectors.size:
        return np.ones((*vectors.shape[:-2], 1, vectors.shape[-1]), vectors.dtype)
    # A little more weight on the first of two that are nearly as large, so that rounding does not choose.
    weights = np.abs(vectors) * np.linspace(1.01, 1, vectors.shape[-2])[:, None]
    chosen = np.take_along_axis(vectors, weights.argmax(-2)[..., None, :], -2)
    sizes = np.abs(chosen)
    return np.where(sizes > 0, np.conj(chosen) / np.where(sizes > 0, sizes, 1), 1)


def _projector(vectors: np.ndarray) -> np.ndarray:
    return vectors @ np.conj(np.swapaxes(vectors, -1, -2))


def packed_eigenvectors(values: list[np.ndarray]) -> list[np.ndarray]:
    (packed,) = values
    vectors = packed[..., 1:, :]
    return [packed[..., :1, :], vectors * _phases(vectors)]


def eigenvectors(values: list[np.ndarray]) -> list[np.ndarray]:
    if len(values) < 2 or not values[1].size:
        return values
    return [values[0], values[1] * _phases(values[1]), *values[2:]]


def sorted_eigenvectors(values: list[np.ndarray]) -> list[np.ndarray]:
    """Ordered by the eigenvalues' real, then imaginary parts (to six digits)."""
    e = values[0].astype(np.complex128)
    order = np.lexsort((np.round(e.imag, 6), np.round(e.real, 6)))
    chosen = [np.take_along_axis(values[0], order, -1)]
    for vectors in values[1:]:
        vectors = np.take_along_axis(vectors, order[..., None, :], -1) if vectors.size else vectors
        chosen.append(vectors * _phases(vectors))
    return chosen


def singular_vectors(values: list[np.ndarray]) -> list[np.ndarray]:
    if len(values) < 3 or not values[1].size:
        return values
    s, u, v = values
    rank = s.shape[-1]
    phases = _phases(u[..., :rank])
    rest = [_projector(each[..., rank:]) for each in (u, v)]
    return [s, u[..., :rank] * phases, v[..., :rank] * phases, *rest]


def triangular_factors(values: list[np.ndarray]) -> list[np.ndarray]:
    q, r = values
    rank = min(q.shape[-2], r.shape[-1], q.shape[-1])
    phases = _phases(q[..., :rank])
    return [
        q[..., :rank] * phases,
        np.conj(np.swapaxes(phases, -1, -2)) * r[..., :rank, :],
        _projector(q[..., rank:]),
    ]


def pixels(values: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(Image.open(io.BytesIO(value))) for each in values for value in each.ravel().tolist()]


def messages(values: list[np.ndarray]) -> list[np.ndarray]:
    found = [Example.FromString(text).SerializeToString(deterministic=True) for each in values for text in each.ravel()]
    return [np.array(found, object)]


_SIGNS = "vectors up to their signs, which are free"

FORMS: dict[str, tuple[Form, str]] = {
    "SelfAdjointEig": (packed_eigenvectors, _SIGNS),
    "BatchSelfAdjointEig": (packed_eigenvectors, _SIGNS),
    "SelfAdjointEigV2": (eigenvectors, _SIGNS),
    "BatchSelfAdjointEigV2": (eigenvectors, _SIGNS),
    "Eig": (sorted_eigenvectors, "in the order of the eigenvalues; " + _SIGNS),
    "Svd": (singular_vectors, _SIGNS),
    "BatchSvd": (singular_vectors, _SIGNS),
    "Qr": (triangular_factors, _SIGNS),
    "DecodeJSONExample": (messages, "as messages: TensorFlow does not pack their numbers"),
    "EncodePng": (pixels, "as pixels: compressors choose other bytes"),
}
