"""Type checkers see the public functions: mypy runs here; pyright checks the same script with the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_script.py")


def test_mypy_checks_the_calls_of_a_users_script(tmp_path):
    """A wrong call that mypy overlooked would leave a comment that ignores nothing, which is an error."""
    options = ["--python-version=3.11", "--warn-unused-ignores", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", str(SCRIPT)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy_detects_a_misspelt_argument(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.read_text(encoding="utf-8").replace("# type: ignore", "# "), encoding="utf-8")
    options = ["--python-version=3.11", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    command = [sys.executable, "-m", "mypy", *options, str(script)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert 'Unexpected keyword argument "duraton" for "simulate"' in result.stdout
    assert 'Module has no attribute "simulat"' in result.stdout
