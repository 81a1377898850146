"""Initial values by every initializer, written once for TensorFlow and for stoker."""

import numpy as np

SHAPES = ([3, 4], [4, 3], [2, 3, 5])


def _values(tf, made):
    found = {}
    for name, initializer in made.items():
        for shape in SHAPES:
            if name in ("identity", "delta") and len(shape) != (2 if name == "identity" else 3):
                continue
            with tf.Graph().as_default():
                tf.set_random_seed(17)
                variable = tf.get_variable("w", shape, initializer=initializer)
                with tf.Session() as session:
                    session.run(variable.initializer)
                    found[f"{name}|{shape}"] = session.run(variable)
    return found


def v1_values(tf):
    """The initializers of 1.x, through get_variable."""
    return _values(
        tf,
        {
            "orthogonal": tf.orthogonal_initializer(gain=2.0, seed=3),
            "orthogonal_unseeded": tf.initializers.orthogonal(),
            "identity": tf.initializers.identity(gain=3.0),
            "glorot_normal": tf.glorot_normal_initializer(),
            "variance": tf.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=1),
            "unit": tf.uniform_unit_scaling_initializer(seed=2),
        },
    )


def contrib_values(tf):
    """The initializers of tf.contrib (1.15)."""
    layers = tf.contrib.layers
    return _values(
        tf,
        {
            "xavier": layers.xavier_initializer(seed=4),
            "xavier_normal": layers.xavier_initializer(uniform=False, seed=8),
            "contrib_variance": layers.variance_scaling_initializer(seed=5),
            "contrib_variance_out": layers.variance_scaling_initializer(1.5, "FAN_OUT", True, seed=9),
            "delta": tf.contrib.framework.convolutional_delta_orthogonal(gain=2.0, seed=6),
        },
    )


def v2_values(tf):
    """The initializers of 2.x with a seed, called in eager mode."""
    made = {
        "uniform": tf.random_uniform_initializer(seed=1),
        "normal": tf.random_normal_initializer(seed=1),
        "glorot": tf.initializers.GlorotUniform(seed=1),
        "he_normal": tf.initializers.HeNormal(seed=2),
        "lecun": tf.initializers.LecunUniform(seed=2),
        "truncated": tf.initializers.TruncatedNormal(seed=3),
        "orthogonal": tf.initializers.Orthogonal(seed=3),
        "zeros": tf.zeros_initializer(),
        "constant": tf.constant_initializer(2.5),
    }
    return {f"v2_{name}|{shape}": np.array(each(shape)) for name, each in made.items() for shape in SHAPES}
