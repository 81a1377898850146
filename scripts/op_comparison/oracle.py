"""The TensorFlow side: runs cases through tf.raw_ops, and programs. Started by scripts/op_table.py under an interpreter that has TensorFlow.

    python oracle.py CASES FOLDER [NUMBER ...]

Results go to FOLDER in chunks; a chunk that is there is not run again. The number of each case is printed before it runs, so
that the parent knows which one ended the process, and can start another that leaves out the cases with the NUMBERs given.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from derivatives import derivatives
from exchange import Reader, Variable, Writer
from programs import age_graph, run_program

CHUNK = 250
BY_GRAPH = {"AccumulateNV2"}  # ops that a graph replaces by others before it runs
RENAMED = {"squeeze_dims": "axis"}  # attributes whose Python parameter has another name


def run_case(tf: Any, case: dict[str, Any]) -> list[Any]:
    if case["program"]:
        return run_program(tf.compat.v1, case["program"], eager=not case["graph"])
    if case["derivative"]:
        function = functools.partial(call_with, tf, case["op"], case["attrs"])
        return derivatives(tf.compat.v1, function, case["inputs"], case["derivative"])
    if case["graph"]:
        return run_in_graph(tf, case)
    if case["op"] in STAND_INS:
        return STAND_INS[case["op"]](tf, case["inputs"], case["attrs"])
    inputs = {name: convert(tf, value) for name, value in case["inputs"].items()}
    try:
        with tf.device("/CPU:0"):
            outputs = call(tf, case["op"], inputs, case["attrs"])
    except Exception as error:
        removed = re.search(r"not available in GraphDef version \d+. It has been removed in version (\d+)", str(error))
        if removed is None and case["op"] not in BY_GRAPH:
            raise
        return run_in_graph(tf, case, producer=int(removed[1]) - 1 if removed else None)
    return [as_array(tensor.numpy()) for tensor in flatten(outputs)]


def stands_in(name: str) -> Callable[..., list[np.ndarray]]:
    """The op `name`, called for another one with the same inputs."""

    def run(tf: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
        made = call(tf, name, {key: convert(tf, value) for key, value in inputs.items()}, attrs)
        return [as_array(tensor.numpy()) for tensor in flatten(made)]

    return run


def top_k(tf: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    found = tf.raw_ops.TopKV2(input=inputs["input"], **attrs)
    return [tensor.numpy() for tensor in found]


def ctc_loss_with_first_blank(tf: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    """CTCLossV2 takes class 0 for the blank where CTCLoss takes the last."""
    data, labels = np.roll(inputs["inputs"], -1, -1), inputs["labels_values"] - 1
    loss, gradient = tf.raw_ops.CTCLoss(**{**inputs, "inputs": data, "labels_values": labels}, **attrs)
    return [loss.numpy(), np.roll(gradient.numpy(), 1, -1)]


def over_axes(name: str) -> Callable[..., list[np.ndarray]]:
    """The transform `name` over the last axes, of one to three, for one over any: cut or filled up, and turned."""

    def run(tf: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
        x, lengths, axes = inputs["input"], inputs["fft_length"].tolist(), inputs["axes"].tolist()
        sizes = [
            length // 2 + 1 if name == "IRFFT" and axis == axes[-1] else length for axis, length in zip(axes, lengths)
        ]
        if len(axes) != len(lengths) or not 1 <= len(axes) <= 3 or not all(-x.ndim <= axis < x.ndim for axis in axes):
            raise tf.errors.UnimplementedError(None, None, "no transform stands for this one")
        x = np.moveaxis(x, axes, range(-len(axes), 0))
        for place, size in enumerate(sizes, -len(axes)):
            x = np.moveaxis(x, place, 0)[:size]
            x = np.moveaxis(np.concatenate([x, np.zeros((size - len(x), *x.shape[1:]), x.dtype)]), 0, place)
        transform = getattr(tf.raw_ops, name + {1: "", 2: "2D", 3: "3D"}[len(axes)])
        kinds = {"fft_length": np.array(lengths, np.int32), **attrs} if "RFFT" in name else {}
        return [np.moveaxis(transform(input=convert(tf, x), **kinds).numpy(), range(-len(axes), 0), axes)]

    return run


def places_of(tf: Any, inputs: dict[str, Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    """What stands at the places of the largest elements, of each image where the places do not count the images."""
    grad, places = inputs["grad"], inputs["argmax"].astype(np.int64)
    if len(grad) != len(places):
        raise tf.errors.InvalidArgumentError(None, None, f"{len(grad)} images, but places in {len(places)}")
    if not attrs.get("include_batch_in_index", False):
        places = places + np.arange(len(grad)).reshape(-1, 1, 1, 1) * grad[0].size
    return [tf.gather(grad.ravel(), places).numpy()]


# Ops for which TensorFlow 2 has no CPU kernel, or one that it cannot find: what stands for them.
STAND_INS = {
    **{f"Batch{name}": stands_in(name) for name in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")},
    **{f"Segment{name}V2": stands_in(f"UnsortedSegment{name}") for name in ("Sum", "Prod", "Min", "Max")},
    **{f"{name}ND": over_axes(name) for name in ("FFT", "IFFT", "RFFT", "IRFFT")},
    "MaxPoolGradGradWithArgmax": places_of,
    "CTCLossV2": ctc_loss_with_first_blank,
    "TopK": top_k,
}


def call_with(tf: Any, op: str, attrs: dict[str, Any], /, **inputs: Any) -> Any:
    return call(tf, op, inputs, attrs)


def call(tf: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """Calls the op. Its Python parameters are named as the OpDef's but for a few inputs, which keep their order."""
    function = getattr(tf.raw_ops, op)
    unused = [name for name in inspect.signature(function).parameters if name not in inputs and name not in attrs]
    parameters = inspect.signature(function).parameters
    named = {name if name in parameters else unused.pop(0): value for name, value in inputs.items()}
    # Types that TensorFlow takes from the inputs are no parameters there.
    given = {RENAMED.get(name, name): value for name, value in attrs.items()}
    named.update({name: value for name, value in given.items() if name in parameters or not name.startswith("T")})
    return function(**named)


def convert(tf: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [convert(tf, item) for item in value]
    return tf.constant(value, tf.string if value.dtype.kind == "O" else tf.as_dtype(value.dtype))


def flatten(outputs: Any) -> list[Any]:
    if outputs is None or type(outputs).__name__ in ("Operation", "EagerOperation"):
        return []
    if isinstance(outputs, (list, tuple)):
        return [leaf for item in outputs for leaf in flatten(item)]
    return [outputs]


def as_array(value: Any) -> np.ndarray:
    return np.array(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)


def run_in_graph(tf: Any, case: dict[str, Any], producer: int | None = None) -> list[Any]:
    """One run of a graph (of an older `producer`) that holds the op; variables among its inputs are read after it."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        if producer is not None:
            age_graph(v1, producer)
        arguments, reads, preparation = {}, [], []
        for number, (name, value) in enumerate(case["inputs"].items()):
            if not isinstance(value, Variable):
                arguments[name] = convert(tf, value)
                continue
            is_reference = name in case["references"]
            variable, start = variable_for(tf, value.value, is_reference, f"v{number}")
            preparation.append(start)
            reads.append(variable if is_reference else (variable, tf.as_dtype(value.value.dtype)))
            arguments[name] = variable
        if preparation:
            session.run(preparation)
        made = call(tf, case["op"], arguments, case["attrs"])
        outputs = flatten(made)
        with tf.control_dependencies(outputs or [made]):
            after = [
                tf.raw_ops.ReadVariableOp(resource=item[0], dtype=item[1])
                if isinstance(item, tuple)
                else v1.identity(item)
                for item in reads
            ]
        return [as_array(value) for value in session.run([*outputs, *after])]


def variable_for(tf: Any, array: np.ndarray, is_reference: bool, name: str) -> tuple[Any, Any]:
    """A variable in the current graph, and the op that sets it."""
    dtype = tf.as_dtype(array.dtype)
    if is_reference:
        variable = tf.raw_ops.VariableV2(shape=array.shape, dtype=dtype)
        return variable, tf.raw_ops.Assign(ref=variable, value=array).op
    variable = tf.raw_ops.VarHandleOp(dtype=dtype, shape=array.shape, shared_name=name)
    return variable, tf.raw_ops.AssignVariableOp(resource=variable, value=array)


def shortened(message: str) -> str:
    """The start and the end: graphs put the traceback in between."""
    return message if len(message) < 1600 else message[:400] + " ... " + message[-1200:]


def main() -> None:
    import tensorflow as tf

    source, folder, fatal = Path(sys.argv[1]), Path(sys.argv[2]), {int(number) for number in sys.argv[3:]}
    reader = Reader(source, tf)
    for start in range(0, len(reader.structure), CHUNK):
        path = folder / f"results_{start}"
        if path.with_suffix(".json").exists():
            continue
        writer, results = Writer(), []
        for number, packed in enumerate(reader.structure[start : start + CHUNK], start):
            if number in fatal:
                results.append({"error": "Crash", "message": "the process ends"})
                continue
            print(number, flush=True)
            try:
                values = run_case(tf, reader.unpack(packed))
                results.append({"values": [writer.pack(value) for value in values]})
            except Exception as error:
                results.append({"error": type(error).__name__, "message": shortened(str(error))})
        writer.save(path, results)
    print("done", flush=True)


if __name__ == "__main__":
    main()
