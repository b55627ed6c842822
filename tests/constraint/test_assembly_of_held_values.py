"""Assembly with held coordinates and velocities, against the closed form of a slider-crank."""

import numpy as np
import pytest

import zwang as zw
from zwang.errors import DescriptionError, InconsistentConstraintsError, SolveError, UnknownNameError

CRANK, ROD = 0.1, 0.3


def slider_crank():
    Y = (0, 1, 0)
    bodies = [
        zw.Body(
            "crank", zw.Revolute("crank", axis=Y), mass=0.5, com=(0.05, 0, 0), inertia=(1e-4, 5e-4, 5e-4)
        ),
        zw.Body(
            "rod",
            zw.Revolute("pin", axis=Y),
            "crank",
            (CRANK, 0, 0),
            mass=0.3,
            com=(0.15, 0, 0),
            inertia=(1e-4, 2e-3, 2e-3),
        ),
        zw.Body("slider", zw.Prismatic("slide", axis=(1, 0, 0)), mass=0.4),
    ]
    wrist = zw.Connect("wrist", ("rod", (ROD, 0, 0)), ("slider", (0, 0, 0)))
    return zw.Mechanism("slider crank", bodies, constraints=[wrist], gravity=(0, 0, 0))


def closed_form(angle, speed):
    """Coordinates and velocities of the slider-crank, with the slider on the right."""
    # heights: CRANK sin(angle) = ROD sin(psi), with the rod at the angle -psi to the slide
    psi = np.arcsin(CRANK * np.sin(angle) / ROD)
    psi_dot = CRANK * np.cos(angle) * speed / (ROD * np.cos(psi))
    x = CRANK * np.cos(angle) + ROD * np.cos(psi)
    x_dot = -CRANK * np.sin(angle) * speed - ROD * np.sin(psi) * psi_dot
    return np.array([angle, -psi - angle, x]), np.array([speed, -psi_dot - speed, x_dot])


@pytest.mark.parametrize("angle", [0.2, 0.9, 2.0, -1.3])
def test_a_held_angle_and_speed_of_the_crank_give_the_closed_form(angle):
    expected_q, expected_v = closed_form(angle, 6.0)
    guess = expected_q + np.array([0.3, -0.2, 0.05])
    q, v = zw.assemble(slider_crank(), guess, positions={"crank": angle}, speeds={"crank": 6.0})
    np.testing.assert_allclose(q, expected_q, atol=1e-11)
    np.testing.assert_allclose(v, expected_v, atol=1e-10)
    assert q[0] == angle


def test_another_speed_can_be_held():
    q, _ = closed_form(0.9, 1.0)
    expected = closed_form(0.9, 1.0)[1]
    _, v = zw.assemble(slider_crank(), q, speeds={"slide": 0.25})
    np.testing.assert_allclose(v, expected * 0.25 / expected[2], atol=1e-10)


def test_without_held_values_the_nearest_velocities_are_not_those_of_the_guess():
    q, _ = closed_form(0.9, 1.0)
    _, free = zw.assemble(slider_crank(), q, [6.0, 0, 0])
    _, held = zw.assemble(slider_crank(), q, [1.0, 0, 0], speeds={"crank": 6.0})
    assert abs(free[0] - 6.0) > 0.5 and held[0] == pytest.approx(6.0, abs=1e-12)


def test_held_values_of_an_unconstrained_mechanism_are_taken_as_they_are():
    m = slider_crank().replace(constraints=())
    q, v = zw.assemble(m, [0, 0.1, 0.4], [1, 2, 3], positions={"slide": 0.7}, speeds={"pin": -1})
    assert q.tolist() == [0, 0.1, 0.7]
    np.testing.assert_allclose(v, [1, -1, 3], atol=1e-14)


def test_a_free_body_can_hold_its_position_but_no_element_of_its_quaternion():
    ball = zw.Body("ball", zw.Free("f"), mass=1, inertia=(0.1, 0.1, 0.1))
    rod = zw.Distance("rod", ("ball", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)
    m = zw.Mechanism("ball on a rod", [ball], constraints=[rod])
    start = [0.5, 0.2, 0.6, 1, 0, 0, 0]
    q, v = zw.assemble(m, start, positions={"f.x": 0.6, "f.y": 0.0}, speeds={"f.vx": 1.0, "f.wz": 2.0})
    np.testing.assert_allclose(q[:3], [0.6, 0, 0.8], atol=1e-11)
    np.testing.assert_allclose(v, [1.0, 0, -0.75, 0, 0, 2.0], atol=1e-10)
    with pytest.raises(DescriptionError, match="quaternion"):
        zw.assemble(m, start, positions={"f.qx": 0.1})


def test_values_that_cannot_be_held_are_named():
    m, q = slider_crank(), closed_form(0.9, 1.0)[0]
    with pytest.raises(SolveError, match=r"'wrist'.*slide is held"):
        zw.assemble(m, q, positions={"slide": 0.6})  # longer than crank and rod
    with pytest.raises(InconsistentConstraintsError, match="while the speed crank, slide is held"):
        zw.assemble(m, q, speeds={"crank": 1.0, "slide": 1.0})
    with pytest.raises(UnknownNameError, match="crank"):
        zw.assemble(m, q, speeds={"cramk": 1.0})
    with pytest.raises(DescriptionError, match="positions"):
        zw.assemble(m, q, positions=[0.1])


def test_a_singular_position_leaves_the_held_crank_where_it_is():
    """At the dead centre the slider does not move, whatever the speed of the crank."""
    q, v = zw.assemble(slider_crank(), [0, 0, 0.4], positions={"crank": 0.0}, speeds={"crank": 6.0})
    np.testing.assert_allclose(q, [0, 0, 0.4], atol=1e-11)
    np.testing.assert_allclose(v, closed_form(0.0, 6.0)[1], atol=1e-9)
