"""Configurations that other versions of Keras wrote, as those of `tf.keras`.

Keras 1 has other names for arguments, Keras 2 and 3 have more arguments and other forms of values. What remains unknown here and says something other than
no is refused.
"""

from __future__ import annotations

import inspect
from typing import Any

from stoker._src.keras import newer_activations
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.normalization import RMSNormalization
from stoker._src.keras.serialization import find

# What programs of 1.x have no name for.
_NEWER: dict[str, type[Layer]] = {"RMSNormalization": RMSNormalization}


class UnknownSetting(ValueError):
    """A layer has a setting that `tf.keras` does not have."""


_CLASSES = {
    "BatchNormalizationV1": "BatchNormalization",
    "BatchNormalizationV2": "BatchNormalization",
    "SyncBatchNormalization": "BatchNormalization",
    "Functional": "Model",
}
# Arguments by the names of Keras 1 and Keras 3, and those of `tf.keras`.
_RENAMED = {
    "output_dim": "units",
    "nb_filter": "filters",
    "filter_length": "kernel_size",
    "subsample": "strides",
    "subsample_length": "strides",
    "stride": "strides",
    "border_mode": "padding",
    "atrous_rate": "dilation_rate",
    "bias": "use_bias",
    "p": "rate",
    "sigma": "stddev",
    "pool_length": "pool_size",
    "length": "size",
    "init": "kernel_initializer",
    "inner_init": "recurrent_initializer",
    "inner_activation": "recurrent_activation",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "W_constraint": "kernel_constraint",
    "b_constraint": "bias_constraint",
    "gamma_init": "gamma_initializer",
    "beta_init": "beta_initializer",
    "batch_shape": "batch_input_shape",
}
_OF_CLASS = {"LeakyReLU": {"negative_slope": "alpha"}, "Embedding": {"init": "embeddings_initializer"}}
# What says nothing about the values that a layer computes, whatever it is.
_IGNORED = frozenset(
    "seed autocast use_cudnn_on_gpu implementation quantization_config lora_rank lora_alpha synchronized flash_attention fused mode "
    "input_dtype consume_less sparse optional fill_mode fill_value activity_regularizer query_shape key_shape value_shape".split()
)


_DEFAULTS = [("groups", 1), ("data_format", "channels_last")]
_LOOP = frozenset(
    "return_sequences return_state go_backwards stateful unroll time_major zero_output_for_mask activity_regularizer".split()
)


def plain_value(value: Any) -> Any:
    """A setting without the forms in which files store arrays, tuples and shapes."""
    if isinstance(value, dict):
        kind = value.get("class_name")
        if kind == "__numpy__":
            return value["config"]["value"]
        if kind in ("__tuple__", "TensorShape"):
            return tuple(plain_value(each) for each in value.get("items", []))
        if value.get("type") == "ndarray" and "value" in value:
            return value["value"]
        return {key: plain_value(each) for key, each in value.items()}
    return [plain_value(each) for each in value] if isinstance(value, list) else value


def activation(setting: Any, version: str = "", custom_objects: Any = None) -> Any:
    """The activation that a configuration names: a name, a layer of its own, or a function of the caller.

    Raises:
        UnknownSetting: there is no such activation.
    """
    custom = custom_objects or {}
    if isinstance(setting, dict):
        kind, config = setting.get("class_name"), setting.get("config")
        if isinstance(config, dict):
            return layer_of(str(kind), config, version, custom)
        setting = config if isinstance(config, str) else kind
    if setting is None or callable(setting):
        return setting
    name = str(setting)
    if callable(custom.get(name)):
        return custom[name]
    if name == "hard_sigmoid" and version.startswith("3"):
        return newer_activations.hard_sigmoid
    if name in newer_activations.NEWER:
        return newer_activations.NEWER[name]
    try:
        return find("activations", name)
    except ValueError as error:
        raise UnknownSetting(f"its activation '{name}' is not known; custom_objects may have it") from error


def class_of(kind: str) -> type[Layer] | None:
    """The layer of `tf.keras` for a class of any version, or None."""
    try:
        found = find("layers", _CLASSES.get(kind, kind))
    except ValueError:
        found = _NEWER.get(kind)
    return found if isinstance(found, type) and issubclass(found, Layer) else None


def layer_of(kind: str, config: dict[str, Any], version: str = "", custom_objects: Any = None) -> Layer:
    """A layer of `tf.keras` that computes what the configured one does. Its weights start as they may: a file has their values.

    Raises:
        UnknownSetting: it has a setting that is unknown, and that changes what it computes.
        ValueError, TypeError, NotImplementedError: the layer does not accept a setting.
    """
    made = class_of(kind)
    if made is None:
        raise UnknownSetting(f"there is no layer of the class {kind}")
    known = _parameters(made)
    given: dict[str, Any] = {"name": config.get("name"), "trainable": False}
    renamed = {**_RENAMED, **_OF_CLASS.get(kind, {})}
    for name, value in config.items():
        own = name if name in known else renamed.get(name, name)
        if name in ("name", "trainable", "dtype", "batch_input_shape", "batch_shape", "input_shape", "input_dtype"):
            continue
        if own.endswith(("initializer", "regularizer", "constraint")):
            continue
        value = plain_value(value)
        if own.endswith("activation"):
            given[own] = activation(value, version, custom_objects)
        elif own in known:
            given[own] = value
        elif name in ("nb_row", "nb_col"):
            given["kernel_size"] = (config["nb_row"], config["nb_col"])
        elif name == "dim_ordering":
            given["data_format"] = "channels_first" if value == "th" else "channels_last"
        elif (name, value) in _DEFAULTS:
            continue
        elif value not in (None, False, 0, [], "", "default") and name not in _IGNORED:
            raise UnknownSetting(f"it has the setting {name}={value!r}, which is not known")
    if kind == "Softmax" and isinstance(given.get("axis"), list) and len(given["axis"]) == 1:
        given["axis"] = given["axis"][0]
    return made(**given)


def without_unknown(described: Any) -> Any:
    """A configuration without the settings that layers of `tf.keras` do not have and that say no, also in the layers inside of it."""
    if isinstance(described, list):
        return [without_unknown(each) for each in described]
    if not isinstance(described, dict):
        return described
    made = class_of(described["class_name"]) if isinstance(described.get("class_name"), str) else None
    config = described.get("config")
    if made is None or not isinstance(config, dict):
        return {key: without_unknown(each) for key, each in described.items()}
    if isinstance(config.get("layers"), list):
        return {**described, "config": {**config, "layers": without_unknown(config["layers"])}}
    known = (
        _parameters(made)
        | {"name", "trainable", "dtype", "batch_input_shape", "layer", "cell", "cells", "units"}
        | _LOOP
    )
    kept = {
        key: without_unknown(value)
        for key, value in config.items()
        if key in known
        or not (value in (None, False, 0, [], "", "default") or (key, value) in _DEFAULTS or key in _IGNORED)
    }
    if isinstance(kept.get("dtype"), dict):  # a policy
        kept["dtype"] = kept["dtype"].get("config", {}).get("name", "float32")
    return {**described, "config": kept}


def _parameters(kind: type[Layer]) -> set[str]:
    """The arguments of a layer's constructor, also those of the classes it passes them on to."""
    names: set[str] = set(getattr(kind, "_more_arguments", ()))
    cell = getattr(kind, "cell_class", None)
    if cell is not None:
        names |= _parameters(cell)
    first = True
    for each in kind.__mro__:
        if each is Layer:
            break
        if "__init__" in vars(each):
            parameters = inspect.signature(each.__init__).parameters.values()
            found = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
            # Layers of one spatial dimension decide about the format themselves.
            names |= found if first else found - {"data_format"}
            first = False
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return names - {"self"}
