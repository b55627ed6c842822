"""Gauss's problem with rows: accelerations and constraint forces. Records only, never a mechanism."""
