"""`tf.distribute`: strategies for processes that hold copies of the same variables. Each process is one replica."""
