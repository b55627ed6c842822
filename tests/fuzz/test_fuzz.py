"""Every mutant and misuse gives a result or an error of zwang; `python -m tests.fuzz` runs any number."""

from __future__ import annotations

import sys
from enum import EnumType
from pathlib import Path

import pytest

import zwang as zw
from tests.fuzz import calls, client_calls
from tests.fuzz.__main__ import run
from tests.fuzz.corpus import bases
from tests.fuzz.mutate import mutant
from tests.fuzz.trial import outcome_of, try_file

FILES, CALLS = 60, 500


def test_base_files_are_valid(tmp_path: Path) -> None:
    """Base files load without errors, so that errors of mutants are due to the mutations."""
    for base in bases()[:4]:
        assert try_file(base, tmp_path)["strict"] == ("accepted", ""), base.name


def test_every_public_name_has_a_valid_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = {name.split()[0] for name, _ in calls.argument_names()}
    public = {name: getattr(zw, name) for name in zw.__all__}
    assert {k for k, x in public.items() if callable(x) and not isinstance(x, EnumType)} <= named
    assert client_calls.public_client_names() <= named
    for name in (*calls.PARTS, *client_calls.client_calls()):
        assert calls.outcome(calls.made(name, {}), tmp_path)[0] == "accepted", name


@pytest.mark.parametrize("first", range(0, FILES, 20))
def test_mutated_files_load_or_raise(first: int, tmp_path: Path) -> None:
    for number in range(first, first + 20):
        found = try_file(mutant(number), tmp_path)
        assert all(what != "foreign" for what, _ in found.values()), (number, found)


@pytest.mark.parametrize("first", range(0, CALLS, 100))
def test_misuses_of_the_interface_raise(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(first, first + 100):
        misuse = calls.misuse(number)
        what, message = calls.outcome(misuse, tmp_path)
        assert what != "foreign", (number, misuse.title, message)


def test_the_judge_detects_a_foreign_exception() -> None:
    def silent() -> None:
        raise zw.errors.LoadError("")

    assert outcome_of(lambda: 1 / 0)[0] == "foreign"
    assert outcome_of(silent)[0] == "foreign"
    assert outcome_of(lambda: zw.Body("")) == (
        "refused",
        "a body's name is ''; it must be a non-empty string",
    )
    assert outcome_of(lambda: 1) == ("accepted", "")


def test_the_command_detects_crashes_and_hangs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A worker that is replaced by a process that crashes or does not respond."""
    python = sys.executable
    for script, message in (
        ("print(flush=True); import os; os.abort()", "crash"),
        ("print(flush=True); import time; time.sleep(60)", "hang"),
    ):
        program = tmp_path / message
        program.write_text(f"#!/bin/sh\nexec {python} -c '{script}'\n")
        program.chmod(0o755)
        monkeypatch.setattr("tests.fuzz.__main__.sys.executable", str(program))
        assert run("files", 0, 1, 1, 1.0 if message == "hang" else 20.0) == 1
        assert message in capsys.readouterr().out
