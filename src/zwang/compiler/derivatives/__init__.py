"""Algorithmic differentiation on the expression graph."""
