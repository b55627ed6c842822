"""Smooth dynamics: inverse and forward dynamics, mass matrix, energies, momentum, and generalised forces."""
