"""Numerical integrators. They take functions of the state, and know nothing of mechanisms."""
