"""Mechanisms in other units of length, and far from the origin, move as those in metres at the origin."""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from zwang.api.analysis.linearize import ordered_poles
from zwang.constraint.coordinate_projection import project_state
from zwang.constraint.hard import velocity_level_rows_at
from zwang.constraint.inverse_weights import inverse_weights
from zwang.errors import SimulationWarning, SolveError, StateError
from zwang.simulation.constraint_stage import largest_violations

Y = (0, 1, 0)


def bar(name, x, parent, length, unit):
    inertia = np.array([1e-3, length**2 / 12, length**2 / 12]) * unit**2
    return zw.Body(
        name, zw.Revolute(name, axis=Y), parent, (x * unit, 0, 0), mass=1, com=(length / 2 * unit, 0, 0),
        inertia=tuple(inertia),
    )  # fmt: skip


def four_bar(unit=1.0, base=(), ground="world"):
    """A four-bar of about 1 m, of whose units of length `unit` are 1 m; on a base, if one is given."""
    bars = [bar("a", 0, ground, 0.3, unit), bar("b", 0.3, "a", 0.8, unit), bar("c", 1, ground, 0.5, unit)]
    pin = zw.Connect("pin", ("b", (0.8 * unit, 0, 0)), ("c", (0.5 * unit, 0, 0)))
    return zw.Mechanism("four-bar", [*base, *bars], gravity=(0, 0, -9.81 * unit), constraints=[pin])


def starts(count):
    return np.array([1.2, -0.9, 1.9]) + 0.3 * np.random.default_rng(0).normal(size=(count, 3))


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e3, 1e4, 1e5, 1e6])
def test_assembly_does_not_depend_on_the_unit_of_length(unit):
    for start in starts(20):
        expected = zw.assemble(four_bar(), start)[0]
        np.testing.assert_allclose(zw.assemble(four_bar(unit), start)[0], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("far", [1e4, 1e6, 5e6])
def test_a_loop_far_from_the_origin_is_assembled(far):
    """As with UTM coordinates: the positions have rounding errors of up to 1e-9 m."""
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1)))
    base = zw.Body("base", joints, mass=5, inertia=(1, 1, 1))
    m = four_bar(1.0, [base], "base")
    for start in starts(20):
        expected = zw.assemble(m, [0, 0, *start])[0]
        np.testing.assert_allclose(zw.assemble(m, [far, 0, *start])[0][2:], expected[2:], rtol=0, atol=1e-7)


def test_what_cannot_be_assembled_is_told_in_any_unit():
    for unit in (1e-6, 1.0, 1e6):
        m = four_bar(unit)
        long = m.replace(constraints=[zw.Distance("rod", ("b", (0, 0, 0)), ("c", (0, 0, 0)), 9.0 * unit)])
        with pytest.raises(SolveError, match=r"'rod'.*check the lengths"):
            zw.assemble(long, [1.2, -0.9, 1.9])


def slider_crank(unit=1.0):
    """A crank on a rod that is welded to a pivot on a slide."""
    slide = zw.Body("x", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)
    pivot = zw.Body("p", zw.Revolute("p", axis=Y), "x", mass=0.1, inertia=(0.01 * unit**2,) * 3)
    bodies = [bar("a", 0, "world", 1.0, unit), bar("b", 1.0, "a", 3.0, unit), slide, pivot]
    weld = zw.Weld("w", "b", "p", position=(3.0 * unit, 0, 0))
    return zw.Mechanism("slider-crank", bodies, gravity=(0, 0, -9.81 * unit), constraints=[weld])


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_a_slide_is_assembled_in_any_unit(unit):
    """The end of the rod is at the pivot: x = cos a + 3 cos(asin(sin a / 3))."""
    q, _ = zw.assemble(slider_crank(unit), [0.5, -0.6, 3.5 * unit, 0.1], positions={"a": 0.5})
    turned = np.arcsin(np.sin(0.5) / 3)
    expected = [0.5, -0.5 - turned, np.cos(0.5) + 3 * np.cos(turned), -turned]
    np.testing.assert_allclose(q / [1, 1, unit, 1], expected, atol=1e-9)


def test_slides_are_assembled_from_any_distance():
    for far in (70.0, 1e6):
        at = zw.Holonomic("at", sp.Symbol("x") - far)
        m = zw.Mechanism("hoist", [zw.Body("a", zw.Prismatic("x"), mass=1)], constraints=[at])
        assert zw.assemble(m, [0.0])[0] == pytest.approx(far, rel=1e-14)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e3])
def test_an_open_loop_has_no_linear_model_in_any_unit(unit):
    m, q = four_bar(unit), np.array([1.2, -0.9, 1.9])
    A, _, g = (np.asarray(x, float) for x in velocity_level_rows_at(m, q))
    assert len(A) == 3 and 0.01 < np.abs(g).max() / unit < 0.1
    with pytest.raises(StateError, match="'pin' is violated"):
        zw.linearize(m, q)
    assert largest_violations(m, q, np.zeros(3))[0].relative > 0.01
    closed = zw.assemble(m, q)[0]
    assert largest_violations(m, closed, np.zeros(3))[0].relative < 1e-11


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0])
def test_contradicting_formulas_are_told_at_any_amplitude(unit):
    t, x = sp.symbols("t x")
    drives = [zw.Holonomic(f"drive{k}", x - k * unit * sp.sin(t)) for k in (1, 2)]
    body = zw.Body("b", zw.Prismatic("x"), mass=1, com=(0, 0, unit))
    m = zw.Mechanism("driven twice", [body], constraints=drives)
    with pytest.warns(SimulationWarning):
        run = zw.simulate(m, duration=0.02, step=0.01, integrator="rk4", compiled=False, progress=False)
    assert run.status.all()
    once = m.replace(constraints=drives[:1])
    with pytest.warns(SimulationWarning, match="velocities at the start"):
        run = zw.simulate(once, duration=0.02, step=0.01, integrator="rk4", compiled=False, progress=False)
    np.testing.assert_allclose(run.q.values[0, -1], unit * np.sin(0.02), rtol=1e-12)


def test_a_linear_model_with_a_slide_in_micrometres():
    """The rows of the weld are lengths and angles; the pole of the released crank is that of the metre."""
    poles = []
    for unit in (1.0, 1e6):
        q, _ = zw.assemble(slider_crank(unit), [0.5, -0.6, 3.5 * unit, 0.1], positions={"a": 0.5})
        model = zw.linearize(slider_crank(unit), q)
        assert model.states == ("b", "b_dot") and not model.steady
        poles.append(ordered_poles(np.linalg.eigvals(model.A)))
    np.testing.assert_allclose(*poles, rtol=1e-7)


def test_a_small_mechanism_is_trimmed_where_its_weight_does_no_work():
    """As by virtual work, with a closed loop."""
    m, start = four_bar(1e-6), zw.assemble(four_bar(1e-6), [1.2, -0.9, 1.9])[0]
    found = zw.trim(m, start + 0.02)
    assert largest_violations(m, found.q, np.zeros(3))[0].relative < 1e-8
    expected = zw.robot.equilibrium(m, found.q, tolerance=1e-21)
    assert expected.converged and expected.iterations <= 2
    np.testing.assert_allclose(found.q, expected.q, atol=1e-7)


def test_a_projection_is_the_same_in_other_units():
    """To the bit, for units that are powers of two."""
    q, found = zw.assemble(four_bar(), [1.2, -0.9, 1.9])[0] + [1e-3, -2e-3, 1e-3], []
    for unit in (1.0, 2.0**-20):
        m = four_bar(unit)
        after = project_state(m, inverse_weights(m), q, np.array([0.3, 0.2, -0.1]))
        assert not after.violated
        found.append([*after.q, *after.v])
    np.testing.assert_allclose(np.array(found[1], float), np.array(found[0], float), rtol=1e-13)


def skate():
    """A blade on ice, without any length."""
    slides = [zw.Prismatic(name, axis=axis) for name, axis in (("x", (1, 0, 0)), ("y", Y))]
    body = zw.Body("skate", (*slides, zw.Revolute("turn", axis=(0, 0, 1))), mass=1, inertia=(1, 1, 1))
    return zw.Mechanism("skate", [body], constraints=[zw.NoSideSlip("edge", "skate", direction=Y)])


def test_fast_states_without_lengths_are_accepted_where_they_are_assembled():
    m, rng = skate(), np.random.default_rng(0)
    for angle in rng.uniform(-3, 3, size=10):
        speed = 20 * np.array([np.cos(angle), np.sin(angle), 0.1]) + 1e-3 * rng.normal(size=3)
        zw.linearize(m, *zw.assemble(m, [1.0, 2.0, angle], speed))


def test_single_precision_keeps_constraints_far_from_the_origin():
    """Of two small bodies that fall joined, and of a skate, as in double precision to its rounding errors."""
    bodies = [zw.Body(name, zw.Free(name), mass=0.01, inertia=(1e-6, 2e-6, 3e-6)) for name in "ab"]
    pin = zw.Connect("pin", ("a", (0.01, 0, 0)), ("b", (-0.01, 0, 0)))
    m = zw.Mechanism("pair", bodies, constraints=[pin])
    q = np.array(m.neutral, dtype=float)
    q[[0, 1, 2, 7, 8, 9]] = [20.0, 0.4, 3, 20.02, 0.4, 3]
    for mechanism, start, v in (
        (m, q, np.zeros(12)),
        (skate(), [3, 2, 0.3], [5 * np.cos(0.3), 5 * np.sin(0.3), 2]),
    ):
        runs = [
            zw.compile(mechanism, dtype=dtype).rollout(start, v, np.zeros(mechanism.nv), steps=50, step=1e-3)
            for dtype in ("float32", "float64")
        ]
        np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-4)


def test_formulas_with_large_numbers_keep_their_tolerance():
    """A bead on a circle of 3 km, at the origin of its slides."""
    x, y = sp.symbols("x y")
    body = zw.Body("bead", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=Y)), mass=1)
    circle = zw.Holonomic("circle", (x + 3000) ** 2 + y**2 - 9e6)
    m = zw.Mechanism("bead", [body], gravity=(0, -9.81, 0), constraints=[circle])
    run = zw.simulate(
        m, zw.assemble(m, [0, 1e-5])[0], duration=0.2, step=1e-3, integrator="rk4", progress=False
    )
    assert run.q.values[0, -1, 1] == pytest.approx(1e-5 - 9.81 * 0.2**2 / 2, rel=1e-6)


def test_assembly_is_the_same_at_any_distance_from_the_origin():
    """Of an arm on a cart that a rod joins to a point, and of two free bodies, which meet in the middle."""
    found = []
    for far in (0.0, 10.0, 1000.0):
        cart = zw.Body("cart", zw.Prismatic("x", axis=(1, 0, 0)), mass=1)
        rod = zw.Distance("rod", ("arm", (1, 0, 0)), ("world", (far + 2, 0, 0)), 1.0)
        m = zw.Mechanism("cart", [cart, bar("arm", 0, "cart", 1.0, 1.0)], constraints=[rod])
        found.append(zw.assemble(m, [far, 0.3])[0] - [far, 0])
    np.testing.assert_allclose(found[1:], found[:1] * 2, atol=1e-9)
    bodies = [zw.Body(name, zw.Free(name), mass=1, inertia=(1, 1, 1)) for name in "ab"]
    m = zw.Mechanism("pair", bodies, constraints=[zw.Connect("pin", ("a", (0, 0, 0)), ("b", (0, 0, 0)))])
    q = np.array(m.neutral, dtype=float)
    q[[2, 9]] = 101.3, 101.0
    assert zw.assemble(m, q)[0][[2, 9]] == pytest.approx(101.15)


def particle(constraint, home=(0, 0, 0), mass=1):
    slides = [zw.Prismatic(n, axis=a) for n, a in zip("xyz", np.eye(3, dtype=int).tolist(), strict=True)]
    return zw.Mechanism(
        "particle", [zw.Body("p", tuple(slides), mass=mass)], home=home, gravity=(0, 0, -9.81),
        constraints=[constraint],
    )  # fmt: skip


@pytest.mark.parametrize("factor", [1e-15, 1e-9, 1e8])
def test_a_factor_of_a_formula_has_no_effect_on_equations(factor):
    """A particle on the plane z = x falls with half of gravity, and has two degrees of freedom."""
    x, z, k = sp.symbols("x z k")
    m = particle(zw.Holonomic("slope", factor * (z - x)))
    e = zw.equations(m)
    assert [s.name for s in e.speeds] == ["y_dot", "z_dot"] and zw.classify(m).degrees_of_freedom == 2
    M, r = e.evaluate({"x": 0.1, "y": 0.2, "z": 0.1, "y_dot": 0.3, "z_dot": 0.4})
    np.testing.assert_allclose(np.linalg.solve(M, r.ravel()), [0, -9.81 / 2], rtol=0, atol=1e-12)
    assert zw.equations(m, ["x", "y"]).speeds.rows == 2
    # on a spring, with omega^2 = k / (2 m)
    model = zw.linearize(
        m.replace(forces=[zw.Spring("x", k)]), [0, 0, 0], [0, 0, 0], states=["x", "y", "x_dot", "y_dot"]
    )
    A = sp.Matrix(model.A).subs(list(reversed(model.definitions)))
    assert float(A[2, 0].subs(k, 3.0)) == pytest.approx(-1.5)


@pytest.mark.parametrize("radius", [1e-9, 0.05, 1e3])
def test_default_velocities_are_those_that_determine_all_others_at_home(radius):
    """Of a spherical pendulum: the two across the rod, in which it accelerates by gravity alone."""
    x, y, z = sp.symbols("x y z")
    rod = zw.Distance("rod", ("p", (0, 0, 0)), ("world", (0, 0, 0)), radius)
    sphere = zw.Holonomic("sphere", x**2 + y**2 + z**2 - radius**2)
    for axis, across in ((0, ["y_dot", "z_dot"]), (2, ["x_dot", "y_dot"])):
        home = tuple(radius * (k == axis) for k in range(3))
        for constraint in (rod, sphere):
            e = zw.equations(particle(constraint, home))
            assert [s.name for s in e.speeds] == across
            at_rest = {**dict(zip("xyz", home, strict=True)), "x_dot": 0, "y_dot": 0, "z_dot": 0}
            M, r = e.evaluate(at_rest)
            expected = [-9.81 if name == "z_dot" else 0 for name in across]
            np.testing.assert_allclose(np.linalg.solve(M, r.ravel()), expected, rtol=0, atol=1e-9)
