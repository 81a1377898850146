"""`tf.contrib.slim`: the layers of contrib under one name, with loops for training and evaluation and readers of data."""
