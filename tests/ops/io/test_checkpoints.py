"""Ops that save to checkpoint files and restore from them; the files are TensorFlow's byte for byte."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.ops.samples import Sample, check_sample, samples

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"
ROOT = Path(__file__).parents[3]
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
TEXT = lambda value: np.array(value, object)  # noqa: E731

SAMPLES = [
    Sample("ShardedFilename", [TEXT(b"a/b"), np.int32(3), np.int32(12)], {}, lambda *_: TEXT(b"a/b-00003-of-00012")),
    Sample("ShardedFilename", [TEXT(b""), np.int32(-3), np.int32(123456)], {}, lambda *_: TEXT(b"--0003-of-123456")),
    Sample("ShardedFilespec", [TEXT(b"a/b"), np.int32(12)], {}, lambda *_: TEXT(b"a/b-?????-of-00012")),
]


@samples(SAMPLES)
def test_sample(sample):
    check_sample(sample)


def save(prefix, names, slices, tensors, version=2):
    with tf.Graph().as_default(), tf.Session() as session:
        if version == 2:
            op = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors)
        else:
            op = tf.raw_ops.SaveSlices(filename=prefix, tensor_names=names, shapes_and_slices=slices, data=tensors)
        session.run(op)


def restore(prefix, names, slices, dtypes):
    with tf.Graph().as_default(), tf.Session() as session:
        place = tf.placeholder(tf.string, [])
        op = tf.raw_ops.RestoreV2(prefix=place, tensor_names=names, shape_and_slices=slices, dtypes=dtypes)
        return session.run(op, {place: prefix})


def test_files_are_tensorflows(tmp_path):
    """The script by which TensorFlow wrote the golden checkpoints of both formats writes the same bytes here."""
    folder = tmp_path / "written"
    subprocess.run(
        [sys.executable, "-m", "stoker", "run", str(GOLDEN / "make.py"), str(folder)], cwd=ROOT, check=True, timeout=300
    )
    for expected in (GOLDEN / "written").iterdir():
        if expected.suffix != ".npz":
            assert (folder / expected.name).read_bytes() == expected.read_bytes(), expected.name


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_saved_is_restored(tmp_path, version):
    """Tensors come back in the order that is asked for, whole or in part, from both formats by one op."""
    prefix = str(tmp_path / "model")
    save(prefix, ["m", "n", "t"], ["", "", ""], [MATRIX, np.int64(7), TEXT([b"a\x00", b""])], version)
    n, m, t = restore(prefix, ["n", "m", "t"], ["", "4 3 1,2:2,1", ""], [tf.int64, tf.float32, tf.string])
    assert n == 7
    np.testing.assert_array_equal(m, MATRIX[1:3, 2:])
    assert t.tolist() == [b"a\x00", b""]


def test_parts_are_merged(tmp_path):
    """Checkpoints of parts become one, and their emptied folders go; what is in none of them is an error."""
    for part in range(2):
        prefix = str(tmp_path / f"temporary{part}" / "part")
        save(prefix, ["v", f"w{part}"], [f"8 3 {4 * part},4:-", ""], [MATRIX + part, np.float32(part)])
    prefixes = [str(tmp_path / f"temporary{part}" / "part") for part in range(2)]
    merged = str(tmp_path / "all")
    merge = tf.raw_ops.MergeV2Checkpoints
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="nowhere"):
            session.run(merge(checkpoint_prefixes=[*prefixes, "nowhere"], destination_prefix=merged))
        session.run(
            merge(checkpoint_prefixes=[*prefixes, "nowhere"], destination_prefix=merged, allow_missing_files=True)
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "all.data-00000-of-00002",
        "all.data-00001-of-00002",
        "all.index",
    ]
    whole, rows, scalar = restore(merged, ["v", "v", "w1"], ["", "8 3 3,2:-", ""], [tf.float32] * 3)
    np.testing.assert_array_equal(whole, np.concatenate([MATRIX, MATRIX + 1]))
    np.testing.assert_array_equal(rows, whole[3:5])
    assert scalar == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("names", "slices", "dtypes", "error", "message"),
    [
        (["x"], [""], [tf.float32], tf.errors.NotFoundError, "x.* not found in checkpoint"),
        (["m"], [""], [tf.float64], tf.errors.InvalidArgumentError, "m; expected dtype float64 .* dtype float32"),
        (["m"], ["4 4 0,1:-"], [tf.float32], tf.errors.InvalidArgumentError, r"\[4, 4\] .*: \[4, 3\]"),
        (["p"], ["4 3 0,2:-"], [tf.float32], tf.errors.InvalidArgumentError, "sufficient slices .* p "),
    ],
)
def test_what_cannot_be_restored(tmp_path, version, names, slices, dtypes, error, message):
    """Errors name the tensor, and what was expected and found."""
    prefix = str(tmp_path / "model")
    save(prefix, ["m", "p"], ["", "4 3 1,2:-"], [MATRIX, MATRIX[:2]], version)
    with pytest.raises(error, match=message):
        restore(prefix, names, slices, dtypes)


def test_a_checkpoint_that_is_not_there(tmp_path):
    """NotFoundError names the path."""
    with pytest.raises(tf.errors.NotFoundError, match="nothing"):
        restore(str(tmp_path / "nothing"), ["m"], [""], [tf.float32])
    with pytest.raises(tf.errors.NotFoundError, match="nothing"):
        save(str(tmp_path / "nothing" / "here" / "model"), ["m"], [""], [MATRIX])


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("junk", "Need least two elements"),
        ("4 x 0,1:-", "Non numerical dimension"),
        ("4 3 0:-", "a pair of numbers or '-' but got '0'"),
        ("4 3 0,0:-", "positive length"),
        ("4 3 -1,1:-", "non-negative start"),
        ("4 3 3,2:-", r"passes its shape \[4, 3\]"),
        ("4 3 0,1", r"of shape \[4, 3\]"),
    ],
)
def test_slices_that_mean_nothing(tmp_path, spelled, message):
    """A slice that cannot be read, or does not fit, is refused when it is used and when the graph shows it; no file appears."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        save(str(tmp_path / "model"), ["m"], [spelled], [MATRIX[:1]])
    assert not list(tmp_path.iterdir())
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.raw_ops.RestoreV2(prefix="p", tensor_names=["m"], shape_and_slices=[spelled], dtypes=[tf.float32])


def test_a_batch_that_does_not_fit(tmp_path):
    """As many names and slices as tensors, known when the graph is built or when it runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match="2 and 1"):
            tf.raw_ops.SaveV2(prefix="p", tensor_names=["a", "b"], shape_and_slices=["", ""], tensors=[MATRIX])
        names = tf.placeholder(tf.string)
        prefix = str(tmp_path / "model")
        op = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=names, tensors=[MATRIX, MATRIX])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Got 1 tensor names but 2 tensors"):
            session.run(op, {names: [""]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="duplicate key"):
            session.run(op, {names: ["", ""]})
    assert not list(tmp_path.iterdir())


def test_static_shapes_of_slices():
    """A slice tells its shape, a whole tensor does not; slices that are fed tell nothing."""
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.string)
        cut = tf.raw_ops.RestoreV2(
            prefix="p", tensor_names=["a", "b"], shape_and_slices=["", "4 3 0,2:-"], dtypes=[tf.float32] * 2
        )
        assert [each.shape.as_list() if each.shape.rank is not None else None for each in cut] == [None, [2, 3]]
        for each in tf.raw_ops.RestoreV2(prefix=fed, tensor_names=fed, shape_and_slices=fed, dtypes=[tf.float32] * 2):
            assert each.shape.rank is None
        part = tf.raw_ops.RestoreSlice(file_pattern="p", tensor_name="a", shape_and_slice="4 3 -:1,1", dt=tf.float32)
        assert part.shape == [4, 1]


def test_a_format_that_lacks_a_dtype(tmp_path):
    """The older format has no words for some dtypes."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="uint32"):
        save(str(tmp_path / "model"), ["m"], [""], [MATRIX.astype(np.uint32)], version=1)
    assert not list(tmp_path.iterdir())
