"""Validation of the arguments of public functions: states, parameters, controls, events, settings, memory."""
