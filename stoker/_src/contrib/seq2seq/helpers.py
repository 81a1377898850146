"""Helpers of decoders: they sample from a step's outputs and give the next step's inputs."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import Layer
from stoker._src.ops.array import casting, gathering, joining, scattering, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.distributions.discrete import Bernoulli, Categorical
from stoker._src.ops.math import comparison, reductions, scans
from stoker._src.ops.nn import embedding as embeddings


def _time_first(x: Tensor) -> Tensor:
    return shaping.transpose(x, [1, 0, *range(2, x.static_shape.rank or 2)])


def _steps(x: Tensor) -> TensorArray:
    return TensorArray(x.dtype, size=shaping.shape(x)[0], element_shape=x.shape[1:]).unstack(x)


@export(v1="contrib.seq2seq.Helper")
class Helper:
    """The interface of helpers."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of samples."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs)."""
        raise NotImplementedError(f"{type(self).__name__} does not define initialize.")

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The sample of a step's outputs."""
        raise NotImplementedError(f"{type(self).__name__} does not define sample.")

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """(finished, next inputs, next state)."""
        raise NotImplementedError(f"{type(self).__name__} does not define next_inputs.")


@export(v1="contrib.seq2seq.CustomHelper")
class CustomHelper(Helper):
    """A helper of three functions, called with the arguments of `initialize`, `sample` and `next_inputs` by name."""

    def __init__(
        self,
        initialize_fn: Any,
        sample_fn: Any,
        next_inputs_fn: Any,
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn, self._sample_fn, self._next_inputs_fn = initialize_fn, sample_fn, next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self._sample_ids_dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> Any:
        with name_scope(name or "CustomHelperInitialize"):
            finished, next_inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = shaping.shape(finished)[0]
        return finished, next_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name or "CustomHelperSample"):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        with name_scope(name or "CustomHelperNextInputs"):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class _Ids(Helper):
    """A helper whose samples are one id for each sequence."""

    @property
    def sample_ids_shape(self) -> Any:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return dtypes.int32


@export(v1="contrib.seq2seq.TrainingHelper")
class TrainingHelper(_Ids):
    """Gives the inputs themselves, for training. Samples are the largest outputs.

    Args:
        inputs: a structure of tensors [batch, time, ...], or [time, batch, ...] if `time_major`.
        sequence_length: [batch], the lengths.
        time_major: whether time is the first dimension.
        name: a name scope.

    Raises:
        ValueError: `sequence_length` is not a vector.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        with name_scope(name or "TrainingHelper"):
            self._inputs = inputs = nest.map_structure(lambda x: convert_to_tensor(x, name="inputs"), inputs)
            if not time_major:
                inputs = nest.map_structure(_time_first, inputs)
            self._arrays = nest.map_structure(_steps, inputs)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.static_shape.rank != 1:
                raise ValueError(
                    f"Expected sequence_length to be a vector, but received shape: {self._sequence_length.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda x: shaping.zeros_like(x[0, :]), inputs)
            self._batch_size = shaping.shape(self._sequence_length)[0]

    @property
    def inputs(self) -> Any:
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        return self._sequence_length

    @property
    def batch_size(self) -> Any:
        known = self._sequence_length.static_shape[0]
        return self._batch_size if known is None else known

    def _at(self, time: Any, finished: Any) -> Any:
        """The inputs of a step, or zeros if all sequences have ended, since there may be none."""
        zeros = nest.flatten(self._zero_inputs)
        found = branches_and_loops.cond(
            reductions.reduce_all(finished),
            lambda: list(zeros),
            lambda: [each.read(time) for each in nest.flatten(self._arrays)],
        )
        found = found if isinstance(found, (list, tuple)) else [found]
        for value, zero in zip(found, zeros):
            value.set_shape(zero.static_shape)
        return nest.pack_sequence_as(self._zero_inputs, list(found))

    def initialize(self, name: str | None = None) -> Any:
        with name_scope(name or "TrainingHelperInitialize"):
            finished = comparison.equal(0, self._sequence_length)
            return finished, self._at(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused_kwargs: Any) -> Any:
        with name_scope(name or "TrainingHelperSample"):
            return casting.cast(scans.argmax(outputs, -1), dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused_kwargs: Any
    ) -> Any:
        with name_scope(name or "TrainingHelperNextInputs"):
            following = time + 1
            finished = comparison.greater_equal(
                casting.cast(following, self._sequence_length.dtype), self._sequence_length
            )
            return finished, self._at(following, finished), state


def _lookup(embedding: Any) -> Any:
    """A function from ids to inputs: `embedding` itself, or a lookup in it."""
    return embedding if callable(embedding) else lambda ids: embeddings.embedding_lookup(embedding, ids)


def _probability(value: Any, name: str) -> Tensor:
    value = convert_to_tensor(value, name="sampling_probability")
    if value.static_shape.rank not in (0, 1):
        raise ValueError(f"{name} must be either a scalar or a vector. saw shape: {value.shape}")
    return value


@export(v1="contrib.seq2seq.ScheduledEmbeddingTrainingHelper")
class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Scheduled sampling (Bengio et al., 2015) of ids: with `sampling_probability`, the next input is a sample's embedding.

    Args:
        inputs, sequence_length, time_major, name: see `TrainingHelper`.
        embedding: a function from ids to inputs, or the table.
        sampling_probability: a scalar or [batch].
        seed: the seed of samples.
        scheduling_seed: the seed of the decisions.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: Any = None,
        scheduling_seed: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name or "ScheduledEmbeddingSamplingWrapper"):
            self._embedding = _lookup(embedding)
            self._probability = _probability(sampling_probability, "sampling_probability")
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def initialize(self, name: str | None = None) -> Any:
        return super().initialize(name=name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused_kwargs: Any) -> Any:
        """Sampled ids, -1 where the next input is the given one."""
        with name_scope(name or "ScheduledEmbeddingTrainingHelperSample"):
            chosen = Bernoulli(probs=self._probability, dtype=dtypes.bool_).sample(
                sample_shape=self.batch_size, seed=self._scheduling_seed
            )
            drawn = Categorical(logits=outputs).sample(seed=self._seed)
            return selection.where(chosen, drawn, shaping.fill(shaping.shape(drawn), -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused_kwargs: Any
    ) -> Any:
        with name_scope(name or "ScheduledEmbeddingTrainingHelperNextInputs"):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)

            def mixed() -> Any:
                rows = casting.cast(selection.where(comparison.greater(sample_ids, -1)), dtypes.int32)
                others = casting.cast(selection.where(comparison.less_equal(sample_ids, -1)), dtypes.int32)
                sampled = self._embedding(gathering.gather_nd(sample_ids, rows))
                return _interleaved(given, rows, sampled, others, gathering.gather_nd(given, others))

            inputs = branches_and_loops.cond(reductions.reduce_all(finished), lambda: given, mixed)
            inputs.set_shape(given.static_shape)
        return finished, inputs, state


def _interleaved(like: Tensor, rows: Tensor, values: Any, others: Tensor, other_values: Any) -> Any:
    shape = shaping.shape(like)
    return scattering.scatter_nd(rows, values, shape) + scattering.scatter_nd(others, other_values, shape)


@export(v1="contrib.seq2seq.ScheduledOutputTrainingHelper")
class ScheduledOutputTrainingHelper(TrainingHelper):
    """Scheduled sampling of outputs: with `sampling_probability`, the next input is the output itself.

    Args:
        inputs, sequence_length, time_major, name: see `TrainingHelper`; one tensor.
        sampling_probability: a scalar or [batch].
        seed: the seed of the decisions.
        next_inputs_fn: a function or layer from outputs to inputs.
        auxiliary_inputs: a structure of inputs that are always given, concatenated to the others.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: Any = None,
        next_inputs_fn: Any = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name or "ScheduledOutputTrainingHelper"):
            self._probability = _probability(sampling_probability, "sampling_probability")
            self._has_auxiliary = auxiliary_inputs is not None
            whole = convert_to_tensor(inputs, name="inputs")
            if self._has_auxiliary:
                auxiliary_inputs = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                whole = joining.concat([whole, auxiliary_inputs], -1)
                rows = auxiliary_inputs if time_major else _time_first(auxiliary_inputs)
                self._auxiliary = _steps(rows)
            self._seed = seed
            if next_inputs_fn is not None and not isinstance(next_inputs_fn, Layer) and not callable(next_inputs_fn):
                raise TypeError(f"next_inputs_fn must be callable, saw {next_inputs_fn!r}")
            self._next_inputs_fn = next_inputs_fn
            super().__init__(whole, sequence_length, time_major, name)

    def initialize(self, name: str | None = None) -> Any:
        return super().initialize(name=name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused_kwargs: Any) -> Any:
        """1 where the next input is the output, else 0."""
        with name_scope(name or "ScheduledOutputTrainingHelperSample"):
            return Bernoulli(probs=self._probability).sample(sample_shape=self.batch_size, seed=self._seed)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused_kwargs: Any
    ) -> Any:
        with name_scope(name or "ScheduledOutputTrainingHelperNextInputs"):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids)
            chosen = casting.cast(sample_ids, dtypes.bool_)

            def with_auxiliary(values: Any, rows: Any) -> Any:
                if not self._has_auxiliary:
                    return values
                extra = self._auxiliary.read(time + 1)
                return joining.concat([values, extra if rows is None else gathering.gather_nd(extra, rows)], -1)

            def sampled() -> Any:
                if self._next_inputs_fn is None:
                    return selection.where(chosen, with_auxiliary(outputs, None), given)
                rows = casting.cast(selection.where(chosen), dtypes.int32)
                others = casting.cast(selection.where(comparison.logical_not(chosen)), dtypes.int32)
                values = with_auxiliary(self._next_inputs_fn(gathering.gather_nd(outputs, rows)), rows)
                return _interleaved(given, rows, values, others, gathering.gather_nd(given, others))

            none = comparison.logical_or(
                reductions.reduce_all(finished), comparison.logical_not(reductions.reduce_any(chosen))
            )
            inputs = branches_and_loops.cond(none, lambda: given, sampled)
            inputs.set_shape(given.static_shape)
        return finished, inputs, state


@export(v1="contrib.seq2seq.GreedyEmbeddingHelper")
class GreedyEmbeddingHelper(_Ids):
    """For inference: the next input is the embedding of the id with the largest output.

    Args:
        embedding: a function from ids to inputs, or the table.
        start_tokens: [batch], the first ids.
        end_token: the id that ends a sequence.

    Raises:
        ValueError: `start_tokens` is not a vector, or `end_token` not a scalar.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding = _lookup(embedding)
        self._start_tokens = convert_to_tensor(start_tokens, dtypes.int32, name="start_tokens")
        self._end_token = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        if self._start_tokens.static_shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        if self._end_token.static_shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        known = self._start_tokens.static_shape[0]
        self._batch_size = shaping.shape(self._start_tokens)[0] if known is None else known
        self._start_inputs = self._embedding(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> Any:
        return shaping.fill(shaping.shape(self._start_tokens), False), self._start_inputs

    def _check(self, outputs: Any) -> None:
        if not isinstance(outputs, Tensor):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        self._check(outputs)
        return scans.argmax(outputs, -1, output_type=dtypes.int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        finished = comparison.equal(sample_ids, self._end_token)
        inputs = branches_and_loops.cond(
            reductions.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding(sample_ids)
        )
        inputs.set_shape(self._start_inputs.static_shape)
        return finished, inputs, state


@export(v1="contrib.seq2seq.SampleEmbeddingHelper")
class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """For inference: ids are drawn with the outputs, divided by `softmax_temperature`, as logits."""

    def __init__(
        self, embedding: Any, start_tokens: Any, end_token: Any, softmax_temperature: Any = None, seed: Any = None
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        self._check(outputs)
        logits = outputs if self._temperature is None else outputs / self._temperature
        return Categorical(logits=logits).sample(seed=self._seed)


@export(v1="contrib.seq2seq.InferenceHelper")
class InferenceHelper(Helper):
    """For inference with any samples.

    Args:
        sample_fn: a function from outputs to samples.
        sample_shape, sample_dtype: the shape of a sample without the batch, and its dtype.
        start_inputs: the first inputs.
        end_fn: a function from samples to booleans [batch] that say which sequences end.
        next_inputs_fn: a function from samples to inputs; by default inputs are the samples.
    """

    def __init__(
        self,
        sample_fn: Any,
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Any,
        next_inputs_fn: Any = None,
    ) -> None:
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._sample_shape, self._sample_dtype = TensorShape(sample_shape), sample_dtype
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = shaping.shape(start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> Any:
        return shaping.fill(joining.stack([self._batch_size]), False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
