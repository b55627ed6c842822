"""What a mechanism can do as a robot: manipulability, statics, inverse kinematics."""
