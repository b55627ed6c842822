"""Gauss's problem of a mechanism: mass matrix, bias forces, dynamics both ways, energies, the Zwang."""
