"""How a model is trained, evaluated and asked: `compile`, `fit`, `evaluate`, `predict` and their forms for one batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from stoker._src.base import nest
from stoker._src.graph import context, conversion, scopes
from stoker._src.keras import optimizers, together
from stoker._src.keras.base import is_symbolic
from stoker._src.keras.compiled import Compiled
from stoker._src.keras.data import Arrays, Sequence, Stream, rows, standardized, unpacked
from stoker._src.keras.learning_phase import learning_phase
from stoker._src.keras.runs import Run
from stoker._src.keras.sessions import get_session
from stoker._src.ops.array import constants, shaping
from stoker._src.runtime.eager import tape
from stoker._src.runtime.functions import def_function


class Training:
    """The methods of a model that run it on data."""

    _compiled: Any

    # -- compile -------------------------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        distribute: Any = None,
        **kwargs: Any,
    ) -> None:
        """Chooses how the model is trained.

        Args:
            optimizer: a Keras optimizer, one of `tf.train`, or a name.
            loss: a loss, or one for each output (a list, or a dictionary by output name).
            metrics: metrics or their names, or lists of them for each output.
            loss_weights: factors of the losses.
            sample_weight_mode: "temporal" if each time step has a weight.
            weighted_metrics: metrics that respect the weights of examples.
            target_tensors: not supported: targets come with the data.
            distribute: not supported: see `stoker launch`.
            **kwargs: `run_eagerly`: whether steps run op by op, in eager mode.
        """
        own: Any = self
        if target_tensors is not None:
            raise NotImplementedError("Models with target_tensors.")
        if distribute is not None:
            raise NotImplementedError("compile(distribute=...): use `stoker launch`.")
        unknown = set(kwargs) - {"run_eagerly", "experimental_run_tf_function"}
        if unknown:
            raise TypeError(f"compile got unexpected keyword arguments: {', '.join(sorted(unknown))}")
        options = {
            "run_eagerly": bool(kwargs.get("run_eagerly")),
            "sample_weight_mode": sample_weight_mode,
            "optimizer": optimizer,
            "strategy": together.strategy(),
        }
        own.optimizer = optimizers.get(optimizer)
        own.optimizer._averages = options["strategy"] is not None
        own.__dict__["_compiled"] = compiled = Compiled(self, loss, metrics, loss_weights, weighted_metrics, options)
        own.loss = loss
        if own._network is not None:
            compiled.spread(own.outputs, own.output_names)

    @property
    def run_eagerly(self) -> bool:
        return self._compiled is not None and self._compiled.options["run_eagerly"]

    @property
    def metrics(self) -> list[Any]:
        """The metrics of `compile` and those that layers added."""
        own: Any = self
        added = super().metrics  # type: ignore[misc]
        mine = own.__dict__.get("_compiled")
        listed = mine.metrics if mine is not None else []
        return [*listed, *(each for each in added if not any(each is other for other in listed))]

    @property
    def metrics_names(self) -> list[str]:
        """The names of what `evaluate` returns."""
        return ["loss", *(each.name for each in self.metrics)]

    @property
    def _together(self) -> Any:
        """The strategy whose processes train this model, or None."""
        return None if self._compiled is None else self._compiled.options["strategy"]

    @property
    def total_loss(self) -> Any:
        functions = self._ready().functions
        return functions.get("loss")

    def _ready(self) -> Compiled:
        if self._compiled is None:
            raise RuntimeError(
                "You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."
            )
        return self._compiled

    # -- one batch -----------------------------------------------------------------------------------------------

    def _graph_parts(self, x: Any, y: Any, w: Any, *, measures: bool) -> dict[str, Any]:
        """In a graph: the placeholders, predictions and loss, made for the first batch."""
        own: Any = self
        compiled = self._compiled
        store = compiled.functions if compiled is not None else own.__dict__.setdefault("_plain_functions", {})
        parts = store.get("parts")
        if parts is None:
            if own._network is not None:
                inputs, outputs = own.inputs, own.outputs
            else:
                made = nest.map_structure(_placeholder, x)
                result = own(made, **({"training": learning_phase()} if _takes_training(own) else {}))
                inputs, outputs = nest.flatten(made), nest.flatten(result)
                own.__dict__["_seen_output_names"] = [f"output_{i + 1}" for i in range(len(outputs))]
            parts = store["parts"] = {"inputs": inputs, "outputs": outputs}
        if measures and "targets" not in parts:
            compiled = self._ready()
            compiled.spread(parts["outputs"], own.output_names)
            parts["targets"] = [
                _placeholder(each, name=f"{output.name}_target")
                for each, output in zip([] if y is None else nest.flatten(y), compiled.outputs)
            ]
            parts["weights"] = [
                constants.placeholder_with_default(
                    constants.constant([1.0]), [None] * _weight_rank(w, i), name=f"{output.name}_sample_weights"
                )
                for i, output in enumerate(compiled.outputs)
            ]
            masks = [getattr(each, "_keras_mask", None) for each in parts["outputs"]]
            with scopes.NameScope("loss"):
                parts["loss"] = compiled.total(
                    parts["targets"],
                    parts["outputs"],
                    parts["weights"],
                    masks,
                    [*own.get_losses_for(None), *own.get_losses_for(parts["inputs"])],
                )
            compiled.functions["loss"] = parts["loss"]
        return parts

    def _graph_function(self, kind: str, x: Any, y: Any, w: Any) -> Callable[..., list[Any]]:
        own: Any = self
        parts = self._graph_parts(x, y, w, measures=kind != "predict")
        store = self._compiled.functions if self._compiled is not None else own.__dict__["_plain_functions"]
        made = store.get(kind)
        if made is None:
            if kind == "predict":
                fetches = list(parts["outputs"])
                updates = own._state_updates_for(parts["inputs"])
            else:
                updates = [op for metric in self.metrics for op in metric._updates]
                if kind == "train":
                    with scopes.NameScope("training"):
                        updates = [
                            *updates,
                            *own.optimizer.get_updates(parts["loss"], own.trainable_weights),
                            *own.get_updates_for(None),
                            *own.get_updates_for(parts["inputs"]),
                        ]
                        if self._together:
                            with scopes.control_dependencies([getattr(each, "op", each) for each in updates]):
                                updates += together.equalized(own.non_trainable_weights)
                else:
                    updates = [*updates, *own._state_updates_for(parts["inputs"])]
                with scopes.control_dependencies([getattr(each, "op", each) for each in updates]):
                    fetches = [parts["loss"], *[shaping.identity(each.result()) for each in self.metrics]]
            phase = learning_phase()
            made = store[kind] = (fetches, [getattr(each, "op", each) for each in updates], phase)
        fetches, updates, phase = made
        count = len(fetches)

        def call() -> list[Any]:
            feeds: dict[Any, Any] = dict(zip(parts["inputs"], nest.flatten(x)))
            if kind != "predict":
                feeds.update(zip(parts["targets"], [] if y is None else nest.flatten(y)))
                feeds.update(
                    (key, value)
                    for key, value in zip(parts["weights"], _weight_list(w, len(parts["weights"])))
                    if value is not None
                )
            if is_symbolic(phase):
                feeds[phase] = kind == "train"
            return get_session().run([*fetches, *updates], feeds)[:count]

        return call

    def _eager_function(self, kind: str) -> Callable[..., list[Any]]:
        own: Any = self
        store = (
            self._compiled.functions if self._compiled is not None else own.__dict__.setdefault("_plain_functions", {})
        )
        key = (kind, own.run_eagerly)
        if key in store:
            return store[key]
        takes_training = _takes_training(own)

        def predict(x: Any) -> list[Any]:
            return nest.flatten(own(x, **({"training": False} if takes_training else {})))

        def step(x: Any, y: Any, w: Any) -> list[Any]:
            compiled = self._ready()
            training = kind == "train"
            recording: Any = tape.GradientTape() if training else nullcontext()
            with recording as recorded:
                result = own(x, **({"training": training} if takes_training else {}))
                outputs = nest.flatten(result)
                if not compiled.outputs:
                    names = own.output_names or [f"output_{i + 1}" for i in range(len(outputs))]
                    own.__dict__["_seen_output_names"] = names
                    with scopes.init_scope():
                        compiled.spread(outputs, names)
                masks = [getattr(each, "_keras_mask", None) for each in outputs]
                targets = [] if y is None else nest.flatten(y)
                loss = compiled.total(targets, outputs, _weight_list(w, len(outputs)), masks, own.losses)
            if training:
                variables = own.trainable_weights
                gradients = own.optimizer._bounded(recorded.gradient(loss, variables))
                own.optimizer.apply_gradients(list(zip(gradients, variables)))
                if self._together:
                    together.equalized(own.non_trainable_weights)
            return [loss, *[each.result() for each in self.metrics]]

        plain = predict if kind == "predict" else step
        store[key] = plain if own.run_eagerly else def_function.function(plain)
        return store[key]

    def _run(self, kind: str, x: Any, y: Any = None, w: Any = None) -> list[Any]:
        """Runs one batch: the predictions, or the loss and the values of the metrics."""
        own: Any = self
        x, y = standardized(x, own.input_names), standardized(y, own.output_names)
        w = _by_output(w, own.output_names)
        if self._together and kind != "predict":
            count = together.row_count(x)
            given = _weight_list(w, 1 if y is None else len(nest.flatten(y)))
            w = [np.ones(count, np.float32) if each is None else each for each in given]
            x, y, w = (together.own_rows(part, count) for part in (x, y, w))
        with self._together.scope() if self._together else nullcontext():
            return self._run_here(kind, x, y, w)

    def _run_here(self, kind: str, x: Any, y: Any, w: Any) -> list[Any]:
        if not context.executing_eagerly():
            return self._graph_function(kind, x, y, w)()
        x, y, w = (None if part is None else nest.map_structure(_as_input, part) for part in (x, y, w))
        function = self._eager_function(kind)
        found = function(x) if kind == "predict" else function(x, y, w)
        return [each.numpy() for each in found]

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """One training step. Returns the loss, or a list with the metrics; a dictionary by name on request."""
        weights = _with_class_weights(sample_weight, class_weight, y)
        return self._one("train", x, y, weights, reset_metrics, return_dict)

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        reset_metrics: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """The loss of one batch, or a list with the metrics; a dictionary by name on request."""
        return self._one("test", x, y, sample_weight, reset_metrics, return_dict)

    def _one(self, kind: str, x: Any, y: Any, weights: Any, reset: bool, by_name: bool) -> Any:
        self._ready()
        if reset:
            self.reset_metrics()
        return self._returned(self._run(kind, x, y, weights), by_name)

    def _returned(self, found: list[Any], by_name: bool) -> Any:
        """A loss alone, or the loss and the metrics in a list or by name."""
        if by_name:
            return dict(zip(self.metrics_names, found))
        return found[0] if len(found) == 1 else found

    def predict_on_batch(self, x: Any) -> Any:
        """The predictions for one batch."""
        found = self._run("predict", x)
        return found[0] if len(found) == 1 else found

    def reset_metrics(self) -> None:
        """Starts the metrics again."""
        for metric in self.metrics:
            metric.reset_state()

    # -- many batches --------------------------------------------------------------------------------------------

    def _source(
        self,
        x: Any,
        y: Any,
        w: Any,
        batch_size: int | None,
        steps: int | None,
        *,
        shuffle: Any = False,
        workers: int = 1,
        queue: int = 10,
    ) -> Any:
        own: Any = self
        flat = nest.flatten(x)
        streamed = (
            isinstance(x, Sequence)
            or hasattr(x, "element_spec")
            or hasattr(x, "get_next")
            or (hasattr(x, "__next__") and not hasattr(x, "shape"))
            or (
                y is None
                and hasattr(x, "__iter__")
                and not isinstance(x, (list, tuple, dict, np.ndarray))
                and not hasattr(x, "shape")
            )
        )
        if streamed:
            if y is not None:
                raise ValueError(
                    f"You passed a dataset or dataset iterator ({x}) as input `x` to your model. In that case, you should not specify a target (`y`) argument, since the dataset or dataset iterator generates both input data and target data. Received: {y}"
                )
            return Stream(x, steps, workers, queue, shuffle=bool(shuffle))
        if any(is_symbolic(each) for each in flat) and not context.executing_eagerly():
            if steps is None:
                raise ValueError(
                    "If your data is in the form of symbolic tensors, you should specify the `steps_per_epoch` argument (instead of the `batch_size` argument)."
                )
            return Stream((x,) if y is None else (x, y) if w is None else (x, y, w), steps)
        inputs, targets = standardized(x, own.input_names), standardized(y, own.output_names)
        if steps is not None and batch_size is None:
            batch_size = -(-len(nest.flatten(inputs)[0]) // steps)
        return Arrays(inputs, targets, w, batch_size or 32, shuffle=shuffle)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Trains the model for a number of epochs.

        Args:
            x: inputs: arrays, tensors, a dataset, a generator or a `Sequence`.
            y: targets, unless `x` yields them.
            batch_size: examples in a step; 32 by default.
            epochs: the epoch at which to stop.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
            callbacks: objects of `tf.keras.callbacks.Callback`.
            validation_split: the share of the arrays, at their end, that is kept for validation.
            validation_data: (x, y) or (x, y, weights), or a dataset.
            shuffle: whether arrays are read in a random order; "batch" shuffles whole batches.
            class_weight: the weights of classes, by label.
            sample_weight: the weights of examples.
            initial_epoch: the epoch to begin with.
            steps_per_epoch: steps of an epoch, for data without an end.
            validation_steps: the same for validation.
            validation_freq: after how many epochs to validate, or a list of these epochs.
            max_queue_size: how many batches of a generator or `Sequence` are made ahead.
            workers: the number of threads that make them; 0 for none.
            use_multiprocessing: threads are used in any case.
            **kwargs: the old name `nb_epoch`.

        Returns:
            The history: `history.history` has a list for each value.
        """
        own: Any = self
        compiled = self._ready()
        epochs = kwargs.pop("nb_epoch", epochs)
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        if not 0.0 <= validation_split < 1.0:
            raise ValueError(f"`validation_split` must be a float between 0 and 1: {validation_split}")
        weights = sample_weight
        if validation_split:
            x, y, weights, validation_data = _divided(x, y, weights, validation_split, own)
        weights = _with_class_weights(weights, class_weight, y)
        source = self._source(
            x, y, weights, batch_size, steps_per_epoch, shuffle=shuffle, workers=workers, queue=max_queue_size
        )
        if class_weight is not None and isinstance(source, Stream):
            source = _Weighted(source, class_weight)
        checked: Any = None
        if validation_data is not None:
            given = validation_data
            vx, vy, vw = unpacked(tuple(given)) if isinstance(given, (tuple, list)) else (given, None, None)
            checked = self._source(vx, vy, vw, batch_size, validation_steps, workers=workers, queue=max_queue_size)
        training = Run(own, callbacks, verbose, source, epochs, validates=checked is not None, batch_size=batch_size)
        try:
            return training.fit(source, checked, initial_epoch, epochs, validation_freq, compiled)
        finally:
            for each in (source, checked):
                if hasattr(each, "close"):
                    each.close()

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int = 1,
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        return_dict: bool = False,
    ) -> Any:
        """The loss over all batches, or a list with the metrics; a dictionary by name on request. The other arguments are those of
        `fit`."""
        self._ready()
        source = self._source(x, y, sample_weight, batch_size, steps, workers=workers, queue=max_queue_size)
        try:
            found = Run(self, callbacks, verbose, source, 1, mode="test", batch_size=batch_size).evaluate(source)
        finally:
            if hasattr(source, "close"):
                source.close()
        return self._returned(found, return_dict)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int = 0,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """The predictions for all batches. The arguments are those of `fit`."""
        source = self._source(x, None, None, batch_size, steps, workers=workers, queue=max_queue_size)
        try:
            return Run(self, callbacks, verbose, source, 1, mode="predict", batch_size=batch_size).predict(source)
        finally:
            if hasattr(source, "close"):
                source.close()

    def fit_generator(
        self,
        generator: Any,
        steps_per_epoch: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_data: Any = None,
        validation_steps: int | None = None,
        validation_freq: Any = 1,
        class_weight: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        shuffle: bool = True,
        initial_epoch: int = 0,
    ) -> Any:
        """Trains on batches of a generator: `fit` does the same."""
        return self.fit(
            generator,
            None,
            None,
            epochs,
            verbose,
            callbacks,
            0.0,
            validation_data,
            shuffle,
            class_weight,
            None,
            initial_epoch,
            steps_per_epoch,
            validation_steps,
            validation_freq,
            max_queue_size,
            workers,
            use_multiprocessing,
        )

    def evaluate_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """Evaluates batches of a generator: `evaluate` does the same."""
        return self.evaluate(
            generator, None, None, verbose, None, steps, callbacks, max_queue_size, workers, use_multiprocessing
        )

    def predict_generator(
        self,
        generator: Any,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        verbose: int = 0,
    ) -> Any:
        """Predicts batches of a generator: `predict` does the same."""
        return self.predict(generator, None, verbose, steps, callbacks, max_queue_size, workers, use_multiprocessing)


def _takes_training(model: Any) -> bool:
    from_base = model._network is not None
    return from_base or "training" in getattr(model.call, "__code__", model.call.__func__.__code__).co_varnames


def _placeholder(value: Any, name: str | None = None) -> Any:
    array = np.asarray(value) if not hasattr(value, "dtype") else value
    kind = np.float32 if getattr(array, "dtype", None) == np.float64 else array.dtype
    return constants.placeholder(kind, [None, *np.shape(array)[1:]], name=name)


def _as_input(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        value = value.astype(np.float32)
    return None if value is None else conversion.convert_to_tensor(value)


def _by_output(w: Any, names: list[str] | None) -> Any:
    """Weights that are given by the names of outputs, in the outputs' order.

    Raises:
        ValueError: no output has the name.
    """
    if not isinstance(w, dict) or not names:
        return w
    if unknown := sorted(set(w) - set(names)):
        raise ValueError(
            f"Unknown entries in sample_weight dictionary: {unknown}. Only expected following keys: {names}"
        )
    return [w.get(name) for name in names]


def _weight_list(w: Any, count: int) -> list[Any]:
    if w is None:
        return [None] * count
    if isinstance(w, (list, tuple)):
        return [*w, *[None] * (count - len(w))]
    return [w] * count


def _weight_rank(w: Any, i: int) -> int:
    if w is None:
        return 1
    chosen = (w[i] if i < len(w) else None) if isinstance(w, (list, tuple)) else w
    return 1 if chosen is None else np.ndim(chosen)


def _class_of(y: Any) -> np.ndarray:
    labels = np.asarray(nest.flatten(y)[0])
    return labels.argmax(axis=1) if labels.ndim > 1 and labels.shape[1] > 1 else labels.reshape(-1).astype(int)


def _with_class_weights(weights: Any, class_weight: Any, y: Any) -> Any:
    if class_weight is None or y is None:
        return weights
    if any(isinstance(each, dict) for each in class_weight.values()) if isinstance(class_weight, dict) else True:
        raise NotImplementedError("Class weights for several outputs.")
    classes = _class_of(y)
    unknown = set(classes.tolist()) - set(class_weight)
    if unknown:
        raise ValueError(
            f"`class_weight` must contain all classes in the data. The classes {unknown} exist in the data but not in `class_weight`."
        )
    found = np.array([class_weight[each] for each in classes.tolist()], np.float32)
    return found if weights is None else found * np.asarray(weights)


class _Weighted:
    """Batches of a stream with weights by class."""

    def __init__(self, stream: Stream, class_weight: Any) -> None:
        self._stream, self._class_weight = stream, class_weight
        self.samples = stream.samples

    def __len__(self) -> int:
        return len(self._stream)

    def epoch(self) -> Any:
        for (x, y, w), size in self._stream.epoch():
            yield (x, y, _with_class_weights(w, self._class_weight, y)), size

    def close(self) -> None:
        self._stream.close()


def _divided(x: Any, y: Any, w: Any, share: float, model: Any) -> tuple[Any, Any, Any, Any]:
    """Arrays in two parts: for training and for validation."""
    x, y = standardized(x, model.input_names), standardized(y, model.output_names)
    if any(hasattr(each, "static_shape") for each in nest.flatten(x)):
        raise ValueError("If your data is in the form of symbolic tensors, you cannot use `validation_split`.")
    at = int(len(nest.flatten(x)[0]) * (1.0 - share))
    first, second = (
        tuple(None if part is None else nest.map_structure(lambda a, s=kept: rows(a, s), part) for part in (x, y, w))
        for kept in (slice(0, at), slice(at, None))
    )
    return first[0], first[1], first[2], second
