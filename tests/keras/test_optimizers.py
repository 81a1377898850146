"""Optimizers of tf.keras."""

import numpy as np

import stoker.compat.v1 as tf


def test_the_numbers_of_an_optimizer_are_on_the_host():
    """With a GPU, an update takes its rates and decays from the host, while weights and moments are where the program wants them."""
    with tf.Graph().as_default(), tf.Session():
        model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
        model.train_on_batch(np.ones([4, 3], "f"), np.ones([4, 2], "f"))
        numbers = {variable.name.split("/")[-1]: variable.device for variable in tf.global_variables()}
    assert {name: numbers[name] for name in ("learning_rate:0", "decay:0", "beta_1:0", "beta_2:0")} == dict.fromkeys(
        ("learning_rate:0", "decay:0", "beta_1:0", "beta_2:0"), "/device:CPU:0"
    )
    assert numbers["kernel:0"] == ""
