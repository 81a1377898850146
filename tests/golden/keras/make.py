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
        found = json.dumps(results(sys.argv[1]))
        print("\n" + found)  # the last line: programs print, too
    else:
        run = [
            json.loads(
                subprocess.run(
                    [sys.executable, __file__, mode], stdout=subprocess.PIPE, check=True
                ).stdout.splitlines()[-1]
            )
            for mode in MODES
        ]
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results.json")
        with open(path, "w") as file:
            file.write(programs.as_lines(dict(zip(MODES, run))))
