"""The table of the public mechanics functions."""
