"""Writes the public modules (`stoker/*.py`, `stoker/compat/v1/**`, `stoker/compat/v2/**`) from the `export` statements.

    python scripts/api_gen.py [--check]

With --check nothing is written; the exit status is 1 when a module differs from what would be.
"""

from __future__ import annotations

import importlib
import keyword
import pkgutil
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "stoker"
HEADERS = {
    "stoker": '"""stoker: TensorFlow\'s training stack on PyTorch, under the 2.x names. The 1.x names are in `stoker.compat.v1`."""',
    "stoker.compat": '"""The two namespaces, `v1` (1.x names) and `v2` (2.x names), and helpers common to both."""',
    "stoker.compat.v1": '"""The 1.x names. Importing this module by name chooses 1.x behaviour: graphs and sessions."""',
}
PACKAGES = ("stoker", "stoker.compat", "stoker.compat.v1", "stoker.compat.v2")
# What a public module does beside re-exporting: choosing the behaviour of the process.
_LAZY_NAMESPACES = "from stoker._src.graph.behavior import lazy_namespace as __getattr__\n"
# Packages whose names come with their first use. Those of `lite` load LiteRT.
ON_FIRST_USE = tuple(
    package + part for package in ("stoker", "stoker.compat.v1", "stoker.compat.v2") for part in ("", ".lite")
)
FOOTERS = {
    "stoker.compat": _LAZY_NAMESPACES,
    "stoker.compat.v1.compat": _LAZY_NAMESPACES,
    "stoker.compat.v2.compat": _LAZY_NAMESPACES,
    "stoker.compat.v1": "from stoker._src.graph.behavior import entered_v1\n\nentered_v1()\n",
}


def load_exports() -> dict[str, dict[str, tuple[str, str]]]:
    """Imports every module of the package's source, so that all names are stated.

    A bare `stoker` stands in for the package, whose own `__init__` is what this script writes.
    """
    bare = types.ModuleType("stoker")
    bare.__path__ = [str(PACKAGE)]
    bare.__file__ = str(PACKAGE / "__init__.py")
    sys.modules["stoker"] = bare
    source = importlib.import_module("stoker._src")
    for module in pkgutil.walk_packages(source.__path__, "stoker._src."):
        if not module.name.endswith("_pb2") and ".native" not in module.name:
            importlib.import_module(module.name)
    return importlib.import_module("stoker._src.base.export").all_exports()


def modules_of(table: dict[str, tuple[str, str]], root: str) -> dict[str, dict[str, tuple[str, str]]]:
    """public module -> its own names."""
    modules: dict[str, dict[str, tuple[str, str]]] = {root: {}}
    for name, target in table.items():
        parts = name.split(".")
        for depth in range(1, len(parts)):
            modules.setdefault(".".join([root, *parts[:depth]]), {})
        modules[".".join([root, *parts[:-1]])][parts[-1]] = target
    return modules


def header(module: str) -> str:
    name = module.removeprefix("stoker").removeprefix(".compat.v1").removeprefix(".compat.v2")
    text = HEADERS.get(module, f'"""Public names of tf{name}."""')
    return f"{text}\n\n# Written by scripts/api_gen.py.\n# fmt: off\n"


def render_on_first_use(module: str) -> str:
    """A package that has the names of its module `_names` from their first use on."""
    return (
        header(module)
        + "from typing import TYPE_CHECKING\n\n"
        + "from stoker._src.base.first_use import names_on_first_use\n\n"
        + f"if TYPE_CHECKING:\n    from {module}._names import *\n\n"
        + "__getattr__, __dir__ = names_on_first_use(__name__)\n"
        + FOOTERS.get(module, "")
    )


def render(module: str, names: dict[str, tuple[str, str]], children: list[str]) -> str:
    lines = []
    for child in sorted(children):
        lines.append(f"from {module} import {child} as {child}")
    for name, (source, attribute) in sorted(names.items(), key=lambda item: (item[1][0], item[1][1].lower(), item[0])):
        if keyword.iskeyword(name):
            continue
        head, _, rest = attribute.partition(".")
        if rest:
            raise ValueError(f"{module}.{name}: nested names cannot be exported ({attribute})")
        lines.append(f"from {source} import {head} as {name}")
    return header(module) + "\n".join(lines) + "\n" + ("" if module in ON_FIRST_USE else FOOTERS.get(module, ""))


def outputs(exports: dict[str, dict[str, tuple[str, str]]]) -> dict[Path, str]:
    """path -> contents of every public module."""
    files: dict[Path, str] = {}
    for root, table in (
        ("stoker", exports["v2"]),
        ("stoker.compat.v1", exports["v1"]),
        ("stoker.compat.v2", exports["v2"]),
    ):
        modules = modules_of(table, root)
        for module, names in modules.items():
            children = [m.rsplit(".", 1)[1] for m in modules if m.rsplit(".", 1)[0] == module and m != module]
            is_package = bool(children) or module in PACKAGES
            base = ROOT.joinpath(*module.split("."))
            path = base / "__init__.py" if is_package else base.with_suffix(".py")
            if module in ON_FIRST_USE:
                files[path] = render_on_first_use(module)
                path = base / "_names.py"
            files[path] = render(module, names, children)
    return files


def existing() -> set[Path]:
    """Public modules that are there: all but our source and the hand-written `__main__`."""
    keep = {PACKAGE / "__main__.py"}
    return {p for p in PACKAGE.rglob("*.py") if "_src" not in p.parts and p not in keep}


def main() -> int:
    check = "--check" in sys.argv[1:]
    sys.path.insert(0, str(ROOT))
    files = outputs(load_exports())
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    extra = existing() - set(files)
    if check:
        for path in sorted([*stale, *extra]):
            print(f"{path.relative_to(ROOT)} is not what scripts/api_gen.py writes")
        return 1 if stale or extra else 0
    for path in extra:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
    print(f"{len(files)} public modules, {len(stale)} written, {len(extra)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
