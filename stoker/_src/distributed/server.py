"""`Server`: one task of a cluster, in this process."""

from __future__ import annotations

import atexit
import importlib
from typing import Any

from stoker._src.base.errors import InternalError, InvalidArgumentError, NotFoundError
from stoker._src.base.export import export
from stoker._src.distributed.cluster_spec import ClusterSpec
from stoker._src.formats.protos import ServerDef

_PROTOCOLS = ("grpc", "grpc+tls")
_servers: set[Server] = set()  # a server lives as long as the process, whether the program keeps it or not


def _make_server_def(
    server_or_cluster_def: Any, job_name: str | None, task_index: int | None, protocol: str | None, config: Any
) -> Any:
    """Returns the ServerDef that the arguments of `Server` describe. They take precedence over the definition.

    Raises:
        TypeError: `server_or_cluster_def` describes neither a server nor a cluster.
        ValueError: the job or the task is not stated and not the only one, or does not exist.
    """
    message = ServerDef()
    if type(server_or_cluster_def).__name__ == "ServerDef" and hasattr(server_or_cluster_def, "SerializeToString"):
        message.MergeFromString(server_or_cluster_def.SerializeToString())
    else:
        try:
            cluster = ClusterSpec(server_or_cluster_def)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`."
            ) from None
        message.cluster.MergeFromString(cluster.as_cluster_def().SerializeToString())
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("Must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError("Must specify an explicit `task_index`.")
            task_index = indices[0]
        protocol = protocol or "grpc"
    if job_name is not None:
        message.job_name = job_name
    if task_index is not None:
        message.task_index = task_index
    if protocol is not None:
        message.protocol = protocol
    if config is not None:
        message.default_session_config.MergeFromString(config.SerializeToString())
    return message


@export(v1=("train.Server", "distribute.Server"), v2="distribute.Server")
class Server:
    """A task of a cluster, which runs parts of graphs for sessions, and serves sessions itself.

    Sessions with the target `server.target` run here and share the variables, queues and tables of every task, by container and name.

    Args:
        server_or_cluster_def: a ServerDef, or anything that `tf.train.ClusterSpec` accepts.
        job_name: the job of this task; by default that of the definition, or the only one.
        task_index: the index of this task; by default that of the definition, or the only one.
        protocol: "grpc", the default, or "grpc+tls".
        config: a ConfigProto with the defaults of sessions.
        start: whether to start at once.

    Raises:
        TypeError, ValueError: the arguments do not describe a task.
        tf.errors.OpError: the server could not be started.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        self._server_def = _make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        if self._server_def.protocol not in _PROTOCOLS:
            raise NotFoundError(
                None,
                None,
                f"No server factory registered for the given ServerDef: {self._server_def}\n"
                "The available server factories are: [ GRPC_SERVER ]",
            )
        cluster = ClusterSpec(self._server_def.cluster)
        job, index = self._server_def.job_name, self._server_def.task_index
        if job not in cluster.jobs:
            raise InternalError(None, None, f'Job "{job}" was not defined in cluster')
        if index not in cluster.task_indices(job):
            raise InvalidArgumentError(None, None, f'Task {index} was not defined in job "{job}"')
        service = importlib.import_module("stoker._src.distributed.service")
        self._service = service.Service(self._server_def)
        _servers.add(self)
        if start:
            self.start()

    def start(self) -> None:
        """Starts the server. A server that runs already is not affected."""
        self._service.start()

    def join(self) -> None:
        """Blocks until the process ends."""
        self._service.wait()

    @property
    def server_def(self) -> Any:
        """The ServerDef message."""
        return self._server_def

    @property
    def target(self) -> str:
        """The target for sessions on this server, such as `grpc://localhost:2222`."""
        return self._service.target

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Returns a server for this process alone: the only task of the job `local`, on a free port of this machine."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    def _stop(self) -> None:
        """Cancels everything that runs on this server and closes its port."""
        _servers.discard(self)
        self._service.stop()


@atexit.register
def _stop_all() -> None:
    for server in list(_servers):
        server._stop()
