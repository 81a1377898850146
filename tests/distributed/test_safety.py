"""What a server refuses: malformed and oversized messages, plaintext where TLS was asked for, foreign addresses."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import grpc
import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.distributed import messages
from stoker._src.formats import protos
from stoker._src.formats import wire_tensors as wire
from tests.distributed.clusters import far

TLS = Path(__file__).parent / "tls"
BIG = np.zeros(1 << 20, np.uint8)


@pytest.fixture
def server():
    server = tf.train.Server.create_local_server()
    yield server
    server._stop()


def _call(server, method, request):
    with grpc.insecure_channel(server.target.removeprefix("grpc://")) as channel:
        return channel.unary_unary(method)(request, timeout=60)


@pytest.mark.parametrize("service", ["tensorflow.MasterService", "tensorflow.WorkerService"])
def test_malformed_messages_are_refused(server, service):
    """Bytes that are no message give INVALID_ARGUMENT, and the server goes on."""
    methods = {
        "tensorflow.MasterService": [
            "CreateSession",
            "ExtendSession",
            "RunStep",
            "RunCallable",
            "MakeCallable",
            "Reset",
        ],
        "tensorflow.WorkerService": ["CreateWorkerSession", "RegisterGraph", "RunGraph", "CleanupAll", "RecvTensor"],
    }[service]
    for method in methods:
        for request in (b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x05abc"):
            with pytest.raises(grpc.RpcError) as error:
                _call(server, f"/{service}/{method}", request)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT, (method, request)
    assert _call(server, "/tensorflow.WorkerService/GetStatus", b"")


def test_unknown_handles_are_aborted(server):
    """Sessions and graphs that the server does not know give ABORTED, from which training recovers."""
    for method, request in [
        ("MasterService/ExtendSession", protos.ExtendSessionRequest(session_handle="x")),
        ("MasterService/CloseSession", protos.CloseSessionRequest(session_handle="x")),
        ("WorkerService/RunGraph", protos.RunGraphRequest(session_handle="x", create_worker_session_called=True)),
        ("WorkerService/DeregisterGraph", protos.DeregisterGraphRequest(graph_handle="x")),
    ]:
        with pytest.raises(grpc.RpcError) as error:
            _call(server, f"/tensorflow.{method}", request.SerializeToString())
        assert error.value.code() == grpc.StatusCode.ABORTED, method
    with pytest.raises(grpc.RpcError) as error:
        _call(
            server,
            "/tensorflow.WorkerService/RecvTensor",
            protos.RecvTensorRequest(rendezvous_key="x").SerializeToString(),
        )
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_the_size_of_messages_can_be_limited():
    """With STOKER_MAX_MESSAGE_BYTES a server refuses larger messages and accepts smaller ones."""
    with mock.patch.dict(os.environ, STOKER_MAX_MESSAGE_BYTES="100000"):
        server = tf.train.Server.create_local_server()
    try:
        with far(), tf.Graph().as_default(), tf.Session(server.target) as session:
            x = tf.placeholder(tf.uint8, [None])
            y = tf.size(x)
            assert session.run(y, {x: BIG[:1000]}) == 1000
            with pytest.raises(tf.errors.ResourceExhaustedError):
                session.run(y, {x: BIG})
    finally:
        server._stop()


def test_tls():
    """A server with TLS serves clients that trust its certificate, and refuses plaintext."""
    names = {"STOKER_TLS_CERT": TLS / "cert.pem", "STOKER_TLS_KEY": TLS / "key.pem", "STOKER_TLS_CA": TLS / "cert.pem"}
    with mock.patch.dict(os.environ, {name: str(path) for name, path in names.items()}):
        server = tf.train.Server({"local": ["localhost:0"]}, protocol="grpc+tls")
        try:
            with far(), tf.Graph().as_default():
                one = tf.constant(1.0)
                with tf.Session(server.target) as session:
                    assert session.run(one) == 1
                plain = server.target.replace("grpc+tls://", "grpc://")
                with tf.Session(plain) as session, pytest.raises(tf.errors.UnavailableError):
                    session.run(one)
        finally:
            server._stop()
    with mock.patch.dict(os.environ), pytest.raises(tf.errors.InvalidArgumentError, match="STOKER_TLS_CERT"):
        os.environ.pop("STOKER_TLS_CERT", None)
        tf.train.Server({"local": ["localhost:0"]}, protocol="grpc+tls")


def test_a_server_binds_to_its_own_address(monkeypatch):
    """A server listens at the address of its task and at no other."""
    monkeypatch.setenv("STOKER_CONNECT_TIMEOUT_SECS", "0")
    server = tf.train.Server({"local": ["127.0.0.1:0"]})
    try:
        port = server.target.rsplit(":", 1)[1]
        with far(), tf.Graph().as_default():
            one = tf.constant(1.0)
            with tf.Session(f"grpc://127.0.0.1:{port}") as session:
                assert session.run(one) == 1
            with tf.Session(f"grpc://127.0.0.2:{port}") as session, pytest.raises(tf.errors.UnavailableError):
                session.run(one)
    finally:
        server._stop()


VALUES = [
    np.float32(3),
    np.arange(12, dtype=np.int64).reshape(3, 4),
    np.zeros((0, 2), np.float16),
    np.array([b"", b"a" * 300], object),
    np.array([[True, False]]),
    np.arange(20000, dtype=np.complex64),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value.dtype}")
def test_tensors_are_written_as_the_usual_messages(value):
    """What the writer writes is a TensorProto for the generic parser, and the reader reads what that writes."""
    value = np.asarray(value)
    data = b"".join(wire.tensor_chunks(value))
    message = protos.TensorProto.FromString(data)
    assert [dim.size for dim in message.tensor_shape.dim] == list(value.shape)
    np.testing.assert_array_equal(wire.read_tensor(data), value)
    np.testing.assert_array_equal(wire.read_tensor(message.SerializeToString()), value)
    padded = b"".join(wire.named_tensor_chunks(2, "name", value, 0))
    again = protos.SendTensorsRequest.FromString(padded).tensor[0]
    assert again.name == "name"
    np.testing.assert_array_equal(wire.read_tensor(again.tensor.SerializeToString()), value)


def test_streams_that_do_not_fit_their_shape():
    """The elements of a streamed value must be exactly those of its shape, and within the limit."""
    first, *chunks = messages.streamed("key", torch.arange(10.0))
    key, value = messages.read_streamed(first, iter(chunks), -1)
    assert key == "key"
    np.testing.assert_array_equal(value.numpy(), np.arange(10))
    for bad in ([], [chunks[0][:8]], [chunks[0] + b"x"], [b""]):
        with pytest.raises(InvalidArgumentError, match="do not fit"):
            messages.read_streamed(first, iter(bad), -1)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="40 bytes"):
        messages.read_streamed(first, iter(chunks), 39)
