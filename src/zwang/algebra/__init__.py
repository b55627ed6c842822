"""Algebra without mechanics: rotations, inertias, factorisations of matrices, dual numbers, convex hulls."""
