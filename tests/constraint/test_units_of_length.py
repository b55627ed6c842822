"""Mechanisms in other units of length, and far from the origin, move as those in metres at the origin."""

import numpy as np
import pytest

import zwang as zw
from zwang.errors import SolveError

Y = (0, 1, 0)


def bar(name, x, parent, length, unit):
    inertia = np.array([1e-3, length**2 / 12, length**2 / 12]) * unit**2
    return zw.Body(
        name, zw.Revolute(name, axis=Y), parent, (x * unit, 0, 0), mass=1, com=(length / 2 * unit, 0, 0),
        inertia=tuple(inertia),
    )  # fmt: skip


def four_bar(unit=1.0, base=(), ground="world"):
    """A four-bar of about 1 m, of whose units of length `unit` are 1 m; on a base, if one is given."""
    bars = [bar("a", 0, ground, 0.3, unit), bar("b", 0.3, "a", 0.8, unit), bar("c", 1, ground, 0.5, unit)]
    pin = zw.Connect("pin", ("b", (0.8 * unit, 0, 0)), ("c", (0.5 * unit, 0, 0)))
    return zw.Mechanism("four-bar", [*base, *bars], gravity=(0, 0, -9.81 * unit), constraints=[pin])


def starts(count):
    return np.array([1.2, -0.9, 1.9]) + 0.3 * np.random.default_rng(0).normal(size=(count, 3))


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e3, 1e4, 1e5, 1e6])
def test_assembly_does_not_depend_on_the_unit_of_length(unit):
    for start in starts(20):
        expected = zw.assemble(four_bar(), start)[0]
        np.testing.assert_allclose(zw.assemble(four_bar(unit), start)[0], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("far", [1e4, 1e6, 5e6])
def test_a_loop_far_from_the_origin_is_assembled(far):
    """As with UTM coordinates: the positions have rounding errors of up to 1e-9 m."""
    joints = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1)))
    base = zw.Body("base", joints, mass=5, inertia=(1, 1, 1))
    m = four_bar(1.0, [base], "base")
    for start in starts(20):
        expected = zw.assemble(m, [0, 0, *start])[0]
        np.testing.assert_allclose(zw.assemble(m, [far, 0, *start])[0][2:], expected[2:], rtol=0, atol=1e-7)


def test_what_cannot_be_assembled_is_told_in_any_unit():
    for unit in (1e-6, 1.0, 1e6):
        m = four_bar(unit)
        long = m.replace(constraints=[zw.Distance("rod", ("b", (0, 0, 0)), ("c", (0, 0, 0)), 9.0 * unit)])
        with pytest.raises(SolveError, match=r"'rod'.*check the lengths"):
            zw.assemble(long, [1.2, -0.9, 1.9])
