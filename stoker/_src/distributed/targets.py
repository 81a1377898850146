"""Registers the session targets of servers. What needs gRPC is loaded when the first session is opened."""

from __future__ import annotations

import importlib
from typing import Any

from stoker._src.runtime.targets import register_session_target

SCHEMES = ("grpc", "grpc+tls")


def _client() -> Any:
    return importlib.import_module("stoker._src.distributed.client")


for _scheme in SCHEMES:
    register_session_target(
        _scheme,
        lambda target, config: _client().ServerRunner(target, config),
        lambda target, containers, config: _client().reset(target, containers, config),
    )
