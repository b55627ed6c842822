"""Inverse kinematics of frames, for one target and for batches."""
