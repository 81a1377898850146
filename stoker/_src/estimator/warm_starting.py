"""Estimators whose variables start with the values of a checkpoint."""

from __future__ import annotations

import os
from collections import namedtuple
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.saved_model import files
from stoker._src.train.checkpoints.initializers import warm_start

_FIELDS = ("ckpt_to_initialize_from", "vars_to_warm_start", "var_name_to_vocab_info", "var_name_to_prev_var_name")
_SETTINGS: Any = namedtuple("WarmStartSettings", _FIELDS)


@export("estimator.WarmStartSettings")
class WarmStartSettings(_SETTINGS):
    """Which variables start with the values of a checkpoint.

    Args:
        ckpt_to_initialize_from: a checkpoint, or a directory with one.
        vars_to_warm_start: a regular expression over trainable variables, a list of those over all variables, a list of variables, or
            None for variables with a VocabInfo alone.
        var_name_to_vocab_info: a VocabInfo for each variable whose vocabulary changed.
        var_name_to_prev_var_name: the names in the checkpoint of variables that have another name there.

    Raises:
        ValueError: there is no checkpoint.
    """

    def __new__(
        cls,
        ckpt_to_initialize_from: Any,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: Any = None,
        var_name_to_prev_var_name: Any = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def warm_start_settings(warm_start_from: Any) -> WarmStartSettings | None:
    """Returns the settings for an Estimator's argument `warm_start_from`: a checkpoint, a directory, a SavedModel, or settings.

    Raises:
        ValueError: it is something else.
    """
    if warm_start_from is None:
        return None
    if isinstance(warm_start_from, (str, bytes, os.PathLike)):
        given = os.fspath(warm_start_from)
        path = given.decode() if isinstance(given, bytes) else given
        variables = files.variables_path(path)
        if gfile.exists(f"{variables}.index"):
            tf_logging.info("Warm-starting from a SavedModel")
            return WarmStartSettings(variables)
        return WarmStartSettings(path)
    if isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    raise ValueError(f"warm_start_from must be a string or a WarmStartSettings, instead got {type(warm_start_from)}")


def start_warm(settings: WarmStartSettings) -> None:
    """Makes the variables of the default graph start as the settings say."""
    tf_logging.info("Warm-starting with WarmStartSettings: %s", settings)
    warm_start(*settings)
