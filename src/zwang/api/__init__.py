"""The public functions: one table of them, checks of arguments, compiled functions, simulation runs."""
