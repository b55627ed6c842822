"""Quotients of polynomials whose denominators cancel, and constraints that contain a root."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang import scalar
from zwang.symbolic.cancellation import cancelled, over_common_denominator, size
from zwang.symbolic.polynomial import Ring

m, M, l, g = sp.symbols("m M l g", positive=True)
x1, x2, y1, y2 = COORDINATES = sp.symbols("x1 x2 y1 y2", real=True)
SQUARE = (x1 - x2) ** 2 + (y1 - y2) ** 2
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def point(k, mass):
    return zw.Body(f"p{k}", (zw.Prismatic(f"x{k}", axis=X), zw.Prismatic(f"y{k}", axis=Y)), mass=mass)


def dumbbell(constraint):
    return zw.Mechanism("dumbbell", [point(1, m), point(2, M)], gravity=(0, -g, 0), constraints=[constraint])


def particle():
    rod = zw.Distance("rod", ("p1", (0, 0, 0)), ("world", (0, 0, 0)), l)
    return zw.Mechanism("particle", [point(1, m)], gravity=(0, -g, 0), constraints=[rod])


def crank():
    """The rod of a slider-crank as a distance."""
    arm = zw.Body("arm", zw.Revolute("a", axis=Z), mass=m, com=(l, 0, 0), inertia=(m * l**2,) * 3)
    slider = zw.Body("slider", zw.Prismatic("s", axis=X), mass=M)
    rod = zw.Distance("rod", ("arm", (l, 0, 0)), ("slider", (0, 0, 0)), 2 * l)
    return zw.Mechanism("crank", [arm, slider], gravity=(0, -g, 0), constraints=[rod])


DISTANCE = zw.Distance("rod", ("p1", (0, 0, 0)), ("p2", (0, 0, 0)), l)
MECHANISMS = {
    "distance": dumbbell(DISTANCE),
    "root": dumbbell(zw.Holonomic("rod", sp.sqrt(SQUARE) - l)),
    "square": dumbbell(zw.Holonomic("rod", SQUARE - l**2)),
    "particle": particle(),
    "crank": crank(),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("method", ["projection", "gauss", "newton_euler", "lagrange"])
def test_equations_with_cancelled_denominators_are_those_of_constrained_dynamics(name, method):
    mechanism, rng = MECHANISMS[name], np.random.default_rng(3)
    known = {"m": 1.3, "M": 0.8, "l": 1.1, "g": 9.81}
    numbers = mechanism.subs({n: known[n] for n in mechanism.symbols})
    e = zw.equations(mechanism, method=method, form="expanded")
    independent = [mechanism.speed_names.index(s.name.removesuffix("_dot")) for s in e.speeds]
    for _ in range(4):
        q, v = zw.assemble(numbers, rng.uniform(0.5, 1.5, mechanism.nq) * rng.choice((1, -1)),
                           rng.normal(size=mechanism.nv))  # fmt: skip
        found = zw.constrained_dynamics(numbers, q, v, np.zeros(mechanism.nv), coordinate_reduction=True)
        values = {**known, **dict(zip(mechanism.coordinate_names, q, strict=True))}
        values |= {s.name: v[k] for s, k in zip(e.speeds, independent, strict=True)}
        mass, right = e.evaluate(values)
        np.testing.assert_allclose(np.linalg.solve(mass, right), found.acceleration[independent], rtol=1e-9)
        values |= {s.name: found.acceleration[k] for s, k in zip(e.u_dot, independent, strict=True)}
        force = e.multipliers["rod"].xreplace({s: values[s.name] for s in e.multipliers["rod"].free_symbols})
        np.testing.assert_allclose(float(force[0]), found.forces["rod"][0], rtol=1e-9)


def test_equations_of_a_distance_are_as_short_as_those_of_its_square():
    length = {name: len(zw.equations(x, form="expanded").text()) for name, x in MECHANISMS.items()}
    assert max(length["distance"], length["root"]) < 1.1 * length["square"]
    # the particle: m (1 + x^2 / y^2) from y y' = -x x'
    e = zw.equations(particle())
    (x, y), (u,) = e.q, e.speeds
    assert e.form == "expanded" and str(u) == "x1_dot"
    assert sp.expand(e.mass_matrix[0] - m * (1 + x**2 / y**2)) == 0
    assert sp.expand(e.right_hand_side[0] - m * g * x / y + m * x * u**2 * (x**2 + y**2) / y**4) == 0
    assert len(e.latex(report=True)) < 10_000
    assert zw.check_equations(MECHANISMS["distance"], residuals(MECHANISMS["square"]))


def residuals(mechanism):
    e = zw.equations(mechanism)
    return e.mass_matrix * e.u_dot - e.right_hand_side


def polynomials(names):
    ring = Ring()
    return ring, [ring.atom(sp.Symbol(n)) for n in names.split()]


def value(x, at):
    return sp.sympify(x if isinstance(x, int) else x.expression()).subs(at)


def test_a_denominator_that_divides_the_numerator_cancels():
    _, (x, y, z) = polynomials("x y z")
    assert cancelled((x * x - y * y) / (x - y)) == x + y
    assert cancelled(x / (x - y) - y / (x - y)) == x / x
    assert not cancelled((x * z - y * z) / (x - y) - z).terms
    # a sum over two denominators, of which none divides a single term
    total = x * x / (x - y) / (x + y) - y * y / (x - y) / (x + y) + z / (x - y)
    assert cancelled(total) == 1 + z / (x - y)
    root = scalar.sqrt(x * x + y * y)
    assert (x * root) / (y * root) == x / y
    assert cancelled(x / root * (x / root) + y / root * (y / root)) == x / x
    assert (x * root - y * root) / (z * root + x * root) == (x - y) / (z + x)


def test_cancellation_keeps_the_value_and_is_never_longer():
    ring, (x, y, z) = polynomials("x y z")
    rng = np.random.default_rng(1)
    at = {"x": sp.Rational(7, 3), "y": sp.Rational(-5, 11), "z": sp.Rational(2, 13)}
    denominators = [x - y, x + y * z, x * x + y * y, Fraction(1, 3) * z - 2]
    numerators = [x, z, x - y, x * y + z * z]
    for _ in range(30):
        total = ring.constant(0)
        for _ in range(rng.integers(1, 5)):
            term = numerators[rng.integers(4)] * int(rng.integers(-3, 4))
            for k in rng.integers(4, size=2):
                term = term * numerators[rng.integers(4)] / denominators[k]
            total = total + term
        short = cancelled(total)
        assert value(short, at) == value(total, at) and size(short) <= size(total)
        numerator, denominator = over_common_denominator(total)
        assert value(numerator, at) == value(total, at) * value(denominator, at)
