"""Exact derivatives of steps and rollouts."""
