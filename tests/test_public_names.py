"""The public names: each exists, is documented, is visible to type checkers, and needs no earlier import."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import resources

import pytest

import zwang as zw


@pytest.mark.parametrize("name", sorted(zw._NAMES))
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(zw, name)), f"zw.{name} has no docstring"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("Bodyy", "Body"), ("simulte", "simulate"), ("prismatic", "Prismatic"), ("robots", "robot")],
)
def test_the_error_for_a_mistyped_name_suggests_the_nearest(wrong, meant):
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(zw, wrong)


def test_the_error_for_an_unknown_name_refers_to_dir():
    with pytest.raises(AttributeError, match=r"no name 'qqqq'\. dir\(zwang\) lists"):
        zw.qqqq  # noqa: B018
    assert not hasattr(zw, "Bodyy")


def test_a_traceback_has_one_suggestion():
    """Python adds a question of its own to an AttributeError that does not say which object it is about."""
    done = subprocess.run([sys.executable, "-c", "import zwang; zwang.Bodyy"], capture_output=True, text=True)
    assert done.stderr.count("Did you mean") == 1


@pytest.mark.parametrize(
    "first",
    [
        "zwang.compiler.frontend.trace",
        "zwang.simulation.step",
        "zwang.api.compilation.compiled",
        "zwang.viewer.plot",
    ],
)
def test_functions_are_not_hidden_by_modules(first):
    functions = "('compile', 'simulate', 'view')"
    code = f"import {first}, zwang as zw; assert all(callable(getattr(zw, name)) for name in {functions})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_completion_lists_all_exceptions_and_warnings_and_no_helpers():
    classes = {
        name
        for name, kind in vars(zw.errors).items()
        if inspect.isclass(kind) and issubclass(kind, BaseException)
    }
    assert dir(zw.errors) == sorted(classes) and set(zw.errors.__all__) == classes


def test_import_is_light():
    """Importing zwang loads no library heavier than NumPy."""
    heavy = "('scipy', 'sympy', 'llvmlite', 'matplotlib', 'xarray', 'mujoco')"
    code = f"import sys, zwang; print(*(m for m in {heavy} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""


def type_checking_imports() -> dict[str, str]:
    """The names that a type checker sees in the public module, with their modules."""
    tree = ast.parse(inspect.getsource(zw))
    guarded = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    found = {}
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            is_module = zw._MODULES.get(alias.asname) == f"{node.module}.{alias.name}"
            assert alias.asname == alias.name or is_module, f"{alias.name} is not re-exported as itself"
            found[alias.asname] = node.module or ""
    return found


def test_type_checkers_see_every_lazy_name():
    found = type_checking_imports()
    assert {name: module for name, module in found.items() if name not in zw._MODULES} == zw._NAMES
    assert set(zw.__all__) == set(zw._NAMES) | set(zw._MODULES)


def test_types_ship():
    assert resources.files("zwang").joinpath("py.typed").is_file()


@pytest.mark.parametrize(
    "function", [zw.simulate, zw.compile, zw.constrained_dynamics, zw.forward_dynamics, zw.task_acceleration]
)
def test_the_arguments_of_public_functions_have_types_and_descriptions(function):
    for name, parameter in inspect.signature(function).parameters.items():
        assert parameter.annotation not in (inspect.Parameter.empty, "Any"), f"{function.__name__}: {name}"
        assert re.search(rf"\b{name}[:,]", inspect.getdoc(function)) or name == "mechanism"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Couple", "JointCoupling"), ("CoupleTendons", "TendonCoupling"), ("examine", "derived_quantities")],
)
def test_names_of_version_0_1_still_work(old, new):
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(zw, old) is getattr(zw, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ContradictionError", "InconsistentConstraintsError"),
        ("DependentSpeedsError", "DependentVelocitiesError"),
        ("WorkingForceError", "NonIdealForceError"),
    ],
)
def test_errors_of_version_0_1_still_work(old, new):
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(zw.errors, old) is getattr(zw.errors, new)
