"""Integrators: they take functions, not mechanisms."""
