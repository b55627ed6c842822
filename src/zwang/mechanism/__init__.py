"""The description of a mechanism: frozen data, checked when built."""
