"""`tf.feature_column`: how raw features become the first layer of a model."""
