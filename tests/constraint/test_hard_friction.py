"""Hard dry friction and hard limits of joints and tendons: sticking joints rest to rounding, and the
friction force of sliding joints equals its bound.
"""

import numpy as np
import pytest

import zwang as zw


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
