"""The table of mechanics functions: the functions on floats, the compiled methods and their documentation
follow it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import random_mechanism, random_state
from zwang.api.analysis import reference
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.api.compilation.programs import COMPILED_FUNCTIONS, program_of
from zwang.api.functions.function_table import ARGUMENTS, FUNCTIONS

WITHOUT_OPTIONS = [name for name, f in FUNCTIONS.items() if not f.options]


def written_summary(function) -> str:
    """The docstring in the source, which editors show."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    return ast.get_docstring(tree)


def positional(function) -> list[str]:
    """The arguments that may be given by position."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_on_floats_follow_the_table(name):
    function, entry = getattr(zw, name), FUNCTIONS[name]
    assert function is getattr(reference, name)
    assert positional(function) == ["mechanism", *entry.arguments, *entry.options]
    assert function.__doc__ == entry.documentation()
    assert written_summary(function) == entry.summary


@pytest.mark.parametrize("name", [x for x in COMPILED_FUNCTIONS if x in FUNCTIONS])
def test_the_compiled_methods_follow_the_table(name):
    method, entry = getattr(CompiledMechanism, name), COMPILED_FUNCTIONS[name]
    assert positional(method) == ["self", *entry.arguments, *entry.options]
    assert "params" in inspect.signature(method).parameters
    assert method.__doc__ == entry.documentation("..., ")
    assert written_summary(method) == entry.summary


@pytest.mark.parametrize("name", [name for name in WITHOUT_OPTIONS if name in COMPILED_FUNCTIONS])
def test_programs_and_exported_code_have_the_shapes_of_the_table(name):
    m = random_mechanism(0, bodies=2)
    program = program_of(m, name)
    expected = [(x, ARGUMENTS[x].shape_in(m)) for x in FUNCTIONS[name].arguments]
    shapes = [(port.name, port.shape if port.shape == () else port.shape[0]) for port in program.inputs]
    assert shapes == expected
    source = zw.compile(m).source("c", name)
    assert all(f": {argument}\n" in source for argument in FUNCTIONS[name].arguments)


@pytest.mark.parametrize("name", WITHOUT_OPTIONS)
def test_a_wrong_shape_is_reported_by_the_name_of_the_argument(name):
    m = random_mechanism(0, bodies=2)
    q, v, tau, a = random_state(m, 0)
    values = {"q": q, "q0": q, "q1": q, "v": v, "tau": tau, "a": a, "dt": 0.1}
    values |= {"control": np.zeros(m.nv), "activation": np.zeros(0), "time": 0.0}
    for argument in FUNCTIONS[name].arguments:
        if ARGUMENTS[argument].size == "nv":
            wrong = values | {argument: np.zeros(m.nv + 1)}
            with pytest.raises(zw.errors.ShapeError, match=f"^{argument} must"):
                getattr(zw, name)(m, *(wrong[x] for x in FUNCTIONS[name].arguments))


def test_states_may_be_given_by_name():
    """A dictionary completes the home configuration and a state at rest; a keyframe has a name."""
    cart = zw.Body("cart", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)
    pole = zw.Body("pole", zw.Revolute("angle", axis=(0, 1, 0)), parent="cart", mass=1, com=(0, 0, 1))
    m = zw.Mechanism(
        "cart pole",
        [cart, pole],
        forces=[zw.Motor("push", "x")],
        home=(0.3, 0),
        keyframes=[zw.Keyframe("tilted", q=(0.1, 0.4))],
    )
    by_name = zw.forward_dynamics(m, {"angle": 0.4}, {"x": 2}, {"angle": 1})
    assert np.array_equal(by_name, zw.forward_dynamics(m, [0.3, 0.4], [2, 0], [0, 1]))
    assert np.array_equal(zw.frame_pose(m, "tilted", "pole").p, zw.frame_pose(m, [0.1, 0.4], "pole").p)
    assert zw.linearize(m, "tilted", control={"push": 2}).control == [2]
    assert np.array_equal(zw.trim(m, {"x": 1}, fixed=["x"]).q, [1, 0])
    with pytest.raises(zw.errors.UnknownNameError, match=r"no coordinate 'angel'. Did you mean 'angle'"):
        zw.mass_matrix(m, {"angel": 0.4})
    with pytest.raises(zw.errors.UnknownNameError, match=r"no keyframe 'tilt'. Did you mean 'tilted'"):
        zw.mass_matrix(m, "tilt")
    with pytest.raises(zw.errors.StateError, match=r"q\['angle'\] must hold real numbers"):
        zw.mass_matrix(m, {"angle": "up"})


@pytest.mark.parametrize("axes", ["local", 3, None])
@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if "axes" in f.options])
def test_wrong_axes_are_the_documented_error_on_floats_and_compiled(name, axes):
    m = random_mechanism(1, bodies=2)
    q, v = random_state(m, 1)[:2]
    state = [q, v, v][: len(FUNCTIONS[name].arguments)]
    for call in (lambda *a: getattr(zw, name)(m, *a), getattr(zw.compile(m), name)):
        with pytest.raises(zw.errors.DescriptionError, match="must be 'world' or 'body'"):
            call(*state, m.bodies[0].name, axes)
