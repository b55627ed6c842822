"""URDF files, read strictly."""
