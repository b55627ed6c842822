"""The description of a mechanism as immutable, validated data, and its kinematic tree."""
