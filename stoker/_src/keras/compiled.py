"""The arguments of `compile` for each output: losses, their weights, and metrics."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, settings
from stoker._src.keras import losses, metrics, together
from stoker._src.keras.serialization import find
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.math import arithmetic, reductions


class _Output:
    """What training measures at one output: the loss, its weight, and metrics."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loss: Any = None
        self.loss_name: str = ""
        self.weight: float = 1.0
        self.metrics: list[Any] = []
        self.weighted_metrics: list[Any] = []


class Compiled:
    """The arguments of `compile`, spread over the outputs when these are known."""

    def __init__(
        self, model: Any, loss: Any, given: Any, loss_weights: Any, weighted: Any, options: dict[str, Any]
    ) -> None:
        self.model, self.loss, self.given, self.loss_weights, self.weighted = model, loss, given, loss_weights, weighted
        self.options = options
        self.outputs: list[_Output] = []
        self.functions: dict[Any, Any] = {}
        self.loss_trackers: list[Any] = []

    def spread(self, tensors: list[Any], names: list[str]) -> None:
        """Assigns losses and metrics to outputs.

        Raises:
            ValueError: there are more or other losses than outputs.
        """
        if self.outputs:
            return
        per_loss = _by_output(self.loss, names, "loss")
        weights = (
            _by_output(self.loss_weights, names, "loss_weights")
            if self.loss_weights is not None
            else [1.0] * len(names)
        )
        ordinary, weighted = (_metrics_by_output(each, names) for each in (self.given, self.weighted))
        for i, name in enumerate(names):
            output = _Output(name)
            output.loss = _loss_object(per_loss[i])
            output.loss_name = getattr(getattr(output.loss, "fn", output.loss), "__name__", "")
            output.weight = 1.0 if weights[i] is None else weights[i]
            prefixed = len(names) > 1
            output.metrics = [self._metric(each, output, tensors[i], prefixed) for each in ordinary[i]]
            before = "" if settings.tensor_equality else "weighted_"
            output.weighted_metrics = [self._metric(each, output, tensors[i], prefixed, before) for each in weighted[i]]
            self.outputs.append(output)
        if len(names) > 1:
            self.loss_trackers = [
                metrics.Mean(name=f"{each.name}_loss") if each.loss is not None else None for each in self.outputs
            ]

    def _metric(self, given: Any, output: _Output, tensor: Any, prefixed: bool, before: str = "") -> Any:
        if isinstance(given, metrics.Metric):
            if prefixed and not given.name.startswith(output.name):
                given._name = f"{output.name}_{given.name}"
            return given
        name, function = given if isinstance(given, str) else None, given
        if given in ("accuracy", "acc", "crossentropy", "ce"):
            single = tensor.static_shape.rank is not None and tensor.static_shape[-1] == 1
            sparse = output.loss_name == "sparse_categorical_crossentropy"
            if output.loss_name == "binary_crossentropy":
                single = True
            kind = "binary" if single else "sparse_categorical" if sparse else "categorical"
            exact = given in ("accuracy", "acc")
            function = find("metrics", f"{kind}_{'accuracy' if exact else 'crossentropy'}")
            name = ("accuracy" if settings.tensor_equality and given == "accuracy" else "acc") if exact else given
        else:
            function = metrics.get(given)
            if isinstance(function, type):
                function = function()
            if isinstance(function, metrics.Metric):
                return self._metric(function, output, tensor, prefixed)
            plain = getattr(function, "__name__", type(function).__name__)
            name = plain if name is None or not settings.tensor_equality else name
        return metrics.MeanMetricWrapper(
            function, name=f"{output.name}_{before}{name}" if prefixed else f"{before}{name}"
        )

    @property
    def metrics(self) -> list[Any]:
        found = [each for each in self.loss_trackers if each is not None]
        for output in self.outputs:
            found.extend([*output.metrics, *output.weighted_metrics])
        return found

    def total(
        self,
        targets: list[Any],
        predictions: list[Any],
        weights: list[Any],
        masks: list[Any],
        penalties: list[Any],
    ) -> Any:
        """The loss of a batch with the penalties of the layers, and the updates of the metrics."""
        if self.options["strategy"]:
            parts = [targets, predictions, weights, masks]
            whole = iter(together.gathered([each for part in parts for each in part]))
            targets, predictions, weights, masks = ([next(whole) for _ in part] for part in parts)
        total: Any = None
        position = 0
        for i, output in enumerate(self.outputs):
            if output.loss is None and not output.metrics and not output.weighted_metrics:
                continue
            target = targets[position]
            position += 1
            weight = weights[i]
            if masks[i] is not None:
                mask = casting.cast(masks[i], predictions[i].dtype)
                weight = mask if weight is None else _times(mask, weight)
            if output.loss is not None:
                value = self._loss_of(output, target, predictions[i], weight, masks[i])
                if self.loss_trackers and self.loss_trackers[i] is not None:
                    self.loss_trackers[i](value)
                value = value * output.weight if output.weight != 1.0 else value
                total = value if total is None else total + value
            for metric in output.metrics:
                metric(
                    target,
                    predictions[i],
                    sample_weight=None if masks[i] is None else casting.cast(masks[i], dtypes.float32),
                )
            for metric in output.weighted_metrics:
                metric(target, predictions[i], sample_weight=weight)
        if penalties:
            extra = arithmetic.add_n(
                [reductions.reduce_sum(each) if each.static_shape.rank else each for each in penalties]
            )
            total = extra if total is None else total + extra
        if total is None:
            raise ValueError("The model cannot be compiled because it has no loss to optimize.")
        return total

    @staticmethod
    def _loss_of(output: _Output, target: Any, prediction: Any, weight: Any, mask: Any) -> Any:
        loss = output.loss
        if (
            mask is not None
            and hasattr(loss, "call")
            and getattr(loss, "reduction", "") in ("auto", "sum_over_batch_size")
        ):
            # Masked steps do not count, so the sum is divided by the number of the others.
            each = losses.weighted(loss.call(target, prediction), weight)
            return (
                reductions.reduce_sum(each)
                / casting.cast(ranges.size(each), each.dtype)
                / reductions.reduce_mean(casting.cast(mask, each.dtype))
            )
        return loss(target, prediction, sample_weight=weight)


def _times(mask: Any, weight: Any) -> Any:
    weight = casting.cast(weight, mask.dtype)
    while (weight.static_shape.rank or 0) < (mask.static_shape.rank or 0):
        weight = shaping.expand_dims(weight, -1)
    return mask * weight


def _loss_object(given: Any) -> Any:
    if given is None:
        return None
    found = losses.get(given)
    if isinstance(found, type):
        return found()
    return (
        found
        if isinstance(found, losses.Loss)
        else losses.LossFunctionWrapper(found, name=getattr(found, "__name__", "loss"))
    )


def _by_output(given: Any, names: list[str], what: str) -> list[Any]:
    if isinstance(given, dict):
        unknown = set(given) - set(names)
        if unknown:
            raise ValueError(
                f"Unknown entries in {what} dictionary: {sorted(unknown)}. Only expected following keys: {names}"
            )
        return [given.get(name) for name in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(
                f"When passing a list as {what}, it should have one entry per model output. The model has {len(names)} outputs, but you passed {what}={given}"
            )
        return list(given)
    return [given] * len(names)


def _metrics_by_output(given: Any, names: list[str]) -> list[list[Any]]:
    if given is None:
        return [[] for _ in names]
    if isinstance(given, dict):
        chosen = [given.get(name) for name in names]
        return [[] if each is None else list(each) if isinstance(each, (list, tuple)) else [each] for each in chosen]
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(names) > 1 and given and any(isinstance(each, (list, tuple)) for each in given):
        return [[] if each is None else list(each) if isinstance(each, (list, tuple)) else [each] for each in given]
    return [list(given) for _ in names]
