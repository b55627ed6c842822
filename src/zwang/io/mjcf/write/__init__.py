"""The writer of MJCF files."""
