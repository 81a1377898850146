"""`tf.keras.callbacks`: what happens beside training, after epochs and batches."""

from __future__ import annotations

import collections
import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stoker._src.base import tf_logging as logging
from stoker._src.base.export import export
from stoker._src.formats import gfile, protos
from stoker._src.graph import context
from stoker._src.keras.sessions import get_session, get_value, set_value
from stoker._src.ops.summary.messages import histogram_of
from stoker._src.summary import file_writer as summary_writer


@export("keras.callbacks.Callback")
class Callback:
    """The base of callbacks. `self.model` and `self.params` are set before training."""

    def __init__(self) -> None:
        self.model: Any = None
        self.params: Any = None
        self.validation_data: Any = None

    def set_params(self, params: Any) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self.model = model

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a training batch, by its older name."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a training batch, by its older name."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch, with its loss and metrics."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of an evaluation."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of a prediction."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of a prediction."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Before an evaluation."""

    def on_test_end(self, logs: Any = None) -> None:
        """After an evaluation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before a prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After a prediction."""


class CallbackList:
    """The callbacks of one run: those of the program, the history and the progress bar."""

    def __init__(
        self, callbacks: Any, model: Any, parameters: dict[str, Any], history: Any, verbose: int, mode: str
    ) -> None:
        given = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        own = (
            [ProgbarLogger()]
            if verbose and mode == "train" and not any(isinstance(each, ProgbarLogger) for each in given)
            else []
        )
        self.parameters, self.mode = parameters, mode
        self.callbacks = [*own, *given, *([history] if history is not None else [])]
        for each in self.callbacks:
            each.set_model(model)
            each.set_params(parameters)
            if isinstance(each, ProgbarLogger):
                each.verbose = verbose

    def begin_progress(self, source: Any) -> None:
        """Shows a bar in an evaluation or prediction."""
        progress = ProgbarLogger()
        progress.verbose = 1
        progress.set_params(self.parameters)
        progress.begin(self.parameters.get("samples") or self.parameters.get("steps") or (len(source) or None))
        self.callbacks.insert(0, progress)

    def _all(self, hook: str, *args: Any) -> None:
        for each in self.callbacks:
            getattr(each, hook)(*args)

    def on_train_begin(self) -> None:
        self._all("on_train_begin", {})

    def on_train_end(self) -> None:
        self._all("on_train_end", {})

    def on_epoch_begin(self, epoch: int) -> None:
        self._all("on_epoch_begin", epoch, {})

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        self._all("on_epoch_end", epoch, logs)

    def on_batch_begin(self, kind: str, batch: int, logs: dict[str, Any]) -> None:
        self._all(f"on_{kind}_batch_begin", batch, logs)

    def on_batch_end(self, kind: str, batch: int, logs: dict[str, Any]) -> None:
        self._all(f"on_{kind}_batch_end", batch, logs)

    def on_test_begin(self) -> None:
        self._all("on_test_begin", {})

    def on_test_end(self) -> None:
        self._all("on_test_end", {})

    def on_predict_begin(self) -> None:
        self._all("on_predict_begin", {})

    def on_predict_end(self) -> None:
        self._all("on_predict_end", {})


@export("keras.callbacks.BaseLogger")
class BaseLogger(Callback):
    """Averages the values of batches over an epoch, except those named in `stateful_metrics`."""

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or ())
        self.totals: dict[str, float] = {}
        self.seen = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.seen, self.totals = 0, {}

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        logs = logs or {}
        size = logs.get("size", 0)
        self.seen += size
        for key, value in logs.items():
            if key in self.stateful_metrics:
                self.totals[key] = value
            elif key not in ("batch", "size"):
                self.totals[key] = self.totals.get(key, 0.0) + value * size

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is None:
            return
        for key in self.params["metrics"]:
            if key in self.totals:
                logs[key] = self.totals[key] if key in self.stateful_metrics else self.totals[key] / max(self.seen, 1)


@export("keras.callbacks.History")
class History(Callback):
    """Collects the values of epochs: `history.history["loss"]`."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        self.epoch, self.history = [], {}

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


@export("keras.utils.Progbar")
class Progbar:
    """A progress bar with values.

    Args:
        target: the number of steps; None if unknown.
        width: the width of the bar.
        verbose: 1 for a bar, 2 for one line at the end.
        interval: seconds between two updates.
        stateful_metrics: names of values that are shown as they are, not averaged.
        unit_name: what is counted.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.width, self.verbose, self.interval, self.unit_name = (
            target,
            width,
            verbose,
            interval,
            unit_name,
        )
        self.stateful_metrics = set(stateful_metrics or ())
        self._values: dict[str, list[float]] = collections.OrderedDict()
        self._start = time.time()
        self._last = 0.0
        self._seen = 0
        self._length = 0
        self._rewrites = hasattr(sys.stdout, "isatty") and sys.stdout.isatty()

    def update(self, current: int, values: Any = None) -> None:
        """Shows that `current` steps are done, with (name, value) pairs."""
        for name, value in values or ():
            if name in self.stateful_metrics:
                self._values[name] = [float(value), 1.0]
            else:
                held = self._values.setdefault(name, [0.0, 0.0])
                held[0] += float(value) * (current - self._seen)
                held[1] += current - self._seen
        self._seen = current
        now = time.time()
        done = self.target is not None and current >= self.target
        if self.verbose == 1 and (done or now - self._last >= self.interval):
            self._draw(current, now, done)
            self._last = now
        elif self.verbose == 2 and done:
            print(f"{self._count(current)} - {now - self._start:.0f}s{self._text()}")

    def add(self, n: int, values: Any = None) -> None:
        """Shows that n more steps are done."""
        self.update(self._seen + n, values)

    def _count(self, current: int) -> str:
        return (
            f"{current:{len(str(self.target))}d}/{self.target}" if self.target is not None else f"{current:7d}/Unknown"
        )

    def _text(self) -> str:
        shown = []
        for name, (total, weight) in self._values.items():
            mean = total / max(1, weight)
            shown.append(f" - {name}: " + (f"{mean:.4f}" if abs(mean) > 1e-3 else f"{mean:.4e}"))
        return "".join(shown)

    def _draw(self, current: int, now: float, done: bool) -> None:
        line = self._count(current)
        if self.target is not None:
            filled = int(self.width * current / max(self.target, 1))
            bar = "=" * filled if done else "=" * max(filled - 1, 0) + ">" * (filled > 0)
            line += f" [{bar}{'.' * (self.width - len(bar))}]"
        spent = now - self._start
        per = spent / max(current, 1)
        if self.target is not None and not done:
            line += f" - ETA: {per * (self.target - current):.0f}s"
        else:
            unit = f"{per:.0f}s" if per >= 1 else f"{per * 1e3:.0f}ms" if per >= 1e-3 else f"{per * 1e6:.0f}us"
            line += f" - {spent:.0f}s {unit}/{self.unit_name}"
        line += self._text()
        before = "\r" if self._length else ""
        sys.stdout.write(before + line.ljust(self._length) + ("\n" if done else ""))
        sys.stdout.flush()
        self._length = max(self._length, len(line))


@export("keras.callbacks.ProgbarLogger")
class ProgbarLogger(Callback):
    """Prints the progress of epochs."""

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        super().__init__()
        if count_mode not in ("samples", "steps"):
            raise ValueError(f"Unknown `count_mode`: {count_mode}")
        self.count_mode, self.stateful_metrics = count_mode, set(stateful_metrics or ())
        self.verbose = 1
        self._bar: Any = None
        self._seen = 0

    def begin(self, target: int | None) -> None:
        samples = bool(self.params.get("samples"))
        stateful = {*self.stateful_metrics, *(each for each in self.params["metrics"] if each != "loss")}
        self._bar = Progbar(
            target, verbose=self.verbose, stateful_metrics=stateful, unit_name="sample" if samples else "step"
        )
        self._seen = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self.params["epochs"] > 1:
            print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self.begin(self.params.get("samples") or self.params.get("steps") or None)

    def _after(self, logs: Any) -> None:
        samples = bool(self.params.get("samples"))
        self._seen += logs.get("size", 0) if samples else 1
        values = [(name, logs[name]) for name in self.params["metrics"] if name in logs]
        if self._bar is not None and (self._bar.target is None or self._seen < self._bar.target):
            self._bar.update(self._seen, values)
        self._last = values

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._after(logs or {})

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.params.get("do_validation") is False and self._bar is not None:
            self._after(logs or {})

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self._after(logs or {})

    def _finish(self, values: Any) -> None:
        if self._bar is None:
            return
        self._bar.stateful_metrics = {name for name, _ in values}
        if self._bar.target is None:
            self._bar.target = self._seen
        self._bar.update(self._bar.target, values)
        self._bar = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._finish([(name, logs[name]) for name in [*self.params["metrics"]] if name in (logs or {})])

    def on_test_end(self, logs: Any = None) -> None:
        if (
            self.params.get("do_validation") is False
            and self._bar is not None
            and self.params["epochs"] == 1
            and self.verbose
            and getattr(self, "model", None) is None
        ):
            self._finish(self._last)

    def on_predict_end(self, logs: Any = None) -> None:
        self._finish([])


def _better(mode: str, monitor: str) -> tuple[Callable[[Any, Any], Any], float]:
    """The comparison of two values, and the worst value."""
    if mode not in ("auto", "min", "max"):
        logging.warning("The mode %s is unknown: auto is used.", mode)
        mode = "auto"
    upwards = mode == "max" or (mode == "auto" and ("acc" in monitor or monitor.startswith("fmeasure")))
    return (np.greater, -np.inf) if upwards else (np.less, np.inf)


@export("keras.callbacks.ModelCheckpoint")
class ModelCheckpoint(Callback):
    """Saves the model after epochs, or after a number of examples.

    Args:
        filepath: the file, with names of values in braces: "weights.{epoch:02d}-{val_loss:.2f}.h5".
        monitor: the value that decides what is best.
        verbose: whether to print what is saved.
        save_best_only: whether to save only when the value is the best so far.
        save_weights_only: whether to save the weights alone.
        mode: "min", "max", or "auto" by the name of the value.
        save_freq: "epoch", or the number of examples between two files.
        **kwargs: the old name `period`: the number of epochs between two files.
    """

    def __init__(
        self,
        filepath: Any,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.filepath, self.monitor, self.verbose = str(filepath), monitor, verbose
        self.save_best_only, self.save_weights_only, self.save_freq = save_best_only, save_weights_only, save_freq
        self.period = kwargs.pop("period", 1)
        self.load_weights_on_restart = kwargs.pop("load_weights_on_restart", False)
        if kwargs:
            raise TypeError(f"Unknown arguments: {sorted(kwargs)}")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}")
        self.monitor_op, self.best = _better(mode, monitor)
        self._since, self._examples, self._epoch = 0, 0, 0

    def on_train_begin(self, logs: Any = None) -> None:
        if self.load_weights_on_restart and gfile.exists(self.filepath):
            self.model.load_weights(self.filepath)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.save_freq == "epoch":
            return
        self._examples += (logs or {}).get("size", 1)
        if self._examples >= self.save_freq:
            self._save(self._epoch, logs or {})
            self._examples = 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._since += 1
        if self.save_freq == "epoch" and self._since >= self.period:
            self._since = 0
            self._save(epoch, logs or {})

    def _save(self, epoch: int, logs: dict[str, Any]) -> None:
        path = self.filepath.format(epoch=epoch + 1, **{key: value for key, value in logs.items() if key != "batch"})
        if self.save_best_only:
            current = logs.get(self.monitor)
            if current is None:
                logging.warning("Can save best model only with %s available, skipping.", self.monitor)
                return
            if not self.monitor_op(current, self.best):
                if self.verbose:
                    print(f"\nEpoch {epoch + 1:05d}: {self.monitor} did not improve from {self.best:0.5f}")
                return
            if self.verbose:
                print(
                    f"\nEpoch {epoch + 1:05d}: {self.monitor} improved from {self.best:0.5f} to {current:0.5f}, saving model to {path}"
                )
            self.best = current
        elif self.verbose:
            print(f"\nEpoch {epoch + 1:05d}: saving model to {path}")
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)


@export("keras.callbacks.EarlyStopping")
class EarlyStopping(Callback):
    """Stops training when a value no longer improves.

    Args:
        monitor: the value.
        min_delta: what counts as an improvement.
        patience: how many epochs without one are tolerated.
        verbose: whether to say so.
        mode: "min", "max", or "auto" by the name of the value.
        baseline: the value that must be reached first.
        restore_best_weights: whether the model gets the weights of its best epoch.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__()
        self.monitor, self.patience, self.verbose, self.baseline = monitor, patience, verbose, baseline
        self.restore_best_weights = restore_best_weights
        self.monitor_op, self._worst = _better(mode, monitor)
        self.min_delta = abs(min_delta) if self.monitor_op is np.greater else -abs(min_delta)
        self.wait, self.stopped_epoch, self.best, self.best_weights = 0, 0, self._worst, None

    def on_train_begin(self, logs: Any = None) -> None:
        self.wait, self.stopped_epoch, self.best_weights = 0, 0, None
        self.best = self._worst if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        current = (logs or {}).get(self.monitor)
        if current is None:
            logging.warning(
                "Early stopping conditioned on metric `%s` which is not available. Available metrics are: %s",
                self.monitor,
                ",".join(logs or {}),
            )
            return
        if self.monitor_op(current - self.min_delta, self.best):
            self.best, self.wait = current, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self.restore_best_weights and self.best_weights is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.")
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs: Any = None) -> None:
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1:05d}: early stopping")


@export("keras.callbacks.LearningRateScheduler")
class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch: `schedule(epoch)` or `schedule(epoch, rate)`."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if not hasattr(self.model.optimizer, "lr"):
            raise ValueError('Optimizer must have a "lr" attribute.')
        try:
            rate = self.schedule(epoch, float(get_value(self.model.optimizer.lr)))
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, (float, np.floating)):
            raise ValueError(f'The output of the "schedule" function should be float. Got: {rate}')
        set_value(self.model.optimizer.lr, rate)
        if self.verbose:
            print(f"\nEpoch {epoch + 1:05d}: LearningRateScheduler reducing learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if logs is not None:
            logs["lr"] = get_value(self.model.optimizer.lr)


@export("keras.callbacks.ReduceLROnPlateau")
class ReduceLROnPlateau(Callback):
    """Lowers the learning rate when a value no longer improves.

    Args:
        monitor: the value.
        factor: by what the rate is multiplied.
        patience: how many epochs without an improvement are tolerated.
        verbose: whether to say so.
        mode: "min", "max", or "auto" by the name of the value.
        min_delta: what counts as an improvement.
        cooldown: how many epochs pass after a reduction before the next are counted.
        min_lr: the lowest rate.
        **kwargs: the old name `epsilon` of `min_delta`.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError("ReduceLROnPlateau does not support a factor >= 1.0.")
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.min_delta, self.cooldown, self.min_lr = kwargs.pop("epsilon", min_delta), cooldown, min_lr
        self.monitor_op, self._worst = _better(mode, monitor)
        self.wait, self.cooldown_counter, self.best = 0, 0, self._worst

    def on_train_begin(self, logs: Any = None) -> None:
        self.wait, self.cooldown_counter, self.best = 0, 0, self._worst

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = {} if logs is None else logs
        logs["lr"] = get_value(self.model.optimizer.lr)
        current = logs.get(self.monitor)
        if current is None:
            logging.warning(
                "Reduce LR on plateau conditioned on metric `%s` which is not available. Available metrics are: %s",
                self.monitor,
                ",".join(logs),
            )
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        margin = self.min_delta if self.monitor_op is np.greater else -self.min_delta
        if self.monitor_op(current, self.best + margin):
            self.best, self.wait = current, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            rate = float(get_value(self.model.optimizer.lr))
            if self.wait >= self.patience and rate > self.min_lr:
                rate = max(rate * self.factor, self.min_lr)
                set_value(self.model.optimizer.lr, rate)
                if self.verbose > 0:
                    print(f"\nEpoch {epoch + 1:05d}: ReduceLROnPlateau reducing learning rate to {rate}.")
                self.cooldown_counter, self.wait = self.cooldown, 0


@export("keras.callbacks.TerminateOnNaN")
class TerminateOnNaN(Callback):
    """Stops training when the loss is not a number."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


@export("keras.callbacks.LambdaCallback")
class LambdaCallback(Callback):
    """A callback of functions."""

    def __init__(
        self,
        on_epoch_begin: Any = None,
        on_epoch_end: Any = None,
        on_batch_begin: Any = None,
        on_batch_end: Any = None,
        on_train_begin: Any = None,
        on_train_end: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        given = {**locals(), **kwargs}
        for name in [each for each in dir(self) if each.startswith("on_")]:
            if given.get(name) is not None:
                setattr(self, name, given[name])


@export("keras.callbacks.CSVLogger")
class CSVLogger(Callback):
    """Writes the values of epochs to a CSV file."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.sep, self.append = filename, separator, append
        self._file: Any = None
        self._keys: list[str] | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        path = Path(self.filename)
        headed = self.append and path.exists() and path.stat().st_size > 0
        self._file = path.open("a" if self.append else "w", newline="")
        self._headed = headed
        self._keys = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = logs or {}
        if self._keys is None:
            self._keys = sorted(logs)
            self._writer = csv.DictWriter(self._file, ["epoch", *self._keys], delimiter=self.sep)
            if not self._headed:
                self._writer.writeheader()
        values = {key: logs.get(key, "NA") for key in self._keys}
        self._writer.writerow({"epoch": epoch, **values})
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self._file.close()


@export("keras.callbacks.RemoteMonitor")
class RemoteMonitor(Callback):
    """Sends the values of epochs to a server, as JSON."""

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Any = None,
        send_as_json: bool = False,
    ) -> None:
        super().__init__()
        self.root, self.path, self.field, self.headers, self.send_as_json = root, path, field, headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        from urllib import error, parse, request

        values = {"epoch": epoch, **{key: float(value) for key, value in (logs or {}).items()}}
        body = json.dumps(values) if self.send_as_json else parse.urlencode({self.field: json.dumps(values)})
        headers = {**({"Content-Type": "application/json"} if self.send_as_json else {}), **(self.headers or {})}
        try:
            request.urlopen(request.Request(self.root + self.path, body.encode(), headers), timeout=10).close()
        except error.URLError:
            logging.warning("Could not reach RemoteMonitor root server at %s", self.root)


@export("keras.callbacks.TensorBoard")
class TensorBoard(Callback):
    """Writes the loss, the metrics, the graph and histograms of weights for TensorBoard.

    Args:
        log_dir: the folder.
        histogram_freq: after how many epochs histograms of weights are written; 0 for never.
        batch_size: not used: the data says it.
        write_graph: whether to write the graph.
        write_grads: not supported.
        write_images: not supported.
        embeddings_freq: not supported.
        update_freq: "epoch", "batch", or a number of examples between two writes.
        **kwargs: arguments of other versions: `profile_batch`.
    """

    def __init__(
        self,
        log_dir: Any = "./logs",
        histogram_freq: int = 0,
        batch_size: int = 32,
        write_graph: bool = True,
        write_grads: bool = False,
        write_images: bool = False,
        embeddings_freq: int = 0,
        update_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        for name, value in (
            ("write_grads", write_grads),
            ("write_images", write_images),
            ("embeddings_freq", embeddings_freq),
        ):
            if value:
                raise NotImplementedError(f"TensorBoard({name}=...) in tf.keras.callbacks.")
        if kwargs.pop("profile_batch", 0) not in (0, 2):
            raise NotImplementedError(
                "TensorBoard(profile_batch=...) in tf.keras.callbacks: use basic_hooks.ProfilerHook."
            )
        self.log_dir, self.histogram_freq, self.write_graph, self.update_freq = (
            str(log_dir),
            histogram_freq,
            write_graph,
            update_freq,
        )
        self._writer: Any = None
        self._examples = self._written = 0

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        graph = None if context.executing_eagerly() or not self.write_graph else get_session().graph
        self._writer = summary_writer.FileWriter(self.log_dir, graph)

    def _write(self, values: dict[str, Any], step: int) -> None:
        message = protos.Summary()
        for name, value in values.items():
            if name not in ("batch", "size", "num_steps"):
                message.value.add(tag=name, simple_value=float(value))
        self._writer.add_summary(message, step)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        logs = logs or {}
        self._examples += logs.get("size", 1)
        if self.update_freq == "epoch":
            return
        if self.update_freq == "batch" or self._examples - self._written >= self.update_freq:
            self._written = self._examples
            self._write(
                {f"batch_{key}": value for key, value in logs.items() if key not in ("batch", "size")}, self._examples
            )

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        step = epoch if self.update_freq == "epoch" else self._examples
        self._write({f"epoch_{key}": value for key, value in (logs or {}).items()}, step)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            message = protos.Summary()
            for layer in self.model.layers:
                for weight, value in zip(layer.weights, layer.get_weights()):
                    message.value.add(
                        tag=weight.name.replace(":", "_"),
                        histo=histogram_of(torch.from_numpy(np.array(value, np.float64).reshape(-1))),
                    )
            self._writer.add_summary(message, epoch)
        self._writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self._writer.close()
