"""Passes from program to program, between tracing and code generation."""
