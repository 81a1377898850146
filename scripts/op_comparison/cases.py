"""The cases: the samples of the tests, their edge variants, and those of this file for ops without samples."""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from op_comparison.exchange import Variable
from op_comparison.programs import PROGRAMS
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.graph.definition import OpDefinition, Trait, broadcasting, find_definition, unchanged
from stoker._src.graph.signature import Arg

OPS = "stoker._src.ops."
ROOT = Path(__file__).resolve().parent.parent.parent

# Where not-a-number and infinities have no single answer: they meet the order of summation, factors of zero beside them in
# padding, the choice of a pivot, a path through a lattice.
UNSETTLED = (
    "audio", "linalg_decompositions", "linalg_solvers", "linalg_matrix_functions", "linalg_old_names", "nn.conv", "nn.ctc", "nn.dilation",
    "nn.fractional_pooling", "nn.lrn", "nn.rnn_blocks", "ranges", "signal", "sparse_reductions", "sparse_ops", "array_quantize",
)  # fmt: skip
# Where inputs must fit together, so that nothing is left if each of them is cut to nothing.
TOGETHER = (
    "linalg_solvers", "ragged_ops", "sparse_ops", "sparse_features", "sparse_messages", "sparse_reductions", "nn.rnn_blocks",
    "nn.fractional_pooling", "nn.dilation", "signal",
)  # fmt: skip
MOST_ELEMENTS = 4096  # edge variants of larger samples tell nothing more


@dataclass
class Case:
    """One call of an op: inputs by name (arrays, lists of arrays, variables) and attributes; or a program."""

    op: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]
    kind: str  # "sample", or the edge it stands for
    graph: bool = False
    references: list[str] = field(default_factory=list)
    derivative: int = 0  # the order of the derivative to compare; 0 compares values
    program: str = ""
    channels_first: bool = False  # stoker gets the images as NCHW, TensorFlow (whose CPU kernels refuse that) as NHWC


@functools.cache
def _bound_in() -> dict[int, list[str]]:
    """The modules under stoker._src.ops that hold each definition under a name."""
    found: dict[int, list[str]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith(OPS):
            for value in vars(module).values():
                if isinstance(value, OpDefinition):
                    found.setdefault(id(value), []).append(name.removeprefix(OPS))
    return found


def module_of(definition: OpDefinition) -> str:
    """The module under stoker._src.ops that defines the op: its kernel's, unless that is a shared wrapper."""
    names = [
        getattr(f, "__module__", None) or ""
        for f in (definition.kernel_fn, definition.shape_rule.function, definition.gradient_fn)
    ]
    homes = [name.removeprefix(OPS) for name in names if name.startswith(OPS)]
    bound = _bound_in().get(id(definition), [])
    return next((home for home in homes if home in bound), None) or next(iter([*bound, *homes]), "other")


def is_elementwise(definition: OpDefinition) -> bool:
    """Whether each element comes from the elements at its place (not so of transforms, whose shape does not change either)."""
    return definition.shape_rule.function in (unchanged, broadcasting) and module_of(definition) != "signal"


# -- samples of the tests ----------------------------------------------------------------------------------------


def sample_tables() -> Iterator[Any]:
    """Every Sample in the tables of tests/ops that must give a value or raise."""
    for path in sorted((ROOT / "tests" / "ops").rglob("test_*.py")):
        if "Sample(" not in path.read_text():
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for table in vars(module).values():
            if isinstance(table, list) and table and type(table[0]).__name__ == "Sample":
                yield from table


def case_from(op: str, inputs: list[Any], attrs: dict[str, Any], kind: str = "sample") -> Case:
    """A case with every input as an array of the dtype the op takes there."""
    definition = find_definition(op)
    assert definition is not None, f"{op} is not defined"
    known = {
        arg.type_attr: leaf.dtype
        for arg, item in zip(definition.inputs, inputs)
        for leaf in (item if isinstance(item, list) else [item])
        if arg.type_attr is not None and isinstance(leaf, (np.ndarray, np.generic))
    }
    arrays: dict[str, Any] = {}
    for arg, item in zip(definition.inputs, inputs):
        if isinstance(item, Variable):
            arrays[arg.name] = item
        elif arg.is_list:
            arrays[arg.name] = [as_input(arg, leaf, definition, known) for leaf in item]
        else:
            arrays[arg.name] = as_input(arg, item, definition, known)
    variables = [arg for arg in definition.inputs if isinstance(arrays.get(arg.name), Variable)]
    references = [arg.name for arg in variables if arg.is_ref]
    return Case(op, arrays, attrs, kind, graph=bool(variables), references=references)


def as_input(arg: Arg, value: Any, definition: OpDefinition, known: dict[Any, Any]) -> np.ndarray:
    """`value` as the array that both sides receive: plain Python numbers get the dtype the op would choose."""
    if isinstance(value, (np.ndarray, np.generic)) and arg.dtype is None:
        return np.asarray(value)
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        flat = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        result = np.empty(len(flat), object)
        result[:] = flat
        return result.reshape(array.shape)
    if arg.dtype is not None:
        return array.astype(arg.dtype.as_numpy_dtype)
    default = definition.attrs[arg.type_attr].default if arg.type_attr else None
    if arg.type_attr in known:
        return array.astype(known[arg.type_attr])
    if isinstance(default, DType):
        return array.astype(default.as_numpy_dtype)
    narrow = {"i": np.int32, "f": np.float32}
    return array.astype(narrow.get(array.dtype.kind, array.dtype))


def program_cases() -> Iterator[Case]:
    """Every program in a graph, and without one where it can."""
    for name, each in PROGRAMS.items():
        for graph in (True, False) if each.eager else (True,):
            yield Case((*each.ops, *each.gradients)[0], {}, {}, f"program {name}", graph=graph, program=name)


# -- edge variants -----------------------------------------------------------------------------------------------


def variants(case: Case, *, first: bool = True) -> Iterator[Case]:
    """The edges of one sample: other dtypes, nothing, one element, no dimension, NaN and infinities, ends of the integers.

    `first`: of its op, for which many random numbers are tried as well.
    """
    definition = find_definition(case.op)
    assert definition is not None
    if case.graph or size_of(case) > MOST_ELEMENTS:
        return
    yield from other_dtypes(case, definition)
    yield from channels_first(case, definition)
    module = module_of(definition)
    if is_elementwise(definition):
        if first:
            yield from spread(case, definition)
        yield mapped(case, "empty", lambda x: x.reshape(-1)[:0])
        yield mapped(case, "0-d", lambda x: x.reshape(-1)[0] if x.size else np.zeros((), x.dtype), data_only=True)
        if len(case.inputs) == 2:
            _, second = case.inputs
            if isinstance(case.inputs[second], np.ndarray) and case.inputs[second].size:
                yield replace(
                    case, kind="size 1", inputs={**case.inputs, second: case.inputs[second].reshape(-1)[:1].copy()}
                )
    elif module.startswith("nn.") and module not in TOGETHER and IMAGES & case.inputs.keys():
        cut = {name: item[:0] for name, item in case.inputs.items() if name in IMAGES and not isinstance(item, list)}
        if (
            not BY_DIMENSION & case.inputs.keys() and "BackpropFilter" not in case.op
        ):  # (of none TensorFlow sets no filter)
            yield replace(case, kind="empty", inputs={**case.inputs, **cut})
    elif module not in TOGETHER:
        yield mapped(case, "empty", lambda x: x[:0] if x.ndim else x, data_only=True)
    if module not in UNSETTLED:
        yield from extremes(case)


def derivatives_of(case: Case) -> Iterator[Case]:
    """The first and second derivative of a sample in single and double precision, and of complex numbers where allowed."""
    definition = find_definition(case.op)
    assert definition is not None
    if case.graph or Trait.STATEFUL in definition.traits or size_of(case) > MOST_ELEMENTS:
        return
    found = [case] if has_slopes(case) else []
    found += [other for name in ("float32", "float64", "complex128") if (other := retyped(case, definition, name))]
    for order in (1, 2):
        for each in found:
            yield replace(each, kind=f"derivative {order}", derivative=order)


def has_slopes(case: Case) -> bool:
    return any(leaf.dtype.kind in "fc" for item in case.inputs.values() for leaf in leaves(item))


def retyped(case: Case, definition: OpDefinition, name: str) -> Case | None:
    """The case with its data of another type, or None where none of it changes (or would lose its imaginary part)."""
    changed = {}
    for arg in definition.inputs:
        spec = definition.attrs.get(arg.type_attr or "")
        if spec is None or arg.type_attr in case.attrs or arg.name not in case.inputs or not is_data(arg, definition):
            continue
        held = leaves(case.inputs[arg.name])
        allowed = [dtype.name for dtype in spec.allowed] or [name]
        if held and held[0].dtype.kind in "fiu" and held[0].dtype.name != name and name in allowed:
            changed[arg.name] = cast(case.inputs[arg.name], as_dtype(name))
    other = replace(case, inputs={**case.inputs, **changed})
    return other if changed and has_slopes(other) else None


def size_of(case: Case) -> int:
    return sum(leaf.size for item in case.inputs.values() for leaf in leaves(item))


def leaves(item: Any) -> list[np.ndarray]:
    if isinstance(item, list):
        return item
    return [item.value if isinstance(item, Variable) else item]


def mapped(case: Case, kind: str, change: Any, *, data_only: bool = False) -> Case:
    """The case with `change` applied to its data inputs (those that are not index-like)."""
    definition = find_definition(case.op)
    assert definition is not None

    def convert(arg: Arg, item: Any) -> Any:
        if arg.host or (data_only and not is_data(arg, definition)):
            return item
        return [np.asarray(change(leaf)) for leaf in item] if isinstance(item, list) else np.asarray(change(item))

    inputs = {arg.name: convert(arg, case.inputs[arg.name]) for arg in definition.inputs if arg.name in case.inputs}
    return replace(case, kind=kind, inputs=inputs)


def is_data(arg: Arg, definition: OpDefinition) -> bool:
    """Whether an input holds values rather than positions: its type may be a floating one."""
    if arg.dtype is not None:
        return arg.dtype.is_floating or arg.dtype.is_complex
    if arg.type_attr is None:
        return True
    allowed = definition.attrs[arg.type_attr].allowed
    return not allowed or any(dtype.is_floating or dtype.is_complex for dtype in allowed) or len(allowed) > 2


# Inputs that are images of a data format, and inputs and attributes with a number for each of its dimensions.
IMAGES = {"input", "value", "x", "y_backprop", "out_backprop", "orig_input", "orig_output", "grad"}
BY_DIMENSION = {"input_sizes", "orig_input_shape", "ksize", "strides", "dilations"}
LAST = {"NHWC": "NCHW", "NDHWC": "NCDHW"}


def channels_first(case: Case, definition: OpDefinition) -> Iterator[Case]:
    """The case with its images transposed, for ops that take them in another data format."""
    spec = definition.attrs.get("data_format")
    if spec is None or spec.default not in LAST or "data_format" in case.attrs:
        return
    rank = len(spec.default)
    if all(leaf.ndim == rank for name in IMAGES & case.inputs.keys() for leaf in leaves(case.inputs[name])):
        yield replace(case, kind=LAST[spec.default], channels_first=True)


def to_channels_first(case: Case) -> Case:
    """What stoker gets of a case that is compared with its images transposed."""
    spec = find_definition(case.op).attrs["data_format"]  # type: ignore[union-attr]
    rank = len(spec.default)
    order = [0, rank - 1, *range(1, rank - 1)]

    def permuted(numbers: Any) -> Any:
        return [numbers[axis] for axis in order]

    inputs = {
        name: item.transpose(order) if name in IMAGES else item[order] if name in BY_DIMENSION else item
        for name, item in case.inputs.items()
    }
    attrs = {name: permuted(value) if name in BY_DIMENSION else value for name, value in case.attrs.items()}
    pads = attrs.get("explicit_paddings")
    if pads:
        attrs["explicit_paddings"] = [pads[2 * axis + end] for axis in order for end in (0, 1)]
    return replace(case, inputs=inputs, attrs={**attrs, "data_format": LAST[spec.default]}, channels_first=False)


def from_channels_first(case: Case, values: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs with their images as NHWC again (filters have no data format)."""
    rank = len(find_definition(case.op).attrs["data_format"].default)  # type: ignore[union-attr]
    order = [0, *range(2, rank), 1]
    is_filter = "BackpropFilter" in case.op
    return [value.transpose(order) if value.ndim == rank and not is_filter else value for value in values]


ORDINARY = (
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
WITHOUT_LIMIT = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int32",
    "int64",
    "int8",
    "uint8",
    "int16",
    "bool",
    "complex64",
)


def other_dtypes(case: Case, definition: OpDefinition) -> Iterator[Case]:
    """One case for each other dtype that a type attribute allows."""
    for attr, spec in definition.attrs.items():
        args = [arg for arg in definition.inputs if arg.type_attr == attr and arg.name in case.inputs]
        if not args or spec.kind != "type" or attr in case.attrs:
            continue
        first = leaves(case.inputs[args[0].name])
        if not first or first[0].dtype.kind in "OSU":
            continue
        present = as_dtype(first[0].dtype)
        for dtype in spec.allowed or [as_dtype(name) for name in WITHOUT_LIMIT]:
            if dtype is present or dtype.name not in ORDINARY:
                continue
            changed = {arg.name: cast(case.inputs[arg.name], dtype) for arg in args}
            yield replace(case, kind=dtype.name, inputs={**case.inputs, **changed})


def cast(item: Any, dtype: DType) -> Any:
    if isinstance(item, list):
        return [cast(leaf, dtype) for leaf in item]
    kind = np.dtype(dtype.as_numpy_dtype).kind
    source = item
    if kind not in "c" and source.dtype.kind == "c":
        source = source.real
    if kind in "iu" and source.dtype.kind == "f":
        # Unsigned numbers keep the order: pooled inputs must stay the largest of their windows.
        source = np.rint(np.clip(np.nan_to_num(source), -1e4, 1e4) * 3) + (6 if kind == "u" else 0)
    if kind == "u":
        source = np.abs(source)
    if kind == "c" and source.dtype.kind == "f":
        # Each element takes a part of its neighbour for its imaginary part.
        source = np.asarray(source + 0.5j * np.roll(source, 1))
    if kind == "b":
        return source.astype(np.float64) > 0 if source.dtype.kind == "f" else source.astype(bool)
    with np.errstate(all="ignore"):
        return source.astype(dtype.as_numpy_dtype)


MANY = 1009  # no multiple of a vector register's width


def spread(case: Case, definition: OpDefinition) -> Iterator[Case]:
    """Many random numbers, of all sizes, for each dtype: registers full and not, small and large arguments."""
    names = [arg.type_attr for arg in definition.inputs]
    if module_of(definition) == "data_formats":  # takes the dimensions of a data format only
        return
    if (
        not names
        or len(set(names)) != 1
        or names[0] is None
        or any(arg.host or arg.is_list for arg in definition.inputs)
    ):
        return
    for dtype in definition.attrs[names[0]].allowed or [as_dtype(name) for name in WITHOUT_LIMIT]:
        if dtype.name in ORDINARY:
            random = np.random.RandomState(len(dtype.name))
            inputs = {arg.name: of_all_sizes(random, dtype) for arg in definition.inputs}
            yield replace(case, kind=f"random {dtype.name}", inputs=inputs)


def of_all_sizes(random: np.random.RandomState, dtype: DType) -> np.ndarray:
    kind = np.dtype(dtype.as_numpy_dtype)
    if kind.kind == "b":
        return random.rand(MANY) < 0.5
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        drawn = random.randint(ends.min, ends.max, MANY, dtype=kind)
        drawn[::2] = random.randint(0 if kind.kind == "u" else -9, 10, drawn[::2].size)
        return drawn
    near, signs = random.uniform(-3, 3, MANY), random.choice([-1.0, 1.0], MANY)
    near[::3] = (signs * 10 ** random.uniform(-4, 4, MANY))[::3]
    if kind.kind == "c":
        return (near + 1j * random.permutation(near)).astype(kind)
    return near.astype(kind)


def extremes(case: Case) -> Iterator[Case]:
    """NaN, infinities, zeros of both signs, the largest and smallest numbers, spread over the inputs."""
    # No subnormal numbers: TensorFlow's threads treat them as zero.
    floats = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30, 3e38, -3e38, 1.0, -1.0, 0.5, 88.8, -103.9, 2.5, -2.5, 1e-3]

    def salt(offset: int):
        positions = itertools.count(offset, 5)

        def change(x: np.ndarray) -> np.ndarray:
            start = next(positions)
            picks = [floats[(start + k * 3) % len(floats)] for k in range(x.size)]
            if x.dtype.kind == "f" or x.dtype.name == "bfloat16":
                with np.errstate(all="ignore"):
                    return np.array(picks, np.float64).astype(x.dtype).reshape(x.shape)
            if x.dtype.kind in "iu":
                info = np.iinfo(x.dtype)
                ends = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7]
                return np.array([ends[(start + k * 3) % 7] for k in range(x.size)], x.dtype).reshape(x.shape)
            return x

        return change

    kinds = {leaf.dtype.kind for item in case.inputs.values() for leaf in leaves(item)}
    if kinds & set("fV"):
        yield mapped(case, "NaN, inf", salt(0), data_only=True)
        yield mapped(case, "NaN, inf (2)", salt(2), data_only=True)
    elif "i" in kinds or "u" in kinds:
        yield mapped(case, "limits", salt(0), data_only=True)
        yield mapped(case, "limits (2)", salt(1), data_only=True)
