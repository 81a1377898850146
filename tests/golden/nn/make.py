"""Records what TensorFlow computes for the networks: run with TensorFlow's Python, from this folder."""

import networks
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
found = {}
for seed, network in enumerate(networks.NETWORKS):
    found.update(networks.results(tf, network, seed))
np.savez_compressed("tf2.npz", **found)
print(len(found), "arrays", sum(value.size for value in found.values()), "numbers")
