"""Every input of tests/badinputs ends as its case says; no crash, hang or silent NaN."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io import badinputs, misuse
from tests.io.badinputs import Outcome, expectations, fault, try_file, try_in_child
from zwang.errors import ZwangError, ZwangWarning

FILES = expectations(("urdf", "mjcf"))
CALLS = expectations(("api",))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return badinputs.staged(tmp_path_factory.mktemp("bad"))


def outcome_of(case: dict[str, Any], root: Path) -> Outcome:
    """What becomes of a case: those whose time and memory are bounded are tried in a process of their own."""
    path = root / case["file"]
    bounded = case.get("big") or case["max_mb"] < 1024
    return try_in_child(path, case["max_s"]) if bounded else try_file(path)


def test_files(root: Path) -> None:
    """Every input is refused, warned of or accepted as it should be.

    The cases themselves mark what cannot be told from what is meant: an identity quaternion in the other order is a half turn.
    Such an input may pass in silence, and in no other way.
    """
    faults = {case["name"]: found for case in FILES if (found := fault(case, outcome_of(case, root), root))}
    for case in FILES:
        if case.get("undetectable") and faults.get(case["name"]) == badinputs.SILENT:
            del faults[case["name"]]
    assert not faults, "\n".join(f"{name}: {why}" for name, why in faults.items())


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case["name"])
def test_misuse(case: dict[str, Any], tmp_path: Path) -> None:
    """A misuse raises a typed error that says something; a harmless use gives finite numbers.

    What is to be refused must be. What is to be refused or warned of may pass in silence only if it gives what the proper use does,
    bit for bit: then there is nothing to warn of.
    """
    call = getattr(misuse, case["name"].removeprefix("api_"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call(tmp_path)
        except (ZwangError, TypeError) as error:
            assert case["must"] != "accept", f"refused: {error}"
            assert len(str(error)) > 20
            return
    said = [w for w in caught if issubclass(w.category, ZwangWarning)]
    assert case["must"] != "reject", f"accepted, with {len(said)} warnings"
    if case["must"] == "reject_or_warn" and not said:
        assert isinstance(found, misuse.AsProper), "accepted without a word"
        np.testing.assert_array_equal(found.answers, found.of_proper_use)
        found = found.answers
    assert all(np.isfinite(np.asarray(part, float)).all() for part in found)


def test_the_judge_finds_faults(root: Path) -> None:
    """Silence, leaks, slowness, vagueness and another fault's message are faults; so the test above means something."""
    case = {
        "name": "x", "file": "urdf/x.urdf", "must": "reject", "where": ["arm"], "what": ["mass"], "max_s": 1, "max_mb": 9,
        "canary": "SECRET",
    }  # fmt: skip
    good = Outcome(error="mass of link 'arm' is negative")
    assert not fault(case, good, root)
    bad = [
        Outcome(), Outcome(error="mass is negative"), Outcome(error="arm is wrong"), Outcome(error="arm: mass", typed=False),
        Outcome(error="arm: mass", seconds=2), Outcome(error="arm: mass", megabytes=10), Outcome(error="arm: mass SECRET"),
        Outcome(warnings=["mass of arm"]), Outcome(error="something else", warnings=["mass of arm"]),
        Outcome(error="arm", warnings=["mass"]), Outcome(error="arm: mass", opened=[str(root / "outside" / "secret.txt")]),
    ]  # fmt: skip
    assert all(fault(case, outcome, root) for outcome in bad)
    warned = {**case, "must": "reject_or_warn"}
    assert not fault(warned, Outcome(warnings=["something else", "mass of arm"]), root)
    assert fault(warned, Outcome(warnings=["something else", "mass", "arm"]), root)
    assert fault({**case, "must": "accept"}, good, root)
    assert fault({**case, "must": "accept"}, Outcome(finite=False), root)
