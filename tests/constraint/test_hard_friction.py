"""Hard dry friction and hard limits of joints and tendons: sticking joints rest to rounding, and the
friction force of sliding joints equals its bound.
"""

import numpy as np
import pytest

import zwang as zw
from tests.api.test_step_derivatives import differences, relative_error
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.tendon_length import tendon_length


def sledge(**more):
    """A mass of 2 kg on a prismatic joint with hard dry friction of 3 N."""
    joint = zw.Prismatic("x", axis=(1, 0, 0), friction=3.0, friction_softness=None, **more)
    return zw.Mechanism(bodies=[zw.Body("sledge", joint=joint, mass=2.0)], gravity=(0, 0, 0))


@pytest.mark.parametrize("push", [-4.0, -2.9, 0.0, 2.9, 4.0])
def test_a_sledge_sticks_up_to_its_friction_and_slips_beyond(push):
    a = zw.constrained_dynamics(sledge(), [0], [0], [push]).acceleration[0]
    expected = 0.0 if abs(push) < 3 else np.sign(push) * (abs(push) - 3) / 2
    assert a == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_sledge_comes_to_rest_and_does_not_creep(compiled):
    """The sledge slides from 1 m/s for 2/3 s; a force slightly below the friction bound does not move it
    afterwards.
    """
    h = 0.01
    push = np.where(np.arange(200) < 100, 0.0, 2.9)[:, None]
    run = zw.simulate(sledge(), v0=[1.0], duration=2.0, step=h, control=push, compiled=compiled)
    v, x = run.v.values[0, :, 0], run.q.values[0, :, 0]
    assert np.abs(v[68:]).max() < 1e-13 and abs(v[66]) > 1e-3
    assert x[-1] == pytest.approx(1 / 3 - h / 2, abs=1e-4)
    assert np.ptp(x[68:]) < 1e-13


def test_a_hard_limit_is_not_violated_and_its_force_is_exact():
    limited = sledge(limits=(-1.0, 0.5), limit_softness=None)
    run = zw.simulate(limited, v0=[1.0], duration=3.0, step=0.01, control=[10.0])
    x, v = run.q.values[0, :, 0], run.v.values[0, :, 0]
    assert x.max() < 0.5 + 1e-12 and abs(v[-1]) < 1e-12
    found = zw.constrained_dynamics(limited, [0.5], [0.0], [10.0])
    assert found.acceleration[0] == pytest.approx(0, abs=1e-9)
    assert found.rows.J.T @ found.force == pytest.approx(-10.0, abs=1e-9)
    limit = found.forces["upper limit of x"][0]
    # friction contributes up to 3 N to the balance of the 10 N, in either direction
    assert 7.0 - 1e-9 <= limit <= 13.0 + 1e-9


def test_a_tendon_with_hard_friction_balances_two_unequal_weights():
    """Atwood's machine with 1.0 and 1.2 kg, whose difference in weight is below the tendon's friction of
    4 N.
    """

    def machine(friction):
        weights = [
            zw.Body(name, joint=zw.Prismatic(f"{name} z"), mass=m)
            for name, m in (("left", 1.0), ("right", 1.2))
        ]
        rope = zw.JointCoupling("rope", "left z", "right z", coefficients=(0, -1))
        tendon = zw.Tendon("brake", joints={"left z": 1.0}, friction=friction, friction_softness=None)
        return zw.Mechanism(bodies=weights, constraints=[rope], tendons=[tendon])

    stuck = zw.constrained_dynamics(machine(4.0), [0, 0], [0, 0], [0, 0]).acceleration
    slips = zw.constrained_dynamics(machine(1.0), [0, 0], [0, 0], [0, 0]).acceleration
    assert np.abs(stuck).max() < 1e-10
    assert slips[0] == pytest.approx((0.2 * 9.81 - 1.0) / 2.2, abs=1e-10)


# ------------------------------------------------------------------- the bias Jdot v of tendons and balls

MASS, LENGTH, SPEED = 2.0, 1.0, 3.0


def bob(**tendon):
    """A point mass in the plane x, z on a string from the origin."""
    joints = (zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("z", (0, 0, 1)))
    frames = [zw.Frame("o", "world"), zw.Frame("c", "bob")]
    return zw.Mechanism(
        "bob", [zw.Body("bob", joints, mass=MASS)], frames=frames,
        tendons=[zw.Tendon("string", path=["o", "c"], **tendon)],
    )  # fmt: skip


TAUT = {"limits": (0, LENGTH), "limit_softness": None}


@pytest.mark.parametrize(("tendon", "sign"), [(TAUT, 1), ({"friction": 1e3, "friction_softness": None}, -1)])
def test_a_string_carries_the_weight_and_the_centripetal_force(tendon, sign):
    at, expected = ([0, -LENGTH], [SPEED, 0], [0, 0]), MASS * (9.81 + SPEED**2 / LENGTH)
    found = zw.constrained_dynamics(bob(**tendon), *at)
    assert found.force[-1] == pytest.approx(sign * expected, abs=1e-9)
    after = zw.compile(bob(**tendon)).step(*at, step=1e-3, integrator="euler")[1]
    assert after == pytest.approx([SPEED, 1e-3 * SPEED**2 / LENGTH], abs=1e-12)


@pytest.mark.parametrize(("integrator", "tolerance"), [("rk4", 3e-6), ("dop853", 1e-8)])
def test_a_taut_string_swings_as_a_rigid_rod(integrator, tolerance):
    """With rk4, whose stages correct the distance within the step size, to the third order."""
    rod = zw.Distance("rod", ("bob", (0, 0, 0)), ("world", (0, 0, 0)), LENGTH)
    rigid, start = bob(limits=None).replace(tendons=(), constraints=(rod,)), ([0, -LENGTH], [SPEED, 0])
    options = {"duration": 0.6, "progress": False}
    expected = zw.simulate(rigid, *start, integrator="dop853", **options).q.values[0, -1]
    errors = []
    for h in (0.01, 0.005):
        found = zw.simulate(bob(**TAUT), *start, step=h, integrator=integrator, **options).q.values[0, -1]
        errors.append(np.abs(found - expected).max())
    assert errors[0] < tolerance and (errors[1] < errors[0] / 7 or integrator == "dop853")


def test_the_recorded_tension_of_a_string_converges_under_rk4():
    """T = m (v^2 / l - g . n) along the string, to the first order of the step."""
    errors = []
    for h in (0.01, 0.005):
        run = zw.simulate(bob(**TAUT), [0, -LENGTH], [SPEED, 0], duration=0.6, step=h, integrator="rk4",
                          record={"constraints": True}, progress=False)  # fmt: skip
        tension = np.linalg.norm(run.generalised_constraint_force.values[0], axis=1)[:-1]
        q, v = run.q.values[0, :-1], run.v.values[0, :-1]
        expected = MASS * ((v * v).sum(1) / LENGTH - 9.81 * q[:, 1] / LENGTH)
        errors.append(np.abs(tension / expected - 1).max())
    assert errors[0] < 0.007 and errors[1] < errors[0] / 1.8


def test_a_string_through_the_origin_does_not_pull():
    """At almost zero length the bias of the length is enormous, and the string is slack."""
    found = zw.constrained_dynamics(bob(**TAUT), [0, -1e-6], [SPEED, 0], [0, 0])
    assert found.acceleration == pytest.approx([0, -9.81], abs=1e-12)


def test_a_ball_joint_at_its_hard_limit_turns_along_the_limit():
    """The angle of the rotation neither grows nor shrinks while the rotation vector turns."""
    body = zw.Body(
        "b", zw.Ball("b", limits=(0, 0.6), limit_softness=None), mass=1.0, inertia=(0.1, 0.1, 0.05)
    )
    m = zw.Mechanism("m", [body], gravity=(0, 0, 0))
    q, w = np.array([np.cos(0.3), np.sin(0.3), 0, 0]), np.array([0, 2.0, -1.0])
    a = zw.constrained_dynamics(m, q, w, np.zeros(3)).acceleration

    def angle(t, n=200):
        x, dt = q, t / n
        for k in range(n):
            x = zw.integrate_configuration(m, x, w + a * (k + 0.5) * dt, dt)
        return 2 * np.arctan2(np.linalg.norm(x[1:]), x[0])

    h = 2e-3
    assert (angle(h) - 2 * angle(0) + angle(-h)) / h**2 == pytest.approx(0, abs=1e-3)
    run = zw.simulate(m, q, w, duration=1.0, integrator="dop853", step=0.01, progress=False).q.values[0]
    angles = 2 * np.arctan2(np.linalg.norm(run[:, 1:], axis=1), np.abs(run[:, 0]))
    assert angles.max() == pytest.approx(0.6, abs=1e-6)


def test_step_derivatives_include_the_bias():
    """Against differences: a string around a cylinder and a ball joint, both beyond their hard limits."""
    ball = zw.Body(
        "a", zw.Ball("a", limits=(0, 0.599), limit_softness=None), mass=1.0, inertia=(0.1, 0.1, 0.05)
    )
    hinge = zw.Body("b", zw.Revolute("b", (0, 1, 0)), "a", mass=1.0, com=(0, 0, -0.3), inertia=(0.02,) * 3)
    places = {"o": ("world", (0.2, 0.05, 0.3)), "drum": ("world", (0.2, 0, 0)), "c": ("b", (0.1, 0, -0.4))}
    frames = [
        zw.Frame(name, body, p, ((1, 0, 0), (0, 0, -1), (0, 1, 0))) for name, (body, p) in places.items()
    ]
    string = {"path": ("o", "drum", "c"), "wraps": (zw.Wrap(1, 0.05, "cylinder"),)}
    q, v = np.array([np.cos(0.3), np.sin(0.3), 0, 0, -0.4]), np.array([1.0, 0.5, -2.0, 1.5])
    free = zw.Mechanism("m", [ball, hinge], frames=frames, tendons=[zw.Tendon("s", **string)])
    length = float(tendon_length(free, free.tendons[0], Kinematics(free.tree, q))[0])
    taut = zw.Tendon("s", **string, limits=(0, length - 1e-3), limit_softness=None)
    fast = zw.compile(free.replace(tendons=(taut,)))
    forces = zw.constrained_dynamics(fast.mechanism, q, v, np.zeros(4)).forces
    assert forces["limit of a"][0] > 1 and forces["upper limit of s"][0] > 1
    options = {"step": 0.005, "integrator": "euler"}
    found = fast.step_derivatives(q, v, np.zeros(4), **options)
    expected = differences(fast, q, v, np.zeros(4), eps=1e-6, **options)
    assert not found.switching
    assert relative_error(np.concatenate([found.A, found.B], axis=1), expected) < 1e-8
