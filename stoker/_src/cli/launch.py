"""`python -m stoker launch --workers N SCRIPT ARGS`: runs a program in several processes that train together, by torchrun."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from stoker._src.cli.parsers import add_command

_PIN = "STOKER_PIN_CORES"


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "launch",
        help="run a program in several processes that train together",
        description="Starts N processes of a program with torchrun (torch.distributed.run): its rendezvous, its restarts, its logs. "
        "Each process is `stoker run SCRIPT ARGS`. In it, tf.train.SyncReplicasOptimizer, stoker.distribute.wrap and tf.distribute "
        "strategies average gradients over all processes, and MonitoredTrainingSession saves checkpoints in the first one.",
        examples=[
            "--workers 4 train.py --steps=100",
            "--workers 8 --nodes 2 --rendezvous host0:29400 train.py",
        ],
    )
    parser.add_argument("--workers", type=int, required=True, metavar="N", help="processes on this machine")
    parser.add_argument(
        "--nodes", default="1", metavar="M", help="machines, or MIN:MAX for elastic training (default: 1)"
    )
    parser.add_argument(
        "--rendezvous", metavar="HOST:PORT", help="where the machines meet; needed for more than one machine"
    )
    parser.add_argument("--run-id", default="stoker", help="the name of the job at the rendezvous (default: stoker)")
    parser.add_argument(
        "--restarts", type=int, default=0, metavar="K", help="restarts of all processes after a failure"
    )
    parser.add_argument(
        "--pin",
        action="store_true",
        help="give each process cores of its own, with all their hardware threads; for a machine that runs nothing else",
    )
    parser.add_argument("--log-dir", metavar="DIR", help="where the processes' outputs are written, one file for each")
    parser.add_argument(
        "--api", choices=("v1", "v2"), default="v1", help="which names `import tensorflow` gives (default: v1)"
    )
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS]", help="the program and its arguments"
    )
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    if not args.script:
        print("stoker launch: give a SCRIPT", file=sys.stderr)
        return 2
    if args.workers < 1:
        print(f"stoker launch: --workers must be positive, not {args.workers}", file=sys.stderr)
        return 2
    if args.nodes != "1" and not args.rendezvous:
        print("stoker launch: more than one machine needs --rendezvous HOST:PORT", file=sys.stderr)
        return 2
    if args.pin:
        cores = len(physical_cores())
        if cores < args.workers:
            print(
                f"stoker launch: --pin needs a core for each of {args.workers} processes: there are {cores}",
                file=sys.stderr,
            )
            return 2
        os.environ[_PIN] = "1"
    # The processes of a machine share its cores. torchrun would give each one of them. Two threads on one core would only share its arithmetic units.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(physical_cores()) // args.workers)))
    # Each meeting of the processes, also after machines came or went, has a store of its own, without the addresses of processes that have ended.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    return _torchrun(torchrun_arguments(args))


def torchrun_arguments(args: argparse.Namespace) -> list[str]:
    """The arguments of `python -m torch.distributed.run` for those of `stoker launch`."""
    meeting = (
        ["--rdzv-backend", "c10d", "--rdzv-endpoint", args.rendezvous, "--rdzv-id", args.run_id]
        if args.rendezvous
        else ["--standalone"]
    )
    logs = ["--log-dir", args.log_dir, "--tee", "3"] if args.log_dir else []
    return [
        *meeting,
        *("--nnodes", args.nodes, "--nproc-per-node", str(args.workers), "--max-restarts", str(args.restarts)),
        *logs,
        *("-m", "stoker", "run", "--api", args.api, *args.script),
    ]


def take_gpu() -> None:
    """Lets a launched process see only the GPU of its number, or none if there are not enough for all processes."""
    if "LOCAL_RANK" not in os.environ or "LOCAL_WORLD_SIZE" not in os.environ:
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        folder = "/proc/driver/nvidia/gpus"
        gpus = [str(i) for i in range(len(os.listdir(folder)))] if os.path.isdir(folder) else []
    else:
        gpus = [each for each in visible.split(",") if each]
    mine = int(os.environ["LOCAL_RANK"])
    enough = len(gpus) >= int(os.environ["LOCAL_WORLD_SIZE"])
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[mine] if enough else ""


def physical_cores(cpus: str = "/sys/devices/system/cpu") -> list[set[int]]:
    """Returns the processors of each core that this process may use. Hardware threads of a core share its arithmetic units.

    The cores of a socket follow each other, and within it those of a NUMA node, which share its memory.
    """
    found: dict[tuple[int, int, str], set[int]] = {}
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    for number in sorted(allowed):
        socket, node, siblings = "0", 0, str(number)
        try:
            nodes = [int(name[4:]) for name in os.listdir(f"{cpus}/cpu{number}") if re.fullmatch(r"node\d+", name)]
            node = min(nodes, default=0)
            with open(f"{cpus}/cpu{number}/topology/physical_package_id") as file:
                socket = file.read().strip()
            with open(f"{cpus}/cpu{number}/topology/thread_siblings_list") as file:
                siblings = file.read().strip()
        except OSError:
            pass  # a system that does not say it
        found.setdefault((int(socket), node, siblings), set()).add(number)
    return [found[key] for key in sorted(found, key=lambda key: (*key[:2], min(found[key])))]


def own_cores(rank: int, size: int, cores: list[set[int]]) -> list[set[int]]:
    """Returns the cores of process `rank` of `size`: neighbours, as many for each process, and as far apart as possible from the others'."""
    each = len(cores) // size
    first = rank * len(cores) // size
    return cores[first : first + each]


def take_cores() -> None:
    """Binds a process that was launched with `--pin` to cores of its own."""
    if os.environ.get(_PIN) != "1" or "LOCAL_RANK" not in os.environ or not hasattr(os, "sched_setaffinity"):
        return
    mine = own_cores(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]), physical_cores())
    os.sched_setaffinity(0, set().union(*mine))


def _torchrun(arguments: list[str]) -> int:
    # Here, because the other commands start without torch.
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        run.main(arguments)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
