"""First and second derivatives of one op, computed in a graph of either library. Both interpreters read this module.

The outputs are contracted with fixed weights, so that two libraries give the same numbers for the same derivative. The second
derivative is that of the (weighted) first with respect to the inputs and to the weights: it goes through the gradient's own ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ABSENT = np.array(b"no gradient", object)


def derivatives(tf: Any, call: Callable[..., Any], inputs: dict[str, Any], order: int) -> list[np.ndarray]:
    """The derivatives of `call(**inputs)`, one for each floating or complex input (and weight, for the second order).

    `tf` is the 1.x module. What is not differentiable with respect to an input stands as `ABSENT`.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        feeds: dict[Any, np.ndarray] = {}

        def fed(array: np.ndarray) -> Any:
            if not is_inexact(array.dtype):
                return tf.constant(array, tf.string if array.dtype.kind == "O" else tf.as_dtype(array.dtype))
            tensor = tf.placeholder(tf.as_dtype(array.dtype), array.shape)
            feeds[tensor] = array
            return tensor

        def weights(tensors: list[Any]) -> list[Any]:
            return [fed(draw(number, value)) for number, value in enumerate(session.run(tensors, feeds), len(feeds))]

        arguments = {
            name: [fed(leaf) for leaf in item] if isinstance(item, list) else fed(item) for name, item in inputs.items()
        }
        sources = list(feeds)
        outputs = [
            tensor for tensor in flatten(call(**arguments)) if tensor.dtype.is_floating or tensor.dtype.is_complex
        ]
        if not outputs or not sources:
            return []
        starts = weights(outputs)
        firsts = [dense(tf, gradient) for gradient in tf.gradients(outputs, sources, starts)]
        if order == 1:
            return values(session, firsts, feeds)
        given = [gradient for gradient in firsts if gradient is not None]
        if not given:
            return []
        seconds = [dense(tf, gradient) for gradient in tf.gradients(given, [*sources, *starts], weights(given))]
        return values(session, seconds, feeds)


def is_inexact(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def draw(number: int, like: np.ndarray) -> np.ndarray:
    """Weights of the shape and dtype of a value, the same for the same number and shape."""
    random = np.random.RandomState(number)
    drawn = random.uniform(0.5, 1.5, np.shape(like))
    if like.dtype.kind == "c":
        drawn = drawn + 1j * random.uniform(-0.7, 0.7, np.shape(like))
    return np.asarray(drawn).astype(like.dtype)


def dense(tf: Any, gradient: Any) -> Any:
    return None if gradient is None else tf.convert_to_tensor(gradient)


def values(session: Any, tensors: list[Any], feeds: dict[Any, np.ndarray]) -> list[np.ndarray]:
    """The values; zeros stand as ABSENT too, since libraries may say either where nothing depends on an input."""
    found = iter(session.run([tensor for tensor in tensors if tensor is not None], feeds))
    arrays = [ABSENT if tensor is None else np.asarray(next(found)) for tensor in tensors]
    return [ABSENT if array is not ABSENT and not np.any(array) else array for array in arrays]


def flatten(outputs: Any) -> list[Any]:
    if isinstance(outputs, (list, tuple)):
        return [leaf for item in outputs for leaf in flatten(item)]
    return [outputs] if hasattr(outputs, "dtype") else []
