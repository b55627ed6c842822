"""The README on a package index."""

import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parents[2]


def test_the_package_page_has_no_links_into_a_checkout() -> None:
    """A package index has no other files than the README, so that all links must be https addresses."""
    settings = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    text = before = (FOLDER / "README.md").read_text(encoding="utf-8")
    for change in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not re.match(r"https?://|#", link)] == []
    for title in re.findall(r"(?<!!)\[([^\]]+)\]\([^)]+\.md\)", before):
        assert title in text
