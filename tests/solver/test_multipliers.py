"""Hard equalities by the method of multipliers have the accelerations and forces of the null-space method."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import zwang as zw
from benchmarks.constant_scenes import pinned_chain
from tests.solver.null_space import null_space_reduction
from tests.solver.random_problems import random_problem
from zwang.algebra.dual_control_flow import Tangent, tangents
from zwang.constraint.hard import velocity_level_rows_at
from zwang.constraint.rows import rows_of_kind
from zwang.errors import InconsistentConstraintsError, SolveError
from zwang.solver.linearised import TO_BE_FOUND
from zwang.solver.solve import solve


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 4), redundant=st.integers(0, 3))
def test_redundant_rows_are_solved_as_by_the_singular_value_decomposition(seed, count, redundant):
    problem, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    J, aref = rng.normal(size=(count, 6)), 5 * rng.normal(size=count)
    mixture = np.concatenate([np.eye(count), rng.normal(size=(redundant, count))])
    A, b = mixture @ J, mixture @ aref
    inverse_weight = np.einsum("ij,ji->i", A, np.linalg.solve(problem.M, A.T))
    rows = rows_of_kind(("loop",) * len(A), "equality", A, b, inverse_weight=inverse_weight)
    found, expected = solve(problem, rows), null_space_reduction(problem, rows)
    a = expected.particular
    assert found.converged
    assert np.abs(found.acceleration - a).max() <= 1e-10 * np.abs(a).max()
    # redundant rows share their force in some way: the generalised force is unique
    force = A.T @ found.force
    expected_force = A.T @ expected.force(problem, a)
    assert np.abs(force - expected_force).max() <= 1e-9 * np.abs(expected_force).max()
    if not redundant:
        own = expected.force(problem, a)
        assert np.abs(found.force - own).max() <= 1e-9 * np.abs(own).max()


def tangent(x, dx):
    return np.frompyfunc(Tangent, 2, 1)(x, dx)


def accelerations_and_forces(problem, M, a_free, J, aref, redundant):
    """(values, derivatives) of the accelerations and the forces of the rows J a = aref, of which the first
    ones come twice; M, a_free, J, aref: pairs of values and derivatives.
    """
    again = [np.concatenate([x, x[:redundant]]) for x in (*J, *aref)]
    inverse_weight = np.einsum("ij,ji->i", again[0], np.linalg.solve(M[0], again[0].T))
    rows = rows_of_kind(
        ("loop",) * len(again[0]), "equality", again[0], again[2], inverse_weight=inverse_weight
    )
    with tangents():
        problem = problem._replace(M=tangent(*M), a_free=tangent(*a_free))
        rows = rows.replaced(J=tangent(*again[:2]), aref=tangent(*again[2:]))
        found = solve(problem, rows, start=TO_BE_FOUND)
    parts = [([y.value for y in x], [y.derivative for y in x]) for x in (found.acceleration, found.force)]
    return found.converged, [np.array(x, float) for x in parts]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("redundant", [0, 2])
def test_derivatives_are_those_of_the_equations_also_where_no_force_acts(loaded, redundant, count=3):
    for seed in range(20):
        problem, _ = random_problem(seed)
        rng, n = np.random.default_rng(seed), 6
        J, dM, dJ = rng.normal(size=(count, n)), rng.normal(size=(n, n)), rng.normal(size=(count, n))
        da_free, db, dM = rng.normal(size=n), rng.normal(size=count), dM + dM.T
        aref = J @ problem.a_free + (rng.normal(size=count) if loaded else 0)
        converged, (a, f) = accelerations_and_forces(
            problem, (problem.M, dM), (problem.a_free, da_free), (J, dJ), (aref, db), redundant
        )
        total = f[:, :count].copy()
        total[:, :redundant] += f[:, count:]
        kkt = np.block([[problem.M, -J.T], [J, np.zeros((count, count))]])
        residual = dJ.T @ total[0] + problem.M @ da_free - dM @ (a[0] - problem.a_free)
        expected = np.linalg.solve(kkt, np.concatenate([residual, db - dJ @ a[0]]))
        size = np.abs(expected).max()
        assert converged
        assert np.abs(a[1] - expected[:n]).max() <= 1e-10 * size
        assert np.abs(total[1] - expected[n:]).max() <= 1e-9 * size


def test_derivatives_along_which_redundant_rows_contradict_each_other_are_linear():
    problem, _ = random_problem(3)
    rng = np.random.default_rng(3)
    J, zero = rng.normal(size=(2, 6)), np.zeros(6)
    aref = J @ problem.a_free + 1
    rows, b = np.concatenate([J, J[:1]]), np.concatenate([aref, aref[:1]])

    def derivatives(dJ):
        converged, (a, f) = accelerations_and_forces(
            problem, (problem.M, np.zeros((6, 6))), (problem.a_free, zero), (rows, dJ), (b, np.zeros(3)), 0
        )
        assert converged
        return a[1], f[1]

    first, third = np.zeros((3, 6)), np.zeros((3, 6))
    first[0] = third[2] = rng.normal(size=6)
    # each one alone makes the rows contradict each other, and both together do not
    parts, both = [derivatives(dJ) for dJ in (first, third)], derivatives(first + third)
    for k in range(2):
        assert np.abs(parts[0][k] + parts[1][k] - both[k]).max() <= 1e-8 * np.abs(both[k]).max()


def dumbbell(mass):
    """A light bar between two bodies of 1 kg."""
    x, y, z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    bar = zw.Body("bar", zw.Planar("p", axis=y), mass=mass, inertia=(mass / 12,) * 3)
    ends = [
        zw.Body(n, (zw.Prismatic(n + "x", axis=x), zw.Prismatic(n + "z", axis=z)), mass=1.0) for n in "ab"
    ]
    pins = [zw.Connect(n, ("bar", (at, 0, 0)), (n, (0, 0, 0))) for n, at in (("a", -0.5), ("b", 0.5))]
    return zw.Mechanism("dumbbell", [bar, *ends], gravity=(0, 0, 0), constraints=pins)


@pytest.mark.parametrize("mass", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_a_bar_of_any_mass_carries_the_centripetal_force_of_what_it_connects(mass, w=2.0):
    start = {"ax": -0.5, "bx": 0.5}, {"p.angle": w, "az": w / 2, "bz": -w / 2}
    found = zw.simulate(
        dumbbell(mass), *start, duration=0.5, step=1e-3, integrator="rk4", record={"multipliers": True}
    )
    force = np.linalg.norm(found.multiplier.values[0].reshape(-1, 2, 3), axis=-1)
    assert np.abs(force - 0.5 * w * w).max() < 1e-9
    assert np.ptp(found.energy.values) < 1e-10
    assert abs(found.q.values[0, -1][2] - w * 0.5) < 1e-9


@pytest.mark.parametrize("inertia", [1e-2, 1e-6, 1e-9])
def test_accelerations_of_a_bob_on_a_light_rod_have_exact_derivatives_where_no_force_acts(inertia, angle=0.7):
    x, y, z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    rod = zw.Body("rod", zw.Revolute("a", axis=y), mass=1e-6, inertia=(inertia,) * 3)
    bob = zw.Body("bob", (zw.Prismatic("x", axis=x), zw.Prismatic("z", axis=z)), mass=1.0)
    pin = zw.Connect("pin", ("rod", (0, 0, -1)), ("bob", (0, 0, 0)))
    m = zw.Mechanism("pendulum", [rod, bob], gravity=(0, 0, 0), constraints=[pin])
    q = [angle, -np.sin(angle), -np.cos(angle)]
    found = zw.compile(m).constrained_dynamics_derivatives(q, np.zeros(3), np.zeros(3))
    # unit generalised forces on a pendulum of length 1, with the moment of inertia 1 + inertia
    motion = np.array([1, -np.cos(angle), np.sin(angle)])
    assert np.abs(found.B[3:] - np.outer(motion, motion) / (1 + inertia)).max() < 1e-6


@pytest.mark.parametrize("light", [1e-4, 1e-6])
def test_derivatives_of_cranks_in_series_by_light_rods_are_those_on_the_null_space(light):
    rng, y = np.random.default_rng(0), (0, 1, 0)
    angles = rng.uniform(-1, 1, 4)
    bodies = [
        zw.Body(f"k{i}", zw.Revolute(f"k{i}", y), position=(i, 0, 0), mass=1, inertia=(0.3,) * 3)
        for i in range(4)
    ]
    tips = [np.array([i + np.sin(a), np.cos(a)]) for i, a in enumerate(angles)]
    q, pins = list(angles), []
    for i, (a, b) in enumerate(pairwise(tips)):
        length, mass = np.linalg.norm(b - a), light * (i + 1)
        rod = zw.Planar(f"r{i}", axis=y)
        bodies.append(zw.Body(f"r{i}", rod, mass=mass, inertia=(mass * length**2 / 12,) * 3))
        q += [*(a + b) / 2, -np.arctan2(*(b - a)[::-1])]
        for crank, side in ((i, -1), (i + 1, 1)):
            ends = (f"k{crank}", (0, 0, 1)), (f"r{i}", (side * length / 2, 0, 0))
            pins.append(zw.Connect(f"p{i}{side}", *ends))
    m = zw.Mechanism("cranks", bodies, gravity=(0, 0, 0), constraints=pins)
    q, _ = zw.assemble(m, q)
    B = zw.compile(m).constrained_dynamics_derivatives(q, np.zeros(m.nv), np.zeros(m.nv)).B[m.nv :]
    A = np.asarray(velocity_level_rows_at(m, q, 0.0)[0], float)
    N = scipy.linalg.null_space(A, rcond=1e-9)
    expected = N @ np.linalg.solve(N.T @ zw.mass_matrix(m, q) @ N, N.T)
    assert np.abs(B - expected).max() < 1e-12 / light * np.abs(expected).max()


def parallelogram(length, g):
    def link(name, long, *parent, at=(0, 0, 0)):
        joint, inertia = zw.Revolute(name, (0, 0, 1)), (long**2 / 12,) * 3
        return zw.Body(name, joint, *parent, position=at, mass=1, com=(long / 2, 0, 0), inertia=inertia)

    bodies = [
        link("left", 1),
        link("coupler", length, "left", at=(1, 0, 0)),
        link("right", 1, at=(length, 0, 0)),
    ]
    pin = zw.Connect("pin", ("coupler", (length, 0, 0)), ("right", (1, 0, 0)))
    return zw.Mechanism("parallelogram", bodies, gravity=(0, -g, 0), constraints=[pin])


@pytest.mark.parametrize("angle", [1e-2, 1e-3])
def test_a_parallelogram_near_its_dead_centre_falls_by_its_closed_form(angle, length=2.0, g=9.81):
    m = parallelogram(length, g)
    found = zw.constrained_dynamics(m, [angle, -angle, angle], [1.0, -1.0, 1.0], np.zeros(3))
    assert found.converged
    # two cranks of the moment of inertia 1/3, and the coupler of 1 kg, at the radius 1
    expected = -2 * g * np.cos(angle) / (2 / 3 + 1)
    assert np.abs(found.acceleration - expected * np.array([1, -1, 1])).max() < 1e-9


@pytest.mark.parametrize("angle", [1e-2, 1e-3])
def test_a_parallelogram_near_its_dead_centre_keeps_its_rows_where_they_are_violated(angle):
    """A violation of 0.06 mm, of angles with four digits, is no sign of redundant rows."""
    m, v = parallelogram(2.0, 9.81), [1.0, -1.0, 1.0]
    q = angle * np.array([1, -1, 1]) + 1e-4 * np.array([0.3, -0.5, 0.7])
    found = zw.constrained_dynamics(m, q, v, np.zeros(3))
    M, a_free = zw.mass_matrix(m, q), zw.forward_dynamics(m, q, v, np.zeros(3))
    A, b = found.rows.J[:2], found.rows.aref[:2]
    KKT = np.block([[M, -A.T], [A, np.zeros((2, 2))]])
    expected = np.linalg.solve(KKT, np.concatenate([M @ a_free, b]))[:3]
    assert found.converged
    assert np.abs(found.acceleration - expected).max() < 1e-9 * np.abs(expected).max()


def test_rows_that_are_not_finite_are_named():
    problem, _ = random_problem(0)
    rows = rows_of_kind(("good", "bad"), "equality", [np.ones(6), np.full(6, np.nan)], [0.0, 1.0])
    with pytest.raises(SolveError, match="'bad' are not finite"):
        solve(problem, rows)


def test_only_the_constraints_with_a_residual_are_named():
    problem, _ = random_problem(1)
    J = np.eye(6)[[0, 1, 1]]
    rows = rows_of_kind(("fine", "up", "down"), "equality", J, [1.0, 2.0, -2.0])
    with pytest.raises(InconsistentConstraintsError, match="hard constraints down, up contradict"):
        solve(problem, rows)


def test_no_acceleration_satisfies_a_formula_whose_gradient_alone_vanishes():
    """z^2 = 0 at z = 0 asks for 0 a + 2 v^2 = 0."""
    z = zw.scalar.symbol("z")
    body = zw.Body("bead", zw.Prismatic("z", axis=(0, 0, 1)), mass=1.0)
    m = zw.Mechanism("bead", [body], constraints=[zw.Holonomic("floor", z**2)])
    assert zw.constrained_dynamics(m, [0.0], [0.0], [0.0]).converged
    with pytest.raises(InconsistentConstraintsError, match=r"floor contradict.* residual is 2"):
        zw.constrained_dynamics(m, [0.0], [1.0], [0.0])


def test_a_long_chain_pinned_at_both_ends():
    """Its mass matrix is so large that it is factorised in blocks."""
    m = pinned_chain()
    rng = np.random.default_rng(1)
    q, v = np.array(m.home), np.zeros(40)
    found = zw.constrained_dynamics(m, q, v, tau := 0.01 * rng.normal(size=40))
    A = np.array(velocity_level_rows_at(m, q)[0], float)
    M, force = zw.mass_matrix(m, q), tau - zw.inverse_dynamics(m, q, v, np.zeros(40))
    KKT = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
    expected = np.linalg.lstsq(KKT, np.concatenate([force, np.zeros(len(A))]), rcond=None)[0][:40]
    assert found.converged
    assert np.abs(found.acceleration - expected).max() < 1e-7 * np.abs(expected).max()


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e8])
def test_two_ratios_of_gears_hold_their_wheels_whatever_the_scale_of_a_formula(scale, ratio=1e-6):
    bodies = [
        zw.Body(name, zw.Revolute(name), mass=1, inertia=(j,) * 3) for name, j in (("a", 1), ("b", 1e-3))
    ]
    a, b = (zw.scalar.symbol(name) for name in "ab")
    gears = [zw.Holonomic("one", a - ratio * b), zw.Holonomic("two", scale * (a - 2 * ratio * b))]
    m = zw.Mechanism("gears", bodies, constraints=gears)
    found = zw.constrained_dynamics(m, [0, 0], [0, 0], [1.0, 1.0])
    assert np.abs(found.acceleration).max() < 1e-3
