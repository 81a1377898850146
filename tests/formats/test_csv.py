"""CSV records: fields, numbers, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats import csv
from stoker._src.formats.csv import CsvColumn, decode_csv, split_record

CASES = json.loads((Path(__file__).parent.parent / "golden" / "csv_records.json").read_text())


def outcome(record, options, columns):
    if isinstance(columns, int):
        wanted = [CsvColumn(dtypes.string, b"-")] * columns
    else:
        wanted = [CsvColumn(dtypes.as_dtype(columns), 7)]
    options = {key: value.encode() if isinstance(value, str) else value for key, value in options.items()}
    try:
        arrays = decode_csv([record.encode()], wanted, **options)
    except InvalidArgumentError as error:
        return "refused: " + error.message
    return [a[0].decode() if a.dtype == object else repr(float(a[0])) for a in arrays]


def test_outcomes_equal_tensorflows():
    """Random records give TensorFlow's fields, or its refusal in its words."""
    for record, options, columns, expected in CASES:
        assert outcome(record, options, columns) == expected, (record, options, columns)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=8), min_size=1, max_size=5))
def test_quoted_fields_come_back(fields):
    """Any bytes survive quoting."""
    record = b",".join(b'"' + field.replace(b'"', b'""') + b'"' for field in fields)
    assert split_record(record) == fields


@settings(deadline=None)
@given(st.binary(max_size=30), st.booleans())
def test_any_bytes_give_fields_or_a_refusal(record, quotes):
    """Hostile records are split or refused, nothing else."""
    try:
        fields = split_record(record, use_quote_delim=quotes)
    except InvalidArgumentError:
        return
    assert len(fields) <= len(record) + 1


def test_columns_and_defaults():
    """Columns have their dtypes; empty fields take the default, and required ones are refused."""
    columns = [CsvColumn(dtypes.int32, 1), CsvColumn(dtypes.float64), CsvColumn(dtypes.string, b"x")]
    a, b, c = decode_csv([b"5,2.5,s", b",1,"], columns)
    np.testing.assert_array_equal(a, np.array([5, 1], np.int32))
    np.testing.assert_array_equal(b, np.array([2.5, 1.0]))
    assert (a.dtype, b.dtype, c.tolist()) == (np.int32, np.float64, [b"s", b"x"])
    with pytest.raises(InvalidArgumentError, match="Field 1 is required but missing in record 1!"):
        decode_csv([b"5,2.5,s", b",,"], columns)
    assert [column.shape for column in decode_csv([], columns)] == [(0,), (0,), (0,)]


def test_batches_equal_single_records():
    """A batch gives what its records give one by one, whether or not all its fields are plain."""
    for records in ([b"1,2.5,a", b" 7 ,-1e3,b"], [b"1,2.5,a", b",0x1p3,c"], [b"1,nan,a", b'2,"3",""']):
        columns = [CsvColumn(dtypes.int64, 9), CsvColumn(dtypes.float32, 8), CsvColumn(dtypes.string, b"x")]
        whole = decode_csv(records, columns)
        single = [decode_csv([record], columns) for record in records]
        for k, column in enumerate(whole):
            np.testing.assert_array_equal(column, np.concatenate([one[k] for one in single]))
    for record in (b"1_0,1,a", b"1,1_0,a", b"9223372036854775808,1,a", b"1,x,a"):
        with pytest.raises(InvalidArgumentError, match="in record 1 is not a valid"):
            decode_csv([b"1,1,a", record], columns)


FIELDS = st.sampled_from(
    [b"1", b"-7", b"+5", b"2147483648", b"999999999999999999", b"9223372036854775807", b"1.5", b"-.5e3", b"1e400"]
    + [b"", b" 2", b"nan", b"0x1p3", b"1_0", b'"3"', b"x", b"-", b".", b"e", b"1e", b"1.2.3", b"a\r", b"--1", b"\xff"]
    + [b"0" * 70, b"1." + b"3" * 61]
)
DTYPES = st.sampled_from([dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string])


@settings(deadline=None, max_examples=300)
@given(st.data(), st.lists(DTYPES, min_size=1, max_size=3))
def test_quick_and_careful_ways_agree(data, kinds):
    """Whatever the extension takes, it takes as the careful reader does."""
    row = st.lists(FIELDS, min_size=len(kinds), max_size=len(kinds)) | st.lists(FIELDS, max_size=4)
    records = [b",".join(fields) for fields in data.draw(st.lists(row, max_size=3))]
    columns = [CsvColumn(kind, b"d" if kind is dtypes.string else 3) for kind in kinds]

    def outcome():
        try:
            return [(array.dtype, array.tolist()) for array in decode_csv(records, columns)]
        except InvalidArgumentError as error:
            return error.message

    with pytest.MonkeyPatch.context() as patch:
        quick = outcome()
        patch.setattr(csv, "_native", None)
        patch.setattr(csv, "_whole_columns", lambda *_: None)
        assert repr(outcome()) == repr(quick)


def test_arguments():
    """Selections must increase, be positive and match the columns; a delimiter is one byte."""
    columns = [CsvColumn(dtypes.string, b"")] * 2
    for bad, message in (([1, 0], "increasing"), ([1, 1], "increasing"), ([-1, 0], "negative"), ([0], "do not match")):
        with pytest.raises(ValueError, match=message):
            decode_csv([b"a,b"], columns, select_cols=bad)
    with pytest.raises(InvalidArgumentError, match="only 1 char"):
        decode_csv([b"a,b"], columns, field_delim=b";;")
    with pytest.raises(ValueError, match="dtype of CSV"):
        decode_csv([b"1"], [CsvColumn(dtypes.uint8)])
