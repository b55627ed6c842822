"""Plots, rich displays in notebooks, the offline HTML page and the live viewer."""
