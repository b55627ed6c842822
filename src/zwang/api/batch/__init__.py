"""Worlds that are stepped at the user's pace, with observations."""
