"""The shape of the project: rooms, public modules, recorded names, what importing costs."""

from __future__ import annotations

import ast
import graphlib
import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker._src.graph.late_binding import OP_FAMILIES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "stoker" / "_src"
ROOMS = [
    "base",
    "formats",
    "graph",
    "ops",
    "runtime",
    "distributed",
    "data",
    "image",
    "summary",
    "train",
    "distribute",
    "saved_model",
    "layers",
    "feature_column",
    "keras",
    "estimator",
    "interop",
    "lite",
    "contrib",
    "testing",
    "cli",
]
RECORDED = ROOT / "tests" / "data" / "public_names.txt"


def _imports(path: Path) -> list[str]:
    """Every module that a file imports, also inside of functions."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            if node.module == "stoker._src":
                found.extend(f"stoker._src.{alias.name}" for alias in node.names)
    return found


def test_rooms_import_only_from_rooms_above():
    """A room knows the rooms before it in the list and no others."""
    wrong = []
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        if room not in ROOMS:
            continue
        allowed = ROOMS[: ROOMS.index(room) + 1]
        for module in _imports(path):
            parts = module.split(".")
            if parts[:2] == ["stoker", "_src"] and len(parts) > 2 and parts[2] in ROOMS and parts[2] not in allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_families_of_ops_import_only_from_families_before():
    """A family of ops knows the families before it; what stands later is named through `graph/late_binding.py`."""
    wrong = []
    for path in (SOURCE / "ops").rglob("*.py"):
        family = path.relative_to(SOURCE / "ops").parts[0]
        if family not in OP_FAMILIES:
            continue
        allowed = {*OP_FAMILIES[: OP_FAMILIES.index(family) + 1], "native"}
        for module in _imports(path):
            parts = module.split(".")
            if parts[:3] == ["stoker", "_src", "ops"] and len(parts) > 3 and parts[3] not in allowed:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_every_folder_of_ops_is_a_family():
    """No op stands outside of the order of families."""
    folders = {path.relative_to(SOURCE / "ops").parts[0] for path in (SOURCE / "ops").rglob("*.py")}
    assert folders <= {*OP_FAMILIES, "native", "__init__.py"}


def test_folders_of_tests_mirror_those_of_the_source():
    """Tests of a room or a family stand in a folder of its name."""
    others = {"data", "fuzz", "golden", "scripts"}
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    folders = {folder for folder in folders if not {*folder.parts[:1]} & others}
    assert {str(folder) for folder in folders if not (SOURCE / folder).is_dir()} == set()


def _modules() -> dict[str, Path]:
    """Every module of the source by name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported_while_loading(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _imported_while_loading(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _imported_while_loading(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from _imported_while_loading(handler.body)


def test_the_import_graph_has_no_cycle():
    """Modules can be put in an order in which each imports only from those before it."""
    modules = _modules()
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        edges = graph[name] = set()
        for node in _imported_while_loading(ast.parse(path.read_text()).body):
            if isinstance(node, ast.Import):
                edges.update(alias.name for alias in node.names)
            elif node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                edges.update(inner & modules.keys() or {node.module})
        # A package's own __init__ runs before its modules do.
        graph[name] = {edge for edge in edges if edge in modules and not name.startswith(edge + ".")}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which lists the modules


def test_folders_stay_small():
    """A folder that holds more than forty modules is hard to find one's way in."""
    counts = Counter(path.parent for path in _modules().values())
    assert {str(folder): count for folder, count in counts.items() if count > 40} == {}


@pytest.mark.parametrize("part", range(8))
def test_every_module_can_be_imported_first(part):
    """No module relies on another having been loaded before it: each is the first to be imported in a process of its own."""
    names = sorted(name for name in _modules() if ".children." not in name)[part::8]
    done = subprocess.run([sys.executable, "-c", _IMPORT_FIRST, *names], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Children of a process that has loaded other people's packages and none of ours: loading torch anew for each would take minutes.
_IMPORT_FIRST = """
import importlib, os, sys, traceback
import absl.flags, absl.logging, numpy, torch, ml_dtypes, google.protobuf.message, fsspec
failed = []
for name in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            from stoker._src.base import loading
            loading.load = lambda: None
            importlib.import_module(name)
        except BaseException:
            traceback.print_exc(limit=-3)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
sys.exit(f"cannot be imported first: {failed}" if failed else 0)
"""


def test_late_bound_names_are_there():
    """Every `ops.name` in the source is an op, or a function that exactly one module of the first family that has it exports."""
    import stoker.compat.v1
    from stoker._src.graph.late_binding import ops

    assert dir(stoker.compat.v1)  # all ops are loaded
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if "late_binding import" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops":
                    assert callable(getattr(ops, node.attr)), f"{path}:{node.lineno}"


def test_every_folder_is_a_room():
    """No folder of the source stands outside of the order."""
    folders = {path.parent.name for path in SOURCE.glob("*/*.py")}
    assert folders <= set(ROOMS)


def test_formats_and_base_know_no_torch():
    """The trust boundary starts fast and fuzzes fast: neither torch nor the graph is imported there."""
    for room in ("base", "formats", "graph"):
        for path in (SOURCE / room).rglob("*.py"):
            assert "torch" not in {module.split(".")[0] for module in _imports(path)}, path


def test_public_modules_only_reexport():
    """The public modules are what scripts/api_gen.py writes, and nothing else."""
    done = subprocess.run([sys.executable, "scripts/api_gen.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _public_names() -> list[str]:
    from stoker._src.base.export import all_exports

    for path in sorted((ROOT / "stoker").rglob("_names.py")):  # packages that load their names on first use
        assert dir(importlib.import_module(".".join(path.parent.relative_to(ROOT).parts)))
    importlib.import_module("stoker._src.contrib.aliases")  # no public module needs it
    return sorted(f"{namespace} {name}" for namespace, table in all_exports().items() for name in table)


def test_public_names_are_the_recorded_ones():
    """No public name appears or disappears by accident; scripts/record_names.py records a change that is meant."""
    recorded = RECORDED.read_text().split("\n")
    found = _public_names()
    assert not sorted(set(recorded) - set(found) - {""}), "names that are gone"
    assert not sorted(set(found) - set(recorded)), "new names: run `python scripts/record_names.py`"


def test_specified_names_do_not_disappear():
    """Every name of the specification that was there once is still there."""
    entries = json.loads((ROOT / "tests" / "data" / "api.json").read_text())
    known = set(RECORDED.read_text().split("\n"))
    names = {name for entry in entries for name in [entry["name"], *entry.get("aliases", [])]}
    there = {
        n
        for n in names
        if f"v2 {n.removeprefix('tf.')}" in known
        or f"v1 {n.removeprefix('tf.compat.v1.').removeprefix('tf.')}" in known
    }
    found = set(_public_names())
    lost = {
        n
        for n in there
        if f"v2 {n.removeprefix('tf.')}" not in found
        and f"v1 {n.removeprefix('tf.compat.v1.').removeprefix('tf.')}" not in found
    }
    assert not lost


@pytest.mark.parametrize("module", ["stoker", "stoker.compat.v1"])
def test_import_stays_light(module):
    """Using the package loads no TensorFlow, grpc, Pillow or LiteRT."""
    code = f"import sys, {module}; {module}.constant; print([m for m in ('tensorflow', 'grpc', 'PIL', 'ai_edge_litert', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", ".flags.FLAGS", ".logging.info", ".errors.OpError", ".gfile.GFile"])
def test_what_needs_no_op_does_not_load_torch(name):
    """Importing the package, its flags, logging, errors or files leaves torch to the first use of something else."""
    code = f"import sys, stoker.compat.v1; stoker.compat.v1{name}; print('torch' in sys.modules); stoker.compat.v1.Session; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stdout + done.stderr


@pytest.mark.parametrize(("module", "function"), [("stoker.nn", "relu"), ("stoker.compat.v2.math", "abs")])
def test_a_public_module_may_be_imported_first(module, function):
    """A module imported by its own name finds ops that run eagerly."""
    code = f"import {module}; print({module}.{function}([0.0, 2.0]).numpy())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["[0.", "2.]"], done.stdout + done.stderr


def test_unknown_names_are_attribute_errors():
    """A misspelled name says which module does not have it; `dir` lists those it has."""
    code = "import stoker.compat.v1 as tf; print('Session' in dir(tf), hasattr(tf, 'Sesion')); tf.Sesion"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"]
    assert "AttributeError: module 'stoker.compat.v1' has no attribute 'Sesion'" in done.stderr


def test_every_op_has_a_kernel():
    """A definition without a kernel would fail at the first run, not at import."""
    from stoker._src.graph.definition import all_definitions

    assert [name for name, definition in all_definitions().items() if definition.kernel_fn is None] == []
