"""`tf.contrib.rnn`: recurrent cells beyond those of `tf.nn.rnn_cell`, fused cells, and stacks of bidirectional networks."""
