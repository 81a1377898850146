"""`tf.contrib`: the part of 1.x outside of its stable API."""
