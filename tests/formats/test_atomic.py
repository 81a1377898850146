"""Files appear whole or not at all."""

import os

import pytest

from stoker._src.formats import atomic


def test_contents_appear_under_the_name(tmp_path):
    """After the block the file holds what was written and nothing else is left in the directory."""
    with atomic.replacing(tmp_path / "f") as file:
        file.write(b"one")
        assert not (tmp_path / "f").exists()
    assert (tmp_path / "f").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["f"]


def test_an_exception_leaves_the_old_file(tmp_path):
    """A block that raises changes nothing and leaves no temporary file."""
    atomic.write(tmp_path / "f", b"old")
    with pytest.raises(KeyboardInterrupt), atomic.replacing(tmp_path / "f") as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_step_leaves_the_old_file(tmp_path, monkeypatch, step):
    """A disk that fails while syncing or renaming leaves the old contents and no temporary file."""
    atomic.write(tmp_path / "f", b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        atomic.write(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_bytes_reach_the_disk_before_the_name_and_the_directory_after(tmp_path, monkeypatch):
    """The order is: contents synced, renamed, directory synced."""
    events = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor):
        events.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        real_fsync(descriptor)

    def replace(*names):
        events.append("rename")
        real_replace(*names)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    atomic.write(tmp_path / "f", b"x")
    assert events == ["file", "rename", "directory"]


def test_relative_and_bytes_paths(tmp_path, monkeypatch):
    """A bare name is taken in the current directory, and names may be bytes."""
    monkeypatch.chdir(tmp_path)
    atomic.write("f", b"1")
    atomic.write(b"g", b"2")
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


def test_permissions_follow_the_umask(tmp_path):
    """The file gets the rights open() would give it, not those of a private temporary file."""
    atomic.write(tmp_path / "f", b"x")
    (tmp_path / "g").write_bytes(b"x")
    assert os.stat(tmp_path / "f").st_mode == os.stat(tmp_path / "g").st_mode


def test_longest_names_work(tmp_path):
    """A name as long as the file system allows is replaced too."""
    name = "n" * 255
    atomic.write(tmp_path / name, b"x")
    assert os.listdir(tmp_path) == [name]


def test_missing_directory_is_an_error(tmp_path):
    """A directory that is not there is reported, not made."""
    with pytest.raises(FileNotFoundError):
        atomic.write(tmp_path / "no" / "f", b"x")


def test_files_of_one_commit_appear_in_order_after_all_are_synced(tmp_path, monkeypatch):
    """All files of the block are synced before the first gets its name, and the directory is synced once, at the end."""
    events = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor):
        events.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        real_fsync(descriptor)

    def replace(source, target):
        events.append(os.path.basename(target))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with atomic.one_commit():
        atomic.write(tmp_path / "data", b"1")
        atomic.write(tmp_path / "state", b"2")
        assert not (tmp_path / "data").exists()
    assert events == ["file", "file", "data", "state", "directory"]


def test_one_commit_that_raises_leaves_nothing(tmp_path):
    """If the block fails, the files that it has finished do not appear."""
    with pytest.raises(ZeroDivisionError), atomic.one_commit():
        atomic.write(tmp_path / "data", b"1")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    atomic.write(tmp_path / "later", b"1")
    assert os.listdir(tmp_path) == ["later"]
