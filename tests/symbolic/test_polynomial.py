"""Trigonometric polynomials: equal expressions are identical, and agree with SymPy's."""

import random

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import zwang as zw
from zwang import scalar
from zwang.algebra.dual import Dual
from zwang.symbolic.equations import equations
from zwang.symbolic.polynomial import Polynomial, Ring, TooLargeError, readable
from zwang.symbolic.sympy_backend import substitute_in

a, b, c, x = sp.symbols("a b c x", real=True)
m = sp.Symbol("m", positive=True)
POINT = {
    a: sp.Rational(3, 7),
    b: sp.Rational(-5, 4),
    c: sp.Rational(9, 8),
    x: sp.Rational(2, 3),
    m: sp.Rational(11, 5),
}


QUATERNION = sp.symbols("qw qx qy qz", real=True)
POINT |= dict(zip(QUATERNION, [sp.Rational(n, 9) for n in (2, -4, 5, 6)], strict=True))  # of unit length


def ring():
    return Ring(summed=(a, b))


@pytest.mark.parametrize("angle", [a, a + b, 2 * a - b, c, 2 * c, -c, a + c], ids=str)
def test_sines_and_cosines_of_sums_fold(angle):
    r = ring()
    value = sum((r.atom(s) * k for s, k in angle.as_coefficients_dict().items()), start=r.constant(0))
    s, co = scalar.sin(value), scalar.cos(value)
    assert (s * s + co * co - 1).terms == {}
    assert float(readable(s).subs(POINT)) == pytest.approx(float(sp.sin(angle).subs(POINT)), rel=1e-14)


def test_products_over_parallel_axes_become_sums_of_angles():
    r = ring()
    A, B = r.atom(a), r.atom(b)
    folded = scalar.cos(A) * scalar.cos(B) - scalar.sin(A) * scalar.sin(B)
    assert folded.terms == scalar.cos(A + B).terms
    assert readable(folded) == sp.cos(a + b)


def test_squares_and_double_angles_are_written_the_short_way():
    r = ring()
    s, co, M = scalar.sin(r.atom(c)), scalar.cos(r.atom(c)), r.atom(m)
    assert readable(M - M * co * co) == m * sp.sin(c) ** 2
    assert readable(2 * M * s * co) == m * sp.sin(2 * c)


@pytest.mark.parametrize("angle", [a, c], ids=["summed", "separate"])
@pytest.mark.parametrize("n", [1, 2, 3, -3, 7, 24, 48, 63, 64, 200])
def test_functions_of_multiples_of_an_angle_do_not_cancel(n, angle):
    """sin(n x), cos(n x), their products, derivatives and powers, against their values of 30 digits."""
    r = ring()
    value = n * r.atom(angle)
    s, co = scalar.sin(value), scalar.cos(value)
    slope = scalar.sin(Dual(value, n)).derivative
    sine, cosine = sp.sin(n * angle), sp.cos(n * angle)
    assert (s * s + co * co - 1).terms == {} and (scalar.sin(-value) + s).terms == {}
    assert (slope - n * co).terms == {}
    pairs = ((s, sine), (co, cosine), (s * co, sine * cosine), (s + s * s * co, sine + sine**2 * cosine))
    for found, expected in pairs:
        number = sp.lambdify(angle, readable(found))
        for at in (-1.3, 0.2, 0.7, 1.5):
            exact = float(expected.evalf(30, subs={angle: sp.Rational(at)}))
            assert number(at) == pytest.approx(exact, abs=4e-16 * (8 + 3 * abs(n)))  # rounding of n x


def test_multiples_of_an_angle_are_written_as_the_user_wrote_them():
    r = ring()
    C, X = r.atom(c), r.atom(x)
    assert readable(scalar.sin(7 * C)) == sp.sin(7 * c)
    assert readable(scalar.cos(-7 * C) * X) == x * sp.cos(7 * c)
    assert readable(scalar.sin(7 * C + X)) == sp.sin(7 * c + x)
    assert readable(2 * scalar.sin(7 * C) * scalar.cos(7 * C)) == sp.sin(14 * c)
    assert readable(scalar.sin(2 * C)) == sp.sin(2 * c)
    assert (scalar.cos(2 * C) - (2 * scalar.cos(C) * scalar.cos(C) - 1)).terms == {}


@pytest.mark.parametrize("exponent", [3, 4, 5, 20, 60, 64, -40])
@pytest.mark.parametrize("base", [sp.sin(c), sp.cos(c), c - 1, sp.sqrt(1 - c**2)], ids=str)
def test_powers_do_not_cancel(base, exponent):
    """Powers and their derivatives, against their values of 30 digits."""
    r = ring()
    power = base**exponent
    found = substitute_in(power, {c: Dual(r.atom(c), 1)})
    for y, expected in ((found.value, power), (found.derivative, sp.diff(power, c))):
        number = sp.lambdify(c, readable(y))
        for at in (0.3, 0.8):
            exact = float(expected.evalf(30, subs={c: sp.Rational(at)}))
            assert number(at) == pytest.approx(exact, rel=1e-12)


def random_polynomial(rng, r, depth=3):
    if depth == 0:
        atom = r.atom(rng.choice([a, b, c, x, m]))
        return rng.choice([atom, scalar.sin(atom), scalar.cos(atom), r.constant(rng.randint(-3, 3))])
    p, q = random_polynomial(rng, r, depth - 1), random_polynomial(rng, r, depth - 1)
    return rng.choice([p + q, p - q, p * q, p * 2, p / r.atom(m)])


@given(st.integers(0, 10**6))
def test_arithmetic_is_that_of_sympy_at_a_rational_point(seed):
    rng = random.Random(seed)
    r = ring()
    p, q = random_polynomial(rng, r), random_polynomial(rng, r)
    for result, expected in (
        (p * q, readable(p) * readable(q)),
        (p + q, readable(p) + readable(q)),
        (p - p, sp.Integer(0)),
    ):
        assert float(readable(result).subs(POINT).evalf(20)) == pytest.approx(
            float(expected.subs(POINT).evalf(20)), rel=1e-9, abs=1e-9
        )
    assert ((p + q) * (p - q) - (p * p - q * q)).terms == {}


def many_terms(rng, r):
    """A sum of monomials up to degree 4 in sines, cosines and the components of a unit quaternion."""
    factors = [f(r.atom(s)) for s in (c, x, m) for f in (scalar.sin, scalar.cos)]
    factors += [r.atom(s) for s in QUATERNION]
    total = r.constant(0)
    for _ in range(rng.randint(4, 12)):
        term = r.constant(rng.randint(-4, 4))
        for _ in range(rng.randint(1, 4)):
            term = term * rng.choice(factors)
        total = total + term
    return total


@settings(max_examples=8)  # of half a second each, for SymPy
@given(st.integers(0, 10**6))
def test_products_with_several_squares_lose_no_term(seed):
    """The square of one sine in a product of squares makes terms of which others are still to be replaced."""
    rng = random.Random(seed)
    r = Ring(summed=(a, b), units={QUATERNION[0]: QUATERNION[1:]})
    p, q = many_terms(rng, r), many_terms(rng, r)
    numbers = [float(readable(y).evalf(20, subs=POINT)) for y in (p, q, p * q, p * p * q)]
    assert numbers[2] == pytest.approx(numbers[0] * numbers[1], rel=1e-9, abs=1e-7)
    assert numbers[3] == pytest.approx(numbers[0] ** 2 * numbers[1], rel=1e-9, abs=1e-6)


def test_roots_and_quotients_cancel():
    r = ring()
    co, M = scalar.cos(r.atom(c)), r.atom(m)
    root = scalar.sqrt(co * co)
    assert readable(root) == sp.Abs(sp.cos(c))
    assert (root * root - co * co).terms == {}
    assert (1 / root * root - 1).terms == {}
    assert readable(scalar.sqrt(4 * M * M)) == 2 * m
    length = scalar.sqrt(r.atom(x) * r.atom(x) + M)
    assert (length * length - r.atom(x) * r.atom(x) - M).terms == {}
    assert (co / co - 1).terms == {} and isinstance(1 / (co + M), Polynomial)


def test_what_is_no_polynomial_is_kept_as_it_is():
    r = ring()
    value = scalar.minimum(scalar.exp(r.atom(x)), scalar.where(r.atom(x) * 0 + 1 == 2, 1, r.atom(m)))
    assert readable(value) == sp.Min(sp.exp(x), m)
    chosen = scalar.where(scalar.less(r.atom(x), r.atom(m)), r.atom(a), r.atom(b))
    assert readable(chosen) == sp.Piecewise((a, x < m), (b, True))


def test_too_many_terms_are_refused():
    r = Ring(limit=50)
    value = r.atom(a) + r.atom(b) + r.atom(c) + 1
    with pytest.raises(TooLargeError):
        for _ in range(5):
            value = value * value


def test_the_rolling_disc_is_that_of_the_textbooks():
    """Neimark and Fufaev: a disc that rolls on a plane, after elimination of the contact forces."""
    mass, r, A, C, g = sp.symbols("m r A C g", positive=True)
    X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    joints = tuple(zw.Prismatic(n, axis=d) for n, d in zip("xyz", (X, Y, Z), strict=True))
    joints += (zw.Revolute("yaw", axis=Z), zw.Revolute("lean", axis=X), zw.Revolute("spin", axis=Y))
    disc = zw.Mechanism("disc", (zw.Body("disc", joints, mass=mass, inertia=(A, C, A)),), gravity=(0, 0, -g),
                        constraints=(zw.Rolling("floor", "disc", r, axis=Y),))  # fmt: skip
    e = equations(disc, ["yaw", "lean", "spin"])
    th = e.q[4]
    yaw, lean, spin = e.speeds
    total = C + mass * r**2
    expected = sp.Matrix(
        [
            [A * sp.cos(th) ** 2 + total * sp.sin(th) ** 2, 0, total * sp.sin(th)],
            [0, A + mass * r**2, 0],
            [total * sp.sin(th), 0, total],
        ]
    )
    assert (e.mass_matrix - expected).applyfunc(sp.expand).is_zero_matrix
    rhs = sp.Matrix(
        [
            -C * lean * spin * sp.cos(th) + lean * yaw * (A - total) * sp.sin(2 * th),
            mass * g * r * sp.sin(th)
            + total * (spin + yaw * sp.sin(th)) * yaw * sp.cos(th)
            - A * yaw**2 * sp.sin(th) * sp.cos(th),
            -lean * yaw * (total + mass * r**2) * sp.cos(th),
        ]
    )
    point = {s: sp.Rational(k + 2, 9) for k, s in enumerate((mass, r, A, C, g, th, yaw, lean, spin))}
    difference = (e.right_hand_side - rhs).subs(point).evalf(20)
    assert np.abs(np.array(difference.tolist(), dtype=float)).max() < 1e-15


@pytest.mark.parametrize("form", ["auto", "expanded"])
@pytest.mark.parametrize(
    ("path", "slope"),
    [
        (sp.Max(x, 0), lambda x: float(x > 0)),
        (sp.Piecewise((x**2, x > 0), (0, True)), lambda x: 2 * max(x, 0)),
        (x * sp.sign(x), np.sign),
        (x * sp.Abs(x), lambda x: 2 * abs(x)),
    ],
    ids=["max", "parabola", "sign", "abs"],
)
def test_a_bead_on_a_path_in_parts_has_the_mass_of_its_slope(path, slope, form):
    """m (1 + f'(x)^2) x'' = ... on y = f(x)."""
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("y", (0, 1, 0)))
    path = zw.Holonomic("path", sp.Symbol("y", real=True) - path)
    e = equations(
        zw.Mechanism("bead", [zw.Body("bead", joints, mass=m)], constraints=[path]), ["x"], form=form
    )
    for at in (-0.7, 0.4):
        found = e.evaluate({"m": 2.0, "x": at, "y": 0.0, "x_dot": 0.3})[0]
        np.testing.assert_allclose(found, 2 * (1 + slope(at) ** 2), rtol=1e-14)


@pytest.mark.parametrize(
    "path",
    [sp.sin(7 * x) / 10, sp.sin(16 * x) / 10, sp.cos(40 * x + 1) / 10, sp.sin(x) ** 40, (x - 1) ** 30 / 10],
    ids=str,
)
def test_a_bead_on_a_wavy_wire_has_the_accelerations_of_its_closed_form(path):
    """x'' = -f' (g + f'' x'^2) / (1 + f'^2) on z = f(x)."""
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("z", (0, 0, 1)))
    wire = zw.Holonomic("wire", sp.Symbol("z", real=True) - path)
    bead = zw.Mechanism("bead", [zw.Body("bead", joints, mass=1)], constraints=[wire])
    e = equations(bead, ["x"], form="expanded")
    slope, curvature = (sp.lambdify(x, sp.diff(path, x, k)) for k in (1, 2))
    for at in (-0.4, 0.3, 0.9, 1.4):
        mass, force = e.evaluate({"x": at, "x_dot": 0.3, "z": 0.0})
        expected = -slope(at) * (9.81 + 0.09 * curvature(at)) / (1 + slope(at) ** 2)
        assert (force / mass).item() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_a_drive_by_a_fast_sine_is_written_as_it_was_given():
    t = sp.Symbol("t", real=True)
    cart = zw.Body("cart", zw.Prismatic("s", (1, 0, 0)), mass=1)
    bob = zw.Body("bob", zw.Revolute("th", (0, 1, 0)), "cart", mass=m, com=(0, 0, -1))
    drive = zw.Holonomic("drive", sp.Symbol("s", real=True) - sp.sin(7 * t))
    e = equations(zw.Mechanism("driven", [cart, bob], constraints=[drive], gravity=(0, 0, 0)), ["th"])
    th = e.q[1]
    assert e.right_hand_side[0] == -49 * m * sp.sin(7 * t) * sp.cos(th)
