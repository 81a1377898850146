"""`nest` against the answers TensorFlow 1.15 and 2.21 gave to the same expressions (tests/golden/nest)."""

import ast
import functools
import importlib.util
import json
import pathlib
import re
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker._src.base import nest

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "nest"


def _load_cases():
    spec = importlib.util.spec_from_file_location("cases", GOLDEN / "cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _load_cases()
RECORDED = {row[0]: row[1:] for row in json.loads((GOLDEN / "tf2.json").read_text())}
# In these TensorFlow fails by accident (a bare KeyError, IndexError, a missing __len__); stoker answers, or says why.
BETTER = {
    "pack_sequence_as([1, 2], {'a': 1, 'b': 2})": "TypeError",
    "map_structure_with_paths(lambda p: p)": "ValueError",
    "flatten_up_to(Attrs(0, 0), Attrs(1, [2]))": "[1, [2]]",
    "map_structure_up_to((0, 0), lambda a: a, Point(1, 2))": "(1, 2)",
}


def _comparable(text):
    """Without addresses, and with ordered dictionaries as this Python shows them."""
    if text is None:
        return None
    text = re.sub(r"OrderedDict\((\[\(.*\)\])\)", lambda found: repr(OrderedDict(ast.literal_eval(found[1]))), text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


@functools.cache
def outcomes():
    return {line: outcome for line, *outcome in cases.outcomes(nest)}


@pytest.mark.parametrize("line", RECORDED)
def test_every_case_is_answered_as_tensorflow_does(line):
    """Same value, or an error of the same class that begins with the same words."""
    result, error, message = outcomes()[line]
    if line in BETTER:
        assert BETTER[line] in (result, error)
        return
    expected, expected_error, expected_message = RECORDED[line]
    assert _comparable(result) == _comparable(expected)
    assert error == expected_error
    if expected_message and expected_message.startswith(("The ", "Could not", "If shallow", "Must", "func", "Only")):
        assert message.split(".")[0] == expected_message.split(".")[0]


def test_no_case_of_tensorflow_is_left_out():
    """Every function TensorFlow answered for exists here."""
    assert list(outcomes()) == list(RECORDED)


structures = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.tuples(inner, inner).map(lambda pair: cases.Point(*pair))
    ),
    max_leaves=20,
)


@given(structures)
def test_pack_inverts_flatten(structure):
    """Packing a structure's own leaves gives the structure back, types included."""
    packed = nest.pack_sequence_as(structure, nest.flatten(structure))
    assert packed == structure
    nest.assert_same_structure(packed, structure)


@given(structures)
def test_paths_and_leaves_come_in_the_same_order(structure):
    """flatten, yield_flat_paths and flatten_with_tuple_paths walk alike."""
    pairs = nest.flatten_with_tuple_paths(structure)
    assert [leaf for _, leaf in pairs] == nest.flatten(structure)
    assert [path for path, _ in pairs] == list(nest.yield_flat_paths(structure))


@given(structures, structures)
def test_same_structure_is_symmetric(first, second):
    """Whichever comes first, the verdict is the same."""

    def verdict(a, b):
        try:
            return nest.assert_same_structure(a, b)
        except (TypeError, ValueError) as error:
            return type(error)

    assert verdict(first, second) == verdict(second, first)


class Sparse:
    """A stand-in for a composite tensor."""

    def __init__(self, indices, values):
        self.indices, self.values = indices, values


@pytest.fixture
def sparse_registered():
    nest.register_composite(
        Sparse,
        lambda value: (value.indices, value.values),
        lambda value, parts: type(value)(*parts),
        lambda first, second: type(first.values) is type(second.values),
    )
    yield
    del nest._COMPOSITES[Sparse]
    nest._PLAIN.clear()
    nest._EXPANDED.clear()


def test_composites_open_only_when_asked(sparse_registered):
    """expand_composites opens a registered type; without it the instance is a leaf."""
    value = Sparse(1, 2.0)
    assert nest.flatten([value]) == [value]
    assert nest.flatten([value, 3], expand_composites=True) == [1, 2.0, 3]
    assert not nest.is_nested(value)
    assert nest.is_nested_or_composite(value)


def test_composites_are_rebuilt(sparse_registered):
    """map_structure and pack_sequence_as put composites together again."""
    doubled = nest.map_structure(lambda x: x * 2, {"s": Sparse(1, 2.0)}, expand_composites=True)["s"]
    assert (doubled.indices, doubled.values) == (2, 4.0)
    packed = nest.pack_sequence_as([Sparse(0, 0)], [5, 6], expand_composites=True)[0]
    assert (packed.indices, packed.values) == (5, 6)


def test_composite_paths_name_the_type(sparse_registered):
    """Inside a composite the path holds the type's name and the part's number."""
    paths = nest.flatten_with_joined_string_paths([Sparse(1, 2)], expand_composites=True)
    assert paths == [("0/Sparse/0", 1), ("0/Sparse/1", 2)]


def test_composites_are_compared_by_their_own_rule(sparse_registered):
    """Composites that call each other incompatible are a ValueError, another type a TypeError, a leaf a ValueError."""
    nest.assert_same_structure(Sparse(1, 2), Sparse(3, 4), expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor"):
        nest.assert_same_structure(Sparse(1, 2), Sparse(3, 4.0), expand_composites=True)
    with pytest.raises(TypeError, match="same nested structure"):
        nest.assert_same_structure(Sparse(1, 2), [1, 2], expand_composites=True)
    with pytest.raises(ValueError, match="is a sequence"):
        nest.assert_same_structure(Sparse(1, 2), 1, expand_composites=True)
    nest.assert_same_structure(Sparse(1, 2), 1)


def test_keys_that_cannot_be_sorted_come_before_other_differences():
    """Structures that differ and have unsortable keys are a TypeError, as if they were flattened first."""
    for first, second in (({1: 1, "a": 2}, {1: 1}), ([{1: 1, "a": 2}], [1, 2]), ({1: 1}, {None: 1, 1: 2})):
        with pytest.raises(TypeError, match="sortable"):
            nest.assert_same_structure(first, second)


def test_subtrees_of_other_lengths_on_request():
    """1.x's check_subtrees_length=False lets the input tree have more than the shallow one."""
    assert nest.flatten_up_to({"a": 0}, {"a": 1, "b": 2}, check_subtrees_length=False) == [1]
    assert nest.flatten_up_to([0], [1, 2], check_subtrees_length=False) == [1]
    with pytest.raises(ValueError, match="only 1"):
        nest.flatten_up_to([0, 0], [1], check_subtrees_length=False)


def test_arrays_are_leaves_by_identity():
    """NumPy arrays are neither copied nor compared."""
    array = np.zeros(3)
    assert nest.flatten({"a": array})[0] is array
    assert nest.map_structure(lambda x: x, (array,))[0] is array
