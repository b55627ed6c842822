"""Mesh files: where they may be, and the triangles in them."""
