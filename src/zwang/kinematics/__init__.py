"""Kinematics: poses, velocities, accelerations and Jacobians as functions of q and v."""
