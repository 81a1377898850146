"""stoker: TensorFlow's training stack on PyTorch, under the 2.x names. The 1.x names are in `stoker.compat.v1`."""
