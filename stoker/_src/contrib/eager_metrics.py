"""`tf.contrib.eager.metrics`: metrics as objects that are called with each batch, in eager programs and in graphs."""

from __future__ import annotations

import re
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.contrib import summary
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.control_flow import debugging
from stoker._src.ops.control_flow.grouping import group, with_dependencies
from stoker._src.ops.math import arithmetic, comparison, reductions, scans
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.runtime.functions import def_function


@export(v1="contrib.eager.metrics.Metric")
class Metric(Trackable):
    """The base of metrics. Calling one adds a batch; `result` is the value so far; `init_variables` starts again.

    A subclass overrides `build`, which creates variables by `add_variable`, `call`, which updates them, and `result`.

    In a graph, a call returns tensors that update the variables when they run, and `init_variables` returns an op.
    The variables are local ones of the graph, or global ones with `use_global_variables`.
    """

    def __init__(self, name: str | None = None, use_global_variables: bool = False) -> None:
        self._name = name or type(self).__name__
        # Names of metrics need not be names of scopes.
        self._scope = re.sub(r"^[^A-Za-z0-9.]+|[^A-Za-z0-9_.\-/]", "", self._name) or type(self).__name__
        self._collection = GraphKeys.GLOBAL_VARIABLES if use_global_variables else GraphKeys.LOCAL_VARIABLES
        self._variables: list[Any] = []
        self._first: list[Any] = []  # their initializers
        self._built = False
        self._call: Any = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def variables(self) -> list[Any]:
        return self._variables

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch. Returns what `call` returns."""
        if not self._built:
            with variable_scope.variable_scope(self._scope):
                self.build(*args, **kwargs)
            self._built = True
            # In a graph, the ops of a function run in order, and all of them.
            self._call = self.call if context.executing_eagerly() else def_function.function(self.call, autograph=False)
        return self._call(*args, **kwargs)

    def init_variables(self) -> Any:
        """Gives the variables their first values."""
        if not context.executing_eagerly():
            return group(*(each.initializer for each in self._variables))
        for each, first in zip(self._variables, self._first):
            each.assign(first(each.shape, each.dtype))
        return None

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Creates the variables. It gets the arguments of the first call."""
        raise NotImplementedError("Metrics must define a build() member function")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the variables by a batch."""
        raise NotImplementedError("Metrics must define a call() member function")

    def result(self) -> Any:
        """The value so far."""
        raise NotImplementedError("Metrics must define a result() member function")

    def value(self) -> Any:
        """The value so far in a graph, and the method that computes it in eager mode."""
        return self.result if context.executing_eagerly() else self.result()

    def add_variable(self, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None) -> Any:
        """Creates a variable. Only `build` may call this."""
        if self._built:
            raise RuntimeError("Can't call add_variable() except in build().")
        first = initializers.Zeros() if initializer is None else initializer
        first = first() if isinstance(first, type) else first
        made = variable_scope.get_variable(
            name,
            shape,
            dtype,
            first,
            trainable=False,
            collections=[self._collection, GraphKeys.METRIC_VARIABLES],
            use_resource=True,
        )
        self._variables.append(made)
        self._first.append(first)
        return self._track_trackable(made, name, overwrite=True)


@export(v1="contrib.eager.metrics.Mean")
class Mean(Metric):
    """The mean of all values, weighted."""

    def __init__(
        self, name: str | None = None, dtype: Any = dtypes.float64, use_global_variables: bool = False
    ) -> None:
        super().__init__(name, use_global_variables)
        self.dtype = dtypes.as_dtype(dtype)

    def build(self, *args: Any, **kwargs: Any) -> None:
        self.numer = self.add_variable("numer", (), self.dtype)
        self.denom = self.add_variable("denom", (), self.dtype)

    def call(self, values: Any, weights: Any = None) -> Any:
        """Adds values, each with the weight that its place has (one, if there are no weights). Returns the arguments."""
        values = convert_to_tensor(values)
        self._add(values, weights)
        return values if weights is None else (values, weights)

    def _add(self, values: Tensor, weights: Any) -> None:
        numbers = casting.cast(values, self.dtype)
        if weights is None:
            count = casting.cast(ranges.size(values), self.dtype)
        else:
            weights = casting.cast(weights, self.dtype)
            numbers = arithmetic.multiply(numbers, weights)
            count = reductions.reduce_sum(ranges.broadcast_to(weights, shaping.shape(numbers)))
        self.denom.assign_add(count)
        self.numer.assign_add(reductions.reduce_sum(numbers))

    def result(self, write_summary: bool = True) -> Any:
        """The mean so far.

        Args:
            write_summary: whether it is written to the default writer of `tf.contrib.summary`, under the metric's name.

        Raises:
            ValueError: the metric was never called.
        """
        if not self._built:
            raise ValueError(f"The metric {self.name} has no value: call it with a batch first.")
        mean = arithmetic.divide(self.numer, self.denom)
        if write_summary:
            summary.scalar(self.name, mean)
        return mean


@export(v1="contrib.eager.metrics.Accuracy")
class Accuracy(Mean):
    """The share of predictions that equal the labels."""

    def __init__(self, name: str | None = None, dtype: Any = dtypes.float64) -> None:
        super().__init__(name, dtype)

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Adds predictions, which have the shape of the labels. Returns the arguments."""
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        self._compare(labels, predictions, weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)

    def _compare(self, labels: Tensor, predictions: Tensor, weights: Any) -> None:
        check = debugging.assert_equal(
            shaping.shape(labels), shaping.shape(predictions), message="Shapes of labels and predictions are unequal"
        )
        equal = comparison.equal(labels, predictions)
        self._add(equal if check is None else with_dependencies([check], equal), weights)


@export(v1="contrib.eager.metrics.CategoricalAccuracy")
class CategoricalAccuracy(Accuracy):
    """The share of predictions whose largest entry is the label's. Both have a row of numbers for each example."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        return super().call(scans.argmax(labels, axis=-1), scans.argmax(predictions, axis=-1), weights)


@export(v1="contrib.eager.metrics.BinaryAccuracy")
class BinaryAccuracy(Accuracy):
    """The share of predictions that are above the threshold where the label is, and below it elsewhere."""

    def __init__(self, threshold: float, name: str | None = None, dtype: Any = dtypes.float64) -> None:
        super().__init__(name, dtype)
        self.threshold = threshold

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        return super().call(
            comparison.greater(labels, self.threshold), comparison.greater(predictions, self.threshold), weights
        )


@export(v1="contrib.eager.metrics.SparseAccuracy")
class SparseAccuracy(Accuracy):
    """The share of predictions, rows of numbers, whose largest entry is at the place that the label names."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        return super().call(casting.cast(labels, dtypes.int64), scans.argmax(predictions, axis=-1), weights)
