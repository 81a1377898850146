"""`tf.image`: what is composed of ops. The ops themselves (resizing kernels, colours, boxes, codecs) are in `ops/image`."""
