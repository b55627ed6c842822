"""Coulomb friction at rest and jamming, where friction loads its own bearing: a bracket on a column, a block
on a free wedge, a ladder between rough walls, against closed forms and the enumeration of all solutions.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.symbolic.machines import X, Y, Z
from zwang.errors import NonIdealForceError, SimulationWarning
from zwang.simulation.status import FAILURE_REASONS

G = 9.81
MASS, ARM, DISTANCE = 2.0, 0.2, 0.1
CRITICAL = DISTANCE / (2 * ARM)  # the coefficient at which the friction of a bracket holds its weight
INTEGRATORS = ("euler", "implicitfast", "rk4", "dop853")


def bracket(mu, sideways=0.0, static=None, rotation=None):
    """A bracket on a vertical column, whose centre of mass has the distance ARM from the axis of its guide.

    Friction f along the axis is in balance with the moment f ARM of the guide: with the force of gravity
    `sideways` per mass, N = max(MASS sideways, 2 ARM f / DISTANCE).
    """
    R = np.eye(3) if rotation is None else rotation
    joint = zw.Prismatic("z", axis=tuple(R[:, 2]))
    body = zw.Body("bracket", joint, mass=MASS, com=tuple(ARM * R[:, 0]), inertia=(0.01,) * 3)
    law = zw.CoulombFriction("guide", mu, joint="z", bearing_distance=DISTANCE, static_coefficient=static)
    return zw.Mechanism("column", [body], gravity=tuple(R @ [sideways, 0, -G]), constraints=[law])


def moved(m, q0, v0, duration, integrator, compiled=True):
    run = zw.simulate(
        m, q0, v0, duration=duration, step=0.01, integrator=integrator, compiled=compiled, progress=False
    )
    assert not run.failure_reason.any()
    return run.q.values[0, -1], run.v.values[0, -1]


def tilted():
    """A rotation, by which loads that balance to zero have rounding."""
    a, b = np.array([1, -2, 3]) / np.sqrt(14), np.array([3, 0, -1]) / np.sqrt(10)
    return np.column_stack([b, np.cross(a, b), a])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(
    ("sideways", "rotation"), [(0.0, None), (0.0, tilted()), (0.01, tilted()), (1.0, None)]
)
def test_a_bracket_holds_exactly_where_its_friction_locks_it(integrator, sideways, rotation):
    """It holds for 2 mu e / L >= 1; otherwise it falls, with the friction mu N of the sideways load alone."""
    t, ratios = 0.1, np.array([0.5, 0.999, 1.001, 3.0])
    mu = ratios * CRITICAL
    run = zw.simulate(bracket(sp.Symbol("mu"), sideways, rotation=rotation), duration=t, step=0.01,
                      integrator=integrator, params={"mu": mu}, progress=False)  # fmt: skip
    assert not run.failure_reason.any()
    expected = np.where(ratios > 1, 0.0, -(G - mu * sideways) * t)
    np.testing.assert_allclose(run.v.values[:, -1, 0], expected, rtol=1e-9, atol=1e-11)
    assert abs(run.q.values[ratios > 1]).max() < 1e-12


def test_a_bracket_at_rest_has_the_force_that_holds_it():
    for mu in (0.26, 5.0):
        for sideways in (0.0, 0.01, 1.0):
            found = zw.constrained_dynamics(bracket(mu, sideways), [0], [0], [0])
            assert found.forces["guide"][0] == pytest.approx(MASS * G) and abs(found.acceleration[0]) < 1e-12


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_bracket_is_the_same_on_floats_compiled_and_in_single_precision(integrator):
    m, mu = bracket(sp.Symbol("mu"), rotation=tilted()), np.array([0.9, 1.1]) * CRITICAL
    at_rest = np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1))
    for dtype, near in (("float64", 1e-14), ("float32", 1e-6)):
        fast = zw.compile(m, dtype=dtype)
        after = fast.step(*at_rest, step=0.01, integrator=integrator, params={"mu": mu})
        np.testing.assert_allclose(after.v[:, 0], [-G * 0.01, 0], atol=near)
    for k in range(2):
        _, v = moved(m.subs({"mu": mu[k]}), [0], [0], 0.01, integrator, compiled=False)
        np.testing.assert_allclose(v, [[-G * 0.01, 0][k]], atol=1e-14)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_bracket_that_is_thrown_up_stays_where_it_stops(integrator):
    """mu_s locks it, and mu does not; the load in sliding is the sideways one."""
    mu, sideways, v0 = 0.8 * CRITICAL, 1.0, 0.5
    m = bracket(mu, sideways, static=1.2 * CRITICAL)
    decelerates = G + mu * sideways
    q, v = moved(m, [0], [v0], 0.2, integrator)
    exact = integrator in ("rk4", "dop853")
    assert q[0] == pytest.approx(v0**2 / (2 * decelerates), abs=1e-10 if exact else v0 * 0.01)
    assert abs(v[0]) < 1e-12


def test_a_bracket_that_slides_without_load_jams_by_the_feedback_of_a_small_load():
    """N = 0 solves N = (2 mu e / L) N always, and is the only solution for a factor less than one."""
    for R in (None, tilted()):
        found = zw.constrained_dynamics(bracket(0.9 * CRITICAL, rotation=R), [0], [-1.0], [0])
        assert found.acceleration[0] == pytest.approx(-G, rel=1e-12)
        with pytest.raises(NonIdealForceError, match=r"'guide'.* feedback .* is 1\.2 .*jamming"):
            zw.constrained_dynamics(bracket(1.2 * CRITICAL, rotation=R), [0], [-1.0], [0])
        for integrator in ("rk4", "dop853"):
            with pytest.warns(SimulationWarning):
                run = zw.simulate(bracket(1.2 * CRITICAL, rotation=R), [0], [-1.0], duration=0.02, step=0.01,
                                  integrator=integrator, progress=False)  # fmt: skip
            assert FAILURE_REASONS[int(run.failure_reason[0])].name == "no_working_force"


# -------------------------------------------------------------------------------------- block on a wedge


def wedge(angle, mu, wedge_mass, mass=1.0):
    """A block on a wedge that is free to slide on the ground; s is the displacement of the block downhill."""
    support = zw.Body("wedge", zw.Prismatic("w", axis=X), mass=wedge_mass)
    downhill = zw.Prismatic("s", axis=(np.cos(angle), 0, -np.sin(angle)))
    block = zw.Body("block", downhill, "wedge", mass=mass)
    law = zw.CoulombFriction("rough", mu, joint="s")
    return zw.Mechanism("wedge", [support, block], gravity=(0, 0, -G), constraints=[law])


def slips(angle, mu, M, sign, m=1.0):
    """The accelerations (w, s) of all solutions that slide with this sign, for each sign of N."""
    c, s = np.cos(angle), np.sin(angle)
    found = []
    for side in (1, -1):
        k = mu * side * sign  # the friction along s is -k N
        A = [[m * c, m, k], [m * s, 0, -1], [M, 0, s - k * c]]
        w, along, N = np.linalg.solve(A, [m * G * s, -m * G * c, 0])
        if side * N >= 0:
            found.append((w, along))
    return found


def wedges():
    rng = np.random.default_rng(5)
    cases = [(0.6, 1.0, 0.05), (0.6, 0.69, 0.05), (0.6, 0.68, 0.05), (0.6, 0.68, 1e-3), (1.2, 3.0, 0.01)]
    return cases + [tuple(rng.uniform((0.1, 0.05, 0.01), (1.4, 2.0, 3.0))) for _ in range(12)]


def test_a_block_on_a_wedge_has_the_solution_of_the_enumeration():
    """At rest: sticking if tan(angle) <= mu, or else the only slip that begins with its own sign. In sliding:
    the only solution, or the error of Painleve's paradox where there are two.
    """
    count = dict.fromkeys(("sticks", "slips", "slides", "jams"), 0)
    for angle, mu, M in wedges():
        m = wedge(angle, mu, M)
        candidates = [a for sign in (1, -1) for a in slips(angle, mu, M, sign) if a[1] * sign > 0]
        if np.tan(angle) <= mu:
            candidates = [(0.0, 0.0)]
        assert len(candidates) == 1
        found = zw.constrained_dynamics(m, [0, 0], [0, 0], [0, 0]).acceleration
        np.testing.assert_allclose(found, candidates[0], atol=1e-9)
        count["sticks" if np.tan(angle) <= mu else "slips"] += 1
        for sign in (1, -1):
            solutions = slips(angle, mu, M, sign)
            if len(solutions) == 1:
                a = zw.constrained_dynamics(m, [0, 0], [0, 50.0 * sign], [0, 0]).acceleration
                np.testing.assert_allclose(a, solutions[0], rtol=1e-8)
            else:
                with pytest.raises(NonIdealForceError, match="'rough' have no solution, or more than one"):
                    zw.constrained_dynamics(m, [0, 0], [0, 50.0 * sign], [0, 0])
            count["slides" if len(solutions) == 1 else "jams"] += 1
    assert min(count.values()) > 3


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_block_on_a_light_wedge_stays_or_slides_with_every_integrator(integrator):
    q, v = moved(wedge(0.6, 1.0, 0.05), [0, 0], [0, 0], 0.1, integrator)
    assert abs(q).max() < 1e-12 and abs(v).max() < 1e-11
    ((w, along),) = slips(0.6, 0.5, 0.5, 1)
    _, v = moved(wedge(0.6, 0.5, 0.5), [0, 0], [0, 0], 0.1, integrator)
    np.testing.assert_allclose(v, [0.1 * w, 0.1 * along], rtol=1e-9)


# ---------------------------------------------------------------------------------------- several laws


def ladder(angle, mu, length=2.0):
    """A ladder between a rough floor and a rough wall, at this angle [rad] to the floor, and its state."""
    x, y, turn = sp.symbols("x y turn", real=True)
    c, s = sp.cos(turn) * length / 2, sp.sin(turn) * length / 2
    joints = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("turn", axis=Z))
    body = zw.Body("ladder", joints, mass=MASS, inertia=(MASS * length**2 / 12,) * 3)
    constraints = [
        zw.Holonomic("floor", y - s),
        zw.Holonomic("wall", x - c),
        zw.CoulombFriction("on floor", mu, constraint="floor", sliding={"x": 1, "turn": -s}),
        zw.CoulombFriction("on wall", mu, constraint="wall", sliding={"y": 1, "turn": c}),
    ]
    m = zw.Mechanism("ladder", [body], gravity=(0, -G, 0), constraints=constraints)
    return m, [length / 2 * np.cos(angle), length / 2 * np.sin(angle), angle]


@pytest.mark.parametrize("mu", [0.2, 0.5, 0.8])
def test_a_ladder_stays_up_to_the_angle_of_statics(mu):
    """It holds for tan(angle) >= (1 - mu^2) / (2 mu), while the friction forces are not determined."""
    critical = np.arctan((1 - mu**2) / (2 * mu))
    for angle in (critical + 1e-3, critical + 0.2):
        m, q = ladder(angle, mu)
        found = zw.constrained_dynamics(m, q, [0, 0, 0], [0, 0, 0])
        assert abs(found.acceleration).max() < 1e-9
        for surface in ("floor", "wall"):
            bound = mu * abs(found.forces[surface][0])
            assert abs(found.forces[f"on {surface}"][0]) <= bound * (1 + 1e-8)
    m, q = ladder(critical - 1e-2, mu)
    found = zw.constrained_dynamics(m, q, [0, 0, 0], [0, 0, 0])
    assert found.acceleration[2] < -1e-3
    for surface, sign in (("floor", -1), ("wall", 1)):
        assert found.forces[f"on {surface}"][0] == pytest.approx(sign * mu * abs(found.forces[surface][0]))


def machine(second):
    """Two brackets on their own columns, of which the first locks itself, and a block on the ground."""
    bodies, laws = [], []
    for k, (name, mu) in enumerate((("a", 1.2 * CRITICAL), ("b", second))):
        bodies.append(
            zw.Body(name, zw.Prismatic(name, axis=Z), mass=MASS, com=(ARM, 0, 0), position=(k, 0, 0),
                    inertia=(0.01,) * 3)
        )  # fmt: skip
        laws.append(zw.CoulombFriction(name, mu, joint=name, bearing_distance=DISTANCE))
    bodies.append(zw.Body("block", zw.Prismatic("x", axis=X), mass=1.0))
    laws.append(zw.CoulombFriction("x", 0.3, joint="x"))
    return zw.Mechanism("machine", bodies, gravity=(0, 0, -G), constraints=laws)


MACHINE_CASES = [(r, u) for r in (1.3, 0.7) for u in (0.0, 2.0, -2.0)]


def machine_accelerations(ratio, u):
    return [0, 0 if ratio > 1 else -G, -0.3 * G * np.sign(u)]


def test_laws_that_stick_beside_laws_that_slide_do_not_depend_on_them():
    """In all modes, against each of them alone."""
    for ratio, u in MACHINE_CASES:
        found = zw.constrained_dynamics(machine(ratio * CRITICAL), [0] * 3, [0, 0, u], [0] * 3)
        np.testing.assert_allclose(found.acceleration, machine_accelerations(ratio, u), atol=1e-9)
    with pytest.raises(NonIdealForceError, match="feedback"):  # the first one slides without load
        zw.constrained_dynamics(machine(0.7 * CRITICAL), [0] * 3, [-1.0, 0, 2.0], [0] * 3)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_each_world_of_several_laws_has_its_own_modes(integrator):
    cases = MACHINE_CASES if integrator != "dop853" else MACHINE_CASES[1::3]
    v0 = np.array([[0, 0, u] for _, u in cases])
    run = zw.simulate(machine(sp.Symbol("mu")), np.zeros((len(cases), 3)), v0, duration=0.02, step=0.01,
                      integrator=integrator, progress=False,
                      params={"mu": np.array([r * CRITICAL for r, _ in cases])})  # fmt: skip
    assert not run.failure_reason.any()
    expected = v0 + 0.02 * np.array([machine_accelerations(*case) for case in cases])
    np.testing.assert_allclose(run.v.values[:, -1], expected, atol=1e-9)
