"""`tf.contrib.legacy_seq2seq`: networks from sequences to sequences, unrolled over lists of inputs."""
