"""The reader of MJCF files, on the basis of the compiler of MuJoCo."""
