"""`stoker launch`: what it asks torchrun for, and what it refuses."""

from __future__ import annotations

import os

import pytest

from stoker._src.cli import launch, main


@pytest.fixture
def asked(monkeypatch):
    """The arguments that torchrun would get."""
    calls = []
    monkeypatch.setattr(launch, "_torchrun", lambda arguments: calls.append(arguments) or 0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(launch, "physical_cores", lambda: [{core, core + 16} for core in range(16)])
    return calls


def test_one_machine(asked):
    """On one machine torchrun finds a free port itself; the cores are divided, and the script's arguments are passed on."""
    assert main.main(["launch", "--workers", "4", "train.py", "--steps=3", "--workers", "9"]) == 0
    (arguments,) = asked
    assert arguments[:3] == ["--standalone", "--nnodes", "1"]
    assert arguments[arguments.index("--nproc-per-node") + 1] == "4"
    assert arguments[arguments.index("-m") :] == [
        *("-m", "stoker", "run", "--api", "v1", "train.py", "--steps=3", "--workers", "9"),
    ]
    assert os.environ["OMP_NUM_THREADS"] == "4"


def test_several_machines(asked):
    """Machines meet at an address, under the name of the job; restarts and logs are torchrun's."""
    line = "launch --workers 8 --nodes 2:4 --rendezvous host0:29400 --restarts 3 --log-dir logs train.py"
    assert main.main(line.split()) == 0
    text = " ".join(asked[0])
    assert "--rdzv-backend c10d --rdzv-endpoint host0:29400 --rdzv-id stoker --nnodes 2:4" in text
    assert "--max-restarts 3 --log-dir logs --tee 3" in text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--workers 2", "give a SCRIPT"),
        ("--workers 0 train.py", "--workers must be positive, not 0"),
        ("--workers 2 --nodes 2 train.py", "needs --rendezvous HOST:PORT"),
    ],
)
def test_what_is_refused(asked, capsys, line, problem):
    """Missing or contradicting arguments are named, and nothing is started."""
    assert main.main(["launch", *line.split()]) == 2
    assert problem in capsys.readouterr().err and not asked


@pytest.mark.parametrize(
    ("visible", "rank", "size", "own"), [("0,1,2,3", 2, 4, "2"), ("7,5", 1, 2, "5"), ("0", 1, 2, ""), ("", 0, 1, "")]
)
def test_each_process_sees_its_own_gpu(monkeypatch, visible, rank, size, own):
    """A launched process sees the GPU of its number; if there are too few for all, none."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(size))
    launch.take_gpu()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == own


def machine(folder, sockets, nodes, cores):
    """Writes what Linux says about a machine with two hardware threads per core, the second ones numbered after all first ones."""
    count = sockets * nodes * cores
    for number in range(2 * count):
        core = number % count
        socket, node = core % sockets, core % (sockets * nodes)  # consecutive numbers are on different sockets
        topology = folder / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (folder / f"cpu{number}" / f"node{node}").mkdir()
        (topology / "physical_package_id").write_text(f"{socket}\n")
        (topology / "thread_siblings_list").write_text(f"{core},{core + count}\n")
    return set(range(2 * count))


def test_pinned_processes_get_cores_of_their_own(monkeypatch, tmp_path):
    """Cores are counted with their hardware threads, socket by socket, and divided evenly."""
    processors = machine(tmp_path, sockets=2, nodes=1, cores=2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors, raising=False)
    cores = launch.physical_cores(str(tmp_path))
    assert cores == [{0, 4}, {2, 6}, {1, 5}, {3, 7}]
    assert [launch.own_cores(rank, 2, cores) for rank in range(2)] == [cores[:2], cores[2:]]
    assert [launch.own_cores(rank, 3, cores) for rank in range(3)] == [cores[:1], cores[1:2], cores[2:3]]
    assert launch.physical_cores(str(tmp_path / "none")) == [{number} for number in range(8)]


def test_pinning_needs_a_core_for_each_process(asked, capsys, monkeypatch):
    """`--pin` is refused if two processes would share a core, and otherwise reaches the processes."""
    monkeypatch.setattr(launch, "physical_cores", lambda: [{0}, {1}])
    monkeypatch.setenv("STOKER_PIN_CORES", "")
    assert main.main(["launch", "--pin", "--workers", "3", "train.py"]) == 2
    assert "3 processes: there are 2" in capsys.readouterr().err and not asked
    assert main.main(["launch", "--pin", "--workers", "2", "train.py"]) == 0
    bound = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: bound.append(cores), raising=False)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    launch.take_cores()
    assert bound == [{1}]


def test_pinned_processes_stay_in_their_memory_node(monkeypatch, tmp_path):
    """With one process for each NUMA node, each gets the cores of one node, whole; no two share a core, also where only some may be used."""
    processors = machine(tmp_path, sockets=2, nodes=2, cores=2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors, raising=False)
    cores = launch.physical_cores(str(tmp_path))
    assert cores == [{0, 8}, {4, 12}, {2, 10}, {6, 14}, {1, 9}, {5, 13}, {3, 11}, {7, 15}]
    for rank, node in enumerate((0, 2, 1, 3)):
        assert launch.own_cores(rank, 4, cores) == [{node, node + 8}, {node + 4, node + 12}]
    processors -= {8, 0, 4}
    assert launch.physical_cores(str(tmp_path)) == [{12}, {2, 10}, {6, 14}, {1, 9}, {5, 13}, {3, 11}, {7, 15}]
