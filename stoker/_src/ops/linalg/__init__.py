"""Matrix products, diagonals, decompositions, solvers, contractions."""
