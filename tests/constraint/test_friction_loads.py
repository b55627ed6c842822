"""The loads of Coulomb laws as a fixed point, against a closed form with noise; those of a given force."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import zwang as zw
from zwang.api.runs import termination
from zwang.constraint.coulomb_friction import FrictionLaws, FrictionResponse, SlidingModes, solve_loads
from zwang.constraint.rows import no_rows, rows_of_kind
from zwang.errors import NonIdealForceError

G = 9.81


@pytest.mark.parametrize(("contacts", "noise"), [(True, 1e-7), (False, 1e-9)])
def test_loads_are_found_to_the_accuracy_of_the_solution_they_come_from(contacts, noise):
    """The fixed point 1 / 1.2 of N -> 1 - 0.2 N, with the rounding of a solution beside hard contacts."""
    noisy = np.random.default_rng(3)
    law = zw.CoulombFriction("pin", 0.3, joint="hinge", radius=0.05)
    laws = FrictionLaws((law,), *(np.zeros(1) for _ in range(5)))
    slides = SlidingModes(np.ones(1), True, None)
    rows = rows_of_kind("c", "contact", np.zeros((1, 1)), [0.0]) if contacts else no_rows(1)

    def found(size):
        def respond(loads, bounds):
            return FrictionResponse(
                1 - 0.2 * loads * (1 + size * noisy.uniform(-1, 1, 1)), np.zeros(1), False
            )

        return respond

    for _ in range(50):
        loads, is_solution = solve_loads(laws, slides, found(noise), rows, 1.0)
        assert is_solution and loads[0] == pytest.approx(1 / 1.2, rel=noise)
    with pytest.raises(NonIdealForceError, match=r"'pin' were not found in 60 iterations"):
        solve_loads(laws, slides, found(1e-4), rows, 1.0)


def test_a_controlled_force_loads_a_bearing_as_in_a_simulation():
    """The acceleration under a control is that of a short step of a simulation."""

    def link(k, parent, x):
        joint = zw.Revolute(f"q{k}", axis=(0, 1, 0))
        return zw.Body(
            f"l{k}", joint, parent, position=(x, 0, 0), mass=1, com=(0.3, 0, 0), inertia=(0.05,) * 3
        )

    friction = zw.CoulombFriction("bearing", 0.3, joint="q0", radius=0.05)
    pull = zw.Wrench("l1", (1, 0, 2), input="pull")
    m = zw.Mechanism("arm", [link(0, "world", 0), link(1, "l0", 0.5)], forces=[pull], constraints=[friction])
    q, v, h = [0.3, -0.4], [1.0, 0.5], 1e-6
    run = zw.simulate(m, q, v, control={"pull": 40.0}, duration=h, step=h, progress=False)
    found = zw.constrained_dynamics(m, q, v, control={"pull": 40.0}).acceleration
    np.testing.assert_allclose(found, (run.v.values[0, -1] - v) / h, rtol=1e-5)


MU, SLIDER = 0.3, 0.4  # coefficient of friction, and mass [kg]


def engine(R, base="fixed", friction=True):
    """A slider-crank in the x-z plane of a frame with dry friction in its slide, turned by R with gravity."""
    turned = tuple(map(tuple, R))
    joint = zw.Fixed() if base == "fixed" else zw.Free("base")
    crank, rod = (zw.Revolute(name, axis=(0, 1, 0)) for name in ("crank", "rod"))
    bodies = [
        zw.Body("frame", joint, mass=5, inertia=(1, 1, 1), orientation=turned),
        zw.Body("crank", crank, "frame", mass=0.5, com=(0.05, 0, 0), inertia=(0.002,) * 3),
        zw.Body("rod", rod, "crank", (0.1, 0, 0), mass=0.3, com=(0.15, 0, 0), inertia=(0.003,) * 3),
        zw.Body("slider", zw.Prismatic("slide", axis=(1, 0, 0)), "frame", mass=SLIDER),
    ]
    loops = [zw.Connect("wrist", ("rod", (0.3, 0, 0)), ("slider", (0, 0, 0)))]
    loops += [zw.CoulombFriction("dry", MU, joint="slide")] if friction else []
    loops += [zw.Weld("clamp", "world", "frame", orientation=turned)] if base == "clamped" else []
    return zw.Mechanism("engine", bodies, gravity=tuple(R @ (0, 0, -G)), constraints=loops)


def planar_solution(q, v):
    """Accelerations, friction and force on the pin of the engine, from its two rows in the plane."""
    m = engine(np.eye(3), friction=False)
    rows = zw.constrained_dynamics(m, q, v, np.zeros(3)).rows
    J, b, M = rows.J[[0, 2]], rows.aref[[0, 2]], zw.mass_matrix(m, q)
    free = M @ zw.forward_dynamics(m, q, v, np.zeros(3))

    def solved(f):
        KKT = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
        x = np.linalg.solve(KKT, np.concatenate([free + np.array([0, 0, f]), b]))
        return x[:3], x[3:]

    def excess(f):
        return f - MU * abs(SLIDER * G + solved(f)[1][1])

    f = brentq(excess, 0, 100, xtol=1e-13)
    return solved(f)[0], f, solved(f)[1]


@pytest.mark.parametrize("base", ["fixed", "clamped"])
@pytest.mark.parametrize("seed", [None, 1, 3])
def test_friction_under_a_redundant_loop_is_that_of_the_plane(base, seed):
    """One row of the pin is redundant. In a plane of the axes a planar loop has no force across it; turned, a
    small one, as the rows share it by weights of their own: the same as without friction.
    """
    R = np.eye(3) if seed is None else Rotation.from_rotvec((1.1, -0.4, 0.7 * seed)).as_matrix()
    q, v = zw.assemble(engine(np.eye(3), friction=False), [0.5, -0.7, 0.38], speeds={"crank": 5.0},
                       positions={"crank": 0.5})  # fmt: skip
    assert v[2] < 0
    a, f, pin = planar_solution(q, v)
    m = engine(R, base)
    q, v = (q, v) if base == "fixed" else (np.r_[m.neutral[:7], q], np.r_[np.zeros(6), v])
    found = zw.constrained_dynamics(m, q, v, np.zeros(m.nv))
    rtol, across = (1e-8, 1e-7) if seed is None else (1e-3, 0.2)
    np.testing.assert_allclose(found.acceleration[-3:], a, rtol=rtol)
    assert found.forces["dry"][0] == pytest.approx(f, rel=rtol)
    wrist = R.T @ found.forces["wrist"]
    np.testing.assert_allclose(wrist[[0, 2]], pin, rtol=10 * rtol)
    assert abs(wrist[1]) < across
    push = np.r_[np.zeros(m.nv - 1), found.forces["dry"][0]]
    still = zw.constrained_dynamics(engine(R, base, False), q, v, push)
    np.testing.assert_allclose(still.forces["wrist"], found.forces["wrist"], rtol=1e-6, atol=1e-6)
    if seed == 3 and base == "fixed":
        after = zw.compile(m).step(q, v, np.zeros(m.nv), step=1e-6, integrator="euler")
        np.testing.assert_allclose((after.v - v)[-3:] / 1e-6, found.acceleration[-3:], rtol=1e-4)


@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e10])
def test_rows_of_one_equation_may_move_very_different_masses(ratio):
    """A light slide on a heavy one, pinned to the world beside a limit: the pin takes both forces."""
    heavy, light = ratio**0.5, ratio**-0.5
    limited = zw.Prismatic("z", axis=(0, 0, 1), limits=(-1, 1), limit_softness=None)
    bodies = (
        zw.Body("heavy", zw.Prismatic("y", axis=(0, 1, 0)), mass=heavy, inertia=(1, 1, 1)),
        zw.Body("light", zw.Prismatic("x", axis=(1, 0, 0)), "heavy", mass=light, inertia=(1, 1, 1)),
        zw.Body("other", limited, mass=1.0, inertia=(1, 1, 1)),
    )
    pin = zw.Connect("pin", ("light", (0, 0, 0)), ("world", (0, 0, 0)))
    m = zw.Mechanism("slides", bodies, gravity=(0, 0, 0), constraints=[pin])
    found = zw.constrained_dynamics(m, np.zeros(3), np.zeros(3), [10.0, 10.0, 0.0])
    assert found.converged
    np.testing.assert_allclose(found.forces["pin"], [-10, -10, 0], rtol=1e-9, atol=1e-12)


def test_friction_in_a_falling_linkage_is_found_where_a_row_consists_of_rounding_errors():
    """The frame falls with its linkage; across the plane there is no acceleration, and nearly no force."""
    found = {}
    for seed in (None, 1):
        R = np.eye(3) if seed is None else Rotation.from_rotvec((1.1, -0.4, 0.7 * seed)).as_matrix()
        m = engine(R, "free").replace(gravity=(0, 0, -G))
        q, v = zw.assemble(engine(np.eye(3), friction=False), [0.5, -0.7, 0.38], speeds={"crank": 5.0},
                           positions={"crank": 0.5})  # fmt: skip
        q, v = np.r_[m.neutral[:7], q], np.r_[np.zeros(6), v]
        found[seed] = zw.constrained_dynamics(m, q, v, np.zeros(m.nv))
        assert found[seed].converged
    np.testing.assert_allclose(found[None].acceleration[-3:], found[1].acceleration[-3:], rtol=1e-3)


def test_a_failed_step_that_takes_too_long_to_repeat_is_reported_without_names(monkeypatch):
    """Friction far above the Painleve limit has no solution; its name is found within the limit."""
    m = engine(np.eye(3), friction=False)
    q, v = zw.assemble(m, [0.5, -0.7, 0.38], positions={"crank": 0.5}, speeds={"crank": 5.0})
    m = m.replace(constraints=[*m.constraints, zw.CoulombFriction("dry", 30.0, joint="slide")])
    general = "the law of a non-ideal constraint.*in the state crank = 0.5"
    for limit, text in ((None, "friction forces of 'dry'"), (1, general)):
        if limit is not None:
            monkeypatch.setattr(termination, "REPEATED_ITERATIONS", limit)
        with pytest.warns(zw.errors.SimulationWarning, match=text):
            zw.simulate(m, q, v, duration=1e-3, step=1e-3, integrator="euler", progress=False)
