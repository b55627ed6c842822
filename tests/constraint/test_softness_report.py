"""A softness explained is the motion that it gives."""

import numpy as np
import pytest

import zwang as zw
from zwang.constraint.softness_report import softness


def held(choice, mass=2.0, load=30.0):
    """A mass drawn against the upper limit of its slide with that softness."""
    joint = zw.Prismatic("x", axis=(1, 0, 0), limits=(-5.0, 0.0), limit_softness=choice)
    return zw.Mechanism(bodies=[zw.Body("mass", joint=joint, mass=mass)], gravity=(load / mass, 0, 0))


@pytest.mark.parametrize(
    "choice",
    [
        zw.Softness((0.05, 0.7), (0.3, 0.9, 0.02, 0.4, 3.0)),
        zw.Softness((-800.0, -40.0), (0.8, 0.8, 0.01, 0.5, 2.0)),
    ],
)
def test_a_load_comes_to_rest_where_the_explanation_says(choice):
    told = softness(choice, mass=2.0, load=30.0)
    run = zw.simulate(held(choice), duration=6.0, step=0.005, progress=False)
    assert run.q.values.ravel()[-1] == pytest.approx(told.penetration, rel=1e-9)
    assert told.holding_stiffness == pytest.approx(30.0 / told.penetration)


def test_stiffness_and_damping_are_those_of_the_return_without_a_load():
    choice = zw.Softness((-800.0, -40.0), (0.8, 0.8, 0.01, 0.5, 2.0))
    told = softness(choice, mass=2.0)
    mechanism = held(choice).replace(gravity=(0, 0, 0))
    x, v = 0.003, 0.01
    a = zw.constrained_dynamics(mechanism, [x], [v], [0.0]).acceleration[0]
    assert 2.0 * a == pytest.approx(-told.stiffness * x - told.damping * v, rel=1e-12)
    rate = np.roots([2.0, told.damping, told.stiffness]).real.max()
    if told.damping_ratio < 1:
        assert -1 / rate == pytest.approx(told.time_constant, rel=1e-12)


def test_standard_numbers_come_back_as_they_were_given():
    told = softness(zw.Softness((0.1, 0.6), (0.9, 0.95, 0.001, 0.5, 2.0)))
    assert told.time_constant == pytest.approx(0.1)
    assert told.damping_ratio == pytest.approx(0.6)


def test_what_mujoco_would_replace_is_told():
    assert "mixes the two formats" in str(softness(zw.Softness((0.02, 0.0))))
    assert "two time steps" in str(softness(zw.Softness((0.001, 1.0)), timestep=0.002))
    with pytest.raises(zw.errors.DescriptionError, match="positive"):
        softness(mass=-1.0)
