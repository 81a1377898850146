"""`tf.image`: functions composed of ops. The ops themselves (resizing, colours, boxes, codecs) are in `ops/image`."""
