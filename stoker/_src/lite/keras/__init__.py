"""Graphs of models that Keras saved: each layer as the ops that it computes with, with its weights as constants."""
