"""`tf.distributions` of TensorFlow 1: probability distributions built of ops."""
