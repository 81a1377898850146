"""`tf.estimator`: models as functions, with training, evaluation, prediction and export around them."""
