"""Every fuzz target on random bytes, on its seeds cut, changed and joined, and on the committed corpus."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS, small_limits

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(autouse=True, scope="module")
def limits():
    with small_limits():
        yield


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_any_bytes_are_read_or_refused(name):
    """A parser gives a value or its documented error, whatever the bytes."""
    seeds = st.sampled_from(SEEDS[name])

    @settings(deadline=None, max_examples=40)
    @given(st.one_of(st.binary(max_size=200), st.builds(_changed, seeds, st.integers(0, 300), st.binary(max_size=4))))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    for seed in SEEDS[name]:
        TARGETS[name](seed)
    check()


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir() if path.is_dir()))
def test_corpus(name):
    """Inputs that once went wrong, or that reach deep, are read or refused."""
    for path in sorted((CORPUS / name).iterdir()):
        TARGETS[name](path.read_bytes())


def _changed(seed: bytes, at: int, by: bytes) -> bytes:
    at %= len(seed) + 1
    return seed[:at] + by + seed[at + len(by) :]
