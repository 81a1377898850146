"""The error of a group of processes that has lost one. It is no public name: TensorFlow has no such class, and programs catch its base."""

from __future__ import annotations

from stoker._src.base.errors import UnavailableError


class LostReplicaError(UnavailableError):
    """A process that trains together with this one has ended. All of them must start again."""
