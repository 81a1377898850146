"""Neural network ops: activations, convolutions, pooling, normalization, losses, CTC and embeddings."""
