"""Trackable objects around a resource or a file: `TrackableResource` and `tf.saved_model.Asset`.

A SavedModel does not hold a resource itself. It holds functions that create and fill it, made from the three methods of `TrackableResource`.
"""

from __future__ import annotations

import os
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.scopes import device, init_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array.constants import constant


@export("saved_model.Asset")
class Asset(Trackable):
    """A file that a SavedModel carries with it.

        module.vocabulary = tf.saved_model.Asset("words.txt")

    `tf.saved_model.save` copies the file into the model. After loading, `asset_path` is the path of the copy.

    Args:
        path: the file, a string, path or scalar string tensor.
    """

    def __init__(self, path: Any) -> None:
        with init_scope():
            self._path = (
                path if isinstance(path, Tensor) else constant(os.fspath(path), dtypes.string, name="asset_path")
            )

    @property
    def asset_path(self) -> Tensor:
        """The path, a scalar string tensor."""
        return self._path


class CapturableResource(Trackable):
    """A resource that functions may capture, and that a SavedModel recreates by functions."""

    @property
    def resource_handle(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no handle.")

    def _create_resource(self) -> Any:
        """Returns the handle of a resource."""
        raise NotImplementedError("TrackableResource._create_resource not implemented.")

    def _initialize(self) -> Any:
        """Fills the resource."""

    def _destroy_resource(self) -> Any:
        """Releases the resource."""


@export("saved_model.experimental.TrackableResource")
class TrackableResource(CapturableResource):
    """Base class of a user's own resources. A subclass defines `_create_resource` and `_initialize`.

    Args:
        device: where to create the resource.
    """

    def __init__(self, device: str = "") -> None:
        self._handle: Any = None
        self._resource_device = device

    @property
    def resource_handle(self) -> Any:
        """The handle. The resource is created on first use."""
        if self._handle is None:
            with init_scope(), device(self._resource_device):
                self._handle = self._create_resource()
        return self._handle
