"""Type checkers see the public functions: mypy runs here; pyright checks the same script with the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_script.py")


def mypy(script: Path, cache: Path, *options: str) -> subprocess.CompletedProcess[str]:
    common = ["--python-version=3.11", "--follow-imports=silent", f"--cache-dir={cache}"]
    command = [sys.executable, "-m", "mypy", *common, *options, str(script)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cache, check=False)


def test_mypy_checks_the_calls_of_a_users_script(tmp_path):
    """A wrong call that mypy overlooked would leave a comment that ignores nothing, which is an error."""
    result = mypy(SCRIPT, tmp_path, "--warn-unused-ignores")
    assert result.returncode == 0, result.stdout + result.stderr
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.read_text(encoding="utf-8").replace("# type: ignore", "# "), encoding="utf-8")
    result = mypy(script, tmp_path)
    assert 'Unexpected keyword argument "duraton" for "simulate"' in result.stdout
    assert 'Module has no attribute "simulat"' in result.stdout
