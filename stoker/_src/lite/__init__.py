"""`tf.lite`: conversion of graphs to TFLite models, and their execution by LiteRT."""
