"""The code in README, docs and examples runs, in the order in which it is read."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Python blocks of a page share their names; in console blocks, lines after `$ zwang` are run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = {"__name__": "__main__"}
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, text = found.groups()
        line = page.read_text(encoding="utf-8")[: found.start()].count("\n") + 2
        if kind == "python":
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
            continue
        for command in re.findall(r"^\$ (zwang .*)$", text, re.MULTILINE):
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            assert done.returncode == 0, f"{page.name}:{line}: {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example prints what it found"
