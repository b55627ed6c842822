"""The loads of Coulomb laws as a fixed point, against a closed form with noise; those of a given force."""

import numpy as np
import pytest

import zwang as zw
from zwang.constraint.coulomb_friction import FrictionLaws, FrictionResponse, SlidingModes, solve_loads
from zwang.constraint.rows import no_rows, rows_of_kind
from zwang.errors import NonIdealForceError


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
