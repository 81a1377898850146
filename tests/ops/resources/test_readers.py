"""Readers of the 1.x input pipeline."""

import threading

import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context


@pytest.fixture
def files(tmp_path):
    """A folder of files, and a function that gives a closed queue of their names."""
    (tmp_path / "one.txt").write_bytes(b"head\na\r\nb\n\nlast")
    (tmp_path / "two.txt").write_bytes(b"head\nx\n")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "fixed.bin").write_bytes(b"HHaaabbbcccFF")
    for name, options in (("plain", None), ("packed", "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / name), options) as writer:
            for i in range(3):
                writer.write(b"rec%d" % i)

    def queue(session, *names):
        made = tf.FIFOQueue(10, tf.string, shapes=[()])
        session.run(made.enqueue_many([[str(tmp_path / name) for name in names]]))
        session.run(made.close())
        return made

    return tmp_path, queue


def drain(session, reader, queue):
    """All (key, value) until the queue has no more."""
    read, found = reader.read(queue), []
    while True:
        try:
            key, value = session.run(read)
        except tf.errors.OutOfRangeError:
            return found
        found.append((key.rsplit(b"/", 1)[1], value))


def test_lines_of_text(files):
    """Lines are numbered from one; line ends and a carriage return before them go; empty files give nothing."""
    with tf.Session() as session:
        reader = tf.TextLineReader()
        found = drain(session, reader, files[1](session, "one.txt", "empty.txt", "two.txt"))
        assert [value for _, value in found] == [b"head", b"a", b"b", b"", b"last", b"head", b"x"]
        assert [key for key, _ in found][-3:] == [b"one.txt:5", b"two.txt:1", b"two.txt:2"]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [7, 3]


def test_header_lines_are_skipped(files):
    """In every file."""
    with tf.Session() as session:
        found = drain(session, tf.TextLineReader(skip_header_lines=1), files[1](session, "one.txt", "two.txt"))
        assert found[0] == (b"one.txt:2", b"a")
        assert found[-1] == (b"two.txt:2", b"x")


def test_whole_files_and_names(files):
    """WholeFileReader gives contents, IdentityReader the name itself."""
    with tf.Session() as session:
        assert drain(session, tf.WholeFileReader(), files[1](session, "two.txt")) == [(b"two.txt", b"head\nx\n")]
        found = drain(session, tf.IdentityReader(), files[1](session, "nothing"))
        assert found[0][1].endswith(b"/nothing")


@pytest.mark.parametrize(("hop", "expected"), [(None, [b"aaa", b"bbb", b"ccc"]), (2, [b"aaa", b"abb", b"bbc", b"ccc"])])
def test_records_of_fixed_length(files, hop, expected):
    """Headers and footers are left out; records may overlap."""
    with tf.Session() as session:
        found = drain(session, tf.FixedLengthRecordReader(3, 2, 2, hop), files[1](session, "fixed.bin"))
        assert [value for _, value in found] == expected
        assert found[1][0] == b"fixed.bin:1"


def test_sizes_of_fixed_records_are_checked(files):
    """A record has at least one byte."""
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="record_bytes must be > 0"):
        session.run(tf.FixedLengthRecordReader(0).read(files[1](session, "fixed.bin")))


@pytest.mark.parametrize(("name", "options"), [("plain", None), ("packed", tf.io.TFRecordCompressionType.GZIP)])
def test_tfrecords(files, name, options):
    """Keys hold the offset in the uncompressed stream."""
    with tf.Session() as session:
        reader = tf.TFRecordReader(options=None if options is None else tf.io.TFRecordOptions(options))
        found = drain(session, reader, files[1](session, name))
        assert found == [(b"%s:%d" % (name.encode(), i * 20), b"rec%d" % i) for i in range(3)]


def test_many_records_at_once_come_from_one_file(files):
    """read_up_to gives fewer at the end of a file, and never none."""
    with tf.Session() as session:
        read = tf.TFRecordReader().read_up_to(files[1](session, "plain", "plain"), 2)
        assert [session.run(read)[1].tolist() for _ in range(4)] == [[b"rec0", b"rec1"], [b"rec2"]] * 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(read)


def test_a_missing_file_is_passed_over(files):
    """The read fails, the next goes on with the next file."""
    with tf.Session() as session:
        read = tf.TextLineReader().read(files[1](session, "none", "two.txt"))
        with pytest.raises(tf.errors.NotFoundError):
            session.run(read)
        assert session.run(read)[1] == b"head"


def test_a_damaged_file_fails_at_every_read(files):
    """After the records before the damage; nothing is skipped silently."""
    folder, queue = files
    (folder / "bad").write_bytes((folder / "plain").read_bytes()[:-3])
    with tf.Session() as session:
        read = tf.TFRecordReader().read(queue(session, "bad", "plain"))
        assert [session.run(read)[1] for _ in range(2)] == [b"rec0", b"rec1"]
        for _ in range(2):
            with pytest.raises(tf.errors.DataLossError, match="truncated"):
                session.run(read)


def test_state_can_be_saved_where_files_are_whole(files):
    """serialize_state, restore_state and reset of the readers that support them."""
    with tf.Session() as session:
        reader = tf.IdentityReader()
        assert reader.supports_serialize
        read = reader.read(files[1](session, "a", "b", "c"))
        session.run(read)
        state = session.run(reader.serialize_state())
        session.run(read)
        session.run(reader.restore_state(state))
        assert session.run(reader.num_records_produced()) == 1
        session.run(reader.reset())
        assert session.run(reader.num_work_units_completed()) == 0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state"):
            session.run(reader.restore_state(b"junk\xff"))
        lines = tf.TextLineReader()
        assert not lines.supports_serialize
        with pytest.raises(tf.errors.UnimplementedError):
            session.run(lines.serialize_state())


def test_a_reader_waits_for_names(files):
    """A read blocks until another thread puts a name into the queue."""
    folder, _ = files
    queue = tf.FIFOQueue(1, tf.string, shapes=[()])
    read = tf.WholeFileReader().read(queue)
    enqueue = queue.enqueue(str(folder / "two.txt"))
    found = []
    with tf.Session() as session:
        thread = threading.Thread(target=lambda: found.append(session.run(read)))
        thread.start()
        session.run(enqueue)
        thread.join()
    assert found[0].value == b"head\nx\n"


def test_queues_must_hold_names(files):
    """A queue of numbers is refused; eager mode has no readers."""
    queue = tf.FIFOQueue(1, tf.int32, shapes=[()])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="single string component"):
        session.run(tf.WholeFileReader().read(queue))
    with context.enter_eager(), pytest.raises(RuntimeError, match="eager"):
        tf.WholeFileReader()
