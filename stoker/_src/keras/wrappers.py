"""`tf.keras.wrappers.scikit_learn`: models as estimators of scikit-learn, which finds their arguments by `get_params` and `set_params`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.keras.model import Sequential
from stoker._src.keras.utils import to_categorical


class _Wrapped:
    """The base.

    Args:
        build_fn: a function or an object that is called to make a compiled model. A subclass may have `__call__` instead.
        **sk_params: arguments of that function, and of `fit`, `predict` and `evaluate` of the model.

    Raises:
        ValueError: an argument belongs to none of them.
    """

    model: Any

    def __init__(self, build_fn: Any = None, **sk_params: Any) -> None:
        self.build_fn, self.sk_params = build_fn, sk_params
        self.check_params(sk_params)

    def _maker(self) -> Callable[..., Any]:
        own: Any = self
        return own.__call__ if self.build_fn is None else self.build_fn

    def _parameters(self, function: Any) -> set[str]:
        plain = inspect.isfunction(function) or inspect.ismethod(function)
        return set(inspect.signature(function if plain else function.__call__).parameters) - {"self"}

    def check_params(self, params: dict[str, Any]) -> None:
        """Raises ValueError for an argument that nothing takes."""
        known = {"batch_size", "epochs", "nb_epoch"}.union(
            *map(self._parameters, (Sequential.fit, Sequential.predict, Sequential.evaluate, self._maker()))
        )
        for name in params:
            if name not in known:
                raise ValueError(f"{name} is not a legal parameter")

    def get_params(self, deep: bool = True, **params: Any) -> dict[str, Any]:
        """The arguments of the estimator."""
        return {**copy.deepcopy(self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: Any) -> Any:
        """Changes arguments, and returns the estimator."""
        self.check_params({name: value for name, value in params.items() if name != "build_fn"})
        self.build_fn = params.pop("build_fn", self.build_fn)
        self.sk_params.update(params)
        return self

    def filter_sk_params(self, fn: Any, override: dict[str, Any] | None = None) -> dict[str, Any]:
        """Those arguments that a function takes; `override` has the last word."""
        known = self._parameters(fn)
        return {**{name: value for name, value in self.sk_params.items() if name in known}, **(override or {})}

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes a model and trains it. Returns the history."""
        maker = self._maker()
        self.model = maker(**self.filter_sk_params(maker))
        loss = self.model.loss
        if getattr(loss, "__name__", loss) == "categorical_crossentropy" and np.ndim(y) != 2:
            y = to_categorical(y)
        return self.model.fit(x, y, **{**self.filter_sk_params(Sequential.fit), **kwargs})


@export("keras.wrappers.scikit_learn.KerasClassifier")
class KerasClassifier(_Wrapped):
    """A classifier of scikit-learn. Labels may be anything that can be sorted."""

    classes_: Any
    n_classes_: int

    def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
        """Makes a model and trains it. Labels are numbers, names or one-hot vectors.

        Raises:
            ValueError: the labels have another shape.
        """
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] > 1:
            self.classes_ = np.arange(labels.shape[1])
        elif labels.ndim == 1 or (labels.ndim == 2 and labels.shape[1] == 1):
            self.classes_ = np.unique(labels)
            labels = np.searchsorted(self.classes_, labels)
        else:
            raise ValueError(f"Invalid shape for y: {labels.shape}")
        self.n_classes_ = len(self.classes_)
        return super().fit(x, labels, **kwargs)

    def _outputs(self, x: Any, kwargs: dict[str, Any]) -> np.ndarray:
        return self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs))

    def predict(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The most likely labels."""
        found = self._outputs(x, kwargs)
        if found.shape[-1] > 1:
            return self.classes_[found.argmax(axis=-1)]
        return self.classes_[(found > 0.5).astype("int32")]

    def predict_proba(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The probabilities of the labels, also where the model has one output for two of them."""
        found = self._outputs(x, kwargs)
        return np.hstack([1 - found, found]) if found.shape[1] == 1 else found

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """The accuracy.

        Raises:
            ValueError: the model was not compiled with it.
        """
        labels = np.searchsorted(self.classes_, y)
        loss = self.model.loss
        if getattr(loss, "__name__", loss) == "categorical_crossentropy" and np.ndim(labels) != 2:
            labels = to_categorical(labels)
        found = self.model.evaluate(x, labels, **{"verbose": 0, **self.filter_sk_params(Sequential.evaluate, kwargs)})
        for name, value in zip(self.model.metrics_names, np.atleast_1d(found)):
            if name in ("accuracy", "acc"):
                return float(value)
        raise ValueError(
            'The model is not configured to compute accuracy. You should pass `metrics=["accuracy"]` to the `model.compile()` method.'
        )


@export("keras.wrappers.scikit_learn.KerasRegressor")
class KerasRegressor(_Wrapped):
    """A regressor of scikit-learn."""

    def predict(self, x: Any, **kwargs: Any) -> np.ndarray:
        """The predictions."""
        return np.squeeze(self.model.predict(x, **self.filter_sk_params(Sequential.predict, kwargs)), axis=-1)

    def score(self, x: Any, y: Any, **kwargs: Any) -> float:
        """Minus the loss: larger is better."""
        found = self.model.evaluate(x, y, **{"verbose": 0, **self.filter_sk_params(Sequential.evaluate, kwargs)})
        return -float(np.atleast_1d(found)[0])
