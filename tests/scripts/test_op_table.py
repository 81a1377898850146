"""The helpers of scripts/op_table.py, which compares every op with TensorFlow's."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph.definition import find_definition

SCRIPTS = str(Path(__file__).resolve().parent.parent.parent / "scripts")


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of scripts/."""
    monkeypatch.syspath_prepend(SCRIPTS)
    yield importlib.import_module
    for name in [name for name in sys.modules if name.split(".")[0] in ("op_comparison", "op_table")]:
        del sys.modules[name]


def test_arrays_strings_and_attributes_survive_the_exchange(part: Any, tmp_path: Path) -> None:
    """What one interpreter writes the other reads unchanged: every dtype, shapes of rank 0, bytes, dtypes and shapes."""
    exchange = part("op_comparison.exchange")
    value = {
        "scalar": np.array(1.5, tf.bfloat16.as_numpy_dtype),
        "matrix": np.arange(6, dtype=np.uint16).reshape(2, 3)[::-1],
        "empty": np.zeros((0, 2), np.complex64),
        "text": np.array([[b"a\x00\xff"], [b""]], object),
        "attrs": [tf.int8, tf.TensorShape([2, None]), b"\xfe", 2.5, True, None, [1, 2]],
        "variable": exchange.Variable(np.ones(2, np.float32)),
    }
    writer = exchange.Writer()
    writer.save(tmp_path / "file", [writer.pack(value)])
    reader = exchange.Reader(tmp_path / "file", tf)
    found = reader.unpack(reader.structure[0])
    for name in ("scalar", "matrix", "empty", "text"):
        assert found[name].dtype == value[name].dtype
        assert found[name].shape == value[name].shape
        assert found[name].tolist() == value[name].tolist()
    assert found["attrs"][0] is tf.int8
    assert found["attrs"][1].as_list() == [2, None]
    assert found["attrs"][2:] == [b"\xfe", 2.5, True, None, [1, 2]]
    np.testing.assert_array_equal(found["variable"].value, np.ones(2))


def test_differences_are_measured_in_units_of_precision(part: Any) -> None:
    """One step of the dtype is one unit; NaN equals NaN; sums are measured against the largest element."""
    compare = part("op_comparison.compare").compare_values
    one = np.array([1.0, np.nan, 1e-6], np.float32)
    near = np.array([np.nextafter(np.float32(1), np.float32(2)), np.nan, 1e-6], np.float32)
    assert compare(one, one, True).units == 0
    assert compare(near, one, True).units == pytest.approx(1)
    small = one.copy()
    small[2] = 2e-6
    assert compare(small, one, True).units > 1e6
    assert compare(small, one, False).units < 10


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (np.zeros(2), np.zeros((2, 1)), r"shape \[2\] instead of \[2, 1\]"),
        (np.zeros(2, np.float32), np.zeros(2), "dtype float32 instead of float64"),
        (np.array([1, 2]), np.array([1, 3]), "2 instead of 3"),
        (np.array([np.inf]), np.array([1.0]), "inf instead of 1"),
        (np.array([b"a"], object), np.array([b"b"], object), "instead of"),
    ],
)
def test_what_no_tolerance_covers_is_a_difference(part: Any, ours: Any, theirs: Any, words: str) -> None:
    """Shapes, dtypes, integers, strings and infinities must be equal."""
    with pytest.raises(AssertionError, match=words):
        difference = part("op_comparison.compare").compare_values(ours, theirs, True)
        assert not difference.text, difference.text


def test_errors_are_compared_by_class(part: Any) -> None:
    """An error on one side alone differs; the classes for bad arguments are one; a kernel TensorFlow lacks is not a case."""
    compare = part("op_comparison.compare").compare_case

    def error(name: str, message: str = "") -> dict[str, str]:
        return {"error": name, "message": message}

    values = {"values": [np.zeros(1)]}
    assert "stoker raises" in compare(error("InvalidArgumentError"), values, True).text
    assert "TensorFlow raises" in compare(values, error("InvalidArgumentError"), True).text
    assert not compare(error("ValueError"), error("InvalidArgumentError"), True).text
    assert compare(error("OutOfRangeError"), error("InvalidArgumentError"), True).text
    assert compare(values, error("NotFoundError"), True).skipped
    assert compare(values, error("Crash"), True).skipped


def test_variants_of_an_elementwise_sample(part: Any) -> None:
    """An element-wise sample is tried with every other dtype, empty, without dimensions, broadcast, and with NaN."""
    cases = part("op_comparison.cases")
    case = cases.case_from("AddV2", [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)], {})
    found = {variant.kind: variant for variant in cases.variants(case)}
    assert {"float64", "bfloat16", "int8", "uint64", "complex64", "empty", "0-d", "size 1", "NaN, inf"} <= set(found)
    assert found["empty"].inputs["x"].shape == (0,)
    assert found["0-d"].inputs["x"].shape == ()
    assert found["size 1"].inputs["y"].shape == (1,)
    assert np.isnan(found["NaN, inf"].inputs["x"]).any()


def test_plain_numbers_get_the_dtype_the_op_chooses(part: Any) -> None:
    """Python lists become the default of their type attribute, or the dtype of a neighbour that shares it."""
    case = part("op_comparison.cases").case_from("Sum", [np.ones((2, 2)), [0]], {})
    assert case.inputs["reduction_indices"].dtype == np.int32


def test_a_reason_covers_only_the_difference_it_names(part: Any) -> None:
    """An op with a stated reason still fails when it differs in another way."""
    table = part("op_table")
    row = table.make_rows()["Round"]
    row.cases, row.differences = 1, ["int32 (int32[5]): 2 instead of 0"]
    assert not row.unexplained
    row.differences.append("sample (float32[5]): 2 instead of 3")
    assert row.unexplained


def test_every_reason_names_an_op_that_is_defined(part: Any) -> None:
    """Reasons and tolerances of ops that do not exist would explain nothing."""
    reasons = part("op_comparison.reasons")
    for op in {*reasons.DELIBERATE, *reasons.TOLERANCES, *reasons.SAMPLES_LEFT_OUT, *reasons.NOT_COMPARED}:
        assert find_definition(op) is not None, op


def test_documents_list_each_op_once(part: Any, tmp_path: Path) -> None:
    """Both documents have one line for each op, and the JSON can be read."""
    table = part("op_table")
    rows = list(table.make_rows().values())[:5]
    table.write_documents(rows, tmp_path, "2")
    document = table.json.loads((tmp_path / "ops.json").read_text())
    assert sorted(document["ops"]) == sorted(row.op for row in rows)
    lines = (tmp_path / "ops.md").read_text().splitlines()
    assert sum(line.startswith(tuple(f"| {row.op} |" for row in rows)) for line in lines) == 5
    assert table.shorten("bfloat16, float32, bool, uint8") == "bf16 f32 bool u8"
