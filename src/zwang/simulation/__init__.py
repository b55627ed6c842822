"""The simulation core: one step, its constraint stage, its status, and rollouts of many steps."""
