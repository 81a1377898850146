"""Records what TensorFlow 1.15 returns for the programs of `programs.py`: `python make.py` with its interpreter writes results.json."""

import json
import os
import subprocess
import sys
import tempfile

import programs

MODES = ("graph", "eager")


def results(mode):
    import tensorflow.compat.v1 as tf

    if mode == "eager":
        tf.enable_eager_execution()
    found = {}
    for name, function in programs.PROGRAMS.items():
        tf.keras.backend.clear_session()
        with tempfile.TemporaryDirectory() as folder:
            found[name] = programs.plain(function(tf, folder))
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        json.dump(results(sys.argv[1]), sys.stdout)
    else:
        run = [
            json.loads(subprocess.run([sys.executable, __file__, mode], stdout=subprocess.PIPE, check=True).stdout)
            for mode in MODES
        ]
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results.json")
        with open(path, "w") as file:
            json.dump(dict(zip(MODES, run)), file, indent=1, sort_keys=True)
            file.write("\n")
