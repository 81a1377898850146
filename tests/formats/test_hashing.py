"""Hash values are TensorFlow's, from compiled and plain Python code alike."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker._src.formats import hashing

GOLDEN = np.load(Path(__file__).parent.parent / "golden" / "hashing" / "hashing.npz")
KEY = [123, 2**40 + 5]
LARGEST = 2**63 - 1


def golden_strings() -> list[bytes]:
    """Ten strings of every length from 0 to 300, as the golden script made them."""
    generator = np.random.RandomState(1)
    return [generator.bytes(size) for size in range(301) for _ in range(10)]


@pytest.fixture(params=["compiled", "python"])
def twin(request, monkeypatch):
    """Both implementations, one after the other; the compiled one only where it was built."""
    if request.param == "python":
        monkeypatch.setattr(hashing, "_compiled", None)
    elif hashing._compiled is None:
        pytest.skip("the compiled module was not built")
    return request.param


def test_fingerprints_are_those_of_to_hash_bucket_fast(twin):
    """Strings of all lengths fall into TensorFlow's buckets."""
    hashes = hashing.fingerprint64_many(golden_strings())
    np.testing.assert_array_equal(hashing.buckets(hashes, LARGEST), GOLDEN["fast"])
    np.testing.assert_array_equal(hashing.buckets(hashes[:500], 7), GOLDEN["few"])


def test_fingerprints_as_bytes_are_those_of_tf_fingerprint(twin):
    """tf.fingerprint is the bytes of a row's fingerprint, lowest first, for strings and numbers of any rank."""
    rows = hashing.fingerprint_rows(np.array(golden_strings()[:500], object))
    np.testing.assert_array_equal(rows, GOLDEN["fingerprint"])
    numbers = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    np.testing.assert_array_equal(hashing.fingerprint_rows(numbers), GOLDEN["rows_of_numbers"])
    strings = np.array([[b"a", b"bb"], [b"", b"ccc"]], object)
    np.testing.assert_array_equal(hashing.fingerprint_rows(strings), GOLDEN["rows_of_strings"])
    assert hashing.fingerprint_rows(np.zeros((0, 3))).shape == (0, 8)


def test_siphash_is_that_of_to_hash_bucket_strong(twin):
    """A keyed hash falls into TensorFlow's buckets."""
    hashes = hashing.siphash64_many(golden_strings(), KEY)
    np.testing.assert_array_equal(hashing.buckets(hashes, LARGEST), GOLDEN["strong"])


def test_hash64_is_that_of_to_hash_bucket(twin):
    """The deprecated hash falls into TensorFlow's buckets."""
    hashes = hashing.hash64_many(golden_strings())
    np.testing.assert_array_equal(hashing.buckets(hashes, LARGEST), GOLDEN["old"])


def test_siphash_gives_the_papers_vector():
    """The example of the SipHash paper's appendix: key 00..0f, message 00..0e."""
    key = [int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little")]
    assert hashing.siphash64(bytes(range(15)), key) == 0xA129CA6149BE45E5


@given(st.binary(max_size=400), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_compiled_and_python_hashes_agree(data, key0, key1):
    """Any bytes hash alike in both implementations."""
    assert hashing.fingerprint64_many([data]).tolist() == [hashing.fingerprint64(data)]
    assert hashing.hash64_many([data]).tolist() == [hashing.hash64(data)]
    assert hashing.siphash64_many([data], [key0, key1]).tolist() == [hashing.siphash64(data, [key0, key1])]


def fingerprints(*strings: bytes) -> np.ndarray:
    return hashing.fingerprint64_many(list(strings))


def test_crosses_have_tensorflows_numbers():
    """Strings are crossed by fingerprint, integers as they are, in column order."""
    letters, words = fingerprints(b"a", b"bb"), fingerprints(b"x", b"yy", b"zzz")
    numbers = np.array([5, -6], np.int64).view(np.uint64)
    pair = [letters[:, None], words[None, :]]
    np.testing.assert_array_equal(hashing.cross_buckets(pair, 0).ravel(), GOLDEN["cross_all"])
    np.testing.assert_array_equal(hashing.cross_buckets(pair, 1000, hash_key=77).ravel(), GOLDEN["cross_keyed"])
    three = [letters[:, None, None], numbers[None, :, None], words[None, None, :]]
    np.testing.assert_array_equal(hashing.cross_buckets(three, 10**6).ravel(), GOLDEN["cross_numbers"])
    np.testing.assert_array_equal(hashing.cross_buckets([letters], 0), GOLDEN["cross_single"])


def test_bad_input_is_refused(twin):
    """Text instead of bytes, a key of one number, no buckets: each has its error."""
    with pytest.raises(TypeError, match="bytes"):
        hashing.fingerprint64_many(["text"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="at least a vector"):
        hashing.fingerprint_rows(np.array(1))
    with pytest.raises(ValueError, match="2 elements, got 1"):
        hashing.siphash64_many([b""], [1])
    with pytest.raises(ValueError, match="at least 1, got 0"):
        hashing.buckets(np.zeros(1, np.uint64), 0)
    with pytest.raises(ValueError, match="not be negative"):
        hashing.cross_buckets([fingerprints(b"a")], -1)
    assert hashing.fingerprint64_many([]).shape == (0,)
