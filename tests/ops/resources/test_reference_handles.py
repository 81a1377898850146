"""Queues, readers and stacks in the form of the oldest graphs: handles are references of strings."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def test_queue_of_references():
    """Every op of a queue works on a handle that is a reference, also after a GraphDef round trip."""
    with tf.Graph().as_default() as graph:
        queue = tf.raw_ops.FIFOQueue(component_types=[tf.int32], shapes=[[]], name="queue")
        tf.raw_ops.QueueEnqueueMany(handle=queue, components=[[1, 2, 3, 4]], name="put")
        (one,) = tf.raw_ops.QueueDequeue(handle=queue, component_types=[tf.int32], name="take")
        (many,) = tf.raw_ops.QueueDequeueMany(handle=queue, n=2, component_types=[tf.int32], name="many")
        tf.raw_ops.QueueSize(handle=queue, name="size")
        tf.raw_ops.QueueClose(handle=queue, name="close")
        tf.raw_ops.QueueIsClosed(handle=queue, name="closed")
        assert queue.dtype == tf.as_dtype("string_ref") and one.shape == () and many.shape == (2,)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph.as_graph_def(), name="")
        session.run("put")
        assert session.run(["take:0", "size:0"])[0] == 1
        np.testing.assert_array_equal(session.run("many:0"), [2, 3])
        session.run("close")
        assert session.run("closed:0") and session.run("size:0") == 1
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run("many:0")


@pytest.mark.parametrize("kind", ["PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"])
def test_other_queues(kind):
    """Each kind of queue has its form with references."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = getattr(tf.raw_ops, kind)(component_types=[tf.string], shapes=[[]])
        priority = [np.int64(1)] if kind == "PriorityQueue" else []
        types = [tf.int64, tf.string] if priority else [tf.string]
        session.run(tf.raw_ops.QueueEnqueue(handle=queue, components=[*priority, b"x"]))
        taken = tf.raw_ops.QueueDequeue(handle=queue, component_types=types)
        assert taken[-1].shape == ()
        assert session.run(taken)[-1] == b"x"


def test_readers_of_references(tmp_path):
    """Readers read from such queues; the fixed length reader of this form takes no encoding."""
    path = tmp_path / "records"
    path.write_bytes(b"Haabb")
    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.raw_ops.FIFOQueue(component_types=[tf.string])
        session.run(tf.raw_ops.QueueEnqueueMany(handle=names, components=[[str(path), "second"]]))
        fixed = tf.raw_ops.FixedLengthRecordReader(record_bytes=2, header_bytes=1)
        read = tf.raw_ops.ReaderRead(reader_handle=fixed, queue_handle=names)
        assert [session.run(read.value) for _ in range(2)] == [b"aa", b"bb"]
        produced = tf.raw_ops.ReaderNumRecordsProduced(reader_handle=fixed)
        assert session.run(produced) == 2
        same = tf.raw_ops.IdentityReader()
        assert session.run(tf.raw_ops.ReaderRead(reader_handle=same, queue_handle=names).key) == b"second"
        with pytest.raises(TypeError):
            tf.raw_ops.FixedLengthRecordReader(record_bytes=2, encoding="ZLIB")


def test_stack_of_references():
    """What is pushed last is popped first; an empty stack says so."""
    with tf.Graph().as_default(), tf.Session() as session:
        stack = tf.raw_ops.Stack(elem_type=tf.float32)
        pushed = tf.raw_ops.StackPush(handle=stack, elem=3.0)
        with tf.control_dependencies([pushed]):
            popped = tf.raw_ops.StackPop(handle=stack, elem_type=tf.float32)
        assert session.run(popped) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
            session.run(tf.raw_ops.StackPop(handle=stack, elem_type=tf.float32))
