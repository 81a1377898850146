"""Neural network ops, one module for each idea: activations, convolutions, pooling, normalization, losses, CTC."""
