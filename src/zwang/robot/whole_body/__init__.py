"""Whole-body inverse kinematics as Gauss's problem with rows: weighted tasks, priorities, limits."""
