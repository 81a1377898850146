"""Exporters: they write SavedModels between the evaluations of `train_and_evaluate`."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.estimator.inputs import argument_names
from stoker._src.formats import gfile
from stoker._src.summary.file_writer import summary_iterator


@export("estimator.Exporter")
class Exporter(metaclass=abc.ABCMeta):
    """Base class of exporters."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the directory of the exports, below `export` in the model directory."""

    @abc.abstractmethod
    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Exports a model if it should be exported.

        Args:
            estimator: the Estimator.
            export_path: the directory below which to write.
            checkpoint_path: the checkpoint.
            eval_result: the metrics of its evaluation.
            is_the_final_export: whether training has ended.

        Returns:
            The path of the model, or None.
        """


class _SavedModelExporter:
    """Exports a SavedModel, and deletes old ones."""

    def __init__(self, receiver_fn: Any, assets_extra: Any, as_text: bool, kept: int | None) -> None:
        if kept is not None and kept <= 0:
            raise ValueError(f"`exports_to_keep`, if provided, must be a positive number. Got {kept}")
        self._receiver_fn, self._assets_extra, self._as_text, self._kept = receiver_fn, assets_extra, as_text, kept

    def export(self, estimator: Any, export_path: str, checkpoint_path: Any) -> bytes:
        made = estimator.export_saved_model(
            export_path,
            self._receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        self._delete_old(export_path)
        return made

    def _delete_old(self, export_path: str) -> None:
        """Deletes all exports but the newest ones."""
        if self._kept is None:
            return
        stamps = sorted(int(name.rstrip("/")) for name in gfile.listdir(export_path) if name.rstrip("/").isdigit())
        for stamp in stamps[: -self._kept]:
            try:
                gfile.rmtree(os.path.join(export_path, str(stamp)))
            except Exception as error:
                tf_logging.warning("Can not delete %s recursively: %s", stamp, error)


@export("estimator.FinalExporter")
class FinalExporter(Exporter):
    """Exports the model once, when training has ended.

    Args:
        name: the name of the directory of the exports.
        serving_input_receiver_fn: a function that returns a ServingInputReceiver.
        assets_extra: files to copy into the model.
        as_text: whether to write the graph as text.
    """

    def __init__(
        self, name: str, serving_input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False
    ) -> None:
        self._name = name
        self._exporter = _SavedModelExporter(serving_input_receiver_fn, assets_extra, as_text, None)

    @property
    def name(self) -> str:
        return self._name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        if not is_the_final_export:
            return None
        tf_logging.info("Performing the final export in the end of training.")
        return self._exporter.export(estimator, export_path, checkpoint_path)


@export("estimator.LatestExporter")
class LatestExporter(Exporter):
    """Exports the model after every evaluation, and keeps the newest exports.

    Args:
        name: the name of the directory of the exports.
        serving_input_receiver_fn: a function that returns a ServingInputReceiver.
        assets_extra: files to copy into the model.
        as_text: whether to write the graph as text.
        exports_to_keep: how many exports are kept; None keeps all.

    Raises:
        ValueError: `exports_to_keep` is not positive.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        self._name = name
        self._exporter = _SavedModelExporter(serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    @property
    def name(self) -> str:
        return self._name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        return self._exporter.export(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Any, current_eval_result: Any) -> bool:
    """Whether the loss of the current evaluation is smaller than that of the best one."""
    for which, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or "loss" not in result:
            raise ValueError(f"{which} cannot be empty or no loss is found in it.")
    return best_eval_result["loss"] > current_eval_result["loss"]


@export("estimator.BestExporter")
class BestExporter(Exporter):
    """Exports the model whenever an evaluation is better than all before, also those of earlier runs.

    Args:
        name: the name of the directory of the exports.
        serving_input_receiver_fn: a function that returns a ServingInputReceiver.
        event_file_pattern: the event files of earlier evaluations, below the model directory.
        compare_fn: a function of `best_eval_result` and `current_eval_result` that says whether the current one is better. By default
            the one with the smaller loss is.
        assets_extra: files to copy into the model.
        as_text: whether to write the graph as text.
        exports_to_keep: how many exports are kept; None keeps all.

    Raises:
        ValueError: `compare_fn` has other arguments, or `exports_to_keep` is not positive.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: Any = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        self._name, self._compare_fn, self._event_file_pattern = name, compare_fn, event_file_pattern
        if compare_fn is None:
            raise ValueError("`compare_fn` must not be None.")
        names = set(argument_names(compare_fn))
        for argument in ("best_eval_result", "current_eval_result"):
            if argument not in names:
                raise ValueError(f"compare_fn ({compare_fn}) must include {argument} argument.")
        other = sorted(names - {"best_eval_result", "current_eval_result"})
        if other:
            raise ValueError(f"compare_fn ({compare_fn}) has following not expected args: {other}")
        self._exporter = _SavedModelExporter(serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        self._best: dict[str, Any] | None = None
        self._knows_earlier = False

    @property
    def name(self) -> str:
        return self._name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        if not self._knows_earlier and self._event_file_pattern:
            # The evaluation that is judged here has been written, too.
            step = int(eval_result["global_step"]) if "global_step" in eval_result else None
            pattern = os.path.join(estimator.model_dir, self._event_file_pattern)
            self._best = self._best_of_earlier(pattern, step)
        self._knows_earlier = True
        if self._best is not None and not self._compare_fn(
            best_eval_result=self._best, current_eval_result=eval_result
        ):
            return None
        tf_logging.info("Performing best model export.")
        self._best = eval_result
        return self._exporter.export(estimator, export_path, checkpoint_path)

    def _best_of_earlier(self, pattern: str, current_step: int | None) -> dict[str, Any] | None:
        """Returns the best metrics of event files, without those of the current step; None if there are none."""
        best: dict[str, Any] | None = None
        for path in gfile.glob(pattern):
            for event in summary_iterator(path):
                if not event.HasField("summary") or event.step == current_step:
                    continue
                result = {
                    value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")
                }
                if not result:
                    continue
                if best is None or self._compare_fn(best_eval_result=best, current_eval_result=result):
                    best = result
        return best
