"""Execution of the code in README, docs and examples, in the order of each page."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```(python|\{code-cell\} python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"\A(---\n.*?^---\n|(:[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
NEEDS = {
    "torch_policy.py": "torch",
    "torch_ppo.py": "torch",
    "torch_jump.py": "torch",
    "stable_baselines3_ppo.py": "stable_baselines3",
}
"""Examples that need a library which the tests do not install."""
PAGES_NEED = {"drive_a_real_robot.md": "example-robot-data"}
"""Pages that need a package which the tests do not install on Windows."""
SHORT = {
    "ppo.py": ["--task", "zwang/InvertedPendulum-v5", "--minutes", "0.05", "--envs", "8"],
    "walking_quadruped.py": ["--minutes", "0.01", "--envs", "8", "--tested", "8"],
    "joystick_quadruped.py": ["--minutes", "0.01", "--envs", "8", "--tested", "8"],
    "torch_jump.py": ["--iterations", "15"],
    "trajectory_optimisation.py": ["furuta", "--short"],
    "torch_ppo.py": ["--env-id", "zwang/InvertedPendulum-v5", "--num-envs", "8", "--total-timesteps", "2000"],
    "backflip.py": ["--generations", "2", "--samples", "32"],
    "co_design.py": ["--generations", "2", "--samples", "32"],
    "predictive_control.py": ["cart_pole", "humanoid", "--seconds", "0.2"],
}
"""Arguments with which the tests run examples that take minutes."""
RUNS_CELLS = os.environ.get("ZWANG_TEST_CELLS") == "1"
"""Whether the cells of pages run here too, and not only where the site is built."""


def _pages() -> list[Path]:
    """All pages, or those with code that the build of the site does not execute."""
    readme, pages = ROOT / "README.md", sorted((ROOT / "docs").rglob("*.md"))
    if not RUNS_CELLS:
        pages = [page for page in pages if "```console" in page.read_text(encoding="utf-8")]
    return [readme, *pages]


@pytest.mark.parametrize("page", _pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Python blocks of a page share their names; commands `$ zwang ...` of console blocks are run."""
    if sys.platform == "win32" and page.name in PAGES_NEED:
        pytest.skip(f"needs {PAGES_NEED[page.name]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ZWANG_ROOT", str(ROOT))
    page_text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(page_text))
    names = {"__name__": "__main__"}
    for found in blocks:
        kind, text = found.groups()
        line = page_text[: found.start()].count("\n") + 2
        if not RUNS_CELLS and kind == "{code-cell} python":
            continue
        if kind == "console":
            _run_commands(text, f"{page.name}:{line}")
        elif "raises-exception" in text:
            with pytest.raises(Exception):  # noqa: B017, the page shows the error
                _run_python(text, line, page, names)
        else:
            _run_python(text, line, page, names)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _run_python(text, line, page, names):
    options = OPTIONS.match(text)
    skipped = options[0].count("\n") if options else 0
    code = "\n" * (line - 1 + skipped) + (text[options.end() :] if options else text)
    exec(compile(code, str(page), "exec"), names)


def _run_commands(text, location):
    for command in re.findall(r"^\$ (zwang .*)$", text, re.MULTILINE):
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert done.returncode == 0, f"{location}: {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs_and_prints_its_results(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(sys, "argv", [str(script), *SHORT.get(script.name, [])])
    monkeypatch.syspath_prepend(str(script.parent))
    if script.name in NEEDS:
        pytest.importorskip(NEEDS[script.name])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example prints its results"
