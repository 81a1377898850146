"""`tf.contrib.learn`: of the estimators before `tf.estimator`, the preprocessing of texts."""
