"""Recordings of runs as labelled datasets, and their files."""
