"""The update rules of optimizers as ops."""
