"""The programs of a mechanism, and its functions as machine code."""
