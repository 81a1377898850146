"""`stoker inspect model.tflite`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stoker._src.cli.main import main

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "lite"


def _inspect(capsys, *args: str) -> str:
    assert main(["inspect", *args]) == 0
    return capsys.readouterr().out


def test_a_quantized_model(capsys):
    """Operators with their versions, inputs and outputs with what their numbers mean, constants with sizes and statistics."""
    out = _inspect(capsys, str(GOLDEN / "int8.tflite"), "--stats")
    assert out.startswith("TFLite model of 2,896 bytes: 6 operators, quantized to int8\n")
    assert "DEPTHWISE_CONV_2D  1      3" in out
    assert "1 x 5          0.003906 * (q + 128)" in out
    assert "4 channels of dimension 3" in out and "histogram" in out
    assert "MAX_POOL_2D        MaxPool2d                          int8  1 x 2 x 2 x 4  0.008043 * (q - 53)\n" in out
    assert "152 of int8, 40 of int32" in out


def test_subgraphs_and_signatures(capsys):
    """Every subgraph is shown, and the names that callers use."""
    assert "subgraph while_body: 4 operators" in _inspect(capsys, str(GOLDEN / "control.tflite"))
    assert "signature add: x -> count" in _inspect(capsys, str(GOLDEN / "variables.tflite"))


def test_json(capsys):
    """The same as JSON, with every operator."""
    found = json.loads(_inspect(capsys, str(GOLDEN / "network.tflite"), "--json"))
    assert found["quantization"] == "floating point" and found["operators"]["CONV_2D"] == 1
    (subgraph,) = found["subgraphs"]
    assert [each["op"] for each in subgraph["operators"]][:2] == ["CONV_2D", "DEPTHWISE_CONV_2D"]
    assert [each["shape"] for each in subgraph["results"]][:2] == [[1, 4, 4, 4], [1, 4, 4, 4]]
    assert subgraph["inputs"][0] == {"name": "x", "type": "float32", "shape": [1, 8, 8, 1]}
    assert max(each["bytes"] for each in subgraph["constants"]) == 320


def test_a_picture(capsys, tmp_path):
    """With --graph the operators are drawn as SVG."""
    target = tmp_path / "model.svg"
    _inspect(capsys, str(GOLDEN / "mixed.tflite"), "--graph", str(target))
    text = "".join(ElementTree.parse(target).getroot().itertext())
    assert "RESIZE_BILINEAR" in text and "TOPK_V2" in text


@pytest.mark.parametrize("size", [5, 100, 2000])
def test_a_damaged_model_is_an_error(capsys, tmp_path, size):
    """A file that ends too early is refused with its name."""
    path = tmp_path / "bad.tflite"
    path.write_bytes((GOLDEN / "network.tflite").read_bytes()[:size])
    assert main(["inspect", str(path)]) == 1
    assert "bad.tflite: The model is not a valid Flatbuffer buffer" in capsys.readouterr().err
