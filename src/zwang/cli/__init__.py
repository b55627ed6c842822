"""The command line: each command calls one function of the library, and prints or writes its result."""

from zwang.cli.application import app, main

__all__ = ["app", "main"]
