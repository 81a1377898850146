"""Writes docs/ops.md and docs/ops.json: every op, what it supports, and how its results compare with TensorFlow's.

    python scripts/op_table.py [--tf2 PYTHON] [--only OP ...] [--report] [--jobs N]

The cases are the Samples of tests/ops, their edge variants and those of op_comparison/extra.py (see op_comparison/cases.py).
TensorFlow runs them in a process of its own, under PYTHON (default: the environment variable STOKER_TF2, else
.venvs/tf2/bin/python); stoker runs them eagerly, and the first of each op in a graph too. `--report` prints every difference
instead of writing the documents. The exit status is 1 where an op differs without a stated reason.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import numpy as np  # noqa: E402
from op_comparison import reasons  # noqa: E402
from op_comparison.canonical import FORMS  # noqa: E402
from op_comparison.cases import (  # noqa: E402
    Case,
    case_from,
    derivatives_of,
    from_channels_first,
    is_elementwise,
    leaves,
    module_of,
    program_cases,
    sample_tables,
    to_channels_first,
    variants,
)
from op_comparison.compare import Difference, compare_case  # noqa: E402
from op_comparison.derivatives import derivatives  # noqa: E402
from op_comparison.exchange import Reader, Variable, Writer  # noqa: E402
from op_comparison.extra import extra_cases  # noqa: E402
from op_comparison.programs import PROGRAMS, run_program  # noqa: E402

import stoker.compat.v1 as tf  # noqa: E402
from stoker._src.base.shapes import Shape  # noqa: E402
from stoker._src.graph import context  # noqa: E402
from stoker._src.graph.definition import OpDefinition, Trait, all_definitions, find_definition  # noqa: E402

PATIENCE = 90  # seconds for one case
ORACLE = ROOT / "scripts" / "op_comparison" / "oracle.py"


# -- running -----------------------------------------------------------------------------------------------------


def run_oracle(python: str, cases: list[Case], folder: Path) -> list[dict[str, Any]]:
    """TensorFlow's results. Where a case ends its process, or does not end itself, another goes on after it."""
    writer = Writer()
    writer.save(folder / "cases", [writer.pack(as_message(case)) for case in cases])
    environment = dict(
        os.environ, PYTHONPATH="", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0"
    )
    fatal: list[str] = []
    while True:
        last = last_line([python, str(ORACLE), str(folder / "cases"), str(folder), *fatal], environment)
        if last == "done":
            break
        if not last or last in fatal:
            raise SystemExit(f"{python} {ORACLE} failed, see above")
        fatal.append(last)
    results = []
    for path in sorted(folder.glob("results_*.json"), key=lambda path: int(path.stem.split("_")[1])):
        reader = Reader(path.with_suffix(""), tf)
        for result in reader.structure:
            if "values" in result:
                result["values"] = [reader.unpack(value) for value in result["values"]]
            results.append(result)
    return results


def last_line(command: list[str], environment: dict[str, str]) -> str:
    """What a process printed last; it is ended where it prints nothing for a long time."""
    last = ""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while True:
            watch = threading.Timer(PATIENCE, process.kill)
            watch.start()
            line = process.stdout.readline()
            watch.cancel()
            watch.join()
            if not line:
                return last
            last = line.strip()


def oracle_version(python: str) -> str:
    code = "import importlib.metadata as m; print(next(m.version(n) for n in ('tensorflow', 'tensorflow-cpu') if n in {d.name for d in m.distributions()}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def as_message(case: Case) -> dict[str, Any]:
    attrs = {key: tf.TensorShape(value) if isinstance(value, Shape) else value for key, value in case.attrs.items()}
    fields = {name: getattr(case, name) for name in ("graph", "references", "derivative", "program")}
    return {"op": case.op, "inputs": case.inputs, "attrs": attrs, **fields}


def run_ours(case: Case, *, graph: bool = False, layout: str = "plain") -> dict[str, Any]:
    """stoker's result of a case: {"values": ...} or {"error": ..., "message": ...}."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if case.program:
                return {"values": run_program_here(case)}
            if case.channels_first:
                return {"values": from_channels_first(case, run_eager(to_channels_first(case), layout))}
            if case.derivative:
                function = functools.partial(the_definition(case.op), **case.attrs)
                return {"values": derivatives(tf, function, case.inputs, case.derivative)}
            return {"values": run_graph(case) if graph or case.graph else run_eager(case, layout)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def run_program_here(case: Case) -> list[np.ndarray]:
    if case.graph:
        return run_program(tf, case.program, eager=False)
    with context.enter_eager():
        return run_program(tf, case.program, eager=True)


def run_eager(case: Case, layout: str) -> list[np.ndarray]:
    definition = the_definition(case.op)
    with context.enter_eager():
        arguments = [
            [laid_out(leaf, layout) for leaf in case.inputs[arg.name]]
            if arg.is_list
            else laid_out(case.inputs[arg.name], layout)
            for arg in definition.inputs
        ]
        return [as_array(tensor.numpy()) for tensor in flatten(definition(*arguments, **case.attrs))]


def laid_out(array: np.ndarray, layout: str) -> Any:
    """The array as an eager tensor: from memory in order, walked backwards, or as a transposed view."""
    if array.dtype.kind in "OSU" or layout == "plain" or array.ndim == 0:
        return tf.convert_to_tensor(array)
    if layout == "reversed":
        backwards = (slice(None, None, -1),) * array.ndim
        return tf.convert_to_tensor(array[backwards].copy()[backwards])
    order = np.arange(array.ndim)[::-1].astype(np.int32)
    return the_definition("Transpose")(tf.convert_to_tensor(np.ascontiguousarray(array.T)), order)


def run_graph(case: Case) -> list[np.ndarray]:
    definition = the_definition(case.op)
    with tf.Graph().as_default(), tf.Session() as session:
        feeds: dict[Any, Any] = {}
        arguments, reads, preparation = [], [], []

        def fed(array: np.ndarray) -> Any:
            tensor = tf.placeholder(tf.string if array.dtype.kind == "O" else tf.as_dtype(array.dtype), array.shape)
            feeds[tensor] = array
            return tensor

        for number, arg in enumerate(definition.inputs):
            item = case.inputs[arg.name]
            if isinstance(item, Variable):
                dtype, shape = tf.as_dtype(item.value.dtype), item.value.shape
                if arg.is_ref:
                    variable = the_definition("VariableV2")(shape=shape, dtype=dtype)
                    preparation.append(the_definition("Assign")(variable, item.value).op)
                    reads.append((variable, None))
                else:
                    variable = the_definition("VarHandleOp")(dtype=dtype, shape=shape, shared_name=f"v{number}")
                    preparation.append(the_definition("AssignVariableOp")(variable, item.value))
                    reads.append((variable, dtype))
                arguments.append(variable)
            elif arg.host:
                arguments.append(item)
            else:
                arguments.append([fed(leaf) for leaf in item] if arg.is_list else fed(item))
        if preparation:
            session.run(preparation)
        made = definition(*arguments, **case.attrs)
        outputs = flatten(made)
        with tf.control_dependencies(outputs or [made]):
            after = [
                tf.identity(variable) if dtype is None else the_definition("ReadVariableOp")(variable, dtype=dtype)
                for variable, dtype in reads
            ]
        return [as_array(value) for value in session.run([*outputs, *after], feeds)]


def the_definition(name: str) -> OpDefinition:
    definition = find_definition(name)
    assert definition is not None, f"{name} is not defined"
    return definition


def flatten(outputs: Any) -> list[Any]:
    if isinstance(outputs, (list, tuple)):
        return [leaf for item in outputs for leaf in flatten(item)]
    return [outputs] if hasattr(outputs, "dtype") else []  # an op without outputs gives itself


def as_array(value: Any) -> np.ndarray:
    return np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)


# -- the table ---------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One op in the table."""

    op: str
    module: str
    dtypes: str
    eager: str
    graph: str
    shape_rule: bool
    gradient: str
    cases: int = 0
    units: float = 0.0
    differences: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    derivatives: dict[int, int] = field(default_factory=dict)  # how many cases of each order were compared
    slopes: list[str] = field(default_factory=list)  # differences of derivatives

    @property
    def verdict(self) -> str:
        """equal, within N units, differs, or not compared; with the reason."""
        if self.differences:
            pattern, reason = reasons.DELIBERATE.get(self.op, ("(?!)", ""))
            explained = all(re.search(pattern, line, re.DOTALL) for line in self.differences)
            return f"differs: {reason}" if explained else "differs"
        if not self.cases:
            return f"not compared: {self.why_not_compared}"
        free = f" ({FORMS[self.op][1]})" if self.op in FORMS else ""
        if self.units == 0:
            return f"equal{free}"
        _, reason = tolerance_of(self.op)
        return f"within {self.units:.2g} units{free}: {reason}"

    @property
    def why_not_compared(self) -> str:
        if "Dataset" in self.op or "Iterator" in self.op:
            return "compared in whole pipelines (tests/golden/data)"
        return reasons.NOT_COMPARED.get(self.op) or next(iter(self.skipped), "no case")

    @property
    def derivative_verdict(self) -> str:
        """What became of the gradient beside TensorFlow's, first and second order."""
        if self.slopes:
            pattern, reason = reasons.DELIBERATE_DERIVATIVES.get(self.op, ("(?!)", ""))
            explained = all(re.search(pattern, line, re.DOTALL) for line in self.slopes)
            return f"{self.gradient}, differs: {reason}" if explained else f"{self.gradient}, differs"
        return f"{self.gradient}, compared" if self.derivatives and self.gradient == "yes" else self.gradient

    @property
    def unexplained(self) -> bool:
        return self.verdict == "differs" or self.derivative_verdict.endswith("differs")


def tolerance_of(op: str) -> tuple[float, str]:
    if op in reasons.TOLERANCES:
        return reasons.TOLERANCES[op]
    return reasons.ELEMENTWISE if is_elementwise(the_definition(op)) else reasons.SUMS


def describe_dtypes(definition: OpDefinition) -> str:
    """What the first typed input (or output) allows."""
    for arg in (*definition.inputs, *definition.outputs):
        if arg.type_attr is not None:
            allowed = definition.attrs[arg.type_attr].allowed
            return ", ".join(dtype.name for dtype in allowed) if allowed else "all"
        if arg.list_attr is not None:
            return "all"
    fixed = {arg.dtype.name for arg in (*definition.inputs, *definition.outputs) if arg.dtype is not None}
    return ", ".join(sorted(fixed)) or "none"


def describe_gradient(definition: OpDefinition) -> str:
    if definition.gradient_fn is not None:
        return "yes"
    return "stops" if not definition.differentiable else "none"


def gather_cases(only: set[str]) -> list[Case]:
    """All cases, and the variants of each op's first three samples that give a value."""
    found: list[Case] = []
    varied: Counter[str] = Counter()
    samples = [
        (sample.op, case_from(sample.op, sample.inputs, sample.attrs))
        for sample in sample_tables()
        if sample.op not in reasons.SAMPLES_LEFT_OUT
    ]
    for op, case in [*samples, *((case.op, case) for case in extra_cases())]:
        if only and op not in only:
            continue
        found.append(case)
        if varied[op] < 3:
            varied[op] += 1
            found.extend(variants(case, first=varied[op] == 1))
            found.extend(derivatives_of(case))
    found.extend(
        case
        for case in program_cases()
        if not only or only & {*PROGRAMS[case.program].ops, *PROGRAMS[case.program].gradients}
    )
    return found


def scale_of(case: Case) -> float:
    """The largest finite magnitude among the inputs."""
    largest = 0.0
    for item in case.inputs.values():
        for leaf in leaves(item):
            if leaf.dtype.kind in "fc" or leaf.dtype.name == "bfloat16":
                sizes = np.abs(leaf.astype(np.complex128))
                sizes = sizes[np.isfinite(sizes)]
                largest = max(largest, float(sizes.max()) if sizes.size else 0.0)
    return largest


def compare_part(python: str, only: set[str], part: int, parts: int) -> dict[str, Row]:
    """Every `parts`-th op, from number `part` on: all rows, of which those ops' are filled in."""
    cases = gather_cases(only)
    chosen = set(sorted({case.op for case in cases})[part::parts])
    cases = [case for case in cases if case.op in chosen]
    rows = make_rows()
    with tempfile.TemporaryDirectory() as folder:
        theirs = run_oracle(python, cases, Path(folder))
    compare_all(cases, theirs, rows)
    return rows


def joined(parts: list[dict[str, Row]]) -> dict[str, Row]:
    """The rows of several parts as one: a program speaks for ops of other parts too."""
    rows = parts[0]
    for part in parts[1:]:
        for name, other in part.items():
            row = rows[name]
            row.cases += other.cases
            row.units = max(row.units, other.units)
            row.differences += other.differences
            row.slopes += other.slopes
            row.skipped.update(other.skipped)
            for order, count in other.derivatives.items():
                row.derivatives[order] = row.derivatives.get(order, 0) + count
            row.eager = other.eager if other.eager == "yes" else row.eager
            row.graph = other.graph if other.graph == "yes" else row.graph
    return rows


def compare_all(cases: list[Case], theirs: list[dict[str, Any]], rows: dict[str, Row]) -> None:
    seen: set[str] = set()
    for case, expected in zip(cases, theirs):
        if case.program:
            record_program(rows, case, run_ours(case), expected)
            continue
        row = rows[case.op]
        elementwise = is_elementwise(the_definition(case.op))
        scale = 0.0 if elementwise else scale_of(case)

        def check(found: dict[str, Any], where: str) -> Difference:
            one, other = (comparable(case, result) for result in (found, expected))  # noqa: B023
            difference = compare_case(one, other, elementwise, scale, reasons.FLOORS.get(case.op, 0.0))  # noqa: B023
            record(row, difference, f"{where}{describe_case(case)}")  # noqa: B023
            return difference

        plain = run_ours(case)
        if case.derivative:
            record_derivative(row, case, plain, expected)
            continue
        difference = check(plain, "")
        mode = "graph" if case.graph else "eager"
        if "values" in plain:
            setattr(row, mode, "yes")
        if Trait.STATEFUL in the_definition(case.op).traits:  # each run draws other numbers
            row.graph = row.graph if "values" not in run_ours(case, graph=True) else "yes"
            continue
        if case.op in seen or difference.text or "values" not in plain or case.graph:
            continue
        seen.add(case.op)
        in_graph = run_ours(case, graph=True)
        row.graph = "yes" if "values" in in_graph else "no"
        check(in_graph, "graph: ")
        for layout in ("reversed", "transposed"):
            check(run_ours(case, layout=layout), f"{layout}: ")


def comparable(case: Case, result: dict[str, Any]) -> dict[str, Any]:
    """The result without the outputs that TensorFlow leaves unset, and with what the op leaves free in one form."""
    if "values" not in result:
        return result
    unset = reasons.unset_outputs(case.op, case.attrs)
    values = [value for number, value in enumerate(result["values"]) if number not in unset]
    return {"values": FORMS[case.op][0](values) if case.op in FORMS else values}


def record(row: Row, difference: Difference, where: str) -> None:
    if difference.skipped:
        row.skipped[difference.skipped] += 1
        return
    row.cases += 1
    row.units = max(row.units, difference.units)
    if difference.text:
        row.differences.append(f"{where}: {difference.text}")
    elif difference.units > tolerance_of(row.op)[0]:
        row.differences.append(f"{where}: {difference.units:.3g} units")


def record_program(rows: dict[str, Row], case: Case, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """A program speaks for all its ops."""
    difference = compare_case(ours, theirs, elementwise=False)
    for op in PROGRAMS[case.program].ops:
        record(rows[op], difference, f"{case.kind}{'' if case.graph else ', eager'}")
        if "values" in ours:
            setattr(rows[op], "graph" if case.graph else "eager", "yes")
    for op in PROGRAMS[case.program].gradients:
        rows[op].derivatives[1] = rows[op].derivatives.get(1, 0) + 1
        if difference.skipped or difference.text or difference.units > reasons.DERIVATIVES["float32"][0]:
            rows[op].slopes.append(f"{case.kind}: {difference.skipped or difference.text or difference.units}")


def record_derivative(row: Row, case: Case, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    single = any(leaf.dtype.name == "float32" for item in case.inputs.values() for leaf in leaves(item))
    if single:  # what a float64 input gets then has single precision too
        ours, theirs = narrowed(ours), narrowed(theirs)
    difference = compare_case(ours, theirs, False, scale_of(case))
    if difference.skipped or any(words in theirs.get("message", "") for words in reasons.NO_DERIVATIVE):
        return
    limit, _ = reasons.DERIVATIVES["float32" if single else ""]
    row.derivatives[case.derivative] = row.derivatives.get(case.derivative, 0) + 1
    if difference.text:
        row.slopes.append(f"{describe_case(case)}: {difference.text}")
    elif difference.units > limit:
        row.slopes.append(f"{describe_case(case)}: {difference.units:.3g} units")


def narrowed(result: dict[str, Any]) -> dict[str, Any]:
    """The result with its float64 values in single precision."""
    if "values" not in result:
        return result
    with np.errstate(over="ignore"):
        return {
            "values": [value.astype(np.float32) if value.dtype == np.float64 else value for value in result["values"]]
        }


def describe_case(case: Case) -> str:
    parts = []
    for item in case.inputs.values():
        parts.append(
            ",".join(
                f"{leaf.dtype.name if leaf.dtype.kind != 'O' else 'string'}{list(leaf.shape)}" for leaf in leaves(item)
            )
        )
    attrs = f" {case.attrs}" if case.attrs else ""
    return f"{case.kind} ({'; '.join(parts)}){attrs}"


def make_rows() -> dict[str, Row]:
    return {
        name: Row(
            name,
            module_of(definition),
            describe_dtypes(definition),
            eager="no" if any(arg.is_ref for arg in definition.inputs) else "-",
            graph="-",
            shape_rule=definition.shape_rule.function is not None,
            gradient=describe_gradient(definition),
        )
        for name, definition in all_definitions().items()
    }


def summary(rows: list[Row]) -> dict[str, int]:
    """How many ops came out how."""
    counts = Counter(row.verdict.split(":")[0].split(" ")[0] for row in rows)
    names = {"equal": "equal", "within": "within tolerance", "not": "not compared", "differs": "differing"}
    return {"ops": len(rows), **{words: counts.get(key, 0) for key, words in names.items()}}


# -- documents ---------------------------------------------------------------------------------------------------

INTRODUCTION = """# Every op, and how it compares with TensorFlow {version}

Written by `make interop` (scripts/op_table.py); do not edit. {ops} ops: {equal} give results equal to TensorFlow's, {within} within
a tolerance, {differing} differ in some case for the reason stated, {not_compared} are not compared here.

The cases are the samples of the ops' tests and their edges: other dtypes, a thousand random numbers of all sizes for element-wise
ops, empty tensors, tensors without dimensions, broadcasting of one element, NaN and infinities (where they do not meet the order of
summation), the ends of the integer types, memory walked backwards, transposed views, every stride, dilation and padding of
convolutions and pools, images with their channels first (beside TensorFlow's with channels last, which its CPU kernels ask for). Ops with
state (variables, queues, readers, tables, lists, arrays, random numbers over several runs, functions, files) are compared by little
programs (scripts/op_comparison/programs). Ops that TensorFlow removed run there in graphs of an older version, and where it has no CPU kernel
an op of the same meaning stands for it. Both sides must give the same values, dtypes and shapes, or raise errors of the same class. Subnormal
numbers count as zero: TensorFlow's threads treat them so. dtypes for which TensorFlow has no CPU kernel are not compared.

*Differences* are in units of the dtype's precision (1 is the distance from 1.0 to the next number), relative to the element for
element-wise ops and to the largest element for the others. *graph*, *eager*: a case gave a value in that mode ("-": none was
tried here; ops on reference variables have no eager form). *gradient*: yes, stops (no gradient flows) or none (asking raises);
"compared": first and second derivatives equal TensorFlow's, in single and double precision and of complex numbers, or raise
LookupError where TensorFlow's do.
"""

SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def shorten(dtypes: str) -> str:
    """float32 as f32, and so on, for the narrow column of the table."""
    words = []
    for name in dtypes.split(", "):
        stem = name.rstrip("0123456789")
        words.append(SHORT[stem] + name[len(stem) :] if stem in SHORT and stem != name else name)
    return " ".join(words)


def write_documents(rows: list[Row], folder: Path, version: str) -> None:
    """ops.md for people, ops.json for programs."""
    counts = summary(rows)
    text = [
        INTRODUCTION.format(
            version=version, ops=counts["ops"], equal=counts["equal"], within=counts["within tolerance"],
            differing=counts["differing"], not_compared=counts["not compared"],
        )
    ]  # fmt: skip
    modules: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        modules[row.module].append(row)
    for module in sorted(modules):
        text.append(f"## {module}\n")
        text.append("| op | dtypes | graph | eager | shape rule | gradient | cases | compared with TensorFlow |")
        text.append("|---|---|---|---|---|---|---|---|")
        for row in sorted(modules[module], key=lambda row: row.op):
            rule = "yes" if row.shape_rule else "no"
            cells = [
                row.op,
                shorten(row.dtypes),
                row.graph,
                row.eager,
                rule,
                row.derivative_verdict,
                str(row.cases),
                row.verdict,
            ]
            text.append(f"| {' | '.join(cells)} |")
        text.append("")
    (folder / "ops.md").write_text("\n".join(text))
    records = {row.op: as_record(row) for row in sorted(rows, key=lambda row: row.op)}
    lines = ",\n".join(f"  {json.dumps(op)}: {json.dumps(record)}" for op, record in records.items())
    head = f'{{\n "tensorflow": {json.dumps(version)},\n "summary": {json.dumps(counts)},\n "ops": {{\n'
    (folder / "ops.json").write_text(f"{head}{lines}\n }}\n}}\n")  # one line for each op, so that changes can be read


def as_record(row: Row) -> dict[str, Any]:
    return {
        "module": row.module,
        "dtypes": row.dtypes.split(", "),
        "graph": row.graph,
        "eager": row.eager,
        "shape_rule": row.shape_rule,
        "gradient": row.gradient,
        "gradient_compared": row.derivative_verdict,
        "derivatives": {str(order): count for order, count in sorted(row.derivatives.items())},
        "cases": row.cases,
        "largest_difference": float(f"{row.units:.2g}"),
        "compared": row.verdict,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STOKER_TF2", ".venvs/tf2/bin/python")
    parser.add_argument("--tf2", metavar="PYTHON", default=default, help="has TensorFlow 2")
    parser.add_argument("--only", metavar="OP", nargs="*", default=[], help="these ops alone")
    parser.add_argument("--report", action="store_true", help="print the differences; write nothing")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="processes (of each side)")
    args = parser.parse_args()
    if shutil.which(args.tf2) is None:
        print(f"there is no {args.tf2}: the op table stays as it is")
        return 0
    parts = [(args.tf2, set(args.only), part, args.jobs) for part in range(args.jobs)]
    if args.jobs == 1:
        rows = compare_part(*parts[0])
    else:
        with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
            rows = joined(pool.starmap(compare_part, parts))
    shown = [row for row in rows.values() if not args.only or row.op in args.only]
    if args.report:
        for row in shown:
            print(f"{row.op} [{row.module}] {row.cases} cases: {row.verdict}")
            for line in [*row.differences[:12], *row.slopes[:6]]:
                print(f"    {line}")
    elif not args.only:
        write_documents(shown, ROOT / "docs", oracle_version(args.tf2))
    for row in shown:
        if row.unexplained:
            print(f"{row.op}: {row.verdict}", *row.differences[:3], *row.slopes[:3], sep="\n    ")
    print(summary(shown))
    return int(any(row.unexplained for row in shown))


if __name__ == "__main__":
    sys.exit(main())
