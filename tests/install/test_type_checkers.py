"""Type checkers see the public functions: mypy runs here; pyright checks the same script with the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_script.py")
WITHOUT_TYPES_HERE = (
    "casadi dask h5netcdf h5py jax llvmlite matplotlib mujoco pandas rich scipy sympy trimesh"
)
"""Packages whose types no call of the script has; to read them takes as long as all else."""


def mypy(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    modules = ",".join(f"{name}.*" for name in WITHOUT_TYPES_HERE.split())
    settings = cache / "mypy.ini"
    settings.write_text(f"[mypy]\n[mypy-{modules}]\nfollow_imports = skip\n", encoding="utf-8")
    common = ["--python-version=3.11", "--follow-imports=silent", f"--cache-dir={cache}"]
    common.append(f"--config-file={settings}")
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
