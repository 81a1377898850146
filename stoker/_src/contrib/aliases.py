"""Modules of `tf.contrib` whose functions became public elsewhere: their names here are aliases of those.

A line is a module, then names: `name` for the same name in the other module, `name=other` for another one.
"""

from __future__ import annotations

from stoker._src.base.export import export_alias

# contrib module -> (public module, names)
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("autograph", "autograph", "to_code to_graph"),
    ("autograph", "autograph.experimental", "Feature do_not_convert set_loop_options"),
    ("checkpoint", "train", "CheckpointManager"),
    (
        "distributions",
        "distributions",
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential FULLY_REPARAMETERIZED Gamma Laplace "
        "Multinomial NOT_REPARAMETERIZED Normal RegisterKL ReparameterizationType StudentT Uniform kl_divergence",
    ),
    ("distribute", "distribute", "CrossDeviceOps MirroredStrategy OneDeviceStrategy ReplicaContext get_loss_reduction"),
    ("distribute", "distribute", "get_replica_context get_strategy has_strategy in_cross_replica_context"),
    ("distribute", "distribute", "DistributionStrategy=Strategy get_distribution_strategy=get_strategy"),
    ("distribute", "distribute", "has_distribution_strategy=has_strategy"),
    ("eager", "", "GradientTape TensorSpec custom_gradient enable_eager_execution executing_eagerly function"),
    ("eager", "", "in_eager_mode=executing_eagerly make_template py_func=py_function"),
    ("eager", "train", "Checkpoint"),
    (
        "feature_column",
        "feature_column",
        "sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity "
        "sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list "
        "sequence_numeric_column",
    ),
    ("framework", "", "TensorSpec py_func"),
    ("learn", "estimator", "ModeKeys"),
    ("nn", "nn", "conv1d_transpose=conv1d_transpose"),
    (
        "signal",
        "signal",
        "frame hamming_window hann_window inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix "
        "mfccs_from_log_mel_spectrograms overlap_and_add stft",
    ),
    ("stateless", "random", "stateless_multinomial stateless_random_normal=stateless_normal"),
    ("stateless", "random", "stateless_random_uniform=stateless_uniform stateless_truncated_normal"),
)

for _room, _home, _names in _TABLE:
    for _name in _names.split():
        _here, _, _there = _name.partition("=")
        export_alias(f"contrib.{_room}.{_here}", f"{_home}.{_there or _here}".lstrip("."))
