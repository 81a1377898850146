"""Takes the ten models of tests/interop/models.py from a checkpoint through torch: values, a training step, export, compile.

    python scripts/torch_models.py [--backend inductor|aot_eager|eager] [--model NAME ...] [--onnx]

Prints the largest differences from the Session for each model: of the module, of a step of SGD, of torch.export (with the batch size free where
that is possible), of torch.compile in inference and in a step, and with --onnx of the ONNX model. The exit status is 1 if one is above 1e-5.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import stoker  # noqa: E402
import stoker.compat.v1 as tf  # noqa: E402
from tests.interop.models import MODELS  # noqa: E402

RATE = 0.1


def _difference(found, expected) -> float:
    return max(
        float(np.max(np.abs(np.asarray(f.detach()) - e) / np.maximum(1.0, np.abs(e)), initial=0))
        for f, e in zip(found, expected)
    )


def _step(module, run, given, trained) -> float:
    """The largest difference of a variable after a step of SGD."""
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    run(*given)[1].backward()
    optimizer.step()
    return _difference(
        module.state_dict().values(), [trained[module.variable_names[key]] for key in module.state_dict()]
    )


def _check(make, args) -> dict[str, object]:
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as directory:
        tf.set_random_seed(1)
        model = make()
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.GradientDescentOptimizer(RATE).minimize(model.loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            prefix = tf.train.Saver().save(session, f"{directory}/model")
            feeds = {tensor: model.feeds[name] for name, tensor in model.inputs.items()}
            expected = session.run([model.output, model.loss], feeds)
            session.run(train, feeds)
            trained = session.run({v.op.name: v for v in tf.global_variables()})

        def fresh():
            names = {name: tensor.name for name, tensor in model.inputs.items()}
            return stoker.to_torch(prefix, names, [model.output.name, model.loss.name])

        given = tuple(torch.tensor(value) for value in model.feeds.values())
        module = fresh()
        results: dict[str, object] = {
            "lines": len(module.code.splitlines()),
            "module": _difference(fresh().eval()(*given), expected),
            "step": _step(module, module, given, trained),
        }
        module = fresh().eval()
        results["export"] = _difference(torch.export.export(module, given).module()(*given), expected)
        results["dynamic batch"] = _dynamic(module, model, given, expected)
        module = fresh()
        compiled = torch.compile(module.eval(), backend=args.backend, fullgraph=True)
        try:
            results["compile"] = _difference(compiled(*given), expected)
        except Exception as error:
            results["compile"] = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
        module = fresh()
        results["compiled step"] = _step(module, torch.compile(module, backend=args.backend), given, trained)
        if args.onnx:
            results["onnx"] = _onnx(fresh().eval(), model, given, expected, f"{directory}/model.onnx")
    return results


def _onnx(module, model, given, expected, path: str) -> object:
    """The difference of what ONNX Runtime computes, or of the reference evaluator of the onnx package if there is no runtime."""
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(module, given, path, dynamo=True, input_names=list(model.inputs))
    feeds = {name: model.feeds[name] for name in model.inputs}
    if importlib.util.find_spec("onnxruntime"):
        session = importlib.import_module("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        found = session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
    else:
        evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(path)
        found = evaluator.run(None, {name: feeds[name] for name in evaluator.input_names})
    return _difference([torch.as_tensor(value) for value in found], expected)


def _dynamic(module, model, given, expected) -> object:
    """The difference with a free first dimension of every input that has one."""
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = [{0: batch} if tensor.static_shape.dims[0] is None else None for tensor in model.inputs.values()]
    try:
        program = torch.export.export(module, given, dynamic_shapes=shapes)
    except Exception as error:
        return f"no ({type(error).__name__})"
    return _difference(program.module()(*given), expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--model", nargs="+", help="only these")
    parser.add_argument("--onnx", action="store_true", help="also torch.onnx.export, which needs stoker[onnx]")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tf.logging.set_verbosity(tf.logging.ERROR)
    worst = 0.0
    for make in MODELS:
        if args.model and make.__name__ not in args.model:
            continue
        start = time.perf_counter()
        torch.compiler.reset()
        results = _check(make, args)
        numbers = [value for value in results.values() if isinstance(value, float)]
        worst = max([worst, *numbers])
        shown = "  ".join(f"{k} {v:.1e}" if isinstance(v, float) else f"{k} {v}" for k, v in results.items())
        print(f"{make.__name__:20} {shown}  ({time.perf_counter() - start:.0f} s)", flush=True)
    print(f"largest difference: {worst:.1e}")
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
