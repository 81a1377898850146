"""`ClusterSpec`: the tasks of a cluster by job, and their network addresses."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.formats.protos import ClusterDef


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"{what} {value!r} must be bytes or unicode")
    return value


def _task_index(key: Any, job: str) -> int:
    if isinstance(key, bool) or not hasattr(type(key), "__index__"):
        raise TypeError(f"The task index {key!r} of job {job!r} must be an integer, but is a {type(key).__name__}.")
    return int(key)


@export("train.ClusterSpec")
class ClusterSpec:
    """The tasks of a cluster: for each job, the address of each task.

        ClusterSpec({"worker": ["worker0:2222", "worker1:2222"], "ps": {1: "ps1:2222"}})

    Args:
        cluster: a dictionary from job names to lists of addresses, or to dictionaries from task indices to addresses; a ClusterDef; or
            another ClusterSpec.

    Raises:
        TypeError: `cluster` is none of these.
    """

    def __init__(self, cluster: Any) -> None:
        self._tasks: dict[str, dict[int, str]] = {}
        if isinstance(cluster, ClusterSpec):
            self._tasks = {job: dict(tasks) for job, tasks in cluster._tasks.items()}
        elif isinstance(cluster, dict):
            for name, tasks in cluster.items():
                job = _text(name, "Job name")
                if isinstance(tasks, (list, tuple)):
                    items = list(enumerate(tasks))
                elif isinstance(tasks, dict):
                    items = [(_task_index(key, job), address) for key, address in tasks.items()]
                else:
                    raise TypeError(
                        f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
                    )
                self._tasks[job] = {index: _text(address, "Task address") for index, address in items}
        elif hasattr(cluster, "SerializeToString") and type(cluster).__name__ == "ClusterDef":
            for job in ClusterDef.FromString(cluster.SerializeToString()).job:
                self._tasks[job.name] = dict(sorted(job.tasks.items()))
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
                "`ClusterDef` protocol buffer"
            )

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __nonzero__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._tasks == other._tasks

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # compared by contents

    def __repr__(self) -> str:
        return f"ClusterSpec({ {job: self.as_dict()[job] for job in sorted(self._tasks)} })"

    def as_dict(self) -> dict[str, Any]:
        """Returns, for each job, a list of addresses, or a dictionary by task index if indices are missing."""
        result: dict[str, Any] = {}
        for job, tasks in self._tasks.items():
            indices = self.task_indices(job)
            dense = bool(indices) and indices == list(range(len(indices)))
            result[job] = [tasks[index] for index in indices] if dense else {index: tasks[index] for index in indices}
        return result

    def as_cluster_def(self) -> Any:
        """Returns the ClusterDef message, with jobs in alphabetical order."""
        message = ClusterDef()
        for job in sorted(self._tasks):
            entry = message.job.add(name=job)
            for index in self.task_indices(job):
                entry.tasks[index] = self._tasks[job][index]
        return message

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._tasks)

    def num_tasks(self, job_name: str) -> int:
        """Returns the number of tasks of a job.

        Raises:
            ValueError: there is no such job.
        """
        return len(self._of(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the task indices of a job in ascending order.

        Raises:
            ValueError: there is no such job.
        """
        return sorted(self._of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of a task.

        Raises:
            ValueError: there is no such job, or it has no such task.
        """
        tasks = self._of(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Returns the addresses of a job by task index, with None for indices without a task.

        Raises:
            ValueError: there is no such job.
        """
        tasks = self._of(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _of(self, job_name: str) -> dict[int, str]:
        if job_name not in self._tasks:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._tasks[job_name]
