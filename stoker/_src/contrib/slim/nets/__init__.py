"""`tf.contrib.slim.nets`: networks of the papers, with the variables of their published checkpoints."""
