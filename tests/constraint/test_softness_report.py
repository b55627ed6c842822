"""The report of a softness agrees with the simulated motion: penetration, stiffness, damping, time
constant.
"""

import numpy as np
import pytest

import zwang as zw
from zwang.constraint.softness_report import softness


def loaded_mass(choice, mass=2.0, load=30.0):
    """A mass that a constant load presses against the upper limit, with the given softness, of a prismatic
    joint.
    """
    joint = zw.Prismatic("x", axis=(1, 0, 0), limits=(-5.0, 0.0), limit_softness=choice)
    return zw.Mechanism(bodies=[zw.Body("mass", joint=joint, mass=mass)], gravity=(load / mass, 0, 0))


@pytest.mark.parametrize(
    "choice",
    [
        zw.Softness((0.05, 0.7), (0.3, 0.9, 0.02, 0.4, 3.0)),
        zw.Softness((-800.0, -40.0), (0.8, 0.8, 0.01, 0.5, 2.0)),
    ],
)
def test_a_load_rests_at_the_reported_penetration(choice):
    report = softness(choice, mass=2.0, load=30.0)
    run = zw.simulate(loaded_mass(choice), duration=6.0, step=0.005, progress=False)
    assert run.q.values.ravel()[-1] == pytest.approx(report.penetration, rel=1e-9)
    assert report.holding_stiffness == pytest.approx(30.0 / report.penetration)


def test_the_reported_stiffness_and_damping_give_the_acceleration_without_a_load():
    choice = zw.Softness((-800.0, -40.0), (0.8, 0.8, 0.01, 0.5, 2.0))
    report = softness(choice, mass=2.0)
    mechanism = loaded_mass(choice).replace(gravity=(0, 0, 0))
    x, v = 0.003, 0.01
    a = zw.constrained_dynamics(mechanism, [x], [v], [0.0]).acceleration[0]
    assert 2.0 * a == pytest.approx(-report.stiffness * x - report.damping * v, rel=1e-12)
    rate = np.roots([2.0, report.damping, report.stiffness]).real.max()
    if report.damping_ratio < 1:
        assert -1 / rate == pytest.approx(report.time_constant, rel=1e-12)


def test_the_time_constant_and_damping_ratio_are_those_given():
    report = softness(zw.Softness((0.1, 0.6), (0.9, 0.95, 0.001, 0.5, 2.0)))
    assert report.time_constant == pytest.approx(0.1)
    assert report.damping_ratio == pytest.approx(0.6)


def test_values_that_mujoco_would_replace_are_refused_or_reported():
    with pytest.raises(zw.errors.DescriptionError, match=r"both positive, or .* neither positive"):
        zw.Softness((0.02, 0.0))
    assert "two time steps" in str(softness(zw.Softness((0.001, 1.0)), timestep=0.002))
    with pytest.raises(zw.errors.DescriptionError, match="positive"):
        softness(mass=-1.0)
