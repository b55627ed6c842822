"""Published equations with factors, and systems that were solved for the accelerations."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import zwang as zw

m, M, l, g, I, c, m1, m2 = sp.symbols("m M l g I c m1 m2", positive=True)
x, y = sp.symbols("x y", real=True)
th, thd, thdd, xd, xdd, F = sp.symbols("th th_dot th_ddot x_dot x_ddot F")
X, Y = (1, 0, 0), (0, 1, 0)


def pendulum():
    """A compound pendulum with the moment of inertia I about the centre of mass."""
    rod = zw.Body("rod", zw.Revolute("th", axis=Y), mass=m, com=(0, 0, -l), inertia=(I, I, I))
    return zw.Mechanism("pendulum", [rod], gravity=(0, 0, -g))


def atwood():
    """Two masses on a rope over a pulley; x and y point downwards."""
    masses = [zw.Body("a", zw.Prismatic("x", axis=(0, 0, -1)), mass=m1),
              zw.Body("b", zw.Prismatic("y", axis=(0, 0, -1)), mass=m2)]  # fmt: skip
    return zw.Mechanism("Atwood", masses, gravity=(0, 0, -g), constraints=[zw.Holonomic("rope", x + y - l)])


def cart_pole():
    """th is the angle from the upright position; a damper acts in the joint."""
    cart = zw.Body("cart", zw.Prismatic("x", axis=X), mass=M)
    pole = zw.Body("pole", zw.Revolute("th", axis=Y), "cart", mass=m, com=(0, 0, l))
    forces = [zw.Motor("F", "x"), zw.Damper("th", c)]
    return zw.Mechanism("cart-pole", [cart, pole], gravity=(0, 0, -g), forces=forces)


def solved_cart_pole(damping=c):
    """The accelerations of the cart-pole by hand, of the pole first."""
    D = M + m * sp.sin(th) ** 2
    pole = (M + m) * (g * sp.sin(th) - damping * thd / (m * l)) / l
    pole = (pole - (F + m * l * thd**2 * sp.sin(th)) * sp.cos(th) / l) / D
    cart = F + m * l * thd**2 * sp.sin(th) - m * g * sp.sin(th) * sp.cos(th)
    cart = (cart + damping * thd * sp.cos(th) / l) / D
    return [sp.Eq(thdd, pole), sp.Eq(xdd, cart)]


@pytest.mark.parametrize(
    "scale", [sp.Integer(1), I + m * l**2, (m + l) / (1 + I), -1 / (m + sp.sqrt(2))], ids=str
)
def test_a_factor_may_be_a_sum_of_parameters(scale):
    right = -m * g * l * sp.sin(th) / (I + m * l**2)
    found = zw.check_equations(pendulum(), [sp.Eq(thdd * scale, right * scale)])
    assert found and sp.simplify(found.rows[0].factor * (I + m * l**2) - scale) == 0
    (wrong,) = zw.check_equations(pendulum(), [sp.Eq(thdd * scale, 2 * right * scale)]).rows
    assert not wrong.equal and sp.simplify(wrong.factor * (I + m * l**2) - scale) == 0
    assert str(wrong.difference) == "g*l*m*sin(th)"


def test_the_atwood_machine():
    assert zw.check_equations(atwood(), [sp.Eq(xdd, (m1 - m2) / (m1 + m2) * g)], ["x"])
    (wrong,) = zw.check_equations(atwood(), [sp.Eq(xdd, m1 / (m1 + m2) * g)], ["x"]).rows
    assert not wrong.equal and str(wrong.difference) == "-g*m2"


@pytest.mark.parametrize("factor", [th, sp.cos(th), 1 / (1 + th**2), thd, sp.exp(l * th)], ids=str)
def test_a_factor_may_depend_on_the_state_but_not_on_the_acceleration(factor):
    equation = (I + m * l**2) * thdd + m * g * l * sp.sin(th)
    found = zw.check_equations(pendulum(), [factor * equation])
    assert found and str(sp.simplify(found.rows[0].factor)) == str(sp.simplify(factor))
    assert not zw.check_equations(pendulum(), [factor * (equation + m * thd)])
    assert not zw.check_equations(pendulum(), [equation * (thdd + factor)])
    assert not zw.check_equations(pendulum(), [equation**2])


@pytest.mark.parametrize("factor", [thdd, 1 / thdd, 1 / (1 + thdd), sp.exp(thdd)], ids=str)
def test_an_acceleration_is_no_factor(factor):
    equation = (I + m * l**2) * thdd + m * g * l * sp.sin(th)
    assert not zw.check_equations(pendulum(), [factor * equation])


@pytest.mark.parametrize("load", ["N_x", "N_floor"])
def test_the_load_of_friction_is_a_symbol_of_which_a_formula_is_told(load):
    """A block slides down an incline: x_ddot = g (sin(a) - mu cos(a)), where N is its weight across it."""
    mu, a, N = *sp.symbols("mu a", positive=True), sp.Symbol(load)
    slides = (zw.Prismatic("x", axis=X), zw.Prismatic("z", axis=(0, 0, 1)))
    floor = zw.Holonomic("floor", sp.Symbol("z"))
    if load == "N_x":
        slides, constraints = slides[:1], [zw.CoulombFriction("f", mu, joint="x")]
    else:
        constraints = [floor, zw.NonIdeal("f", "floor", {"x": -mu * sp.Symbol("N") * sp.sign(xd)})]
    block = zw.Mechanism(
        "block", [zw.Body("block", slides, mass=m)], gravity=(g * sp.sin(a), 0, -g * sp.cos(a)),
        constraints=constraints,
    )  # fmt: skip
    assert zw.check_equations(block, [sp.Eq(xdd, g * sp.sin(a) - mu * N / m * sp.sign(xd))])
    found = zw.check_equations(block, [sp.Eq(xdd, g * (sp.sin(a) - mu * sp.cos(a) * sp.sign(xd)))])
    assert not found and [s.name for s in found.rows[0].loads] == [load]
    assert f"({load} stands for" in str(found) and "write the equation with this symbol" in str(found)
    assert found.rows[0].difference.subs(found.rows[0].loads[0], m * g * sp.cos(a)) == 0
    wrong = zw.check_equations(block, [sp.Eq(xdd, g * sp.sin(a) + mu * N / m * sp.sign(xd))])
    assert not wrong and not wrong.rows[0].loads


def test_wrong_equations_whose_coefficients_do_not_divide_each_other_are_told():
    """The divisions of these coefficients, with negative powers, went on for ever."""
    bob = zw.Body("bob", (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y)), mass=m)
    circle = zw.Holonomic("circle", x**2 + y**2 - l**2)
    p = zw.Mechanism("p", [bob], gravity=(0, -g, 0), constraints=[circle])
    forgotten = m * x**2 / y**2 * xdd - m * g * x / y + m * x * xd**2 * (x**2 + y**2) / y**4
    (wrong,) = zw.check_equations(p, [forgotten]).rows
    assert not wrong.equal and str(wrong.difference) == "-m*x_ddot"
    # three links with a reversed knee, whose angles are differences
    parents, axes = ("world", "0", "1"), (Y, Y, (0, -1, 0))
    links = [
        zw.Body(str(k), zw.Revolute(f"q{k}", axis=axes[k]), parents[k], (0, 0, -l if k else 0), mass=m,
                com=(0, 0, -l))
        for k in range(3)
    ]  # fmt: skip
    leg = zw.Mechanism("leg", links, gravity=(0, 0, -g))
    e = zw.equations(leg, form="expanded")
    rows = list(e.mass_matrix * e.u_dot - e.right_hand_side)
    found = zw.check_equations(leg, [rows[0] + m * l**2 * e.u_dot[0], *rows[1:]])
    assert [row.equal for row in found.rows] == [False, True, True]
    assert str(found.rows[0].difference) == "l**2*m*q0_ddot"
    dependent = zw.check_equations(leg, [rows[0] + rows[1], rows[1] - rows[0], rows[0]])
    assert [row.equal for row in dependent.rows] == [True, True, False] and dependent.rows[2].row == 2


def test_a_system_that_is_solved_for_the_accelerations():
    """The formulas by hand have the accelerations of forward dynamics, and are recognised in every form."""
    known = dict(zip((m, M, l, g, c, th, thd, F), (0.7, 1.3, 0.9, 9.81, 0.2, 0.6, -1.1, 2.4), strict=True))
    numbers = cart_pole().subs({s.name: known[s] for s in (m, M, l, g, c)})
    accelerations = [float(e.rhs.subs(known)) for e in solved_cart_pole()[::-1]]
    expected = zw.forward_dynamics(numbers, [0.3, known[th]], [0.1, known[thd]], [known[F], 0])
    np.testing.assert_allclose(accelerations, expected, rtol=1e-12)
    pole, cart = solved_cart_pole()
    row = (M + m) * xdd + m * l * (thdd * sp.cos(th) - thd**2 * sp.sin(th)) - F
    difference = sp.Eq(cart.lhs - pole.lhs, cart.rhs - pole.rhs)
    for first in (cart, sp.Eq(xdd, sp.expand(cart.rhs)), difference, row):
        assert zw.check_equations(cart_pole(), [pole, first])
        equations = [first, pole]
        found = zw.check_equations(cart_pole(), equations)
        assert found, found
    assert found.rows[1].combined == (0, 1) and "a combination of rows 1, 2" in str(found)
    assert found.rows[0].combined == () and found.rows[0].factor == 1


@pytest.mark.parametrize(("other", "factor"), [(sp.tan, 1), (sp.exp, -2), (sp.exp, sp.Rational(3, 7))])
def test_a_factor_that_is_a_number_in_all_states_is_shown_as_one(other, factor):
    """cos(th) is (1 - tan(th/2)^2) / (1 + tan(th/2)^2), and (exp(i th) + exp(-i th)) / 2."""
    derived = [(M + m) * xdd + m * l * (thdd * sp.cos(th) - thd**2 * sp.sin(th)) - F,
               m * l * (xdd * sp.cos(th) + l * thdd - g * sp.sin(th)) + c * thd]  # fmt: skip
    found = zw.check_equations(cart_pole(), [factor * row.rewrite(other) for row in derived])
    assert found and [row.factor for row in found.rows] == [factor, factor], found
    scaled = zw.check_equations(cart_pole(), [m * row.rewrite(other) for row in derived])
    assert scaled and not any(row.factor.is_number for row in scaled.rows)


def test_the_wrong_equation_of_a_solved_system_is_named_with_its_terms():
    pole, cart = solved_cart_pole()
    no_damper = solved_cart_pole(damping=0)[1]
    found = zw.check_equations(cart_pole(), [no_damper, pole])
    assert [row.equal for row in found.rows] == [False, True]
    wrong = found.rows[0]
    assert wrong.solved_for == "x_ddot" and "solved for x_ddot" in str(found) and "by 1 term(s)" in str(found)
    names = {s.name: s for s in wrong.difference.free_symbols}
    expected = c * thd * sp.cos(th) / l / (M + m * sp.sin(th) ** 2)
    renamed = expected.subs({s: names[s.name] for s in expected.free_symbols})
    assert sp.simplify(wrong.difference / wrong.factor - renamed) == 0
    sign = zw.check_equations(cart_pole(), [sp.Eq(thdd, -pole.rhs), cart])
    assert [row.equal for row in sign.rows] == [False, True]


def test_equations_that_depend_on_each_other_do_not_determine_the_accelerations():
    row = (M + m) * xdd + m * l * (thdd * sp.cos(th) - thd**2 * sp.sin(th)) - F
    for second in (-2 * row, (l + th**2) * row, sp.sin(th) ** 2 + sp.cos(th) ** 2 - 1):
        found = zw.check_equations(cart_pole(), [row, second])
        assert [x.equal for x in found.rows] == [True, False] and found.rows[1].row == 1
    other = m * l * xdd * sp.cos(th) + m * l**2 * thdd + c * thd - m * g * l * sp.sin(th)
    assert zw.check_equations(cart_pole(), [row + other, row - other])
    found = zw.check_equations(cart_pole(), [row + other, 2 * row + 2 * other])
    assert [x.equal for x in found.rows] == [True, False]


def test_a_correct_equation_is_found_after_a_wrong_one_that_resembles_it():
    row = (M + m) * xdd + m * l * (thdd * sp.cos(th) - thd**2 * sp.sin(th)) - F
    found = zw.check_equations(cart_pole(), [row + M * thd, row])
    assert [(x.equal, x.row) for x in found.rows] == [(False, 1), (True, 0)]


def test_eulers_equations_of_a_body_with_a_quaternion_in_any_combination():
    A, B, C = sp.symbols("A B C", positive=True)
    body = zw.Body("body", zw.Ball("r"), mass=1, inertia=(A, B, C))
    free = zw.Mechanism("free", [body], gravity=(0, 0, 0))
    e = zw.equations(free)
    w, a = list(e.speeds), list(e.u_dot)
    euler = [
        A * a[0] - (B - C) * w[1] * w[2],
        B * a[1] - (C - A) * w[2] * w[0],
        C * a[2] - (A - B) * w[0] * w[1],
    ]
    combined = [euler[0] / (A + B), euler[1] + euler[2], euler[1] - (A + C) * euler[2]]
    assert zw.check_equations(free, combined)
    # the squares of a unit quaternion have the sum 1
    unit = sum(q**2 for q in e.q)
    assert zw.check_equations(free, [euler[0] * unit + (unit - 1) * w[0], *euler[1:]])
    combined[2] = euler[1] + (A + C) * euler[2] + (A - B) * w[0] * w[1]
    assert [row.equal for row in zw.check_equations(free, combined).rows] == [True, True, False]


def test_a_combination_that_holds_where_the_constraints_hold():
    """A spherical pendulum in x and z, solved for its accelerations with the length in place of y^2."""
    r = sp.symbols("x y z", real=True)
    slides = tuple(zw.Prismatic(s.name, axis=[int(s is q) for q in r]) for s in r)
    sphere = zw.Holonomic("sphere", (sum(q**2 for q in r) - l**2) / 2)
    bob = zw.Mechanism("bob", [zw.Body("bob", slides, mass=m)], gravity=(0, 0, -g), constraints=[sphere])
    v = [sp.Symbol(f"{q.name}_dot") for q in r]
    # m a = m g + lambda r with r . a = -v . v:  lambda / m = (g z - v^2) / l^2
    tension = (g * r[2] - sum(s**2 for s in v)) / l**2
    equations = [sp.Eq(xdd, tension * r[0]), sp.Eq(sp.Symbol("z_ddot"), -g + tension * r[2])]
    found = zw.check_equations(bob, equations, ["x", "z"])
    assert found and all(row.only_on_constraints and row.combined == (0, 1) for row in found.rows)
    assert "where the constraints hold" in str(found)
    equations[1] = sp.Eq(sp.Symbol("z_ddot"), -g - tension * r[2])
    assert [row.equal for row in zw.check_equations(bob, equations, ["x", "z"]).rows] == [True, False]


@pytest.mark.parametrize("G", [6.674e-11, sp.Rational(6674, 10**30)])
def test_terms_with_small_numbers_count_beside_an_eliminated_coordinate(G):
    """Of a tethered satellite on the path z = x: 2 m x_ddot = u + 3 G M x / R^3."""
    mass, M, R = sp.symbols("m M R", positive=True)
    x, z, xdd, u = sp.symbols("x z x_ddot u")
    gradient = 3 * G * M / R**3
    slides = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1)))
    satellite = zw.Mechanism(
        "satellite", [zw.Body("s", slides, mass=mass)], gravity=(0, 0, 0),
        forces=[zw.Spring("x", -gradient), zw.Motor("u", "x")], constraints=[zw.Holonomic("path", z - x)],
    )  # fmt: skip
    # z in place of x, as where the constraint eliminated one of them
    for factor, position, correct in ((1, z, True), (0, x, False), (sp.Rational(2, 3), z, False)):
        published = 2 * mass * xdd - factor * gradient * position - u
        assert bool(zw.check_equations(satellite, [published], ["x"])) == correct


def test_numbers_may_be_rounded_where_coordinates_are_eliminated():
    """9.81 * 0.1 is not 0.981 in floats."""
    th, x, thdd = sp.symbols("th x th_ddot")
    bob = zw.Body("bob", zw.Revolute("th", axis=(0, 1, 0)), mass=0.3, com=(0, 0, -0.1))
    follower = zw.Body("follower", zw.Prismatic("x", axis=(1, 0, 0)), mass=0.001)
    m = zw.Mechanism("m", [bob, follower], gravity=(0, 0, -9.81), constraints=[zw.Holonomic("c", x - th)])
    right = 0.004 * thdd + 0.2943 * sp.sin(x)
    assert zw.check_equations(m, [right], ["th"])
    assert not zw.check_equations(m, [right + 1e-9 * x], ["th"])
