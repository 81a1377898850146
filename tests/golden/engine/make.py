"""What small programs print, for comparing stoker with TensorFlow: names, values and classes of errors.

`graph.txt` holds programs of 1.x, `eager.txt` of 2.x; a line `### name` starts each. Run this under a TensorFlow to record what it
prints (`python make.py graph.txt tf1.json`); tests/runtime/test_engine_programs.py runs the same programs under stoker.
In them `p` notes its arguments and `E(f, ...)` what f returns, or the class of what it raises.
"""

import json
import re
import sys

import numpy as np


def programs(text):
    """(name, source) of each program."""
    parts = re.split(r"^### *(.+)$", text, flags=re.M)
    return list(zip((name.strip() for name in parts[1::2]), parts[2::2]))


def shown(value):
    """A value as text that does not depend on who made it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.5g}"
    if isinstance(value, np.ndarray):
        return f"{np.round(value, 4).tolist() if value.dtype.kind == 'f' else value.tolist()} {value.dtype}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


def outcome(value):
    name = None if isinstance(value, (np.ndarray, np.generic)) else getattr(value, "name", None)
    if isinstance(name, str):
        return name
    if hasattr(value, "numpy"):
        value = value.numpy()
    return shown(value)


def lines_of(tf, source, v1):
    """What a program prints."""
    lines = []

    def p(*values):
        lines.append(" ".join(map(shown, values)))

    def E(function, *args, **kwargs):
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            # Where TensorFlow has one class, ours may be a narrower one.
            lines.append("raises " + " ".join(k.__name__ for k in type(error).__mro__ if k.__module__ != "typing"))
            return None
        try:
            lines.append("gives " + outcome(result))
        except AttributeError:  # eager tensors have no name
            lines.append("gives " + shown(result.numpy()))
        return result

    def nodes():
        for op in tf.get_default_graph().get_operations():
            lines.append(f"{op.name} {op.type} {[t.name for t in op.inputs]} {[o.name for o in op.control_inputs]}")

    program = compile(source, "<program>", "exec")
    scope = {"tf": tf, "np": np, "p": p, "E": E, "nodes": nodes}
    if v1:
        with tf.Graph().as_default():
            exec(program, scope)
    else:
        exec(program, scope)
    return lines


if __name__ == "__main__":
    v1 = "graph" in sys.argv[1]
    if v1:
        import tensorflow.compat.v1 as tf

        tf.disable_v2_behavior()
    else:
        import tensorflow as tf
    with open(sys.argv[1]) as file:
        found = {name: lines_of(tf, source, v1) for name, source in programs(file.read())}
    with open(sys.argv[2], "w") as file:
        json.dump(found, file, indent=0)
        file.write("\n")
