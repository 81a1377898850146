"""`tf.data.Dataset`: a sequence of elements, described as a graph of dataset ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, as_shape
from stoker._src.data import generators, padding, structure
from stoker._src.data.iterators import Iterator as GraphIterator
from stoker._src.data.iterators import OwnedIterator, next_as_optional, one_shot_iterator, started
from stoker._src.data.options import Options
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import BatchableTypeSpec, TypeSpec, describes
from stoker._src.ops.array import shaping
from stoker._src.ops.array.casting import cast
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.dataset import ahead, batches, combinations, iterators, mapping, sources, transforms
from stoker._src.ops.io.files import matching_files
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.random.uniform_normal import get_seed
from stoker._src.ops.strings.string_ops import reduce_join_v2, string_join

AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2
export_constant(__name__, "AUTOTUNE", "data.AUTOTUNE", "data.experimental.AUTOTUNE")
export_constant(__name__, "INFINITE_CARDINALITY", "data.INFINITE_CARDINALITY", "data.experimental.INFINITE_CARDINALITY")
export_constant(__name__, "UNKNOWN_CARDINALITY", "data.UNKNOWN_CARDINALITY", "data.experimental.UNKNOWN_CARDINALITY")


def _integer(value: Any, name: str) -> Tensor:
    return convert_to_tensor(value, dtypes.int64, name=name)


def _count(value: Any) -> Tensor:
    return _integer(-1 if value is None else value, "count")


def _seeds(seed: Any) -> tuple[Tensor, Tensor]:
    if isinstance(seed, Tensor):
        raise NotImplementedError("A seed of a dataset that is a tensor is missing; it must be a number or None.")
    first, second = get_seed(seed)
    # (0, 0) asks for a random seed, so a pair of zeros that the program chose is replaced, as in TensorFlow.
    if first == 0 and second == 0:
        second = 2**31 - 1
    return _integer(first or 0, "seed"), _integer(second or 0, "seed2")


@export(v2="data.Dataset")
class Dataset:
    """A sequence of elements, each a structure of tensors. Methods return new datasets.

    In eager mode a dataset is iterated over like a Python sequence. In a graph, an iterator provides its elements
    (`tf.compat.v1.data.make_one_shot_iterator`, `make_initializable_iterator`).
    """

    def __init__(self, variant_tensor: Tensor, element_spec: Any = None) -> None:
        self._variant_tensor = variant_tensor
        self._spec = element_spec

    @property
    def element_spec(self) -> Any:
        """The types of the components, as a structure of TypeSpecs."""
        return self._spec

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self._spec)

    # -- making datasets -----------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, variant: Tensor, spec: Any) -> Any:
        dataset = object.__new__(DatasetV1 if issubclass(cls, DatasetV1) else Dataset)
        Dataset.__init__(dataset, variant, spec)
        return dataset

    def _derived(self, definition: OpDefinition, *inputs: Any, spec: Any = None, **attrs: Any) -> Any:
        """Returns the dataset of `definition(self, *inputs)`, whose elements are of type `spec` (by default as here)."""
        spec = self._spec if spec is None else spec
        variant = definition(self._variant_tensor, *inputs, **structure.types_and_shapes(spec), **attrs)
        return self._of(variant, spec)

    def _mapped(
        self, definition: OpDefinition, traced: structure.Traced, *inputs: Any, spec: Any = None, **attrs: Any
    ) -> Any:
        spec = traced.spec if spec is None else spec
        return self._derived(definition, traced.captured, *inputs, spec=spec, f=traced.ref, **attrs)

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Any:
        """Returns a dataset with a single element, `tensors`."""
        with name_scope(name, "tensors"):
            value = structure.prepared(tensors)
        spec = structure.spec_of(value)
        flat = structure.types_and_shapes(spec)
        variant = sources.TENSOR_DATASET(
            structure.to_tensors(spec, value), output_shapes=flat["output_shapes"], name=name
        )
        return cls._of(variant, spec)

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None, *, always_copy: bool = False) -> Any:
        """Returns the dataset of the rows of `tensors`.

        Raises:
            ValueError: a component is a scalar, or the numbers of rows differ.
        """
        with name_scope(name, "tensors"):
            value = structure.prepared(tensors)
        spec = structure.spec_of(value)
        rows = Shape((None,))
        for leaf in nest.flatten(spec):
            if leaf.static_shape.rank == 0:
                raise ValueError(f"Unbatching a tensor is only supported for rank >= 1, but {leaf} is a scalar.")
            if leaf.static_shape.rank is not None:
                first = Shape(leaf.static_shape.dims[:1])
                if not rows.compatible(first):
                    raise ValueError(
                        f"Dimensions {rows[0]} and {first[0]} are not compatible: the components have other numbers of rows."
                    )
                rows = rows.merge(first)
        row = structure.unbatched(spec)
        flat = structure.types_and_shapes(row)
        variant = sources.TENSOR_SLICE_DATASET(
            structure.to_rows(spec, value), output_shapes=flat["output_shapes"], name=name
        )
        return cls._of(variant, row)

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Any:
        """Returns the dataset of what `generator(*args)` yields. The generator runs in this process.

        Args:
            generator: returns an iterable; called anew for each pass.
            output_types: the structure of dtypes.
            output_shapes: the structure of shapes; unknown by default.
            args: tensors that are passed to `generator` as arrays.
            output_signature: the structure of TypeSpecs, instead of types and shapes.
            name: the op's name.

        Raises:
            TypeError: `generator` is not callable, or both or neither of types and signature are given.
        """
        variant, spec = generators.generator_dataset(
            generator, output_types, output_shapes, args, output_signature, name
        )
        return cls._of(variant, spec)

    @classmethod
    def range(cls, *args: Any, **kwargs: Any) -> Any:
        """`range(stop)`, `range(start, stop)` or `range(start, stop, step)`: a dataset of integers (`output_type`, int64).

        Raises:
            ValueError: the number of arguments is not 1, 2 or 3.
        """
        kind = dtypes.as_dtype(kwargs.pop("output_type", dtypes.int64))
        name = kwargs.pop("name", None)
        if kwargs:
            raise TypeError(f"range() got an unexpected keyword argument {next(iter(kwargs))!r}.")
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        spec = TensorSpec([], kind)
        parts = [_integer(value, what) for value, what in ((start, "start"), (stop, "stop"), (step, "step"))]
        return cls._of(sources.RANGE_DATASET(*parts, **structure.types_and_shapes(spec), name=name), spec)

    @classmethod
    def random(cls, seed: Any = None, rerandomize_each_iteration: Any = None, name: str | None = None) -> Any:
        """Returns an endless dataset of random integers in [0, 2**32)."""
        if rerandomize_each_iteration:
            raise NotImplementedError("Dataset.random(rerandomize_each_iteration=True) is missing.")
        spec = TensorSpec([], dtypes.int64)
        return cls._of(sources.RANDOM_DATASET(*_seeds(seed), **structure.types_and_shapes(spec), name=name), spec)

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """Returns the dataset of tuples of elements, one from each dataset. It ends with the shortest.

        Raises:
            TypeError: something is not a dataset, or a list is given instead of a tuple.
        """
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        if isinstance(given, list):
            raise TypeError(
                "Invalid `datasets`. `datasets` must be a (potentially nested) structure of datasets, not a list."
            )
        flat = nest.flatten(given)
        for each in flat:
            if not isinstance(each, Dataset):
                raise TypeError(f"Invalid `datasets`. `datasets` must consist of datasets. Found {type(each)}.")
        spec = (
            nest.pack_sequence_as(given, [each.element_spec for each in flat])
            if nest.is_nested(given)
            else flat[0].element_spec
        )
        variants = [each._variant_tensor for each in flat]
        return cls._of(combinations.ZIP_DATASET(variants, **structure.types_and_shapes(spec), name=name), spec)

    @classmethod
    def list_files(cls, file_pattern: Any, shuffle: Any = None, seed: Any = None, name: str | None = None) -> Any:
        """Returns the dataset of the names of files that match a pattern, or any of several; in random order unless `shuffle` is False.

        Raises:
            InvalidArgumentError: (at run time) no file matches.
        """
        shuffle = True if shuffle is None else shuffle
        pattern = convert_to_tensor(file_pattern, dtypes.string, name="file_pattern")
        found = matching_files(pattern)
        some = comparison.greater(shaping.shape(found, out_type=dtypes.int64)[0], _integer(0, "zero"))
        message = string_join(["No files matched pattern: ", reduce_join_v2(pattern, separator=", ")])
        check = assertions.assert_op(some, [message], summarize=1)
        with control_dependencies([check] if check is not None else []):
            found = shaping.identity(found)
        dataset = cls.from_tensor_slices(found)
        if shuffle:
            size = arithmetic.maximum(shaping.shape(found, out_type=dtypes.int64)[0], _integer(1, "one"))
            dataset = dataset.shuffle(size, seed=seed)
        return dataset

    # -- order and number of elements ----------------------------------------------------------------------------

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: Any = None, name: str | None = None
    ) -> Any:
        """Shuffles the elements: each is drawn from a buffer of `buffer_size`. By default every pass has another order."""
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return self._derived(
            transforms.SHUFFLE_DATASET,
            _integer(buffer_size, "buffer_size"),
            *_seeds(seed),
            reshuffle_each_iteration=again,
            name=name,
        )

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """Repeats the elements `count` times, or for ever (None, -1)."""
        return self._derived(transforms.REPEAT_DATASET, _count(count), name=name)

    def take(self, count: Any, name: str | None = None) -> Any:
        """Keeps the first `count` elements; all for -1."""
        return self._derived(transforms.TAKE_DATASET, _integer(count, "count"), name=name)

    def skip(self, count: Any, name: str | None = None) -> Any:
        """Drops the first `count` elements; all for -1."""
        return self._derived(transforms.SKIP_DATASET, _integer(count, "count"), name=name)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """Keeps every `num_shards`-th element, starting with number `index`."""
        counts = _integer(num_shards, "num_shards"), _integer(index, "index")
        return self._derived(transforms.SHARD_DATASET, *counts, name=name)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Any:
        """Appends the elements of another dataset of the same structure.

        Raises:
            TypeError: the elements have another structure or other dtypes.
        """
        try:
            spec = nest.map_structure(
                lambda first, second: first.most_specific_compatible_type(second), self._spec, dataset.element_spec
            )
        except (TypeError, ValueError):
            raise TypeError(f"Incompatible dataset elements: {self._spec} and {dataset.element_spec}.") from None
        return self._derived(combinations.CONCATENATE_DATASET, dataset._variant_tensor, spec=spec, name=name)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """Returns pairs (number, element), counted from `start`."""
        numbers = self.range(start, np.iinfo(np.int64).max)
        return self.zip((numbers, self), name=name)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """Computes up to `buffer_size` elements ahead in a thread."""
        return self._derived(
            ahead.PREFETCH_DATASET,
            _integer(AUTOTUNE if buffer_size is None else buffer_size, "buffer_size"),
            name=name,
        )

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """Keeps the elements of the first complete pass in memory for the following ones."""
        held = convert_to_tensor(filename, dtypes.string, name="filename")
        return self._derived(transforms.CACHE_DATASET, held, name=name)

    def unique(self, name: str | None = None) -> Any:
        """Drops elements that occurred before."""
        return self._derived(combinations.UNIQUE_DATASET, name=name)

    # -- batches -------------------------------------------------------------------------------------------------

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> Any:
        """Stacks `batch_size` consecutive elements. The last batch may be smaller, unless `drop_remainder` is set."""
        size = _integer(batch_size, "batch_size")
        drops = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
        spec = structure.batched(self._spec, _static_size(size, drops))
        return self._derived(batches.BATCH_DATASET_V2, size, drops, spec=spec, name=name)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: str | None = None,
    ) -> Any:
        """Stacks `batch_size` consecutive elements, each padded to `padded_shapes` (None or -1: the largest of the batch).

        Raises:
            ValueError: the rank of a component is unknown and no shape is given, or a shape does not fit a component.
            TypeError: a component is not a dense tensor.
        """
        flat = nest.flatten(self._spec)
        for leaf in flat:
            if not isinstance(leaf, TensorSpec):
                raise TypeError(
                    f"`Dataset.padded_batch` is only supported for datasets that produce tensors, not {leaf}."
                )
        if padded_shapes is None:
            if any(leaf.static_shape.rank is None for leaf in flat):
                raise ValueError("You must provide `padded_shapes` argument because component has unknown rank.")
            shapes = [leaf.static_shape for leaf in flat]
        else:
            shapes = nest.flatten_up_to(self._spec, padded_shapes)
        sizes = [padding.padded_shape(shape, leaf) for shape, leaf in zip(shapes, flat)]
        values = (
            [None] * len(flat) if padding_values is None else padding.for_each_component(self._spec, padding_values)
        )
        values = [padding.padding_value(value, leaf) for value, leaf in zip(values, flat)]
        size = _integer(batch_size, "batch_size")
        drops = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
        rows = _static_size(size, drops)
        specs = []
        for leaf, given in zip(flat, sizes):
            known = constant_value(given)
            dims = None if known is None else [rows, *(None if each < 0 else int(each) for each in known)]
            specs.append(TensorSpec(dims, leaf.dtype))
        spec = nest.pack_sequence_as(self._spec, specs)
        variant = batches.PADDED_BATCH_DATASET_V2(
            self._variant_tensor,
            size,
            sizes,
            values,
            drops,
            output_shapes=structure.types_and_shapes(spec)["output_shapes"],
            name=name,
        )
        return self._of(variant, spec)

    def unbatch(self, name: str | None = None) -> Any:
        """Splits the elements into their rows."""
        spec = structure.unbatched(self._spec)
        if any(not isinstance(leaf, TensorSpec) for leaf in nest.flatten(self._spec)):
            return self.flat_map(
                lambda *parts: self.from_tensor_slices(parts if isinstance(self._spec, tuple) else parts[0])
            )
        return self._derived(batches.UNBATCH_DATASET, spec=spec, name=name)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False, name: str | None = None
    ) -> Any:
        """Returns datasets of `size` elements each, which start `shift` elements apart; `stride` is the step inside a window."""
        count = _integer(size, "size")
        spec = nest.map_structure(DatasetSpec, self._spec)
        return self._derived(
            batches.WINDOW_DATASET,
            count,
            count if shift is None else _integer(shift, "shift"),
            _integer(stride, "stride"),
            convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder"),
            spec=spec,
            name=name,
        )

    # -- functions -----------------------------------------------------------------------------------------------

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        synchronous: Any = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Any:
        """Applies `map_func` to each element. Results keep their order, whatever `num_parallel_calls` is."""
        traced = structure.traced(map_func, "map", self._spec)
        if num_parallel_calls is None:
            return self._mapped(mapping.MAP_DATASET, traced, preserve_cardinality=True, name=name)
        # The oldest form of the op, which every TensorFlow reads.
        calls = convert_to_tensor(num_parallel_calls, dtypes.int32, name="num_parallel_calls")
        return self._mapped(mapping.PARALLEL_MAP_DATASET, traced, calls, preserve_cardinality=True, name=name)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """Joins the datasets that `map_func` makes from the elements, one after the other."""
        traced = structure.traced(map_func, "flat_map", self._spec)
        return self._mapped(mapping.FLAT_MAP_DATASET, traced, spec=_inner(traced.spec), name=name)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> Any:
        """Takes `block_length` elements in turn from each of `cycle_length` open datasets that `map_func` makes."""
        traced = structure.traced(map_func, "interleave", self._spec)
        cycle = _integer(AUTOTUNE if cycle_length is None else cycle_length, "cycle_length")
        block = _integer(1 if block_length is None else block_length, "block_length")
        spec = _inner(traced.spec)
        if num_parallel_calls is None:
            return self._mapped(mapping.INTERLEAVE_DATASET, traced, cycle, block, spec=spec, name=name)
        calls = _integer(num_parallel_calls, "num_parallel_calls")
        return self._mapped(mapping.PARALLEL_INTERLEAVE_DATASET_V2, traced, cycle, block, calls, spec=spec, name=name)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """Keeps the elements for which `predicate` returns True."""
        return self._filtered(mapping.FILTER_DATASET, predicate, name)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """Keeps the elements before the first for which `predicate` returns False."""
        return self._filtered(mapping.TAKE_WHILE_DATASET, predicate, name)

    def _filtered(self, definition: OpDefinition, predicate: Callable[..., Any], name: str | None) -> Any:
        traced = structure.traced(predicate, "filter", self._spec)
        structure.checked_scalar(traced.spec, dtypes.bool_, "predicate")
        return self._derived(definition, traced.captured, predicate=traced.ref, name=name)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """Returns the outputs of `scan_func(state, element) -> (new state, output)`, applied from the first element on."""
        state = structure.prepared(initial_state)
        held = structure.spec_of(state)
        traced = structure.traced(scan_func, "scan", held, self._spec)
        if not isinstance(traced.spec, tuple) or len(traced.spec) != 2:
            raise TypeError(f"Invalid `scan_func`. `scan_func` must return a pair (state, output), not {traced.spec}.")
        return self._derived(
            mapping.SCAN_DATASET,
            structure.to_tensors(held, state),
            traced.captured,
            spec=traced.spec[1],
            f=traced.ref,
            preserve_cardinality=True,
            name=name,
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """Returns the last result of `reduce_func(state, element) -> state`, as tensors."""
        state = structure.prepared(initial_state)
        held = structure.spec_of(state)
        traced = structure.traced(reduce_func, "reduce", held, self._spec)
        spec = nest.map_structure(lambda a, b: a.most_specific_compatible_type(b), held, traced.spec)
        if spec != held:  # the shape of the state changes
            traced = structure.traced(reduce_func, "reduce", spec, self._spec)
        parts = mapping.REDUCE_DATASET(
            self._variant_tensor,
            structure.to_tensors(held, state),
            traced.captured,
            f=traced.ref,
            **structure.types_and_shapes(spec),
            name=name,
        )
        return structure.from_tensors(spec, parts)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Collects elements with equal keys in windows, and joins the datasets `reduce_func(key, window)`.

        Raises:
            ValueError: both or neither of `window_size` and `window_size_func` are given.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be specified, not both."
            )
        size_func = window_size_func or (lambda _: _integer(window_size, "window_size"))
        number = TensorSpec([], dtypes.int64)
        key = structure.traced(lambda *parts: _as_integer(key_func(*parts)), "key", self._spec)
        structure.checked_scalar(key.spec, dtypes.int64, "key_func")
        size = structure.traced(lambda given: _as_integer(size_func(given)), "window_size", number)
        reduced = structure.traced(reduce_func, "reduce", number, DatasetSpec(self._spec))
        return self._derived(
            mapping.GROUP_BY_WINDOW_DATASET,
            key.captured,
            reduced.captured,
            size.captured,
            spec=_inner(reduced.spec),
            key_func=key.ref,
            reduce_func=reduced.ref,
            window_size_func=size.ref,
            name=name,
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """Skips elements whose computation fails."""
        return self._derived(mapping.IGNORE_ERRORS_DATASET, log_warning=log_warning, name=name)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Returns `transformation_func(self)`.

        Raises:
            TypeError: the result is not a dataset.
        """
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}.")
        return result

    # -- values --------------------------------------------------------------------------------------------------

    def cardinality(self) -> Tensor:
        """Returns the number of elements as a tensor; -1 for endless datasets, -2 if it is unknown."""
        return iterators.DATASET_CARDINALITY(self._variant_tensor)

    def get_single_element(self, name: str | None = None) -> Any:
        """Returns the only element. InvalidArgumentError at run time if there is another number of elements."""
        parts = iterators.DATASET_TO_SINGLE_ELEMENT(
            self._variant_tensor, **structure.types_and_shapes(self._spec), name=name
        )
        return structure.from_tensors(self._spec, parts)

    def options(self) -> Options:
        """Returns the options that were set with `with_options`."""
        return getattr(self, "_options", None) or Options()

    def with_options(self, options: Options, name: str | None = None) -> Any:
        """Returns the same dataset with options. They do not change its elements."""
        made = self._derived(transforms.OPTIONS_DATASET, name=name)
        made._options = options
        return made

    def __iter__(self) -> Iterator[Any]:
        if not context.executing_eagerly():
            raise RuntimeError(
                "`tf.data.Dataset` only supports Python-style iteration in eager mode. In a graph, use "
                "`tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()`."
            )
        return OwnedIterator(self)

    def _optionals_in_graph(self) -> Callable[[], Any]:
        """Starts a pass in a graph. Returns a function that returns the next element as an Optional; for loops that autograph converts."""
        resource = started(self)
        return lambda: next_as_optional(resource, self._spec)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Iterates over the elements as arrays (eager mode).

        Raises:
            RuntimeError: eager mode is off.
        """
        if not context.executing_eagerly():
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        return (nest.map_structure(_as_numpy, element) for element in self)

    def __len__(self) -> int:
        if not context.executing_eagerly():
            raise TypeError(
                "`tf.data.Dataset` only supports `len` in eager mode. Use `tf.data.Dataset.cardinality()` instead."
            )
        length = int(self.cardinality().numpy())  # type: ignore[attr-defined]
        if length < 0:
            raise TypeError(
                "The dataset is infinite." if length == INFINITE_CARDINALITY else "The dataset length is unknown."
            )
        return length

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self._spec}>"


@export(v1="data.Dataset")
class DatasetV1(structure.LegacyDescription, Dataset):
    """A sequence of elements, each a structure of tensors. Methods return new datasets."""

    def make_one_shot_iterator(self) -> Any:
        """Returns an iterator over one pass, which needs no initialization. See `tf.data.make_one_shot_iterator`."""
        return one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        """Returns an iterator that starts a pass whenever its `initializer` runs."""
        return make_initializable_iterator(self, shared_name)

    @classmethod
    def from_sparse_tensor_slices(cls, sparse_tensor: Any) -> Any:
        """Returns the dataset of the rows of a SparseTensor."""
        return cls.from_tensor_slices(sparse_tensor)

    def map_with_legacy_function(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None
    ) -> Any:
        """As `map`."""
        return self.map(map_func, num_parallel_calls, deterministic)

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Any:
        """As `filter`."""
        return self.filter(predicate)


def _as_integer(value: Any) -> Tensor:
    return cast(convert_to_tensor(value), dtypes.int64)


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf


def _inner(spec: Any) -> Any:
    """Returns the element spec of the dataset that a function returns.

    Raises:
        TypeError: the function returns something else.
    """
    if not isinstance(spec, DatasetSpec):
        raise TypeError(f"The function must return a `tf.data.Dataset`, but it returns {spec}.")
    return spec.element_spec


def _static_size(size: Tensor, drop_remainder: Tensor) -> int | None:
    """Returns the size of all batches if it is known: the last one may be smaller."""
    known, drops = constant_value(size), constant_value(drop_remainder)
    return int(known) if known is not None and drops is not None and bool(drops) and int(known) > 0 else None


@export("data.DatasetSpec", v1="data.experimental.DatasetStructure")
@describes(Dataset)
class DatasetSpec(BatchableTypeSpec):
    """Describes datasets by the spec of their elements."""

    __slots__ = ("_dataset_shape", "_element_spec")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec, self._dataset_shape = element_spec, as_shape(dataset_shape)

    @property
    def value_type(self) -> type[Dataset]:
        return Dataset

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    @property
    def static_shape(self) -> Shape:
        return self._dataset_shape

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape

    @property
    def _component_specs(self) -> Any:
        return TensorSpec(self._dataset_shape, dtypes.variant)

    def _to_components(self, value: Any) -> Any:
        return value._variant_tensor

    def _from_components(self, components: Any) -> Any:
        return DatasetV1._of(components, self._element_spec)

    def _batch(self, batch_size: int | None) -> TypeSpec:
        return DatasetSpec(self._element_spec, (batch_size, *(self._dataset_shape.dims or ())))

    def _unbatch(self) -> TypeSpec:
        return DatasetSpec(self._element_spec, (self._dataset_shape.dims or ())[1:])


@export(v1="data.make_one_shot_iterator")
def make_one_shot_iterator(dataset: Any) -> Any:
    """Returns an iterator over one pass of `dataset`, which needs no initialization.

    Raises:
        ValueError: the dataset depends on placeholders or on state such as variables and tables.
    """
    return one_shot_iterator(dataset)


@export(v1="data.make_initializable_iterator")
def make_initializable_iterator(dataset: Any, shared_name: str | None = None) -> Any:
    """Returns an iterator that starts a pass over `dataset` whenever its `initializer` runs.

    Raises:
        RuntimeError: eager mode is on.
    """
    if context.executing_eagerly():
        raise RuntimeError(
            "`tf.compat.v1.data.make_initializable_iterator()` is not supported when eager execution is enabled. Use "
            "`for element in dataset` instead."
        )
    spec = dataset.element_spec
    handle = iterators.ITERATOR_V2(shared_name=shared_name or "", **structure.types_and_shapes(spec), name="Iterator")
    made = iterators.MAKE_ITERATOR(dataset._variant_tensor, handle, name="make_initializer")
    return GraphIterator(handle, spec, made)


@export(v1="data.get_output_types")
def get_output_types(dataset_or_iterator: Any) -> Any:
    """Returns the dtypes of the components of a dataset or iterator."""
    return structure.legacy_types(dataset_or_iterator.element_spec)


@export(v1="data.get_output_shapes")
def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Returns the shapes of the components of a dataset or iterator."""
    return structure.legacy_shapes(dataset_or_iterator.element_spec)


@export(v1="data.get_output_classes")
def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Returns the classes of the components of a dataset or iterator."""
    return structure.legacy_classes(dataset_or_iterator.element_spec)
