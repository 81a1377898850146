"""`tf.contrib.framework`: default arguments by scope, variables of models, and small checks."""
