"""Derivatives of traced values as further nodes of the same graph."""
