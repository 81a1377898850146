"""The fingerprint of a SavedModel, in `fingerprint.pb`: hashes of its graph, signatures, objects and checkpoint, to tell models apart.

Models that were saved by the same program have the same hashes, but for those of the checkpoint, of all bytes, and the unique number. The hash of
the checkpoint is TensorFlow's; the others are 64-bit fingerprints of messages whose functions are numbered from 0 on.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

from google.protobuf import message

from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.hashing import fingerprint64_many
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import FingerprintDef, GraphDef, SavedObjectGraph
from stoker._src.saved_model import files

_FILENAME = "fingerprint.pb"
_PRODUCER = 4  # the version of this message, as TensorFlow 2.21 writes it
_HASHES = (
    "saved_model_checksum",
    "graph_def_program_hash",
    "signature_def_hash",
    "saved_object_graph_hash",
    "checkpoint_hash",
)


@export("saved_model.experimental.Fingerprint")
class Fingerprint:
    """The fingerprint of a SavedModel, as `read_fingerprint` returns it.

    Attributes:
        saved_model_checksum: of the file `saved_model.pb`.
        graph_def_program_hash: of the graph and its functions.
        signature_def_hash: of the signatures.
        saved_object_graph_hash: of the objects.
        checkpoint_hash: of the index of the checkpoint.
        version: of the fingerprint.
    """

    def __init__(
        self,
        saved_model_checksum: int | None = None,
        graph_def_program_hash: int | None = None,
        signature_def_hash: int | None = None,
        saved_object_graph_hash: int | None = None,
        checkpoint_hash: int | None = None,
        version: Any = None,
    ) -> None:
        self.saved_model_checksum = saved_model_checksum
        self.graph_def_program_hash = graph_def_program_hash
        self.signature_def_hash = signature_def_hash
        self.saved_object_graph_hash = saved_object_graph_hash
        self.checkpoint_hash = checkpoint_hash
        self.version = version

    @classmethod
    def from_proto(cls, proto: Any) -> Fingerprint:
        """Returns the fingerprint of a FingerprintDef or of its bytes.

        Raises:
            ValueError: The bytes are not a FingerprintDef.
        """
        if isinstance(proto, bytes):
            try:
                proto = FingerprintDef.FromString(proto)
            except message.DecodeError as error:
                raise ValueError(f"The bytes are not a FingerprintDef: {error}.") from error
        return cls(**{name: getattr(proto, name) for name in _HASHES}, version=proto.version)

    def __eq__(self, other: object) -> bool:
        """Whether all hashes but that of the whole file are equal."""
        if not isinstance(other, Fingerprint):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int | None, ...]:
        return tuple(getattr(self, name) for name in _HASHES[1:])

    def __str__(self) -> str:
        return "\n".join(["SavedModel Fingerprint", *(f"  {name}: {getattr(self, name)}" for name in _HASHES)])

    def __repr__(self) -> str:
        return f"Fingerprint({', '.join(str(getattr(self, name)) for name in _HASHES)})"

    def singleprint(self) -> str:
        """Returns the hashes but that of the whole file, in one string.

        Raises:
            ValueError: A hash is missing.
        """
        if None in self._key():
            raise ValueError(f"A single print needs all hashes. Found {self!r}.")
        return "/".join(map(str, self._key()))


@export("saved_model.experimental.read_fingerprint")
def read_fingerprint(export_dir: Any) -> Fingerprint:
    """Reads the fingerprint of a SavedModel.

    Args:
        export_dir: The directory of the SavedModel.

    Raises:
        FileNotFoundError: The model has no fingerprint, as those that TensorFlow before 2.12 wrote and those of 1.x builders.
        RuntimeError: The file is damaged.
    """
    directory = path_text(export_dir)
    path = os.path.join(directory, _FILENAME)
    if not gfile.exists(path):
        raise FileNotFoundError(
            f"SavedModel Fingerprint Error: Could not find fingerprint in directory: {directory}\nNOT_FOUND: {path} not found"
        )
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    try:
        return Fingerprint.from_proto(data)
    except ValueError as error:
        raise RuntimeError(
            f"SavedModel Fingerprint Error: Could not read fingerprint from {_FILENAME} file in directory: {directory}\n{error}"
        ) from error


def write_fingerprint(directory: str, model: Any) -> None:
    """Writes the fingerprint of a model beside its other files.

    Args:
        directory: The directory of the SavedModel, with its checkpoint.
        model: The SavedModel message.
    """
    found = FingerprintDef(uuid=str(uuid.uuid4().int))
    found.version.producer = _PRODUCER
    meta = model.meta_graphs[0]
    numbers = {
        function.signature.name: f"{re.sub(r'_[0-9]+$', '', function.signature.name)}_{number}"
        for number, function in enumerate(meta.graph_def.library.function)
    }
    signatures = [signature for _, signature in sorted(meta.signature_def.items())]
    index = f"{files.variables_path(directory)}.index"
    if gfile.exists(index):
        with gfile.GFile(index, "rb") as file:
            found.checkpoint_hash = _hash(file.read())
    found.saved_model_checksum = _hash(_bytes(model))
    found.graph_def_program_hash = _hash(_bytes(_program(meta.graph_def, numbers)))
    found.signature_def_hash = _hash(b"".join(map(_bytes, signatures)))
    found.saved_object_graph_hash = _hash(_bytes(_objects(meta.object_graph_def, numbers)))
    write_message(os.path.join(directory, _FILENAME), found, as_text=False)


def _bytes(proto: Any) -> bytes:
    return proto.SerializeToString(deterministic=True)


def _hash(data: bytes) -> int:
    return int(fingerprint64_many([data])[0])


def _program(graph_def: Any, numbers: dict[str, str]) -> Any:
    """Returns a graph whose functions have other names. What a process has numbered before does not change it."""
    program = GraphDef()
    program.CopyFrom(graph_def)
    for function in program.library.function:
        function.signature.name = numbers[function.signature.name]
    for node in _nodes(program):
        node.op = numbers.get(node.op, node.op)
        for value in node.attr.values():
            kind = value.WhichOneof("value")
            for function in (value.func,) if kind == "func" else value.list.func if kind == "list" else ():
                function.name = numbers.get(function.name, function.name)
    return program


def _nodes(graph_def: Any) -> Iterator[Any]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _objects(object_graph: Any, numbers: dict[str, str]) -> Any:
    """Returns an object graph whose functions have other names."""
    objects = SavedObjectGraph()
    objects.nodes.extend(object_graph.nodes)
    for node in objects.nodes:
        kind = node.WhichOneof("kind")
        if kind == "function":
            names = [numbers.get(name, name) for name in node.function.concrete_functions]
            del node.function.concrete_functions[:]
            node.function.concrete_functions.extend(names)
        elif kind == "bare_concrete_function":
            name = node.bare_concrete_function.concrete_function_name
            node.bare_concrete_function.concrete_function_name = numbers.get(name, name)
    for name, function in object_graph.concrete_functions.items():
        objects.concrete_functions[numbers.get(name, name)].CopyFrom(function)
    return objects
