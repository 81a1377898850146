"""Models that Keras saved, as a configuration and arrays: HDF5 files (`.h5`, `.hdf5`) and archives (`.keras`).

An HDF5 file has the configuration as JSON in the attribute `model_config`, and a group for each layer in `model_weights`, whose attribute
`weight_names` lists its datasets. An archive is a ZIP file with `config.json` and `model.weights.h5`, where layers are numbered by class
(`layers/dense_1`) and weights by position (`vars/0`).

HDF5 is read by h5py, which is loaded when the first such file is read. The bytes of a file never become code.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stoker._src.formats import gfile

_HDF5 = b"\x89HDF\r\n\x1a\n"
# Far above any configuration, and far below what would exhaust memory.
_MOST_JSON = 1 << 28


@dataclass
class Weights:
    """The arrays of one layer, or of one model inside another: by path, in the order in which Keras lists them."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    layers: dict[str, Weights] = field(default_factory=dict)
    """Of a model inside the model, in an archive: its own layers."""


@dataclass
class KerasModel:
    """A model as Keras describes it: {"class_name": ..., "config": ...}, the weights of its layers, and the version that wrote it."""

    config: dict[str, Any]
    weights: dict[str, Weights]
    version: str = ""


def read_keras_model(path: Any) -> KerasModel:
    """The model in a file.

    Raises:
      OSError: There is no such file, or it is neither an HDF5 file nor an archive of a Keras model.
      ValueError: The file has weights only, or is damaged.
      ImportError: h5py is not installed.
    """
    if not gfile.exists(path):
        raise OSError(f"File '{path}' does not exist.")
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    if data.startswith(_HDF5):
        return _from_hdf5(data, path)
    if zipfile.is_zipfile(io.BytesIO(data)):
        return _from_archive(data, path)
    raise OSError(f"'{path}' is neither an HDF5 file nor a .keras archive.")


def _opened(data: bytes, path: Any) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"Reading the Keras model '{path}' needs the package h5py: pip install 'stoker[keras]', or pip install h5py."
        ) from error
    try:
        return h5py.File(io.BytesIO(data), "r")
    except OSError as error:
        raise OSError(f"'{path}' cannot be read as HDF5: {error}") from error


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _json(text: Any, path: Any) -> dict[str, Any]:
    if len(text) > _MOST_JSON:
        raise ValueError(f"The configuration in '{path}' takes {len(text):,} bytes.")
    try:
        found = json.loads(_text(text))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"The configuration in '{path}' is no JSON: {error}") from error
    if not isinstance(found, dict) or "class_name" not in found or "config" not in found:
        raise ValueError(f"The configuration in '{path}' does not describe a model.")
    return found


def _from_hdf5(data: bytes, path: Any) -> KerasModel:
    with _opened(data, path) as file:
        if "model_config" not in file.attrs:
            raise ValueError(
                f"No model found in '{path}': it has weights only. Save the whole model with model.save(...), not save_weights(...)."
            )
        config = _json(file.attrs["model_config"], path)
        version = _text(file.attrs.get("keras_version", ""))
        try:
            group = file["model_weights"]
            weights = {name: Weights(dict(_named(group[name]))) for name in names_in(group, "layer_names")}
            version = version or _text(group.attrs.get("keras_version", ""))
        except (KeyError, OSError, ValueError, TypeError, RuntimeError) as error:
            raise ValueError(f"The weights in '{path}' cannot be read: {error}") from error
    return KerasModel(config, weights, version)


def names_in(group: Any, attribute: str) -> list[str]:
    """A list of names in an attribute, or in several numbered ones where it is long."""
    if attribute in group.attrs:
        return [_text(each) for each in group.attrs[attribute]]
    found: list[str] = []
    number = 0
    while f"{attribute}{number}" in group.attrs:
        found.extend(_text(each) for each in group.attrs[f"{attribute}{number}"])
        number += 1
    return found


def _named(group: Any) -> Iterator[tuple[str, np.ndarray]]:
    for name in names_in(group, "weight_names"):
        yield name.removesuffix(":0"), np.asarray(group[name])


def _from_archive(data: bytes, path: Any) -> KerasModel:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "config.json" not in names or "model.weights.h5" not in names:
                raise ValueError(f"'{path}' has no config.json and model.weights.h5: it is no .keras archive.")
            if archive.getinfo("config.json").file_size > _MOST_JSON:
                raise ValueError(f"The configuration in '{path}' is too large.")
            config = _json(archive.read("config.json"), path)
            stored = archive.read("model.weights.h5")
            version = ""
            if "metadata.json" in names:
                version = str(json.loads(archive.read("metadata.json")).get("keras_version", ""))
    except (zipfile.BadZipFile, json.JSONDecodeError, NotImplementedError) as error:
        raise ValueError(f"The archive '{path}' is damaged: {error}") from error
    with _opened(stored, path) as file:
        try:
            weights = _numbered(config, file)
        except (KeyError, OSError, TypeError, RuntimeError, AttributeError) as error:
            raise ValueError(f"The weights in '{path}' cannot be read: {error}") from error
    return KerasModel(config, weights, version)


def _numbered(model: dict[str, Any], group: Any) -> dict[str, Weights]:
    """The weights of a model's layers by name: in the file they are numbered by class, in the order of the configuration."""
    stored = group.get("layers") or group.get("_layer_checkpoint_dependencies")
    if stored is None:
        return {}
    counts: dict[str, int] = {}
    found = {}
    for layer in layers_of(model):
        kind = snake_case(layer["class_name"])
        number = counts[kind] = counts.get(kind, -1) + 1
        key = f"{kind}_{number}" if number else kind
        name = layer["config"].get("name", layer.get("name", key))
        # Newer versions use the layer's own name.
        own = stored.get(key) if key in stored else stored.get(name)
        if own is not None:
            inner = _numbered(layer, own) if "layers" in own and is_model(layer) else {}
            found[name] = Weights({} if inner else dict(_arrays(own, "")), inner)
    return found


def snake_case(name: str) -> str:
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _arrays(group: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    for name in sorted(group, key=lambda each: (not each.isdigit(), int(each) if each.isdigit() else 0, each)):
        entry = group[name]
        if hasattr(entry, "shape"):
            yield f"{path}{name}", np.asarray(entry)
        else:
            yield from _arrays(entry, f"{path}{name}/")


def is_model(layer: dict[str, Any]) -> bool:
    """Whether a description is that of a model: it has layers of its own."""
    config = layer.get("config")
    return isinstance(config, list) or (isinstance(config, dict) and isinstance(config.get("layers"), list))


def layers_of(model: dict[str, Any]) -> list[dict[str, Any]]:
    """The layers of a model, in order. The oldest files of Sequential models have a list in place of a configuration."""
    config = model["config"]
    layers = config if isinstance(config, list) else config.get("layers", [])
    for layer in layers:
        if not isinstance(layer, dict) or "class_name" not in layer or "config" not in layer:
            raise ValueError(f"The configuration has a layer that is none: {str(layer)[:80]}")
    return layers
