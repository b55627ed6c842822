"""Transformations of programs between tracing and code generation."""
