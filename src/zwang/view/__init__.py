"""Plots and the viewer."""
