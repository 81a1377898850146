"""Element-wise arithmetic, comparisons, reductions, sorting, segments, special functions."""
