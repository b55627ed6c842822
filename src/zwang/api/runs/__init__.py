"""Simulation runs: recorded simulations of many worlds, compiled or error-controlled, and their warnings."""
