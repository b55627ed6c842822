"""Dependent constraints that agree are left out of equations; contradictions are refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.constraint.test_bricard import bricard
from tests.constraint.test_closed_loops import bennett_loop
from zwang.constraint.assembly import assemble_state
from zwang.errors import DependentVelocitiesError, DescriptionError, InconsistentConstraintsError, SolveError
from zwang.solver.coordinate_reduction import coordinate_reduction

x, y, t, a, b, mass = sp.symbols("x y t a b mass", real=True)
Y = (0, 1, 0)
H, P = zw.Holonomic, zw.Pfaffian


def point(*constraints, m=mass):
    slides = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)))
    return zw.Mechanism("point", [zw.Body("b", slides, mass=m)], gravity=(0, -10, 0), constraints=constraints)


def rod(name, length):
    return zw.Distance(name, ("b", (0, 0, 0)), ("world", (0, 0, 1)), length)


CONTRADICTIONS = {
    "drives": (H("k", x - t**2), H("l", x - 2 * t**2)),
    "circles": (H("k", x**2 + y**2 - 1), H("l", x**2 + y**2 - 4)),
    "multiples": (H("k", x**2 + y), H("l", 2 * x**2 + 2 * y - 3)),
    "speeds": (P("k", {"x": 1}, rate=t), P("l", {"x": 1}, rate=2 * t)),
    "speeds of a curve": (H("k", y - x**2), P("l", {"x": 2 * x, "y": -1}, rate=1)),
    "drive and speed": (H("k", x - t**2), P("l", {"x": 2}, rate=t)),
    "lengths": (rod("k", 2), rod("l", 3)),
    "one loop": (zw.Connect("k", ("b", (0, 0, 0)), ("world", (0, 0, 0.1))),),
    "beside a symbol": (H("s", y - a), H("k", x - 1), H("l", x - 2)),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictory_constraints_have_no_equations(name):
    """Neither has a state, from another start at another time; the mass, a symbol, has no effect."""
    m = point(*CONTRADICTIONS[name])
    for derive in (zw.equations, zw.classify):
        with pytest.raises(InconsistentConstraintsError, match=r"'[kl]'.*contradict each other"):
            derive(m)
    numbers = m.subs(dict.fromkeys(m.symbols, 1))
    with pytest.raises(SolveError):
        assemble_state(numbers, [0.3, 0.4], t=0.5)


MULTIPLE_ROOTS = {
    "square": H("k", (x - a) ** 2),
    "fourth power": H("k", 1e-6 * y**4),
    "sum": H("k", x**2 - 2 * x * y + y**2),
    "cosine": H("k", 1 - sp.cos(x + y - t)),
    "point": H("k", x**2 + y**2),
    "beside another": H("k", (x - y, (y - t) ** 2)),
}


@pytest.mark.parametrize("name", MULTIPLE_ROOTS)
def test_a_formula_whose_gradient_vanishes_where_it_holds_is_refused(name):
    """It has no multiplier; the curvature of the formula would have to be its force."""
    (*_, g) = MULTIPLE_ROOTS[name].expressions
    root = {x: a, y: a, t: a} if name != "cosine" else {x: a, y: t - a}
    root = dict.fromkeys((x, y), 0) if name in ("point", "fourth power") else root
    assert all(sp.simplify(value.subs(root)) == 0 for value in (g, g.diff(x), g.diff(y)))
    for derive in (zw.equations, zw.classify):
        with pytest.raises(DescriptionError, match=r"expression \d of constraint 'k'.*simple root"):
            derive(point(MULTIPLE_ROOTS[name]))


AGREEMENTS = {
    "double root": (H("k", x - y), H("l", sp.cos(x - y) - 1)),
    "small ring": (H("k", x**2 + y**2 - sp.Rational(1, 10**12)), H("l", 2 * x**2 + 2 * y**2 - 2e-12)),
    "twice": (H("k", x - t**2), H("l", 2 * x - 2 * t**2)),
    "square": (H("k", x**2 + y**2 - 1), H("l", (x**2 + y**2) ** 2 - 1)),
    "drive and speed": (H("k", x - t**2), P("l", {"x": 2}, rate=-4 * t)),
    "values of symbols": (P("k", {"x": 1}, rate=a * t), P("l", {"x": 1}, rate=b * t)),
    "lengths": (rod("k", sp.sqrt(1 + a**2)), rod("l", b)),
}


@pytest.mark.parametrize("name", AGREEMENTS)
def test_of_constraints_that_agree_the_first_is_kept(name):
    m = point(*AGREEMENTS[name])
    e, alone = (zw.equations(x) for x in (m, m.replace(constraints=m.constraints[:1])))
    assert e.multipliers["l"].shape == (0, 1)
    assert sp.simplify(e.mass_matrix - alone.mass_matrix) == sp.zeros(1)
    assert sp.simplify(e.right_hand_side - alone.right_hand_side) == sp.zeros(1, 1)
    assert [c.independent for c in zw.classify(m).constraints.values()] == [1, 0]


def four_bar(lengths):
    """A planar four-bar in space, whose loop has a redundant row, with the ground as its fourth bar."""
    bodies, parent, at = [], "world", (0, 0, 0)
    for k, length in enumerate(lengths[:3]):
        bodies.append(zw.Body(f"bar {k}", zw.Revolute(f"q{k}", Y), parent, at, mass=1, inertia=(1, 1, 1)))
        parent, at = f"bar {k}", (length, 0, 0)
    loop = zw.Connect("loop", (parent, at), ("world", (lengths[3], 0, 0)))
    return zw.Mechanism("four-bar", bodies, constraints=[loop], home=(0.5, 0.6, -2.0))


@pytest.mark.parametrize(
    "m, degrees_of_freedom",
    [
        (four_bar((1.0, 2.0, 1.5, 2.2)), 1),
        (four_bar(sp.symbols("l1:5", positive=True)), 1),
        (four_bar((1, 10, sp.Symbol("l"), 2)), 1),  # not closed by the length of the probe
        (bennett_loop(), None),
        (bricard(), None),
    ],
    ids=["numbers", "symbols", "open", "bennett", "bricard"],
)
def test_overconstrained_loops_are_not_refused(m, degrees_of_freedom):
    if degrees_of_freedom is None:
        assert zw.classify(m).constraints
    else:
        assert zw.equations(m).speeds.rows == degrees_of_freedom


@pytest.mark.parametrize("form", ["expanded", "cse"])
def test_dependent_velocities_raise_as_in_numbers(form):
    """On a ring, x_dot does not determine y_dot where y = 0."""
    m = point(H("ring", x**2 + y**2 - 1), m=2)
    e = zw.equations(m, ["x"], form=form)
    M, _ = e.evaluate({"x": 0.6, "y": 0.8, "x_dot": 1.0})
    assert M[0, 0] == pytest.approx(2 * (1 + 0.6**2 / 0.8**2))
    rows = zw.constrained_dynamics(m, [1, 0], [0, 1], [0, 0]).rows
    with pytest.raises(DependentVelocitiesError):
        coordinate_reduction(rows, np.array([[1.0, 0.0]]))
    for names in ((), ("B",), ("velocities",)):
        with pytest.raises(DependentVelocitiesError, match=r"x_dot of mechanism 'point' .* speeds="):
            e.evaluate({"x": 1, "y": 0, "x_dot": 0.0}, *names)
        with pytest.raises(DependentVelocitiesError):  # a zero to rounding
            e.evaluate({"x": np.sin(np.pi / 2), "y": np.cos(np.pi / 2), "x_dot": 0.0}, *names)
    near = {"x": np.cos(1e-4), "y": np.sin(1e-4), "x_dot": 0.0}
    assert e.evaluate(near)[0][0, 0] == pytest.approx(2 / np.sin(1e-4) ** 2)


def test_a_pivot_that_vanishes_raises_though_the_velocities_are_independent():
    """Slides x, y, z of masses 3, 2, 1 with x' = (x + 2 y) / (x^2 + y^2) z' and likewise y'."""
    z = sp.Symbol("z")
    slides = [zw.Body(n, zw.Prismatic(n, a), p, mass=1) for n, a, p in zip(
        "xyz", np.eye(3), ("world", "x", "y"), strict=True)]  # fmt: skip
    constraints = H("a", (x**2 - y**2) / 2 - z), H("b", x * y - 2 * z)
    m = zw.Mechanism("slides", slides, constraints=constraints, home=(1.2, 0.6, 0.36))
    short, expanded = (zw.equations(m, ["z"], form=form) for form in ("cse", "expanded"))
    for values, mass in (({"x": 1, "y": 0}, 12), ({"x": 0, "y": 1}, 15)):
        values |= {"z": 0, "z_dot": 0}
        assert expanded.evaluate(values)[0] == pytest.approx(mass)
    with pytest.raises(SolveError, match=r'divide by zero in this state, .* form="expanded"'):
        short.evaluate(values)


def test_a_leg_on_a_free_body_that_is_far_from_closed_at_home_has_one_degree_of_freedom():
    """Klann's linkage, six bars with redundant rows; the body has six degrees of freedom."""
    bodies = [zw.Body("body", zw.Free("body"), mass=5, inertia=(1, 1, 1))]
    for name, parent, position in (
        ("crank", "body", (0, 0, 0)), ("conn", "crank", (0.26, 0, 0)), ("lower", "body", (-0.53, 0, -0.35)),
        ("upper", "body", (-0.61, 0, 0.33)), ("leg", "upper", (0.4, 0, 0)),
    ):  # fmt: skip
        bodies.append(zw.Body(name, zw.Revolute(name, Y), parent, position, mass=1, inertia=(1, 1, 1)))
    pins = (
        zw.Connect("lower pin", ("conn", (0.59, 0, 0)), ("lower", (0.32, 0, 0))),
        zw.Connect("leg pin", ("conn", (1.02, 0, 0.18)), ("leg", (0.53, 0, 0))),
    )
    assert zw.classify(zw.Mechanism("klann", bodies, constraints=pins)).degrees_of_freedom == 6 + 1
