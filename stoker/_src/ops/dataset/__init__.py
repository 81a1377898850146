"""Datasets: recipes for sequences of elements (values of dtype variant), and iterators, which are resources."""
