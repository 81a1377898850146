"""Attention: weighted means of values, where the weights tell how well keys match queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph.tensor import Tensor
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.keras.learning_phase import resolved as training_flag
from stoker._src.keras.serialization import plain
from stoker._src.layers.base import dims, smart_cond
from stoker._src.ops.array import casting, constants, ranges, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import comparison, reductions, unary_functions
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import dropout as nn_dropout
from stoker._src.ops.nn import softmax


def _size(x: Any, axis: int) -> Any:
    """A size: a number where it is known, else a tensor."""
    known = x.static_shape[axis]
    return shaping.shape(x)[axis] if known is None else known


def _causal(rows: Any, columns: Any) -> Any:
    """True where a query may look: at its own position and those before it."""
    if isinstance(rows, int) and isinstance(columns, int):
        return constants.constant(np.tri(rows, columns, dtype=bool)[None], name="causal_mask")
    return (ranges.range(rows)[:, None] >= ranges.range(columns)[None])[None]


def _all(masks: list[Any]) -> Any:
    """True where all masks are; None without masks."""
    found: Any = None
    for each in masks:
        if each is not None:
            each = casting.cast(each, dtypes.bool_)
            found = each if found is None else comparison.logical_and(found, each)
    return found


def _weights(scores: Any, mask: Any) -> Any:
    """Softmax of the scores; those of positions that are masked count nothing."""
    if mask is not None:
        kind = scores.dtype.base_dtype
        largest = 65504.0 if kind is dtypes.float16 else 1e9
        scores = scores - largest * (1.0 - casting.cast(mask, kind))
    return softmax.softmax(scores)


def _dropped(weights: Any, rate: float, training: Any) -> Any:
    if not rate:
        return weights
    return smart_cond(
        training_flag(training),
        lambda: nn_dropout.dropout(weights, rate=rate),
        lambda: shaping.identity(weights),
    )


class _Attention(Layer):
    """The base of attention without projections: inputs are [query, value] or [query, value, key], of shapes [batch, time, size]."""

    def __init__(self, causal: bool = False, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal, self.dropout, self.supports_masking = causal, dropout, True

    def _scores(self, query: Any, key: Any) -> Any:
        raise NotImplementedError

    def _checked(self, inputs: Any, mask: Any) -> None:
        name = type(self).__name__
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(
                f"{name} layer must be called on a list of inputs, namely [query, value] or [query, value, key]. Received: {inputs}."
            )
        if not 2 <= len(inputs) <= 3:
            raise ValueError(
                f"{name} layer accepts inputs list of length 2 or 3, namely [query, value] or [query, value, key]. Given length: {len(inputs)}"
            )
        if mask is not None:
            if not isinstance(mask, (list, tuple)):
                raise ValueError(f"{name} layer mask must be a list, namely [query_mask, value_mask]. Given: {mask}")
            if not 2 <= len(mask) <= len(inputs):
                raise ValueError(
                    f"{name} layer mask must be a list of length 2, namely [query_mask, value_mask]. Given length: {len(mask)}"
                )

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        self._checked(inputs, mask)
        query, value = inputs[:2]
        key = inputs[2] if len(inputs) > 2 else value
        of_query, of_value = mask[:2] if mask else (None, None)
        scores = self._scores(query, key)
        allowed = [None if of_value is None else shaping.expand_dims(of_value, -2)]
        if self.causal or use_causal_mask:
            allowed.append(_causal(_size(scores, -2), _size(scores, -1)))
        weights = _dropped(_weights(scores, _all(allowed)), self.dropout, training)
        result = matrix_products.matmul(weights, value)
        if of_query is not None:
            result = result * casting.cast(shaping.expand_dims(of_query, -1), result.dtype.base_dtype)
        return [result, weights] if return_attention_scores else result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        self._checked(inputs, mask)
        return mask[0] if mask else None

    def get_config(self) -> dict[str, Any]:
        more = {"dropout": self.dropout} if self.dropout else {}
        return {**super().get_config(), "causal": self.causal, **more}


@export("keras.layers.Attention")
class Attention(_Attention):
    """Attention by products of queries and keys (Luong, Pham and Manning, 2015).

    Args:
        use_scale: whether to multiply the scores by a weight.
        score_mode: "dot", or "concat": the sum of tanh(query + key), times a weight.
        **kwargs: `causal`: whether a position may not look at later ones; `dropout`: the part of the weights that is dropped in
            training; arguments of every layer.
    """

    def __init__(self, use_scale: bool = False, score_mode: str = "dot", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                f"Received: score_mode={score_mode}. Acceptable values are: ['dot', 'concat']",
            )
        self.use_scale, self.score_mode = use_scale, score_mode
        self.scale: Any = None
        self.concat_score_weight: Any = None

    def build(self, input_shape: Any) -> None:
        if self.use_scale:
            self.scale = self.add_weight("scale", (), None, "ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight("concat_score_weight", (), None, "ones")
        self.built = True

    def _scores(self, query: Any, key: Any) -> Any:
        if self.score_mode == "concat":
            sums = shaping.expand_dims(query, -2) + shaping.expand_dims(key, -3)
            sums = sums if self.scale is None else sums * self.scale
            return self.concat_score_weight * reductions.reduce_sum(unary_functions.tanh(sums), axis=-1)
        scores = matrix_products.matmul(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self.score_mode == "dot":
            del config["score_mode"]
        return config


@export("keras.layers.AdditiveAttention")
class AdditiveAttention(_Attention):
    """Attention by the sum of tanh(query + key) (Bahdanau, Cho and Bengio, 2014).

    Args:
        use_scale: whether the terms of that sum have weights.
        **kwargs: as of `Attention`.
    """

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale
        self.scale: Any = None

    def build(self, input_shape: Any) -> None:
        if self.use_scale:
            self.scale = self.add_weight("scale", [dims(input_shape[1])[-1]], None, "glorot_uniform")
        self.built = True

    def _scores(self, query: Any, key: Any) -> Any:
        spread = unary_functions.tanh(shaping.expand_dims(query, -2) + shaping.expand_dims(key, -3))
        return reductions.reduce_sum(spread if self.scale is None else spread * self.scale, axis=-1)


class _Projection(Layer):
    """A product over the last dimensions of its input. Weights: `kernel`, which begins with these dimensions, and `bias`."""

    def __init__(self, summed: int, made: list[int], use_bias: bool, given: dict[str, Any], name: str) -> None:
        super().__init__(name=name)
        self.summed, self.made, self.use_bias, self.given = summed, made, use_bias, given
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)[-self.summed :]
        for name, shape in (("kernel", [*sizes, *self.made]), ("bias", self.made)):
            if name == "kernel" or self.use_bias:
                kinds = (self.given[f"{name}_{kind}"] for kind in ("initializer", "regularizer", "constraint"))
                initializer, regularizer, constraint = kinds
                setattr(self, name, self.add_weight(name, shape, None, initializer, regularizer, None, constraint))
        self.built = True

    def call(self, inputs: Any, factor: float = 1.0) -> Any:
        """[batch, time, *summed] -> [batch, time, the product of `made`], times `factor`."""
        rows = math.prod(self.kernel.shape.as_list()[: self.summed])
        columns = math.prod(self.made)
        kernel = shaping.reshape(self.kernel, [rows, columns])
        y = matrix_products.matmul(shaping.reshape(inputs, [-1, rows]), kernel * factor if factor != 1 else kernel)
        if self.use_bias:
            offset = shaping.reshape(self.bias, [columns])
            y = nn_bias.bias_add(y, offset * factor if factor != 1 else offset)
        return shaping.reshape(y, [-1, _size(inputs, 1), columns])

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("A projection is described by the attention layer that holds it.")


@export("keras.layers.MultiHeadAttention")
class MultiHeadAttention(Layer):
    """Several attentions side by side, each in its own projections of queries, keys and values (Vaswani et al., 2017).

    Args:
        num_heads: how many.
        key_dim: the size of the projected queries and keys.
        value_dim: the size of the projected values; by default `key_dim`.
        dropout: the part of the weights that is dropped in training.
        use_bias: whether the projections add a bias.
        output_shape: the shape of an output; by default that of a query.
        kernel_initializer, ..., bias_constraint: of the projections.
        **kwargs: arguments of every layer.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        if attention_axes not in (None, 1, [1], (1,)):
            raise NotImplementedError(f"Attention over several dimensions (attention_axes={attention_axes}).")
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.dropout, self.use_bias, self.supports_masking = dropout, use_bias, True
        self.attention_axes = attention_axes
        self._wanted = None if output_shape is None else TensorShape(output_shape).as_list()
        for name in ("kernel", "bias"):
            for kind in ("initializer", "regularizer", "constraint"):
                setattr(self, f"{name}_{kind}", given[f"{name}_{kind}"])
        self._given = given

    def __call__(self, query: Any, value: Any = None, key: Any = None, **kwargs: Any) -> Any:
        if value is None:
            raise TypeError(f"{type(self).__name__} is called without a value.")
        masks = {
            name: getattr(each, "_keras_mask", None)
            for name, each in (("query", query), ("value", value), ("key", key))
        }
        for name, mask in masks.items():
            if mask is not None and kwargs.get(f"{name}_mask") is None:
                kwargs[f"{name}_mask"] = mask
        given = {} if key is None else {"key": key}
        return super().__call__(query, value=value, **given, **kwargs)

    def _buildonce(self, inputs: Any) -> None:
        """The projections are made when the layer is called: only then the sizes of values and keys are known."""
        self._dtype = self._dtype or inputs.dtype.base_dtype
        self.built = True

    def _projected(self, name: str, x: Any, sizes: list[int], factor: float = 1.0, summed: int = 1) -> Any:
        attribute = f"_{name.removeprefix('attention_')}_dense"
        if getattr(self, attribute, None) is None:
            setattr(self, attribute, _Projection(summed, sizes, self.use_bias, self._given, name))
        return getattr(self, attribute)(x, factor)

    def _heads(self, name: str, x: Any, size: int, factor: float = 1.0) -> Any:
        """[batch, time, features] -> [batch, heads, time, size]."""
        if x.static_shape.rank != 3:
            raise NotImplementedError(
                f"Attention in a tensor of the shape {x.shape}; it must be [batch, time, features]."
            )
        y = self._projected(name, x, [self.num_heads, size], factor)
        return shaping.transpose(shaping.reshape(y, [-1, _size(x, 1), self.num_heads, size]), [0, 2, 1, 3])

    def call(
        self,
        query: Any,
        value: Any,
        key: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: Any = None,
        use_causal_mask: bool = False,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
    ) -> Any:
        key = value if key is None else key
        q = self._heads("query", query, self.key_dim, 1 / math.sqrt(self.key_dim))
        k, v = self._heads("key", key, self.key_dim), self._heads("value", value, self.value_dim)
        allowed = [None if query_mask is None else shaping.expand_dims(query_mask, -1)]
        allowed += [None if each is None else shaping.expand_dims(each, -2) for each in (value_mask, key_mask)]
        if use_causal_mask:
            allowed.append(_causal(_size(query, 1), _size(key, 1)))
        mask = _all([*allowed, attention_mask])
        if isinstance(mask, Tensor) and mask.static_shape.rank == 3:
            mask = shaping.expand_dims(mask, 1)  # the same for all heads
        weights = _weights(matrix_products.matmul(q, k, transpose_b=True), mask)
        mixed = matrix_products.matmul(_dropped(weights, self.dropout, training), v)
        time, width = _size(query, 1), [self.num_heads, self.value_dim]
        mixed = shaping.reshape(shaping.transpose(mixed, [0, 2, 1, 3]), [-1, time, *width])
        made: Any = self._wanted or [dims(query.shape)[-1]]
        y = self._projected("attention_output", mixed, made, summed=2)
        if len(made) > 1:
            y = shaping.reshape(y, [-1, time, *made])
        return [y, weights] if return_attention_scores else y

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return getattr(inputs, "_keras_mask", None) if mask is None else mask

    def get_config(self) -> dict[str, Any]:
        names = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "attention_axes")
        config = {**self._common_config(), **{name: getattr(self, name) for name in names}}
        return {**config, "output_shape": self._wanted, **_serialized(self)}


def _serialized(layer: Any) -> dict[str, Any]:
    names = (f"{name}_{kind}" for name in ("kernel", "bias") for kind in ("initializer", "regularizer", "constraint"))
    return {name: plain(getattr(layer, name)) for name in names}
