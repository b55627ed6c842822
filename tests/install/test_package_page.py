"""The README as a package index shows it."""

import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parents[2]


def test_no_link_of_the_package_page_leads_into_a_checkout() -> None:
    """A package index has no files beside the README: what is linked there begins with https, and its words stay."""
    settings = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    text = before = (FOLDER / "README.md").read_text(encoding="utf-8")
    for change in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not re.match(r"https?://|#", link)] == []
    for title in re.findall(r"(?<!!)\[([^\]]+)\]\([^)]+\.md\)", before):
        assert title in text
