"""Painleve's paradox: a rod whose tip slides on rough ground, in closed form, and states near to it.

With B = 1 + 3 cos^2(angle) - 3 mu sin(angle) cos(angle), friction included, a normal force f accelerates the
tip by B f / m. Where B < 0 no force keeps a tip that is pressed down from penetrating, and a tip that would
lift off may also stay. Source: Genot, Brogliato, Eur. J. Mech. A 18 (1999) 653.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from zwang.errors import SimulationWarning

ANGLE, LENGTH, TIP = 0.6, 1.0, 1e-3
X, Z = LENGTH / 2 * np.cos(ANGLE), LENGTH / 2 * np.sin(ANGLE) + TIP  # from the contact to the centre of mass
CRITICAL = (1 + 12 * X * X) / (12 * X * Z)
GRAVITY = 9.81


def rod(mu, mass=1.0, **more):
    """A thin rod in the x-z plane, its angle to the ground as the third coordinate, with a hard lower tip."""
    touch = zw.Surface(friction=(mu, 0.005, 0.0001), hard=True)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z"), zw.Revolute("angle", axis=(0, -1, 0)))
    tip = zw.Sphere(radius=TIP, position=(-LENGTH / 2, 0, 0), surface=touch)
    inertia = mass * LENGTH**2 / 12
    body = zw.Body("rod", joint=joints, mass=mass, inertia=(1e-6, inertia, inertia), geometry=[tip])
    return zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)], **more)


def state(slip, spin=0.0):
    """Coordinates and velocities with the tip on the ground, sliding along x."""
    return np.array([0.0, Z, ANGLE]), np.array([slip - spin * Z, spin * X, spin])


def dynamics(mu, slip, spin=0.0, lift=0.0):
    q, v = state(slip, spin)
    return zw.constrained_dynamics(rod(mu), q, v, [0, lift, 0])


@pytest.mark.parametrize("slip", [3.0, -3.0])
def test_below_the_critical_friction_the_force_is_that_of_the_closed_form(slip):
    """f = m g / B; friction to the left, against sliding to the right, lifts the tip."""
    found = dynamics(0.9 * CRITICAL, slip)
    B = 1 + 12 * X * X + 0.9 * CRITICAL * 12 * X * Z * np.sign(slip)
    assert found.converged and not found.undetermined
    assert found.force[0] == pytest.approx(GRAVITY / B, rel=1e-9)


def test_above_it_a_pressed_tip_has_no_solution_and_a_lifted_one_two():
    slips = [slip for slip in (3.0, -3.0) if dynamics(1.2 * CRITICAL, slip).undetermined]
    assert len(slips) == 1  # only in one direction
    pressed = dynamics(1.2 * CRITICAL, slips[0])
    assert not pressed.converged and "Painleve" in pressed.status and pressed.kkt_residual < 1e-9
    lifted = dynamics(1.2 * CRITICAL, slips[0], lift=3 * GRAVITY)
    assert lifted.undetermined and not lifted.converged
    away = dynamics(1.2 * CRITICAL, -slips[0], lift=3 * GRAVITY)
    assert away.converged and not away.force.any()


@pytest.mark.parametrize("compiled", [True, False])
def test_its_world_stops_with_that_reason_and_the_others_go_on(compiled):
    (slip,) = [slip for slip in (3.0, -3.0) if dynamics(1.2 * CRITICAL, slip).undetermined]
    q, v = zip(*(state(x) for x in (-slip, slip)), strict=True)
    with pytest.warns(SimulationWarning, match=r"world 1 stopped at t = 0 s: rigid friction .*Painleve"):
        run = zw.simulate(rod(1.2 * CRITICAL), q, v, duration=0.01, step=0.001, compiled=compiled)
    reasons = run.failure_reason.attrs["flag_meanings"].split()
    assert [reasons[k] for k in run.failure_reason.values] == ["none", "rigid_friction"]


@pytest.mark.parametrize("jammed", [False, True])
def test_a_ball_on_a_rail_into_the_ground_comes_out_only_with_little_friction(jammed):
    """At rest, too deep by a micrometre: to slide out, the force along the rail must point outwards,
    f_n (sin a - mu cos a) > 0. Otherwise forces grow without bound.
    """
    slope = np.deg2rad(20)
    touch = zw.Surface(friction=((3.0 if jammed else 0.9) * np.tan(slope), 0.005, 0.0001), hard=True)
    rail = zw.Prismatic("x", axis=(np.cos(slope), 0, np.sin(slope)))
    ball = zw.Body("ball", rail, position=(0, 0, 0.1), mass=1, geometry=[zw.Sphere(0.1, surface=touch)])
    m = zw.Mechanism("rail", [ball], geometry=[zw.Plane(surface=touch)], gravity=(0, 0, -GRAVITY))
    q = [-1e-6 / np.sin(slope)]
    found = zw.constrained_dynamics(m, q, [0], [0])
    assert found.undetermined == jammed and found.converged != jammed
    if jammed:
        with pytest.warns(SimulationWarning, match="rigid friction"):
            zw.simulate(m, q, duration=0.01, step=0.001)
        return
    normal, *friction = found.force[:3]
    assert found.acceleration[0] > 0
    assert np.hypot(*friction) == pytest.approx(0.9 * np.tan(slope) * normal, rel=1e-9)
    along = normal * (np.sin(slope) - 0.9 * np.tan(slope) * np.cos(slope)) - GRAVITY * np.sin(slope)
    assert found.acceleration[0] == pytest.approx(along, rel=1e-9)


def test_a_block_that_slides_or_tips_with_much_friction_is_determined():
    """A tall box with four points and mu = 2 tips over its leading edge: B > 0 for all its points."""
    touch = zw.Surface(friction=(2.0, 0.005, 0.0001), hard=True)
    for z in (0.1, 1.0):
        box = zw.Body("box", joint=zw.Free("free"), mass=2.0, inertia=(0.2, 0.2, 0.1), position=(0, 0, z / 2),
                      geometry=[zw.Box(x=0.5, y=0.5, z=z, surface=touch)])  # fmt: skip
        m = zw.Mechanism(bodies=[box], geometry=[zw.Plane(surface=touch)])
        found = zw.constrained_dynamics(m, [0, 0, 0, 1, 0, 0, 0], [3.0, 0.5, 0, 0, 0, 0], np.zeros(6))
        assert found.converged, found.status


AXES, INERTIA = np.array([0.2, 0.03, 0.02]), np.array([[0.9, 0.4, 0], [0.4, 8.0, 0], [0, 0, 8.2]]) * 1e-3


def support(R):
    """From the centre of the ellipsoid to its lowest point, in world axes."""
    n = R.T @ [0, 0, -1]
    return R @ (AXES**2 * n / np.linalg.norm(AXES * n))


@pytest.mark.parametrize("seed", range(4))
def test_an_ellipsoid_that_rolls_is_determined_whatever_its_friction(seed):
    """Its contact does not slide, however fast its lowest point moves over its surface. Newton's and Euler's
    equations with the condition of rolling, d/dt (v + w x r) = 0, give its acceleration.
    """
    rng = np.random.default_rng(seed)
    R = Rotation.from_rotvec([*rng.uniform(-0.05, 0.05, 2), rng.uniform(-3, 3)])
    spin = np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(2.0, 4.0)])
    touch = zw.Surface(friction=(1e3, 0.005, 0.0001), hard=True)
    r = support(R.as_matrix())
    body = zw.Body(
        "stone", zw.Free("free"), mass=1.0, inertia=INERTIA, geometry=[zw.Ellipsoid(*AXES, surface=touch)]
    )
    m = zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)], gravity=(0, 0, -GRAVITY))
    x, y, z, w = R.as_quat()
    q, v = [0, 0, -r[2], w, x, y, z], [*np.cross(r, spin), *R.inv().apply(spin)]
    found = zw.constrained_dynamics(m, q, v, np.zeros(6))
    assert found.converged and not found.undetermined and found.force[0] > 0

    h = 1e-5
    ahead, behind = (support((Rotation.from_rotvec(s * spin) * R).as_matrix()) for s in (h, -h))
    I = R.as_matrix() @ INERTIA @ R.as_matrix().T
    A, b = np.zeros((9, 9)), np.zeros(9)  # of the acceleration, the angular acceleration and the force
    A[:3, :3], A[:3, 6:], b[2] = np.eye(3), -np.eye(3), -GRAVITY
    cross = np.cross(np.eye(3), r)  # w x r = cross^T w
    A[3:6, 3:6], A[3:6, 6:], b[3:6] = I, -cross, -np.cross(spin, I @ spin)
    A[6:, :3], A[6:, 3:6], b[6:] = np.eye(3), cross.T, -np.cross(spin, (ahead - behind) / (2 * h))
    expected = np.linalg.solve(A, b)
    np.testing.assert_allclose(found.acceleration[:3], expected[:3], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.force[0], expected[8], rtol=1e-6)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_rolling_stone_keeps_its_energy_with_much_friction(integrator):
    touch = zw.Surface(friction=(50.0, 0.005, 0.0001), hard=True)
    stone = zw.Body("stone", zw.Free("free"), position=(0, 0, AXES[2]), mass=1.0, inertia=INERTIA,
                    geometry=[zw.Ellipsoid(*AXES, surface=touch)])  # fmt: skip
    m = zw.Mechanism(bodies=[stone], geometry=[zw.Plane(surface=touch)], gravity=(0, 0, -GRAVITY))
    changes, spin = [], [0.1, 0, -3.0]
    for step in (2e-3, 1e-3):
        run = zw.simulate(
            m,
            v0=[*np.cross([0, 0, -AXES[2]], spin), *spin],
            duration=0.6,
            step=step,
            integrator=integrator,
            progress=False,
        )
        energy = (run.kinetic_energy + run.potential_energy).values[0]
        changes.append(np.abs(energy - energy[0]).max())
    assert changes[1] < 0.6 * changes[0] < 0.002


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_a_tip_that_is_pressed_has_no_solution_while_the_rod_turns(integrator):
    """Whatever its centripetal acceleration, the tip is closed: B < 0 in one direction of sliding only."""
    (slip,) = [slip for slip in (3.0, -3.0) if dynamics(1.2 * CRITICAL, slip).undetermined]
    for spin, size in ((4.0, 0.5), (5.0, 3.0), (-4.0, 0.5)):
        pressed, away = (state(np.sign(s) * size, spin) for s in (slip, -slip))
        m = rod(1.2 * CRITICAL)
        # the tip turns about the centre of mass: without a force it accelerates by -g + spin^2 L / 2 sin
        assert spin**2 * Z < GRAVITY
        assert dynamics(1.2 * CRITICAL, np.sign(slip) * size, spin).undetermined
        with pytest.warns(SimulationWarning, match="world 1 stopped at t = 0 s: rigid friction"):
            q, v = zip(away, pressed, strict=True)
            run = zw.simulate(m, q, v, duration=0.002, step=0.002, integrator=integrator)
        reasons = run.failure_reason.attrs["flag_meanings"].split()
        assert [reasons[k] for k in run.failure_reason.values] == ["none", "rigid_friction"]
