"""The fit of parameters by simulation (output error)."""
