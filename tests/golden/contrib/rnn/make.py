"""Records what TensorFlow 1.15 computes for recurrent networks of `tf.contrib`: run with its Python, from this folder."""

import cases
import numpy as np
import programs
import seq2seq_cases
import tensorflow as tf

np.savez_compressed("values.npz", **cases.all_results(tf, cases.CASES))
np.savez_compressed("seq2seq_values.npz", **cases.all_results(tf, seq2seq_cases.SEQ2SEQ))
found = {name: program(tf, cases.value_of) for name, program in programs.PROGRAMS.items()}
np.savez_compressed(
    "programs_values.npz", **{f"{name}/{key}": found[name][key] for name in found for key in found[name]}
)
