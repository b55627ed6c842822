"""Solvers of Gauss's problem with constraint rows: accelerations and constraint forces from records, without
a mechanism.
"""
