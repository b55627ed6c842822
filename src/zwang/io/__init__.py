"""Readers of URDF, MJCF and JSON files, and plausibility checks of mechanisms."""
