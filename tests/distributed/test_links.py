"""Links: connections between stoker's tasks besides gRPC. What they carry, when they are used, and how they end."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.distributed import links
from stoker._src.formats import link_frames
from stoker._src.runtime.trace import Timeline
from tests.distributed.clusters import servers

TLS = Path(__file__).parent / "tls"
PS = "/job:ps/replica:0/task:0"


def _link(started):
    """The link of the worker to the parameter server."""
    return started["worker", 0]._service.peers.connect(PS)._link


def _doubled():
    """A graph whose variable is on the parameter server and whose product is on the worker."""
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0))
    with tf.device("/job:worker/task:0"):
        product = x * v
    with tf.device("/job:ps/task:0"):
        total = v.assign_add(tf.reduce_sum(product))
    return x, v, product, total


@pytest.fixture
def started():
    with servers(ps=1, worker=1) as found:
        yield found


@pytest.mark.parametrize("offered", ["1", "0"])
def test_steps_are_the_same_with_and_without_links(offered):
    """A step goes over a link between stoker's tasks, or over gRPC with STOKER_LINKS=0, with the same results."""
    with mock.patch.dict(os.environ, STOKER_LINKS=offered), servers(ps=1, worker=1) as started:
        with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
            x, v, product, total = _doubled()
            session.run(v.initializer)
            assert session.run([product, total], {x: [1.0, 2.0]})[1] == 3 + 9
            np.testing.assert_array_equal(session.run(product, {x: [1.0, 2.0]}), [12.0, 24.0])
        assert (_link(started) is not None) == (offered == "1")


def test_large_and_small_values_of_all_kinds(started):
    """Values of every size and dtype arrive as they were sent."""
    values = [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([[True], [False]]),
        np.array([b"", b"a" * 70000, "é".encode()], object),
        np.array(2.5, ml_dtypes.bfloat16),
        np.zeros((0, 3), np.float16),
        np.arange(300000, dtype=np.complex64),
        np.arange(2_000_000, dtype=np.float32),
        np.arange(70000, dtype=np.int64),
    ]
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        fed = [tf.placeholder(value.dtype if value.dtype != object else tf.string, value.shape) for value in values]
        with tf.device("/job:ps/task:0"):
            there = [tf.identity(each) for each in fed]
        with tf.device("/job:worker/task:0"):
            here = [tf.identity(each) for each in there]
        with tf.device("/job:ps/task:0"):
            back = [tf.identity(each) for each in here]
        for value, found in zip(values, session.run(back, dict(zip(fed, values)))):
            assert found.shape == value.shape
            np.testing.assert_array_equal(found, value)
    assert _link(started) is not None


def test_a_failed_part_ends_the_step(started):
    """An error of the parameter server's part is raised by the session, with the op of its graph."""
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        x, v, product, _ = _doubled()
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized") as error:
            session.run(product, {x: [1.0]})
        assert error.value.op is v.op or "v" in error.value.op.name
        session.run(v.initializer)
        assert session.run(product, {x: [1.0]}) == [3.0]


def test_a_cut_link_fails_the_step_and_the_next_one_opens_another(started):
    """A link that ends fails the steps under way with UnavailableError; the session goes on with another link."""
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        x, v, product, _ = _doubled()
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
            waited = queue.dequeue() + v
        with tf.device("/job:worker/task:0"):
            waited = waited + 1.0
        session.run(v.initializer)
        session.run(product, {x: [1.0]})
        link = _link(started)
        run = link.run

        def cut(*arguments, **options):
            call = run(*arguments, **options)
            link._connection.shutdown(socket.SHUT_RDWR)
            return call

        with (
            mock.patch.object(link, "run", cut),
            pytest.raises(tf.errors.UnavailableError, match="Lost the connection"),
        ):
            session.run(waited)
        assert session.run(product, {x: [1.0]}) == [3.0]
        assert _link(started) is not link


def test_values_between_two_parameter_servers():
    """They go over a link of the sender. If that ends before they have arrived, the step fails, and the next one opens another."""
    with servers(ps=2, worker=1) as started, tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            x = tf.placeholder(tf.float32, [])
            doubled = x * 2.0
        with tf.device("/job:ps/task:0"):
            shifted = doubled + 1.0
        with tf.Session(started["worker", 0].target) as session:
            assert session.run(shifted, {x: 1.0}) == 3.0
            sender = started["ps", 1]._service.peers.connect(PS)
            link = sender._link
            assert link is not None

            def cut(chunks):
                link._connection.shutdown(socket.SHUT_RDWR)

            with mock.patch.object(link, "_sent", cut), pytest.raises(tf.errors.UnavailableError, match="Lost"):
                session.run(shifted, {x: 1.0})
            assert session.run(shifted, {x: 2.0}) == 5.0
            assert sender._link is not link


def test_the_deadline_of_a_step_holds_over_a_link(started):
    """A step that waits at the parameter server ends with DeadlineExceededError after timeout_in_ms."""
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        with tf.device("/job:ps/task:0"):
            waited = tf.FIFOQueue(1, [tf.float32], shapes=[[]]).dequeue()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(waited, options=tf.RunOptions(timeout_in_ms=100))


def test_a_trace_has_the_ops_and_the_waits_of_all_tasks(started):
    """FULL_TRACE gives one entry for each task, with its ops and the values it waited for."""
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        x, v, _, total = _doubled()
        session.run(v.initializer)
        metadata = tf.RunMetadata()
        session.run(total, {x: [1.0]}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    found = {each.device: [node.node_name for node in each.node_stats] for each in metadata.step_stats.dev_stats}
    assert sorted(found) == [f"{PS}/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"]
    assert any("mul" in name for name in found["/job:worker/replica:0/task:0/device:CPU:0"])
    assert all(names.count("RecvTensor") == 1 for names in found.values())
    rows = {
        event["tid"]
        for event in json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())["traceEvents"]
        if "tid" in event
    }
    assert rows == {0, 1}


def test_values_larger_than_the_limit_are_refused():
    """STOKER_MAX_MESSAGE_BYTES also limits the values that arrive over a link."""
    with mock.patch.dict(os.environ, STOKER_MAX_MESSAGE_BYTES="100000"), servers(ps=1, worker=1) as started:
        with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
            x = tf.placeholder(tf.float32, [None])
            with tf.device("/job:worker/task:0"):
                y = x * 2.0
            with tf.device("/job:ps/task:0"):
                fed, pushed = tf.size(tf.concat([x, x], 0)), tf.size(tf.concat([y, y], 0))
            for fetch in (fed, pushed):
                assert session.run(fetch, {x: np.ones(10)}) == 20
                with pytest.raises(tf.errors.ResourceExhaustedError, match="larger than max"):
                    session.run(fetch, {x: np.ones(30000)})
        assert _link(started) is not None


def test_strangers_and_malformed_frames_end_their_connection_only(started):
    """A connection without the token is closed, so is one that sends what is not a frame; the server goes on."""
    with tf.Graph().as_default(), tf.Session(started["worker", 0].target) as session:
        x, v, product, _ = _doubled()
        session.run(v.initializer)
        session.run(product, {x: [1.0]})
        listener = started["ps", 0]._service._listener
        assert listener._socket.getsockname()[0] == "127.0.0.1"
        with socket.create_connection(("127.0.0.1", listener.port), timeout=60) as stranger:
            stranger.sendall(b"x" * 200)
            with _closed():
                assert stranger.recv(1) == b""
        with socket.create_connection(("127.0.0.1", listener.port), timeout=60) as peer:
            peer.sendall(links._GREETING + listener.token)
            assert peer.recv(1) == b"\x01"
            peer.sendall(link_frames.PREFIX.pack(9, 1, 0, 0))
            with _closed():
                assert peer.recv(1) == b""
        assert session.run(product, {x: [1.0]}) == [3.0]


def _closed():
    """A closed connection ends, or is reset if it had unread bytes."""
    return suppress(ConnectionError)


def test_a_server_with_tls_offers_no_links():
    """Links are not encrypted, so tasks with TLS use gRPC alone."""
    names = {"STOKER_TLS_CERT": TLS / "cert.pem", "STOKER_TLS_KEY": TLS / "key.pem", "STOKER_TLS_CA": TLS / "cert.pem"}
    with mock.patch.dict(os.environ, {name: str(path) for name, path in names.items()}):
        server = tf.train.Server({"local": ["localhost:0"]}, protocol="grpc+tls")
        try:
            with pytest.raises(tf.errors.UnimplementedError, match="no links"):
                server._service._peer_link(b"", mock.Mock())
        finally:
            server._stop()


@pytest.mark.parametrize("at", range(0, 120, 7))
def test_cut_frames(at):
    """A frame that ends early is not a frame."""
    values = [link_frames.value_of("k", np.arange(5.0)), link_frames.value_of("t", np.array([b"a"], object))]
    data = b"".join(link_frames.encode(link_frames.VALUES, 5, b"", values))
    for cut in (data[:at], data):
        left = bytearray(cut)

        def receive(block, *_, left=left):
            count = min(len(block), len(left), 11)
            block[:count], left[:count] = left[:count], b""
            return count

        reader = links.FrameReader(SimpleNamespace(recv_into=receive), -1)
        if cut is data:
            kind, step, _, found, refused = reader.next()
            assert (kind, step, refused) == (link_frames.VALUES, 5, None)
            np.testing.assert_array_equal(found["k"].numpy(), np.arange(5.0))
            assert found["t"].tolist() == [b"a"]
        else:
            with pytest.raises(ConnectionError):
                reader.next()
