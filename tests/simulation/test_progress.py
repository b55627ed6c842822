"""The progress bar appears after a second, on the error stream."""

from __future__ import annotations

import functools
import sys
import time
import warnings

import pytest
from rich.console import Console

from zwang.api.runs import progress
from zwang.api.runs.progress import progress_bar


@pytest.mark.parametrize(
    ("patience", "shown", "expected"), [(0.05, True, True), (60.0, True, False), (0.05, False, False)]
)
def test_the_progress_bar_appears_after_a_delay(monkeypatch, capsys, patience, shown, expected):
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("preparing [x]", "simulating [x]", 10, shown=shown) as tick:
        tick(5)
        time.sleep(0.4)
        tick(5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("simulating [x]" in captured.err) == expected


def test_an_error_removes_the_progress_bar(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with pytest.raises(ZeroDivisionError), progress_bar("a", "b", 1) as tick:
        time.sleep(0.05)
        tick(1 // 0)
    with progress_bar("a", "b", 1) as tick:
        tick(1)


def test_a_notebook_without_widgets_shows_no_bar_and_no_warning(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "Console", functools.partial(Console, force_jupyter=True))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with warnings.catch_warnings(), progress_bar("a", "b", 1) as tick:
        warnings.simplefilter("error")
        time.sleep(0.1)
        tick(1)
    assert capsys.readouterr() == ("", "")
