"""Every input of tests/badinputs has the expected outcome, without crash, hang or silent NaN."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io import badinputs, misuse
from tests.io.badinputs import Outcome, expectations, failure, try_file, try_in_child
from zwang.errors import ZwangError, ZwangWarning

FILES = expectations(("urdf", "mjcf"))
CALLS = expectations(("api",))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return badinputs.staged(tmp_path_factory.mktemp("bad"))


def outcome_of(case: dict[str, Any], root: Path) -> Outcome:
    """The outcome in this process.

    In a thread of its own: CPython allocates and frees memory at every call that crosses the end of a block
    of its stack of frames, which depends on the depth at which the runner calls a test and can make the same
    computation ten times slower.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(try_file, root / case["file"]).result()


def outcomes_of(cases: list[dict[str, Any]], root: Path) -> dict[str, Outcome]:
    """The outcomes by name of the case; large inputs are run in a separate process each, and the others with
    a bound on memory in one for all, so that none of them takes more than the bound.
    """
    alone = [[case] for case in cases if case.get("big")]
    bounded = [case for case in cases if not case.get("big") and case["max_mb"] < 1024]
    found = {}
    for group in (*alone, bounded):
        outcomes = try_in_child([root / x["file"] for x in group], sum(x["max_s"] for x in group))
        found.update(zip((x["name"] for x in group), outcomes, strict=True))
    return {case["name"]: found.get(case["name"]) or outcome_of(case, root) for case in cases}


def test_files(root: Path) -> None:
    """Every input is rejected, accepted with a warning, or accepted, as expected.

    The cases mark inputs that cannot be detected: an identity quaternion in the other order is a half turn.
    Such an input may pass in silence, and in no other way.
    """
    outcomes = outcomes_of(FILES, root)
    failures = {
        case["name"]: found for case in FILES if (found := failure(case, outcomes[case["name"]], root))
    }
    for case in FILES:
        if case.get("undetectable") and failures.get(case["name"]) == badinputs.SILENT:
            del failures[case["name"]]
    assert not failures, "\n".join(f"{name}: {why}" for name, why in failures.items())


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case["name"])
def test_misuse(case: dict[str, Any], tmp_path: Path) -> None:
    """A misuse raises an error of zwang with a message; a harmless use gives finite numbers.

    A case that requires a warning at least may pass without one only if its results equal those of the proper
    use bit for bit.
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
    messages = [w for w in caught if issubclass(w.category, ZwangWarning)]
    assert case["must"] != "reject", f"accepted, with {len(messages)} warnings"
    if case["must"] == "reject_or_warn" and not messages:
        assert isinstance(found, misuse.Comparison), "accepted without a word"
        np.testing.assert_array_equal(found.results, found.expected)
        found = found.results
    assert all(np.isfinite(np.asarray(part, float)).all() for part in found)


def test_the_judge_detects_failures(root: Path) -> None:
    """The judge detects silent failures, leaks, slowness, vague messages and messages on other problems."""
    case = {
        "name": "x",
        "file": "urdf/x.urdf",
        "must": "reject",
        "where": ["arm"],
        "what": ["mass"],
        "max_s": 1,
        "max_mb": 9,
        "canary": "SECRET",
    }
    good = Outcome(error="mass of link 'arm' is negative")
    assert not failure(case, good, root)
    bad = [
        Outcome(),
        Outcome(error="mass is negative"),
        Outcome(error="arm is wrong"),
        Outcome(error="arm: mass", typed=False),
        Outcome(error="arm: mass", seconds=2 * badinputs.SLOW_MACHINE),
        Outcome(error="arm: mass", megabytes=10),
        Outcome(error="arm: mass SECRET"),
        Outcome(warnings=["mass of arm"]),
        Outcome(error="something else", warnings=["mass of arm"]),
        Outcome(error="arm", warnings=["mass"]),
        Outcome(error="arm: mass", opened=[str(root / "outside" / "secret.txt")]),
    ]
    assert all(failure(case, outcome, root) for outcome in bad)
    warned = {**case, "must": "reject_or_warn"}
    assert not failure(warned, Outcome(warnings=["something else", "mass of arm"]), root)
    assert failure(warned, Outcome(warnings=["something else", "mass", "arm"]), root)
    assert failure({**case, "must": "accept"}, good, root)
    assert failure({**case, "must": "accept"}, Outcome(finite=False), root)
