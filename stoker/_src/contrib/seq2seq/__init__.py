"""`tf.contrib.seq2seq`: decoders, helpers that feed them, attention, beam search, and the loss of sequences."""
