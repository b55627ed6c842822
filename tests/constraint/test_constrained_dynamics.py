"""The result of `constrained_dynamics`: forces by constraint, active constraints, and the shares of the Zwang
Z.
"""

import numpy as np
import pytest

import zwang as zw

G = 9.81


def stack(**surface):
    """Two balls on a floor, one on the other, and a distant weight on a prismatic joint with limits."""
    material = zw.Surface(**surface)

    def ball(name, height, mass):
        shape = zw.Sphere(radius=0.1, surface=material)
        return zw.Body(
            name, position=(0, 0, height), joint=zw.Prismatic(f"{name} z"), mass=mass, geometry=[shape]
        )

    free = zw.Body(
        "weight", position=(5, 0, 1), joint=zw.Prismatic("slide", limits=(-1.0, 1.0), armature=0.5), mass=3.0
    )
    return zw.Mechanism(
        bodies=[ball("lower", 0.1, 2.0), ball("upper", 0.3, 1.5), free],
        geometry=[zw.Plane(name="floor", surface=material)],
    )


def at_rest(mechanism, **options):
    return zw.constrained_dynamics(mechanism, np.zeros(3), np.zeros(3), np.zeros(3), **options)


def test_contact_forces_balance_the_weights_and_are_named_by_their_geoms():
    found = at_rest(stack(hard=True))
    below = "contact of floor and sphere 1 of lower"
    (between,) = set(found.forces) - {below}
    assert "lower" in between and "upper" in between
    assert found.forces[below][0] == pytest.approx(3.5 * G, rel=1e-9)
    assert found.forces[between][0] == pytest.approx(1.5 * G, rel=1e-9)
    assert set(found.active) == {below, between}


def test_a_contact_without_force_is_not_active():
    mechanism = stack()
    apart = zw.constrained_dynamics(mechanism, [-0.001, -0.001, 0], [5.0, 9.0, 0], np.zeros(3))
    assert apart.forces and not apart.active
    assert apart.zwang == 0 and not any(apart.shares.values())


@pytest.mark.parametrize("hard", [False, True])
def test_the_zwang_is_the_sum_of_the_parts_of_all_bodies(hard):
    found = at_rest(stack(hard=hard) if hard else stack(solimp=(0.7, 0.7, 0.001, 0.5, 2.0)))
    assert set(found.bodies) == {"lower", "upper", "weight", "rotors"}
    assert sum(found.bodies.values()) == pytest.approx(found.zwang, rel=1e-12)
    assert found.bodies["weight"] == pytest.approx(0, abs=1e-20) and found.bodies["rotors"] == pytest.approx(
        0, abs=1e-20
    )
    if hard:  # each ball at rest contributes 1/2 m g^2; hard rows contribute nothing
        assert found.bodies["lower"] == pytest.approx(2.0 * G * G / 2, rel=1e-9)
        assert found.bodies["upper"] == pytest.approx(1.5 * G * G / 2, rel=1e-9)
        assert sum(found.shares.values()) == pytest.approx(0, abs=1e-6)
    else:
        assert all(share > 0 for share in found.shares.values())


def test_the_zwang_of_a_chain_is_the_sum_of_its_parts():
    bodies = [
        zw.Body("a", joint=zw.Revolute("ja", axis=(0, 1, 0), limits=(0.2, 1.0), armature=0.1), mass=1,
                com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.03)),
        zw.Body("b", parent="a", position=(0.5, 0, 0), joint=zw.Ball("jb"), mass=0.6, com=(0.1, 0, 0),
                inertia=(0.004, 0.005, 0.006)),
    ]  # fmt: skip
    mechanism = zw.Mechanism(
        bodies=bodies, constraints=[zw.Connect("pin", ("b", (0.2, 0, 0)), ("world", (0.7, 0, 0)))]
    )
    rng = np.random.default_rng(4)
    q = np.array([0.1, *rng.normal(size=4)])
    found = zw.constrained_dynamics(
        mechanism, q / [1, *[np.linalg.norm(q[1:])] * 4], *rng.normal(size=(2, 4))
    )
    assert found.bodies["rotors"] > 0
    assert sum(found.bodies.values()) == pytest.approx(found.zwang, rel=1e-12)
