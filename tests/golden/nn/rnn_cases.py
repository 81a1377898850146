"""Inputs of the recurrent block ops, the same for TensorFlow and for the tests."""

import numpy as np

BATCH, INPUTS, UNITS, STEPS = 2, 3, 4, 3


def inputs():
    random = np.random.RandomState(11)
    shapes = {
        "x": (BATCH, INPUTS),
        "sequence": (STEPS, BATCH, INPUTS),
        "cs_prev": (BATCH, UNITS),
        "h_prev": (BATCH, UNITS),
        "w": (INPUTS + UNITS, 4 * UNITS),
        "wci": (UNITS,),
        "wcf": (UNITS,),
        "wco": (UNITS,),
        "b": (4 * UNITS,),
        "cs_grad": (STEPS, BATCH, UNITS),
        "h_grad": (STEPS, BATCH, UNITS),
        "w_ru": (INPUTS + UNITS, 2 * UNITS),
        "w_c": (INPUTS + UNITS, UNITS),
        "b_ru": (2 * UNITS,),
        "b_c": (UNITS,),
    }
    return {name: (random.randn(*shape) * 0.5).astype(np.float32) for name, shape in shapes.items()}


STATE = ("cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
GATES = ("w_ru", "w_c", "b_ru", "b_c")
# (op, attributes, steps computed)
SEQUENCES = [
    ("BlockLSTM", {"forget_bias": 1.0, "cell_clip": 0.4, "use_peephole": True}, 3),
    ("BlockLSTM", {"forget_bias": 0.5, "cell_clip": 3.0, "use_peephole": False}, 2),
    ("BlockLSTMV2", {"cell_clip": 0.0, "use_peephole": True}, 2),
]


def results(call):
    """{name: array} of all cases; `call(op, inputs, attributes)` runs one op and returns a named tuple of arrays."""
    given = inputs()
    found = {}

    def keep(label, values, steps=None):
        for name, value in zip(values._fields, values):
            # What lies beyond the steps that were asked for is not defined.
            found[f"{label}/{name}"] = value[:steps] if steps is not None else value

    state = {name: given[name] for name in STATE}
    for i, (op, attrs, steps) in enumerate(SEQUENCES):
        data = {"seq_len_max": np.int64(steps), "x": given["sequence"], **state}
        values = call(op, data, attrs)
        keep(f"{i}", values, steps)
        saved = {**data, **dict(zip(values._fields, values)), "cs_grad": given["cs_grad"], "h_grad": given["h_grad"]}
        peephole = {"use_peephole": attrs["use_peephole"]}
        keep(f"{i}/grad", call(op.replace("LSTM", "LSTMGrad"), saved, peephole))
    data = {"x": given["x"], **state}
    values = call("LSTMBlockCell", data, {"use_peephole": True})
    keep("cell", values)
    saved = {
        **data,
        **dict(zip(values._fields[:6], values[:6])),
        "cs_grad": given["cs_grad"][0],
        "h_grad": given["h_grad"][0],
    }
    keep("cell/grad", call("LSTMBlockCellGrad", saved, {"use_peephole": True}))
    data = {"x": given["x"], "h_prev": given["h_prev"], **{name: given[name] for name in GATES}}
    values = call("GRUBlockCell", data, {})
    keep("gru", values)
    saved = {**data, **dict(zip(values._fields[:3], values[:3])), "d_h": given["h_grad"][0]}
    keep("gru/grad", call("GRUBlockCellGrad", saved, {}))
    return found
