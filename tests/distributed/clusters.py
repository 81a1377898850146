"""Clusters of servers in this process, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import stoker.compat.v1 as tf
from stoker._src.distributed import client
from tests.distributed.ports import free_ports


def cluster_of(jobs: dict[str, int]) -> dict[str, list[str]]:
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}


@contextmanager
def servers(config: Any = None, **jobs: int) -> Iterator[dict[tuple[str, int], Any]]:
    """Starts a server for each task. Another process may take a port in between, so several sets of ports are tried."""
    started: dict[tuple[str, int], Any] = {}
    for _ in range(20):
        cluster = cluster_of(jobs)
        try:
            for job, addresses in cluster.items():
                for index in range(len(addresses)):
                    started[job, index] = tf.train.Server(cluster, job, index, config=config)
            break
        except tf.errors.UnknownError:
            stop(started)
            started = {}
    try:
        yield started
    finally:
        stop(started)


def stop(started: dict[Any, Any]) -> None:
    for server in started.values():
        server._stop()


def far() -> Any:
    """Makes sessions use gRPC also for servers in this process."""
    return mock.patch.object(client, "local_masters", {})
