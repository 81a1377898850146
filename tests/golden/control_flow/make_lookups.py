"""Records the gradients of lookups inside of control flow: run with TensorFlow 2's Python, from this folder.

With TensorFlow 1.15's Python it says what differs there from what was recorded.
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import lookup_cases
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def plain(gradient):
    if gradient is None:
        return None
    if isinstance(gradient, list):
        return {"indices": gradient[0].tolist(), "values": np.round(gradient[1].astype(float), 6).tolist()}
    return np.round(gradient.astype(float), 6).tolist()


def recorded():
    found = {}
    for version, switch in (("v1", tf.disable_control_flow_v2), ("v2", tf.enable_control_flow_v2)):
        switch()
        for case in lookup_cases.CASES:
            for resource in (False, True):
                try:
                    norm, gradients = lookup_cases.gradients_of(tf, case, resource)
                except Exception as error:
                    print("%s, %s, %s: %s" % (version, case, resource, str(error)[:200]))
                    continue
                entry = {"norm": round(float(norm), 5), "gradients": [plain(g) for g in gradients]}
                found["%s/%s/%s" % (version, case, "resource" if resource else "reference")] = entry
    tf.disable_control_flow_v2()
    for case in lookup_cases.TRAINED:
        for optimizer in lookup_cases.OPTIMIZERS:
            for resource in (False, True):
                try:
                    losses, table = lookup_cases.trained(tf, case, optimizer, resource)
                except Exception as error:
                    print("%s, %s, %s: %s" % (case.__name__, optimizer, resource, str(error)[:200]))
                    continue
                name = "%s/%s/%s" % (case.__name__, optimizer, "resource" if resource else "reference")
                found["trained/" + name] = {"losses": plain(losses), "table": plain(table)}
    return found


def flat(entry):
    """The numbers of an entry, in order, and its structure without them."""
    if isinstance(entry, dict):
        parts = [flat(entry[key]) for key in sorted(entry)]
    elif isinstance(entry, list):
        parts = [flat(item) for item in entry]
    else:
        return ([] if entry is None else [entry]), entry is None
    return [number for numbers, _ in parts for number in numbers], [structure for _, structure in parts]


found = recorded()
if tf.__version__.startswith("1."):
    with open("lookups.json") as file:
        stored = json.load(file)
    for name in sorted(set(stored) & set(found)):
        (ours, structure), (theirs, other) = flat(stored[name]), flat(found[name])
        if structure != other or not np.allclose(ours, theirs, rtol=1e-5, atol=1e-5):
            print(name, "differs")
else:
    with open("lookups.json", "w") as file:
        file.write("{\n" + ",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in found.items()) + "\n}\n")
