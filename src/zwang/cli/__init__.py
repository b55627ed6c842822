"""The command line: each command calls one function of the library, and prints or writes its result."""

from __future__ import annotations

from zwang.cli import (
    analysis_commands,
    convert_command,
    demo_commands,
    export_command,
    identify_command,
    model_commands,
    run_commands,
)
from zwang.cli.application import app, main

__all__ = [
    "analysis_commands",
    "app",
    "convert_command",
    "demo_commands",
    "export_command",
    "identify_command",
    "main",
    "model_commands",
    "run_commands",
]
