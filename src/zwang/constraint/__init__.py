"""Constraint rows of Gauss's problem: one file for each kind of constraint."""
