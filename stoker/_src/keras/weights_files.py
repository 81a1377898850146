"""Files of weights: HDF5 as Keras writes it, and checkpoints."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.formats import filesystems, gfile, keras_files
from stoker._src.graph import context
from stoker._src.keras.sessions import batch_get_value, batch_set_value, get_session
from stoker._src.train.checkpoints import state
from stoker._src.train.checkpoints.object_saver import ObjectSaver
from stoker._src.train.checkpoints.options import DEFAULT

_ENDINGS = (".h5", ".hdf5", ".keras")


class _Hooks:
    """What later modules of this room supply."""

    save_model: Callable[..., None]
    print_summary: Callable[..., None]


hooks = _Hooks()


def is_hdf5(path: str, save_format: str | None) -> bool:
    """Whether a file is HDF5: by its ending, or because the caller says so.

    Raises:
        ValueError: the format is unknown, or a checkpoint has the ending of an HDF5 file.
    """
    if save_format is None:
        return path.endswith(_ENDINGS)
    plain = save_format.lower().strip()
    if plain in ("tensorflow", "tf"):
        if path.endswith(_ENDINGS):
            raise ValueError(
                f'save_weights got save_format="tf"/"tensorflow", but the filepath ("{path}") looks like an HDF5 file. Omit the ".h5"/".keras" when saving in TensorFlow format.'
            )
        return False
    if plain in ("hdf5", "h5", "keras"):
        return True
    raise ValueError(f'Unknown format "{save_format}". Was expecting one of {{"tf", "h5"}}.')


def h5py() -> Any:
    """The library for HDF5.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import h5py as library
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install stoker[keras].") from error
    return library


def _names(values: list[str]) -> Any:
    return np.array([each.encode() for each in values]) if values else np.zeros([0])


def write_weights(group: Any, layers: list[Any]) -> None:
    """Writes the weights of layers into a group of an HDF5 file."""
    group.attrs["layer_names"] = _names([layer.name for layer in layers])
    group.attrs["backend"], group.attrs["keras_version"] = b"tensorflow", b"2.2.4-tf"
    for layer in layers:
        inner = group.create_group(layer.name)
        weights = layer.weights
        values = batch_get_value(weights)
        inner.attrs["weight_names"] = _names([each.name for each in weights])
        for weight, value in zip(weights, values):
            inner.create_dataset(weight.name, data=value)


def write_hdf5(path: str, fill: Callable[[Any], None], overwrite: bool) -> None:
    """Writes an HDF5 file: whole, or not at all.

    Raises:
        OSError: the file exists, and may not be overwritten.
    """
    if not overwrite and gfile.exists(path):
        raise OSError(f"The file {path} exists. Pass overwrite=True to replace it.")
    data = io.BytesIO()
    with h5py().File(data, "w") as file:
        fill(file)
    with filesystems.replacing(path) as sink:
        sink.write(data.getvalue())


def save_weights(model: Any, path: str, overwrite: bool, save_format: str | None) -> None:
    """Writes a model's weights.

    Raises:
        ValueError: the model has no weights yet.
    """
    if not model.built:
        raise ValueError(
            f"Unable to save the weights of {model.name}: call the model or `build` first, so that it has weights."
        )
    if is_hdf5(path, save_format):
        write_hdf5(path, lambda file: write_weights(file, model.layers), overwrite)
        return
    session = None if context.executing_eagerly() else get_session()
    ObjectSaver(model).save(path, session, DEFAULT)
    folder, _, name = path.rpartition("/")
    state.update_checkpoint_state(folder or ".", name, [name])


def load_weights(model: Any, path: str, by_name: bool, skip_mismatch: bool) -> Any:
    """Reads a model's weights.

    Raises:
        ValueError: layers or shapes differ, or `skip_mismatch` is given without `by_name`.
        ImportError: h5py is not installed.
    """
    if skip_mismatch and not by_name:
        raise ValueError("When calling model.load_weights, skip_mismatch can only be set to True when by_name is True.")
    if not path.endswith(_ENDINGS) and gfile.exists(path + ".index"):
        if by_name:
            raise NotImplementedError(
                "Weights may only be loaded based on topology into Models when loading TensorFlow-formatted weights (got by_name=True to load_weights)."
            )
        status = ObjectSaver(model).restore(path, DEFAULT)
        if not context.executing_eagerly():
            status.run_restore_ops(get_session())
        return status
    if not gfile.exists(path):
        raise OSError(f"Unable to open file (there is no such file: '{path}').")
    if not model.built:
        raise ValueError(
            "Unable to load weights saved in HDF5 format into a subclassed Model which has not created its variables yet. Call the Model first, then load the weights."
        )
    with gfile.GFile(path, "rb") as source:
        data = source.read()
    try:
        with h5py().File(io.BytesIO(data), "r") as file:
            group = file["model_weights"] if "layer_names" not in file.attrs and "model_weights" in file else file
            read_weights(group, model.layers, by_name=by_name, skip_mismatch=skip_mismatch)
    except (OSError, KeyError, RuntimeError) as error:
        raise ValueError(f"The file {path} is not a file of Keras weights: {error}") from error
    return None


def read_weights(group: Any, layers: list[Any], *, by_name: bool = False, skip_mismatch: bool = False) -> None:
    """Reads the weights of layers from a group of an HDF5 file."""
    names = keras_files.names_in(group, "layer_names")
    arrays = {
        name: [np.asarray(group[name][weight]) for weight in keras_files.names_in(group[name], "weight_names")]
        for name in names
    }
    pairs: list[tuple[Any, Any]] = []
    if by_name:
        chosen = [(layer, arrays[layer.name]) for layer in layers if layer.name in arrays]
    else:
        filled = [name for name in names if arrays[name]]
        mine = [layer for layer in layers if layer.weights]
        if len(filled) != len(mine):
            raise ValueError(
                f"You are trying to load a weight file containing {len(filled)} layers into a model with {len(mine)} layers."
            )
        chosen = [(layer, arrays[name]) for layer, name in zip(mine, filled)]
    for layer, values in chosen:
        weights = layer.weights
        if len(weights) != len(values):
            if skip_mismatch:
                continue
            raise ValueError(
                f'Layer "{layer.name}" expects {len(weights)} weights, but the saved weights have {len(values)} elements.'
            )
        for weight, value in zip(weights, values):
            if tuple(weight.shape.as_list()) != value.shape:
                if skip_mismatch:
                    continue
                raise ValueError(
                    f'Layer "{layer.name}" weight {weight.name} has shape {tuple(weight.shape.as_list())}, but the saved weight has shape {value.shape}.'
                )
            pairs.append((weight, value))
    batch_set_value(pairs)
