"""Type checkers see the public functions: mypy runs here; pyright checks the same script with the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_script.py")


def mypy(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    common = ["--python-version=3.11", "--follow-imports=silent", f"--cache-dir={cache}"]
    command = [sys.executable, "-m", "mypy", *common, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cache, check=False)


def test_mypy_checks_the_calls_of_a_users_script(tmp_path):
    """A wrong call that mypy overlooked would leave a comment that ignores nothing, which is an error."""
    script = tmp_path / "without_comments.py"
    script.write_text(SCRIPT.read_text(encoding="utf-8").replace("# type: ignore", "# "), encoding="utf-8")
    result = mypy(tmp_path, "--warn-unused-ignores", str(SCRIPT), str(script))  # both in one run
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert errors and all(line.startswith(script.name) for line in errors), result.stdout + result.stderr
    assert 'Unexpected keyword argument "duraton" for "simulate"' in result.stdout
    assert 'Module has no attribute "simulat"' in result.stdout
