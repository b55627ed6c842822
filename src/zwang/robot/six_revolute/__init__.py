"""All inverse kinematics solutions of arms with six revolute joints."""
