"""`python -m stoker saved_model`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stoker._src.cli.main import main

MODEL = str(Path(__file__).parent.parent / "golden" / "saved_model" / "one_tf1")
CHOSEN = ["--tag_set", "serve", "--signature_def", "serving_default"]


def test_show(capsys):
    """Tag sets, the keys of signatures and the tensors of one, as TensorFlow's tool shows them."""
    assert main(["saved_model", "show", "--dir", MODEL]) == 0
    assert capsys.readouterr().out == "The given SavedModel contains the following tag-sets:\n'serve'\n"
    main(["saved_model", "show", "--dir", MODEL, "--tag_set", "serve"])
    assert 'SignatureDef key: "serving_default"' in capsys.readouterr().out
    main(["saved_model", "show", "--dir", MODEL, *CHOSEN])
    assert capsys.readouterr().out == (
        "The given SavedModel SignatureDef contains the following input(s):\n  inputs['x'] tensor_info:\n      dtype: DT_FLOAT\n"
        "      shape: (-1, 2)\n      name: x:0\nThe given SavedModel SignatureDef contains the following output(s):\n"
        "  outputs['y'] tensor_info:\n      dtype: DT_FLOAT\n      shape: (-1, 1)\n      name: y:0\n"
        "Method name is: tensorflow/serving/predict\n"
    )
    main(["saved_model", "show", "--dir", MODEL, "--all"])
    assert "MetaGraphDef with tag-set: 'serve' contains the following SignatureDefs:" in capsys.readouterr().out


def test_run(capsys, tmp_path):
    """Inputs are literals or files of arrays; outputs are printed or written."""
    assert main(["saved_model", "run", "--dir", MODEL, *CHOSEN, "--input_exprs", "x=[[1, 2]]"]) == 0
    assert capsys.readouterr().out.endswith("Result for output key y:\n[[5.]]\n")
    np.save(tmp_path / "x.npy", np.float32([[3, 4]]))
    np.savez(tmp_path / "x.npz", a=np.float32([[5, 6]]), b=np.float32([[0, 1]]))
    out = str(tmp_path / "out")
    for given, expected in ((f"x={tmp_path / 'x.npy'}", 11.0), (f"x={tmp_path / 'x.npz'}[b]", 2.0)):
        main(["saved_model", "run", "--dir", MODEL, *CHOSEN, "--inputs", given, "--outdir", out, "--overwrite"])
        assert np.load(tmp_path / "out" / "y.npy").tolist() == [[expected]]
    assert main(["saved_model", "run", "--dir", MODEL, *CHOSEN, "--inputs", given, "--outdir", out]) == 1
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x=__import__('os')", "x=np.ones((1, 2))", "x", "z=[1]", "x=[[1, 2, 3]]"])
def test_what_is_no_input(capsys, text):
    """Code, names of other inputs and values that do not fit are refused, in one line."""
    assert main(["saved_model", "run", "--dir", MODEL, *CHOSEN, "--input_exprs", text]) == 1
    assert capsys.readouterr().err.startswith("stoker saved_model: ")


def test_no_model(capsys, tmp_path):
    """A directory without a model is told."""
    assert main(["saved_model", "show", "--dir", str(tmp_path)]) == 1
    assert "SavedModel file does not exist" in capsys.readouterr().err
