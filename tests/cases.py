"""The reference cases beside the checkout: others' numbers, as dictionaries."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("ZWANG_SHARED", Path(__file__).parents[2] / "shared"))
ABSENT = f"the reference cases are not beside the checkout ({SHARED.name}/)"


@cache
def case(folder: str, name: str) -> dict[str, Any]:
    """The case `name` (without ending) in a folder of shared/cases."""
    if not SHARED.exists():
        pytest.skip(ABSENT)
    plain = SHARED / "cases" / folder / f"{name}.json"
    if plain.exists():
        return json.loads(plain.read_text())
    with gzip.open(plain.with_suffix(".json.gz"), "rt") as file:
        return json.load(file)


def references(folder: str, name: str) -> list[Any]:
    """The references of a case, to parametrize a test by; one that is skipped where the cases are absent."""
    return case(folder, name)["reference"] if SHARED.exists() else [absent()]


def absent() -> Any:
    """A parameter whose test is skipped, because the reference cases are absent."""
    return pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))
