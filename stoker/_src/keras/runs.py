"""One call of `fit`, `evaluate` or `predict`: the loop over epochs and batches, and the callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.keras import callbacks as callback_classes
from stoker._src.keras.data import Arrays, Stream


class Run:
    """One call of `fit`, `evaluate` or `predict`: the loop over epochs and batches, and the callbacks."""

    def __init__(
        self,
        model: Any,
        callbacks: Any,
        verbose: int,
        source: Any,
        epochs: int,
        *,
        mode: str = "train",
        validates: bool = False,
        batch_size: int | None = None,
    ) -> None:
        self.model, self.mode, self.verbose = model, mode, verbose
        names = model.metrics_names if mode != "predict" else []
        parameters = {
            "batch_size": getattr(source, "batch_size", batch_size),
            "epochs": epochs,
            "steps": len(source) if isinstance(source, Stream) else None,
            "samples": source.samples,
            "verbose": 0 if mode != "train" else verbose,
            "do_validation": validates,
            "metrics": [*names, *(f"val_{each}" for each in names if validates)],
        }
        self.history = callback_classes.History() if mode == "train" else None
        self.callbacks = callback_classes.CallbackList(callbacks, model, parameters, self.history, verbose, mode)

    def fit(self, source: Any, checked: Any, first: int, epochs: int, frequency: Any, compiled: Any) -> Any:
        model, calls = self.model, self.callbacks
        model.stop_training = False
        model.history = self.history
        if self.verbose:
            _announce(source, checked)
        calls.on_train_begin()
        for epoch in range(first, epochs):
            model.reset_metrics()
            calls.on_epoch_begin(epoch)
            logs = self._epoch(source, "train", calls)
            calls.parameters["steps"] = len(source)
            names = model.metrics_names
            if checked is not None and _due(epoch, frequency):
                before = Run(model, None, 0, checked, 1, mode="test")
                found = before.evaluate(checked, quietly=calls)
                logs.update((f"val_{name}", value) for name, value in zip(names, found))
            calls.on_epoch_end(epoch, logs)
            if model.stop_training:
                break
        calls.on_train_end()
        return self.history

    def _epoch(self, source: Any, kind: str, calls: Any) -> dict[str, Any]:
        model = self.model
        totals: Any = None
        seen, index = 0, 0
        names: list[str] = []
        found: list[Any] = []
        weighted = isinstance(source, Arrays)
        for (x, y, w), size in source.epoch():
            calls.on_batch_begin(kind, index, {"batch": index, "size": size})
            found = model._run(kind, x, y, w)
            names = names or model.metrics_names  # layers may add metrics when they are first called
            factor = size if weighted else 1
            totals = (0.0 if totals is None else totals) + float(found[0]) * factor
            seen += factor
            # The loss is a mean over examples, metrics collect by themselves.
            logs = {"batch": index, "size": size, **dict(zip(names, found))}
            calls.on_batch_end(kind, index, logs)
            index += 1
            if model.stop_training:
                break
        if not index:
            raise ValueError(
                "The data has no batches: with steps_per_epoch, a dataset or generator must last for all epochs."
            )
        values = [totals / seen, *found[1:]]
        return dict(zip(names, values))

    def evaluate(self, source: Any, quietly: Any = None) -> list[Any]:
        calls = quietly or self.callbacks
        self.model.reset_metrics()
        if quietly is None and self.verbose == 1:
            calls.begin_progress(source)
        calls.on_test_begin()
        logs = self._epoch(source, "test", calls)
        calls.on_test_end()
        return list(logs.values())

    def predict(self, source: Any) -> Any:
        calls = self.callbacks
        if self.verbose == 1:
            calls.begin_progress(source)
        calls.on_predict_begin()
        parts: list[list[Any]] = []
        for index, ((x, _, _), size) in enumerate(source.epoch()):
            calls.on_batch_begin("predict", index, {"batch": index, "size": size})
            found = self.model._run("predict", x)
            parts.append(found)
            calls.on_batch_end("predict", index, {"batch": index, "size": size, "outputs": found})
        calls.on_predict_end()
        if not parts:
            raise ValueError("The data has no batches.")
        whole = [np.concatenate(each) if np.ndim(each[0]) else np.array(each) for each in zip(*parts)]
        return whole[0] if len(whole) == 1 else whole


def _due(epoch: int, frequency: Any) -> bool:
    return epoch + 1 in frequency if isinstance(frequency, (list, tuple, set)) else (epoch + 1) % frequency == 0


def _announce(source: Any, checked: Any) -> None:
    """Prints how much there is to train on, as Keras does."""

    def amount(each: Any) -> str:
        return f"{each.samples} samples" if isinstance(each, Arrays) else f"{len(each)} steps"

    if len(source):
        print(
            f"Train on {amount(source)}"
            + (f", validate on {amount(checked)}" if checked is not None and len(checked) else "")
        )
