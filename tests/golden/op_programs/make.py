"""Writes values.npz and values.json: what TensorFlow 2.21 finds in the programs of scripts/op_comparison/programs.

TF_ENABLE_ONEDNN_OPTS=0 PYTHON make.py     (PYTHON has TensorFlow)
"""

import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts" / "op_comparison"))

from exchange import Writer
from programs import PROGRAMS, run_program

writer = Writer()
found = {
    f"{name}{', eager' if eager else ''}": writer.pack(run_program(tf.compat.v1, name, eager=eager))
    for name, program in PROGRAMS.items()
    for eager in ((False, True) if program.eager else (False,))
}
writer.save(Path(__file__).parent / "values", found, compressed=True)
