"""Models to and from `.tflite` bytes, through the schema that LiteRT ships.

The flatbuffers builder writes everything except the buffers of weights, which are appended: they are copied from their arrays, which may be transposed
views, straight into the result. Writing a model therefore needs memory for only one more copy of its weights.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterator
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import (
    OPERATOR_CODES,
    OPERATOR_NAMES,
    TYPE_CODES,
    TYPE_NAMES,
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
    numpy_dtype,
    string_buffer,
    strings_of,
)

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
MAX_BYTES = 2**31 - 1
ALIGNMENT = 16
# Bytes of the number before a vector, and the slot of a buffer's data in its table.
_LENGTH, _DATA_SLOT = 4, 4
# Arrays that are not contiguous are read in pieces of this many elements.
_BLOCK = 1 << 20
# Codes from here on do not fit into the byte of the older field.
_PLACEHOLDER_CODE = OPERATOR_CODES["PLACEHOLDER_FOR_GREATER_OP_CODES"]
# The fields of options that refer to subgraphs, in the order of `Operator.subgraphs`.
SUBGRAPH_FIELDS = {
    "IF": ("thenSubgraphIndex", "elseSubgraphIndex"),
    "WHILE": ("condSubgraphIndex", "bodySubgraphIndex"),
    "CALL_ONCE": ("initSubgraphIndex",),
    "CALL": ("subgraph",),
}


# --------------------------------------------------------------------------------------------------------------------- writing


def write_model(model: Model) -> bytes:
    """The bytes of a `.tflite` file. Equal buffers are stored once.

    Raises:
      ValueError: The model would exceed 2 GB, the limit of a flatbuffer.
    """
    return _Writer(model).write()


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.buffers: list[np.ndarray] = [np.empty(0, np.uint8)]  # buffer 0 means "no data"
        self._by_content: dict[Any, int] = {}
        self._codes: dict[tuple[str, str, int], int] = {}

    def write(self) -> bytes:
        subgraphs = [self._subgraph(each) for each in self.model.subgraphs]
        signatures = [self._signature(each) for each in self.model.signatures]
        metadata = [
            schema.MetadataT(name=name, buffer=self._buffer(np.frombuffer(value, np.uint8)))
            for name, value in self.model.metadata.items()
        ]
        total = sum(each.nbytes for each in self.buffers)
        if total > MAX_BYTES:
            raise ValueError(
                f"The model's constants take {total:,} bytes, and a TFLite file ends at {MAX_BYTES:,}: its offsets have 32 bits. "
                "Quantize the weights (float16 halves them, int8 quarters them), or split the model."
            )
        structure = self._structure(subgraphs, signatures, metadata)
        starts, size = [], len(structure)
        for each in self.buffers:
            # The number of bytes comes first; the bytes themselves are aligned.
            start = size + (-(size + _LENGTH) % ALIGNMENT)
            starts.append(start)
            size = start + _LENGTH + each.nbytes if each.nbytes else size
        if size > MAX_BYTES:
            raise ValueError(
                f"The model takes {size:,} bytes ({total:,} of them constants), and a TFLite file ends at {MAX_BYTES:,}: its offsets "
                "have 32 bits. Quantize the weights, or split the model."
            )
        return self._filled(structure, starts, size)

    def _structure(self, subgraphs: list[Any], signatures: list[Any], metadata: list[Any]) -> bytearray:
        """The flatbuffer without the contents of the buffers: each one refers to an empty vector."""
        builder = flatbuffers.Builder(4096)
        codes = [_operator_code(*key).Pack(builder) for key in self._codes]
        builder.StartVector(1, 0, 1)
        nothing = builder.EndVector()
        fields = {
            "Buffers": _offsets(builder, [_packed_buffer(builder, each, nothing) for each in self.buffers]),
            "OperatorCodes": _offsets(builder, codes),
            "Subgraphs": _offsets(builder, [each.Pack(builder) for each in subgraphs]),
        }
        if self.model.description:
            fields["Description"] = builder.CreateString(self.model.description)
        if metadata:
            fields["Metadata"] = _offsets(builder, [each.Pack(builder) for each in metadata])
        if signatures:
            fields["SignatureDefs"] = _offsets(builder, [each.Pack(builder) for each in signatures])
        schema.ModelStart(builder)
        schema.ModelAddVersion(builder, SCHEMA_VERSION)
        for name, offset in fields.items():
            getattr(schema, f"ModelAdd{name}")(builder, offset)
        builder.Finish(schema.ModelEnd(builder), IDENTIFIER)
        return builder.Output()

    def _filled(self, structure: bytearray, starts: list[int], size: int) -> bytes:
        """Appends the buffers to the structure and fills in the references to them."""
        file = io.BytesIO()
        file.seek(size - 1)
        file.write(b"\0")
        with file.getbuffer() as view:
            view[: len(structure)] = structure
            model: Any = schema.Model.GetRootAs(structure)
            for number, (data, start) in enumerate(zip(self.buffers, starts, strict=True)):
                if not data.nbytes:
                    continue
                table = model.Buffers(number)._tab
                reference = table.Pos + table.Offset(_DATA_SLOT)
                struct.pack_into("<I", view, reference, start - reference)
                struct.pack_into("<I", view, start, data.nbytes)
                place = np.frombuffer(view, data.dtype, data.size, start + _LENGTH).reshape(data.shape)
                np.copyto(place, data)
                del place  # it holds the view
        # The bytes of the buffer themselves, not a copy.
        return file.getvalue()

    def _buffer(self, data: np.ndarray) -> int:
        """The index of the buffer with these bytes."""
        if data.nbytes <= _BLOCK:
            data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        digest = hashlib.blake2b(str(data.nbytes).encode(), digest_size=32)
        for block in _blocks(data):
            digest.update(block)
        # A digest identifies the bytes, and keeping it is cheap even for gigabytes of weights.
        key = digest.digest()
        index = self._by_content.get(key)
        if index is None:
            index = self._by_content[key] = len(self.buffers)
            self.buffers.append(data)
        return index

    def _tensor(self, tensor: Tensor) -> Any:
        written: Any = schema.TensorT(name=tensor.name, type=TYPE_CODES[tensor.type])
        if tensor.shape is not None:
            written.hasRank = True
            written.shape = np.array(tensor.static_shape, np.int32)
            if any(size < 0 for size in tensor.shape):
                written.shapeSignature = np.array(tensor.shape, np.int32)
        if tensor.data is not None:
            data = np.frombuffer(string_buffer(tensor.data), np.uint8) if tensor.data.dtype == object else tensor.data
            # An empty constant needs its own buffer, because buffer 0 would mark it as a computed value.
            written.buffer = self._buffer(data) if data.nbytes else self._empty_buffer()
        written.isVariable = tensor.is_variable
        written.sparsity = tensor.sparsity
        written.variantTensors = tensor.variant_tensors
        if tensor.quantization is not None:
            written.quantization = _quantization_table(tensor.quantization)
        return written

    def _empty_buffer(self) -> int:
        self.buffers.append(np.empty(0, np.uint8))
        return len(self.buffers) - 1

    def _subgraph(self, subgraph: Subgraph) -> Any:
        tensors = subgraph.tensors
        index = {tensor: position for position, tensor in enumerate(tensors)}
        return schema.SubGraphT(
            name=subgraph.name,
            tensors=[self._tensor(each) for each in tensors],
            inputs=_indices(index[each] for each in subgraph.inputs),
            outputs=_indices(index[each] for each in subgraph.outputs),
            operators=[self._operator(each, index) for each in subgraph.operators],
        )

    def _operator(self, operator: Operator, index: dict[Tensor, int]) -> Any:
        key = (operator.code, operator.custom_code, operator.version)
        written: Any = schema.OperatorT(
            opcodeIndex=self._codes.setdefault(key, len(self._codes)),
            inputs=_indices(-1 if each is None else index[each] for each in operator.inputs),
            outputs=_indices(index[each] for each in operator.outputs),
        )
        if operator.intermediates:
            written.intermediates = _indices(index[each] for each in operator.intermediates)
        if any(operator.mutating_variable_inputs):
            written.mutatingVariableInputs = np.array(operator.mutating_variable_inputs, np.bool_)
        if operator.custom_options:
            written.customOptions = np.frombuffer(operator.custom_options, np.uint8)
        if operator.options is not None:
            for name, subgraph in zip(SUBGRAPH_FIELDS.get(operator.code, ()), operator.subgraphs, strict=False):
                setattr(operator.options, name, self.model.subgraphs.index(subgraph))
            union = type(operator.options).__name__.removesuffix("T")
            if hasattr(schema.BuiltinOptions, union):
                written.builtinOptionsType = getattr(schema.BuiltinOptions, union)
                written.builtinOptions = operator.options
            else:
                written.builtinOptions2Type = getattr(schema.BuiltinOptions2, union)
                written.builtinOptions2 = operator.options
        return written

    def _signature(self, signature: Signature) -> Any:
        index = {tensor: position for position, tensor in enumerate(signature.subgraph.tensors)}
        return schema.SignatureDefT(
            signatureKey=signature.key,
            subgraphIndex=self.model.subgraphs.index(signature.subgraph),
            inputs=[schema.TensorMapT(name=name, tensorIndex=index[each]) for name, each in signature.inputs.items()],
            outputs=[schema.TensorMapT(name=name, tensorIndex=index[each]) for name, each in signature.outputs.items()],
        )


def _indices(values: Any) -> Any:
    return np.fromiter(values, np.int32)


def _operator_code(code: str, custom_code: str, version: int) -> Any:
    number = OPERATOR_CODES[code]
    return schema.OperatorCodeT(
        deprecatedBuiltinCode=min(number, _PLACEHOLDER_CODE),
        builtinCode=number,
        customCode=custom_code or None,
        version=version,
    )


def _quantization_table(quantization: Quantization) -> Any:
    written = schema.QuantizationParametersT(
        quantizedDimension=quantization.axis, detailsType=quantization.details_type, details=quantization.details
    )
    for name, values, dtype in (
        ("min", quantization.minimum, np.float32),
        ("max", quantization.maximum, np.float32),
        ("scale", quantization.scale, np.float32),
        ("zeroPoint", quantization.zero_point, np.int64),
    ):
        if values is not None:
            setattr(written, name, np.atleast_1d(np.asarray(values, dtype)))
    return written


def _blocks(data: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array in pieces, without copying the whole array."""
    if data.flags.c_contiguous:
        yield data.reshape(-1).view(np.uint8).data
        return
    rows = max(1, _BLOCK * data.shape[0] // data.nbytes)
    for first in range(0, data.shape[0], rows):
        yield np.ascontiguousarray(data[first : first + rows]).reshape(-1).view(np.uint8).data


def _packed_buffer(builder: flatbuffers.Builder, data: np.ndarray, nothing: int) -> int:
    schema.BufferStart(builder)
    if data.nbytes:
        schema.BufferAddData(builder, nothing)
    return schema.BufferEnd(builder)


def _offsets(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


# --------------------------------------------------------------------------------------------------------------------- reading


def read_model(data: bytes) -> Model:
    """The model of a `.tflite` file's bytes. Constants are views into `data`.

    Raises:
      ValueError: The bytes are not a TFLite model, or one of its references is invalid.
    """
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise ValueError(f"These {len(data)} bytes are no TFLite model: the identifier TFL3 is missing at offset 4.")
    try:
        return _model_of(schema.ModelT.InitFromPackedBuf(data), data)
    except (IndexError, KeyError, TypeError, AttributeError, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"The TFLite model of {len(data)} bytes is damaged: {error}") from error


def _model_of(read: Any, data: bytes) -> Model:
    buffers = [_buffer_bytes(each, data) for each in read.buffers or []]
    subgraphs = [Subgraph(name=_text(each.name)) for each in read.subgraphs or []]
    tensors: list[list[Tensor]] = []
    for subgraph, table in zip(subgraphs, read.subgraphs or [], strict=True):
        own = [_tensor_of(each, buffers) for each in table.tensors or []]
        tensors.append(own)
        subgraph.inputs = [own[_position(index, own)] for index in _list(table.inputs)]
        subgraph.outputs = [own[_position(index, own)] for index in _list(table.outputs)]
        subgraph.operators = [_operator_of(each, read.operatorCodes, own, subgraphs) for each in table.operators or []]
    signatures = []
    for each in read.signatureDefs or []:
        own = tensors[_position(each.subgraphIndex, subgraphs)]
        signatures.append(
            Signature(
                key=_text(each.signatureKey),
                inputs={_text(entry.name): own[_position(entry.tensorIndex, own)] for entry in each.inputs or []},
                outputs={_text(entry.name): own[_position(entry.tensorIndex, own)] for entry in each.outputs or []},
                subgraph=subgraphs[each.subgraphIndex],
            )
        )
    metadata = {_text(each.name): bytes(buffers[_position(each.buffer, buffers)]) for each in read.metadata or []}
    return Model(subgraphs, signatures, metadata, _text(read.description))


def _buffer_bytes(buffer: Any, data: bytes) -> np.ndarray:
    # Models near 2 GB store buffers after the flatbuffer, by offset and size (an offset of 1 means unused).
    if buffer.offset > 1:
        if buffer.offset + buffer.size > len(data):
            raise ValueError(
                f"A buffer of {buffer.size} bytes at offset {buffer.offset} lies outside of the file of {len(data)} bytes."
            )
        return np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
    return (
        np.empty(0, np.uint8) if buffer.data is None or np.ndim(buffer.data) == 0 else np.asarray(buffer.data, np.uint8)
    )


def _list(values: Any) -> list[int]:
    return [] if values is None or np.ndim(values) == 0 else [int(each) for each in values]


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _position(index: int, items: list[Any]) -> int:
    if not 0 <= index < len(items):
        raise ValueError(f"The TFLite model is damaged: index {index} of {len(items)}.")
    return index


def _tensor_of(table: Any, buffers: list[np.ndarray]) -> Tensor:
    type_name = TYPE_NAMES[table.type]
    shape: tuple[int, ...] | None = tuple(_list(table.shape))
    signature = tuple(_list(table.shapeSignature))
    tensor = Tensor(
        name=_text(table.name),
        type=type_name,
        # Old files do not distinguish the empty shape of a scalar from an unknown shape. Converters wrote it for scalars.
        shape=signature if len(signature) == len(shape) else shape,
        is_variable=bool(table.isVariable),
        sparsity=table.sparsity,
        variant_tensors=table.variantTensors,
        quantization=_quantization_of(table.quantization),
    )
    raw = buffers[_position(table.buffer, buffers)] if buffers else np.empty(0, np.uint8)
    if table.buffer and (raw.nbytes or 0 in tensor.static_shape):
        tensor.data = _constant(raw, type_name, tensor)
    return tensor


def _constant(raw: np.ndarray, type_name: str, tensor: Tensor) -> np.ndarray:
    dtype = numpy_dtype(type_name)
    if dtype is None or tensor.sparsity is not None:
        return raw
    shape = tensor.static_shape
    if type_name == "STRING":
        strings = strings_of(raw.tobytes()) if raw.nbytes else []
        array = np.empty(len(strings), object)
        array[:] = strings
    else:
        array = raw.view(dtype) if raw.ctypes.data % dtype.alignment == 0 else np.frombuffer(raw.tobytes(), dtype)
    if array.size != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(
            f"The constant {tensor.name!r} of {type_name}{list(shape)} has a buffer of {array.size} elements."
        )
    return array.reshape(shape)


def _quantization_of(table: Any) -> Quantization | None:
    if table is None:
        return None
    values = {
        "minimum": table.min,
        "maximum": table.max,
        "scale": table.scale,
        "zero_point": table.zeroPoint,
    }
    arrays = {
        name: np.asarray(each) for name, each in values.items() if each is not None and np.ndim(each) and len(each)
    }
    if not arrays and table.details is None:
        return None
    return Quantization(axis=table.quantizedDimension, details=table.details, details_type=table.detailsType, **arrays)


def _operator_of(table: Any, codes: list[Any], tensors: list[Tensor], subgraphs: list[Subgraph]) -> Operator:
    code = codes[_position(table.opcodeIndex, codes)]
    name = OPERATOR_NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
    options = table.builtinOptions if table.builtinOptions is not None else table.builtinOptions2
    return Operator(
        code=name,
        inputs=[None if index == -1 else tensors[_position(index, tensors)] for index in _list(table.inputs)],
        outputs=[tensors[_position(index, tensors)] for index in _list(table.outputs)],
        options=options,
        version=code.version,
        custom_code=_text(code.customCode),
        custom_options=b"" if table.customOptions is None else bytes(np.asarray(table.customOptions, np.uint8)),
        intermediates=[tensors[_position(index, tensors)] for index in _list(table.intermediates)],
        mutating_variable_inputs=[bool(each) for each in _list(table.mutatingVariableInputs)],
        subgraphs=[
            subgraphs[_position(getattr(options, field), subgraphs)]
            for field in SUBGRAPH_FIELDS.get(name, ())
            if options is not None
        ],
    )
