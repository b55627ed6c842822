"""The project's own documents are correct: files named by recipes, versions, platforms, commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import zwang as zw

ROOT = Path(__file__).parents[1]
GUIDES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "developer").glob("*.md"))]
WORKFLOWS = {path.stem: path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FILE = re.compile(r"(?:src|tests|docs|examples|benchmarks|\.github)(?:/[\w.-]+)+|[A-Z_]{4,}\.(?:md|cff)")


def named_files(guide: Path) -> list[str]:
    """The files and folders of the checkout that stand in backticks, or in commands."""
    text = re.sub(r"\S*NAME\S*", "", guide.read_text("utf-8"))
    return [name for code in re.findall(r"`([^`\n]+)`", text) for name in FILE.findall(code)]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_files_that_a_guide_names_are_there(guide):
    missing = [name for name in named_files(guide) if not (ROOT / name).exists()]
    assert not missing, f"{guide.name} names {missing}"


def test_the_recipes_name_files():
    """The check above sees them: at least these."""
    names = named_files(ROOT / "CONTRIBUTING.md")
    assert {"tests/mechanisms.py", "tests/test_layers.py", "docs/index.md", "SECURITY.md"} <= set(names)
    assert len([name for name in names if name.startswith("src/zwang/")]) >= 20


def test_names_in_the_recipes_are_in_their_files():
    """Behind a file, in brackets, stands a name that the file has."""
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
    pairs = re.findall(r"`((?:src|tests)/[\w/]+\.py)` \((?:beside )?`(\w+)`\)", text)
    assert len(pairs) >= 10
    for file, name in pairs:
        assert re.search(rf"\b{name}\b", (ROOT / file).read_text("utf-8")), f"{file} has no {name}"


def test_the_packages_that_the_guide_lists_are_those_of_the_source():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.split("| package in `src/zwang` |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "src" / "zwang").glob("*/*.py")}
    assert set(listed) == packages and len(listed) == len(packages)


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (\S+)$", text, re.MULTILINE)[1] == zw.__version__ == PROJECT["version"]
    assert re.search(r"^license: (\S+)$", text, re.MULTILINE)[1] == PROJECT["license"]


def test_the_workflows_cover_every_platform_and_version():
    matrix = WORKFLOWS["tests"]
    versions = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", matrix)[1])
    assert versions == ["3.11", "3.12", "3.13", "3.14"] and PROJECT["requires-python"] == f">={versions[0]}"
    assert re.search(r"os: \[(.*)\]", matrix)[1] == "ubuntu-latest, macos-latest, windows-latest"
    assert f'python-version: "{versions[0]}"' in matrix
    assert "--resolution lowest-direct" in (ROOT / ".ci" / "lowest").read_text("utf-8")
    checks = (
        ".ci/lowest",
        ".ci/beside",
        ".ci/beside 3.3.0 3.17.0 4.0.1",
        "timeout 60 python -m tests.faults",
    )
    assert all(f"- run: {check}\n" in matrix for check in checks)


def test_the_workflows_run_the_commands_of_the_readme():
    """A contributor who runs what the README says runs what the workflows run."""
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = {
        part.strip().replace("'", '"').replace('pip install ".[', 'python -m pip install ".[')
        for line in re.findall(r"^pip install '\.\[.*$", readme, re.MULTILINE)
        for part in line.split("&&")
    }
    assert len(commands) == 4
    run = {line.strip().removeprefix("- run: ") for text in WORKFLOWS.values() for line in text.split("\n")}
    assert commands <= run


def test_every_extra_that_a_command_installs_exists():
    texts = [*WORKFLOWS.values(), *(guide.read_text("utf-8") for guide in GUIDES)]
    extras = {
        extra for text in texts for names in re.findall(r"\.\[([\w,]+)\]", text) for extra in names.split(",")
    }
    assert {"test", "lint", "docs"} <= extras <= set(PROJECT["optional-dependencies"])


def test_the_hooks_are_programs_of_the_lint_extra():
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    programs = set(re.findall(r"entry: (\w+)", text))
    needed = {re.split(r"[><=]", name)[0] for name in PROJECT["optional-dependencies"]["lint"]}
    assert programs == {"ruff", "pyright"} and programs <= needed


def test_a_guide_says_how_to_run_one_test():
    """The first test command of the guide, as it stands there, passes."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    command = re.search(r"`python (-m pytest -n 0 [^`]+)` \| runs one file", text)[1]
    done = subprocess.run([sys.executable, *command.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr
