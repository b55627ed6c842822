"""A hard coupling of the lengths of two tendons: the motion is that of the same coupling of joints."""

import numpy as np
import pytest

import zwang as zw
from zwang.scalar import symbol

POLYNOMIAL = (0.05, 0.7, 0.4, 0, 0)
HOME = (0.2, -0.1, 0.3)


def carts(constraint, tendons=()):
    """Three carts on a line; the tendons count lengths from the home configuration, as couplings do."""
    bodies = tuple(
        zw.Body(name, zw.Prismatic(f"{name} x", axis=(1, 0, 0)), mass=mass)
        for name, mass in (("a", 1.0), ("b", 2.0), ("c", 0.5))
    )
    return zw.Mechanism(bodies=bodies, tendons=tendons, constraints=(constraint,), home=HOME)


def by_tendons():
    tendons = tuple(zw.Tendon(f"t{name}", [(f"{name} x", 1.0)]) for name in "ab")
    return carts(zw.TendonCoupling("c", "ta", "tb", POLYNOMIAL), tendons)


def by_formula():
    """The same relation as a formula of the coordinates."""
    a, b = (symbol(f"{name} x") - x for name, x in zip("ab", HOME, strict=False))
    return carts(zw.Holonomic("c", a - sum(k * b**n for n, k in enumerate(POLYNOMIAL))))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("coordinate_reduction", [True, False])
def test_a_hard_coupling_of_tendons_moves_as_the_formula(compiled, coordinate_reduction):
    runs = []
    for m in (by_tendons(), by_formula()):
        q, v = zw.assemble(m, HOME, [0.3, 0.5, -0.2])
        runs.append(
            zw.simulate(m, q, v, duration=0.5, step=0.01, integrator="rk4", compiled=compiled,
                        coordinate_reduction=coordinate_reduction, progress=False)
        )  # fmt: skip
    ours, theirs = runs
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-12)
    np.testing.assert_allclose(ours.v, theirs.v, atol=1e-12)
    y = ours.q.values[0, :, 1] - HOME[1]
    x = np.polynomial.polynomial.polyval(y, POLYNOMIAL) + HOME[0]
    np.testing.assert_allclose(ours.q.values[0, :, 0], x, atol=1e-9)
    assert np.ptp(y) > 0.1


def test_the_force_after_a_coupling_without_moment_arms_is_recorded():
    """A weight on a rod, beside a coupling of a tendon between two points of a fixed post."""
    weight = zw.Body("weight", zw.Prismatic("z"), mass=2, inertia=(1, 1, 1))
    mechanism = zw.Mechanism(
        bodies=[weight, zw.Body("post", position=(1, 0, 0))],
        frames=[zw.Frame("low", "post"), zw.Frame("high", "post", (0, 0, 1))],
        tendons=[zw.Tendon("t", path=("low", "high"))],
        constraints=[
            zw.TendonCoupling("idle", "t", coefficients=(0,), softness=zw.Softness()),
            zw.Distance("rod", ("weight", (0, 0, 0)), ("world", (0, 0, 2)), 2),
        ],
    )
    run = zw.simulate(mechanism, duration=0.002, record={"multipliers": True}, progress=False)
    np.testing.assert_allclose(run.multiplier[0, -1], [0, -2 * 9.81], rtol=1e-12)
