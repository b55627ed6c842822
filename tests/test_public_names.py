"""The front door: every name is there, documented, and means the same whatever was imported before."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import zwang as zw


@pytest.mark.parametrize("name", sorted(zw._NAMES))
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(zw, name)), f"zw.{name} has no docstring"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("Bodyy", "Body"), ("simulte", "simulate"), ("prismatic", "Prismatic"), ("robots", "robot")],
)
def test_a_mistyped_name_is_answered_with_the_nearest(wrong, meant):
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(zw, wrong)


def test_an_unknown_name_says_where_to_look():
    with pytest.raises(AttributeError, match=r"no name 'qqqq'\. dir\(zwang\) lists"):
        zw.qqqq  # noqa: B018
    assert not hasattr(zw, "Bodyy")


def test_a_traceback_asks_what_was_meant_once():
    """Python adds a question of its own to an AttributeError that does not say which object it is about."""
    done = subprocess.run([sys.executable, "-c", "import zwang; zwang.Bodyy"], capture_output=True, text=True)
    assert done.stderr.count("Did you mean") == 1


@pytest.mark.parametrize("first", ["zwang.compiler.frontend.trace", "zwang.simulation.step", "zwang.api.compiled"])
def test_functions_named_as_rooms_stay_functions(first):
    code = f"import {first}, zwang as zw; assert callable(zw.compile) and callable(zw.simulate)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_light():
    """Nothing heavier than NumPy is loaded by importing the front door."""
    code = "import sys, zwang; print(*(m for m in ('scipy', 'sympy', 'llvmlite', 'matplotlib', 'xarray', 'mujoco') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""
