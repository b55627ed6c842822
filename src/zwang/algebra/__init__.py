"""Numbers to numbers: rotations, inertias, linear systems. It knows no mechanism."""
