"""TFLite models in memory, and their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from stoker._src.base import dtypes
from stoker._src.lite import flatbuffer
from stoker._src.lite.flatbuffer import read_model, write_model
from stoker._src.lite.model import (
    Model,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
    string_buffer,
    strings_of,
    type_of,
)

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def small_model() -> Model:
    """Two products of one input with equal weights."""
    x = Tensor("x", "FLOAT32", (-1, 3))
    outputs = [Tensor(f"y{each}", "FLOAT32", (-1, 2)) for each in range(2)]
    operators = [
        Operator(
            "FULLY_CONNECTED",
            [x, Tensor(f"w{each}", "FLOAT32", (2, 3), WEIGHTS.copy()), None],
            [y],
            schema.FullyConnectedOptionsT(),
        )
        for each, y in enumerate(outputs)
    ]
    main = Subgraph("main", [x], outputs, operators)
    signature = Signature("serving_default", {"x": x}, {"first": outputs[0], "second": outputs[1]}, main)
    return Model([main], [signature], {"min_runtime_version": b"1.5.0"}, "two products")


def test_a_model_survives_writing_and_reading():
    """Names, shapes, constants, options, signatures and metadata come back, and writing again gives the same bytes."""
    data = write_model(small_model())
    read = read_model(data)
    assert [each.name for each in read.main.tensors] == ["x", "w0", "y0", "w1", "y1"]
    assert read.main.inputs[0].shape == (-1, 3)
    assert read.main.operators[0].code == "FULLY_CONNECTED"
    assert read.main.operators[0].inputs[2] is None
    np.testing.assert_array_equal(read.main.operators[1].inputs[1].data, WEIGHTS)
    assert list(read.signatures[0].outputs) == ["first", "second"]
    assert read.metadata == {"min_runtime_version": b"1.5.0"}
    assert read.description == "two products"
    assert write_model(read) == data


def test_litert_runs_what_is_written():
    """The interpreter accepts the file and computes with its constants."""
    interpreter = Interpreter(model_content=write_model(small_model()))
    run = interpreter.get_signature_runner("serving_default")
    result = run(x=np.ones((4, 3), np.float32))
    np.testing.assert_allclose(result["first"], np.tile(WEIGHTS.sum(1), (4, 1)))


def test_equal_constants_share_a_buffer():
    """Two tensors with the same bytes take the room of one."""
    read = schema.ModelT.InitFromPackedBuf(write_model(small_model()))
    tensors = read.subgraphs[0].tensors
    assert tensors[1].buffer == tensors[3].buffer != 0


def test_constants_are_aligned():
    """LiteRT uses weights where they lie in the file, so each starts at a multiple of 16 bytes."""
    data = write_model(small_model())
    assert data.index(WEIGHTS.tobytes()) % 16 == 0


def test_quantization_is_kept():
    """Scales, zero points, axis and ranges come back."""
    model = small_model()
    weights = model.main.operators[0].inputs[1]
    weights.type, weights.data = "INT8", WEIGHTS.astype(np.int8)
    weights.quantization = Quantization(scale=np.float32([0.5, 0.25]), zero_point=np.int64([0, 0]), axis=0)
    model.main.inputs[0].quantization = Quantization(minimum=np.float32([-1]), maximum=np.float32([1]))
    read = read_model(write_model(model))
    found = read.main.operators[0].inputs[1].quantization
    np.testing.assert_array_equal(found.scale, [0.5, 0.25])
    assert found.per_channel
    assert read.main.inputs[0].quantization.maximum == [1]


def test_strings_are_stored_as_tflite_stores_them():
    """A string buffer has a count, offsets and the bytes; damaged offsets are refused."""
    values = np.array([b"", b"abc", b"\xff\x00"], object)
    assert strings_of(string_buffer(values)) == list(values)
    assert string_buffer([b"ab"]) == np.array([1, 12, 14], np.int32).tobytes() + b"ab"
    with pytest.raises(ValueError, match="do not fit"):
        strings_of(np.array([1, 12, 15], np.int32).tobytes() + b"ab")
    model = small_model()
    model.main.outputs.append(Tensor("words", "STRING", (3,), values))
    np.testing.assert_array_equal(read_model(write_model(model)).main.outputs[2].data, values)


def test_a_subgraph_is_named_by_the_operator_that_runs_it():
    """The indices in the options of IF follow from the model's list of subgraphs."""
    branches = [
        Subgraph(name, [], [Tensor(name, "FLOAT32", (1,), np.float32([value]))])
        for name, value in (("then", 1), ("else", 2))
    ]
    condition, result = Tensor("condition", "BOOL", ()), Tensor("result", "FLOAT32", (1,))
    choice = Operator("IF", [condition], [result], schema.IfOptionsT(), subgraphs=branches)
    main = Subgraph("main", [condition], [result], [choice])
    read = read_model(write_model(Model([main, *reversed(branches)])))
    assert [each.name for each in read.main.operators[0].subgraphs] == ["then", "else"]


def test_models_over_two_gigabytes_are_refused(monkeypatch):
    """A flatbuffer's offsets end at 2 GB; the error has the size and the way out."""
    monkeypatch.setattr(flatbuffer, "MAX_BYTES", 16)
    with pytest.raises(ValueError, match=r"take 29 bytes, and a TFLite file ends at 16.*Quantize"):
        write_model(small_model())


@pytest.mark.parametrize("data", [b"", b"\x00" * 8, b"\x10\x00\x00\x00TFL3", b"\xff\xff\xff\xffTFL3" + b"\xff" * 64])
def test_other_bytes_are_no_model(data):
    """What has no identifier, or is damaged behind it, is a ValueError."""
    with pytest.raises(ValueError, match="TFLite model"):
        read_model(data)


def test_types_have_the_names_of_the_schema():
    """Quantized dtypes are named by what is stored; what TFLite lacks is refused by name."""
    assert type_of(dtypes.float32) == "FLOAT32"
    assert type_of(dtypes.quint8) == "UINT8"
    assert type_of(dtypes.string) == "STRING"
    assert type_of(dtypes.resource) == "RESOURCE"
