"""`tf.distribute`: strategies for processes that hold the same variables. One replica is one process."""
