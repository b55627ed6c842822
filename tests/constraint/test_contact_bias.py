"""The velocity-product term Jdot v of hard contacts, against closed forms."""

import numpy as np
import pytest

import zwang as zw

G = 9.81
ROUGH = zw.Surface(friction=(1.0, 0.005, 0.0001), hard=True)


def pole(spin, condim=3):
    """An upright thin rod of 1 kg and 1 m that turns about its lower tip, at rest on the ground."""
    touch = zw.Surface(friction=(1.0, 0.005, 0.0001), hard=True, condim=condim)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z"), zw.Revolute("lean", axis=(0, 1, 0)))
    tip = zw.Sphere(radius=1e-9, position=(0, 0, -0.5), surface=touch)
    body = zw.Body("rod", joint=joints, mass=1.0, inertia=(1 / 12, 1 / 12, 1e-6), geometry=[tip])
    m = zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)])
    return zw.constrained_dynamics(m, [0, 0.5 + 1e-9, 0], [(0.5 + 1e-9) * spin, 0, spin], np.zeros(3))


@pytest.mark.parametrize("spin", [0.0, 1.0, 3.0, 4.4])
def test_the_force_at_the_tip_of_a_turning_rod_is_its_weight_minus_the_centripetal_force(spin):
    """f = m (g - omega^2 L / 2) as long as that is positive."""
    found = pole(spin)
    assert found.force[0] == pytest.approx(G - spin**2 / 2, abs=1e-9)
    np.testing.assert_allclose(found.acceleration, [0, -(spin**2) / 2, 0], atol=1e-8)


@pytest.mark.parametrize("spin", [4.5, 8.0])
@pytest.mark.parametrize("condim", [1, 3])
def test_a_rod_that_turns_fast_lifts_off_without_a_force(spin, condim):
    found = pole(spin, condim)
    assert spin**2 / 2 > G and not found.force.any()
    np.testing.assert_allclose(found.acceleration, [0, -G, 0], atol=1e-12)


def test_a_sphere_that_rolls_on_a_plane_has_its_weight_as_force():
    ball = zw.Body("ball", joint=zw.Free("free"), mass=2.0, inertia=(0.008,) * 3, position=(0, 0, 0.1),
                   geometry=[zw.Sphere(radius=0.1, surface=ROUGH)])  # fmt: skip
    m = zw.Mechanism(bodies=[ball], geometry=[zw.Plane(surface=ROUGH)])
    found = zw.constrained_dynamics(m, [0, 0, 0, 1, 0, 0, 0], [5.0, 0, 0, 0, 50.0, 0], np.zeros(6))
    np.testing.assert_allclose(found.force, [2 * G, 0, 0], atol=1e-9)
    assert np.abs(found.acceleration).max() < 1e-9


def test_a_ball_over_the_top_of_a_fixed_ball_lifts_off_at_the_closed_form():
    """f = m (g - v^2 / (R + r)), where v is the velocity of its centre; it lifts off at v^2 = g (R + r)."""
    small = zw.Body("small", joint=zw.Free("free"), mass=1.0, inertia=(0.001,) * 3, position=(0, 0, 0.6),
                    geometry=[zw.Sphere(radius=0.1, surface=ROUGH)])  # fmt: skip
    m = zw.Mechanism(bodies=[small], geometry=[zw.Sphere(radius=0.5, surface=ROUGH)])
    for speed in (0.5, 1.0, 2.0, 2.5):
        rolling = [speed, 0, 0, 0, speed / 0.1, 0]
        found = zw.constrained_dynamics(m, [0, 0, 0, 1, 0, 0, 0], rolling, np.zeros(6))
        expected = max(G - speed**2 / 0.6, 0)
        normal = found.force[0] if len(found.force) else 0.0
        assert normal == pytest.approx(expected, abs=1e-8)


def test_a_wheel_rim_of_a_box_that_spins_flat_on_the_ground_needs_no_normal_bias():
    """A box that spins about the vertical keeps its weight as the sum of its normal forces."""
    box = zw.Body("box", joint=zw.Free("free"), mass=1.5, inertia=(0.02, 0.02, 0.03), position=(0, 0, 0.1),
                  geometry=[zw.Box(x=0.4, y=0.4, z=0.2, surface=ROUGH)])  # fmt: skip
    m = zw.Mechanism(bodies=[box], geometry=[zw.Plane(surface=ROUGH)])
    found = zw.constrained_dynamics(m, [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 40.0], np.zeros(6))
    assert found.force.reshape(4, 3)[:, 0].sum() == pytest.approx(1.5 * G, rel=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_recorded_force_of_a_sliding_rod_converges_under_rk4(compiled):
    """N = m (g - omega^2 cos / 2) / (1 + 3 sin^2), of a rod of 1 m on a smooth ground, to the first order."""
    smooth = zw.Surface(hard=True, condim=1)
    joints = (zw.Prismatic("z"), zw.Revolute("lean", axis=(0, 1, 0)))
    tip = zw.Sphere(radius=1e-9, position=(0, 0, -0.5), surface=smooth)
    body = zw.Body("rod", joint=joints, mass=1.0, inertia=(1 / 12, 1 / 12, 1e-6), geometry=[tip])
    m = zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=smooth)])
    errors = []
    for step in (4e-3, 2e-3):
        run = zw.simulate(
            m, [0.5 * np.cos(0.5) + 1e-9, 0.5], [-0.75 * np.sin(0.5), 1.5], duration=0.1, step=step,
            integrator="rk4", compiled=compiled, record={"constraints": True}, progress=False,
        )  # fmt: skip
        angle, rate = run.q.values[0, :-1, 1], run.v.values[0, :-1, 1]
        expected = (G - rate**2 * np.cos(angle) / 2) / (1 + 3 * np.sin(angle) ** 2)
        found = run.generalised_constraint_force.values[0, :-1, 0]
        errors.append(np.abs(found / expected - 1).max())
    assert errors[0] < 0.004 and errors[1] < errors[0] / 1.8


@pytest.mark.parametrize("compiled", [True, False])
def test_a_pole_falls_about_its_tip_as_a_physical_pendulum(compiled):
    """omega^2 = 3 g (1 - cos) / L while the tip sticks: energy is kept to first order in the step."""
    touch = zw.Surface(friction=(5.0, 0.005, 0.0001), hard=True)
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z"), zw.Revolute("lean", axis=(0, 1, 0)))
    tip = zw.Sphere(radius=1e-6, position=(0, 0, -0.5), surface=touch)
    body = zw.Body("rod", joint=joints, mass=1.0, inertia=(1 / 12, 1 / 12, 1e-6), geometry=[tip])
    m = zw.Mechanism(bodies=[body], geometry=[zw.Plane(surface=touch)])
    q0 = [0, 0.5 * np.cos(0.3), 0.3]
    errors = []
    for step in (4e-3, 2e-3):
        run = zw.simulate(m, q0, duration=0.4, step=step, compiled=compiled, progress=False)
        (x, z, lean), spin = run.q.values[0, -1], run.v.values[0, -1, 2]
        errors.append(spin**2 - 3 * G * (np.cos(0.3) - np.cos(lean)))
        assert (
            abs(x - 0.5 * (np.sin(lean) - np.sin(0.3))) < 5 * step and abs(z - 0.5 * np.cos(lean)) < 5 * step
        )
    assert abs(errors[1]) < 0.6 * abs(errors[0]) < 0.1
