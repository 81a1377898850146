"""Attention mechanisms: scores of a query against a memory, and the distribution over the memory that follows."""

from __future__ import annotations

import functools
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.contrib.seq2seq.monotonic import monotonic_attention
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.core import Dense
from stoker._src.ops.array import casting, joining, selection, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import comparison, masking, reductions, unary_functions
from stoker._src.ops.nn import softmax
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.variables import initializers, variable_scope


@export(v1="contrib.seq2seq.AttentionMechanism")
class AttentionMechanism:
    """The interface: `alignments, next_state = mechanism(query, state)`."""

    @property
    def alignments_size(self) -> Any:
        """The number of items in the memory."""
        raise NotImplementedError(f"{type(self).__name__} does not say its alignments_size.")

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size.")


def _masked_memory(memory: Any, lengths: Any, check_inner_dims: bool) -> Any:
    """The memory, with zeros behind each example's length."""

    def masked(each: Any) -> Tensor:
        each = convert_to_tensor(each, name="memory")
        if check_inner_dims and (each.static_shape.rank is None or None in tuple(each.static_shape)[2:]):
            raise ValueError(
                f"Expected memory {each.name} to have fully defined inner dims, but saw shape: {each.shape}"
            )
        if lengths is None:
            return each
        known = each.static_shape[1]
        mask = masking.sequence_mask(lengths, shaping.shape(each)[1] if known is None else known, each.dtype)
        rank = each.static_shape.rank or 2
        return each * shaping.reshape(mask, joining.concat([shaping.shape(mask), [1] * (rank - 2)], 0))

    return nest.map_structure(masked, memory)


def _masked_score(score: Tensor, lengths: Any, value: Any) -> Tensor:
    """The score, with `value` behind each example's length."""
    if lengths is None:
        return score
    known = score.static_shape.of_rank(2)[1]
    mask = masking.sequence_mask(lengths, shaping.shape(score)[1] if known is None else known)
    return selection.where(mask, score, value * shaping.ones_like(score))


class BaseAttentionMechanism(AttentionMechanism):
    """What the mechanisms share: the memory, its keys, and the function from scores to probabilities.

    Args:
        query_layer: maps queries, or None.
        memory: [batch, items, ...].
        probability_fn: a function from scores and the state to probabilities.
        memory_sequence_length: [batch], the number of items of each example.
        memory_layer: maps the memory to keys, or None.
        check_inner_dims_defined: whether the sizes of items must be known.
        score_mask_value: the score of items behind the length; -inf by default.
        custom_key_value_fn: a function from (keys, values) to others.
        name: a name scope.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Any,
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self._probability: Any = probability_fn
        self.dtype = (memory_layer or query_layer).dtype if (memory_layer or query_layer) is not None else None
        with name_scope(name or "BaseAttentionMechanismInit"):
            if memory_sequence_length is not None:
                memory_sequence_length = convert_to_tensor(memory_sequence_length, name="memory_sequence_length")
            self._lengths = memory_sequence_length
            self._values = _masked_memory(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys = self._values if memory_layer is None else memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            kind = as_dtype(nest.flatten(self._keys)[0].dtype).base_dtype
            self._mask_value = kind.as_numpy_dtype(-float("inf")) if score_mask_value is None else score_mask_value
            shape = self._keys.static_shape
            sizes = shaping.shape(self._keys)
            self._batch_size = sizes[0] if shape[0] is None else shape[0]
            self._alignments_size = sizes[1] if shape[1] is None else shape[1]

    @property
    def memory_layer(self) -> Any:
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, masked."""
        return self._values

    @property
    def keys(self) -> Any:
        return self._keys

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """The alignments before the first step: zeros."""
        zeros = shaping.zeros(joining.stack([batch_size, self._alignments_size]), dtype)
        zeros.set_shape([known(batch_size), known(self._alignments_size)])
        return zeros

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step: the initial alignments."""
        return self.initial_alignments(batch_size, dtype)

    def _probabilities(self, score: Tensor, state: Any) -> Any:
        return self._probability(_masked_score(score, self._lengths, self._mask_value), state)


def known(size: Any) -> int | None:
    """A size as a number, or None if it is a tensor."""
    return None if isinstance(size, Tensor) else int(size)


def _dense(name: str, units: int, dtype: Any) -> Any:
    return Dense(units, name=name, use_bias=False, dtype=dtype)


def _stateless(probability_fn: Any) -> Any:
    return lambda score, _: (softmax.softmax if probability_fn is None else probability_fn)(score)


def _luong_score(query: Tensor, keys: Tensor, scale: bool) -> Tensor:
    """The products of the query and each key, times the variable `attention_g` if `scale`."""
    depth, wanted = tuple(query.static_shape)[-1], tuple(keys.static_shape)[-1]
    if depth != wanted:
        raise ValueError(
            f"Incompatible or unknown inner dimensions between query and keys.  Query ({query}) has units: {depth}.  Keys "
            f"({keys}) have units: {wanted}.  Perhaps you need to set num_units to the keys' dimension ({wanted})?"
        )
    score = shaping.squeeze(matrix_products.matmul(shaping.expand_dims(query, 1), keys, transpose_b=True), [1])
    if not scale:
        return score
    g = variable_scope.get_variable(
        "attention_g", dtype=query.dtype.base_dtype, initializer=initializers.Ones(), shape=()
    )
    return g * score


def _bahdanau_score(query: Tensor, keys: Tensor, normalize: bool) -> Tensor:
    """sum(v tanh(key + query)); if `normalize`, v is g v / |v| (Salimans and Kingma, 2016), and a bias is added to the keys."""
    kind = query.dtype.base_dtype
    units = tuple(keys.static_shape)[2]
    units = shaping.shape(keys)[2] if units is None else units
    query = shaping.expand_dims(query, 1)
    v = variable_scope.get_variable("attention_v", [units], dtype=kind)
    if not normalize:
        return reductions.reduce_sum(v * unary_functions.tanh(keys + query), [2])
    g = variable_scope.get_variable(
        "attention_g", dtype=kind, initializer=initializers.Constant((1.0 / units) ** 0.5), shape=()
    )
    b = variable_scope.get_variable("attention_b", [units], dtype=kind, initializer=initializers.Zeros())
    unit_v = g * v * unary_functions.rsqrt(reductions.reduce_sum(unary_functions.square(v)))
    return reductions.reduce_sum(unit_v * unary_functions.tanh(keys + query + b), [2])


@export(v1="contrib.seq2seq.LuongAttention")
class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention (Luong et al., 2015). Variables: `memory_layer/kernel`, and `attention_g` if `scale`.

    Args:
        num_units: the size of queries and keys.
        memory, memory_sequence_length, score_mask_value, custom_key_value_fn: see `BaseAttentionMechanism`.
        scale: whether scores are multiplied by a variable.
        probability_fn: a function from scores to probabilities; softmax by default.
        dtype: the dtype of the memory layer; float32 by default.
        name: the name of the mechanism's scopes.
    """

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=_dense("memory_layer", num_units, dtype or "float32"),
            memory=memory,
            probability_fn=_stateless(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope.variable_scope(None, self._scope, [query]):
            alignments = self._probabilities(_luong_score(query, self._keys, self._scale), state)
        return alignments, alignments


@export(v1="contrib.seq2seq.BahdanauAttention")
class BahdanauAttention(BaseAttentionMechanism):
    """Additive attention (Bahdanau et al., 2014). Variables: `memory_layer/kernel`, `query_layer/kernel`, `attention_v`.

    Args:
        num_units: the size of queries and keys.
        memory, memory_sequence_length, score_mask_value, custom_key_value_fn: see `BaseAttentionMechanism`.
        normalize: whether v is normalized, with the variables `attention_g` and `attention_b`.
        probability_fn: a function from scores to probabilities; softmax by default.
        dtype: the dtype of the layers; float32 by default.
        name: the name of the mechanism's scopes.
    """

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        super().__init__(
            query_layer=_dense("query_layer", num_units, dtype or "float32"),
            memory_layer=_dense("memory_layer", num_units, dtype or "float32"),
            memory=memory,
            probability_fn=_stateless(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope.variable_scope(None, self._scope, [query]):
            processed = self._query_layer(query) if self._query_layer else query
            alignments = self._probabilities(_bahdanau_score(processed, self._keys, self._normalize), state)
        return alignments, alignments


def _choosing(score: Tensor, previous: Tensor, noise: float, mode: str, seed: Any) -> Tensor:
    """The alignments of monotonic attention: each score is the logit of choosing an item."""
    if noise > 0:
        drawn = uniform_normal.random_normal(shaping.shape(score), dtype=score.dtype, seed=seed)
        score = score + noise * drawn
    if mode == "hard":
        chosen = casting.cast(comparison.greater(score, 0), score.dtype)
    else:
        chosen = unary_functions.sigmoid(score)
    return monotonic_attention(chosen, previous, mode)


class _Monotonic(BaseAttentionMechanism):
    """A mechanism whose attention starts at the first item and never moves back."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All weight on the first item."""
        size = self._alignments_size
        first = selection.one_hot(shaping.zeros(joining.stack([batch_size]), "int32"), size, dtype=as_dtype(dtype))
        first.set_shape([known(batch_size), known(size)])
        return first

    def _biased(self, score: Tensor, start: float) -> Tensor:
        bias = variable_scope.get_variable(
            "attention_score_bias", dtype=score.dtype.base_dtype, initializer=initializers.Constant(start), shape=()
        )
        return score + bias


@export(v1="contrib.seq2seq.BahdanauMonotonicAttention")
class BahdanauMonotonicAttention(_Monotonic):
    """Monotonic attention (Raffel et al., 2017) with the score of `BahdanauAttention` and a variable `attention_score_bias`.

    Args:
        num_units, memory, memory_sequence_length, normalize, score_mask_value, dtype, name: see `BahdanauAttention`.
        sigmoid_noise: the standard deviation of noise on the scores before the sigmoid.
        sigmoid_noise_seed: its seed.
        score_bias_init: the initial bias of the scores.
        mode: see `monotonic_attention`.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Any = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=_dense("query_layer", num_units, dtype or "float32"),
            memory_layer=_dense("memory_layer", num_units, dtype or "float32"),
            memory=memory,
            probability_fn=functools.partial(_choosing, noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            processed = self._query_layer(query) if self._query_layer else query
            score = self._biased(_bahdanau_score(processed, self._keys, self._normalize), self._score_bias_init)
            alignments = self._probabilities(score, state)
        return alignments, alignments


@export(v1="contrib.seq2seq.LuongMonotonicAttention")
class LuongMonotonicAttention(_Monotonic):
    """Monotonic attention (Raffel et al., 2017) with the score of `LuongAttention` and a variable `attention_score_bias`.

    The arguments are those of `LuongAttention` and `BahdanauMonotonicAttention`.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Any = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=_dense("memory_layer", num_units, dtype or "float32"),
            memory=memory,
            probability_fn=functools.partial(_choosing, noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope.variable_scope(None, "luong_monotonic_attention", [query]):
            score = self._biased(_luong_score(query, self._keys, self._scale), self._score_bias_init)
            alignments = self._probabilities(score, state)
        return alignments, alignments
