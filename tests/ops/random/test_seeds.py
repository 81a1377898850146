"""Seed pairs are those TensorFlow gives its ops."""

import itertools

import pytest
from random_golden import SEED_TABLE

from stoker._src.ops.random.bits.seeds import EagerSeeds, op_seeds


def row_name(row: dict) -> str:
    return f"{row['global']}-{row['op']}"


@pytest.mark.parametrize("row", SEED_TABLE, ids=row_name)
def test_seeds_in_a_graph(row):
    """A graph counts how often it had to choose an op seed."""
    asked = itertools.count()
    pairs = [list(op_seeds(row["global"], row["op"], lambda: next(asked))) for _ in range(3)]
    assert pairs == row["graph"]


@pytest.mark.parametrize("row", [row for row in SEED_TABLE if row["eager"]], ids=row_name)
def test_seeds_in_eager_mode(row):
    """Eager mode draws op seeds from a sequence that the global seed starts."""
    seeds = EagerSeeds(row["global"])
    pairs = [list(op_seeds(row["global"], row["op"], seeds.next_op_seed)) for _ in range(3)]
    assert pairs == row["eager"]


def test_an_operation_count_serves_as_op_seed():
    """TensorFlow 1 uses the number of operations in the graph so far."""
    assert op_seeds(5, None, lambda: 16) == (5, 16)
    assert op_seeds(0, None, lambda: 0) == (0, 2**31 - 1)
