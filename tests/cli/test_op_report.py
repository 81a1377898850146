"""stoker inspect --op."""

import json
from pathlib import Path

import pytest

from stoker._src.cli.main import main
from stoker._src.graph.definition import all_definitions

ROOT = Path(__file__).parents[2]


def _report(capsys, *names):
    assert main(["inspect", "--json", "--op", *names]) == 0
    return json.loads(capsys.readouterr().out)


def _line(place):
    file, _, line = place.rpartition(":")
    return (ROOT / file).read_text().splitlines()[int(line) - 1]


def test_a_plain_op(capsys):
    """Signature, attributes with defaults, and the lines of the definition and of each function beside it."""
    (found,) = _report(capsys, "MatMul")
    assert found["signature"] == "MatMul(a: T, b: T) -> (product: T)"
    assert found["attrs"]["transpose_a"] == "bool = False"
    assert "float32" in found["attrs"]["T"]
    assert '"MatMul(' in _line(found["defined"])
    assert found["factory"] == []
    assert [_line(found[facet]["at"]) for facet in ("kernel", "shape", "gradient")] == [
        "@MATMUL.kernel",
        "@MATMUL.shape",
        "@MATMUL.grad",
    ]
    assert set(found["planner"]) >= {"traits", "specialize", "lower"}
    assert found["samples"]
    assert all("MatMul" in _line(place) for place in found["samples"])


def test_an_op_of_a_factory(capsys):
    """The statement that asked for the op is found, the factory's `define`, and the rule that the kernel calls."""
    (found,) = _report(capsys, "ResourceApplyKerasMomentum")
    assert "Momentum(" in _line(found["defined"])
    assert found["defined"].startswith("stoker/_src/ops/training/rules.py")
    assert "define(" in _line(found["factory"][0])
    assert any(called["at"].startswith("stoker/_src/ops/training/rules.py") for called in found["kernel"]["calls"])
    assert found["attrs"]["use_nesterov"] == "bool = False"
    assert "WRITES" in found["planner"]["traits"]


def test_an_op_without_gradient(capsys):
    """The report says whether gradients stop or cannot be asked for."""
    stops, missing = _report(capsys, "RegexReplace", "StringLower")
    assert stops["gradient"] == "none: gradients stop here"
    assert missing["gradient"] == "none: asking for it raises LookupError"


def test_the_older_form_of_an_op(capsys):
    """Ops on references that are made from those on resources show their own signature and place."""
    (found,) = _report(capsys, "QueueClose")
    assert found["signature"].startswith("QueueClose(handle: Ref(string)")
    assert found["defined"].startswith("stoker/_src/ops/resources/queues.py")


def test_an_unknown_op(capsys):
    """Near names are suggested, in either spelling; ops that are known are shown all the same."""
    assert main(["inspect", "--op", "apply_adm", "MatMul"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("MatMul(")
    assert "there is no op 'apply_adm'. Did you mean ApplyAdam" in captured.err


def test_the_text(capsys):
    """The plain report has a line for each part, with its place."""
    assert main(["inspect", "--op", "Relu", "ApplyAdam"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    labels = [line.split(" ")[0] for line in first.splitlines() if not line.startswith(" ")]
    assert labels[1:6] == ["defined", "kernel", "shape", "gradient", "traits"]
    assert "calls    stoker/_src/ops/training/rules.py:" in second


@pytest.mark.parametrize("arguments", [[], ["x.tfrecord", "--op", "MatMul"]])
def test_a_file_or_an_op(capsys, arguments):
    """Neither of the two, or both, is a mistake that names the way out."""
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", *arguments])
    assert "--op" in capsys.readouterr().err


def test_every_op_is_found(capsys):
    """Each op's definition has a line in the sources, and its functions have theirs or are torch's."""
    names = [name for name, each in all_definitions().items() if "stoker/_src" in each.places[-1][0]]
    assert len(names) > 900
    for report in _report(capsys, *names):
        assert _line(report["defined"]).strip(), report["op"]
        assert report["kernel"] is not None, report["op"]
