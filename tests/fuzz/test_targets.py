"""Every fuzz target on random bytes, and on its seeds cut, changed and joined."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_any_bytes_are_read_or_refused(name):
    """A parser gives a value or its documented error, whatever the bytes."""
    seeds = st.sampled_from(SEEDS[name])

    @settings(deadline=None, max_examples=60)
    @given(st.one_of(st.binary(max_size=200), st.builds(_changed, seeds, st.integers(0, 300), st.binary(max_size=4))))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    for seed in SEEDS[name]:
        TARGETS[name](seed)
    check()


def _changed(seed: bytes, at: int, by: bytes) -> bytes:
    at %= len(seed) + 1
    return seed[:at] + by + seed[at + len(by) :]
