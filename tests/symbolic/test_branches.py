"""Linkages whose branches (assembly modes) have different degrees of freedom, chosen by `home`."""

import warnings

import numpy as np
import pytest

import zwang as zw
from tests.symbolic.machines import X, Z
from zwang.errors import ZwangWarning

LONG, SHORT, CRANK = 0.5, 0.25, 0.15  # [m] the bars of Peaucellier's linkage
ARM, MASS, INERTIA, SLIDER = 0.3, 0.5, 0.01, 0.1  # half an arm of the scissors [m], and inertias
DIFFERENT = "has branches .* with different degrees of freedom, {} and {}.*give `home`"


def arm(name, parent="world", position=(0, 0, 0), com=0.0):
    return zw.Body(name, zw.Revolute(name, Z), parent, position, mass=MASS, com=(com, 0, 0),
                   inertia=(INERTIA, INERTIA, INERTIA))  # fmt: skip


def peaucellier(home=None):
    """Two long bars from the origin, four short ones, and a crank that guides the inner corner A."""
    bodies = [arm("a"), arm("b"), arm("crank", position=(CRANK, 0, 0))]
    bodies += [arm(x + y, x, (LONG, 0, 0)) for x in "ab" for y in "AB"]
    tip = (SHORT, 0, 0)
    pins = [zw.Connect(f"{x}A", (f"{x}A", tip), ("crank", (CRANK, 0, 0))) for x in "ab"]
    return zw.Mechanism(
        "peaucellier", bodies, constraints=[*pins, zw.Connect("B", ("aB", tip), ("bB", tip))], home=home
    )


def scissors(home=None):
    """Two stages of crossing arms, of which the lower ones are on a pin and on a horizontal slider."""
    slider = zw.Body("slider", zw.Prismatic("s", X), mass=SLIDER)
    bodies = [arm("a", com=ARM), slider, arm("b", "slider", com=ARM)]
    bodies += [arm("c", "b", (2 * ARM, 0, 0), ARM), arm("d", "a", (2 * ARM, 0, 0), ARM)]
    pins = [zw.Connect(x + y, (x, (ARM, 0, 0)), (y, (ARM, 0, 0))) for x, y in ("ab", "cd")]
    return zw.Mechanism("scissors", bodies, constraints=pins, gravity=(0, -9.81, 0), home=home)


def closed(angle):
    """q of the scissors, whose arms have this angle above the slider."""
    fold = np.pi - 2 * angle
    return [angle, 2 * ARM * np.cos(angle), np.pi - angle, -fold, fold]


def degrees_of_freedom(mechanism):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ZwangWarning)
        return zw.classify(mechanism).degrees_of_freedom


def test_links_that_coincide_near_zeros_do_not_decide_the_degrees_of_freedom():
    """Peaucellier's linkage guides a point along a line; folded, its halves turn about one corner, too."""
    with pytest.warns(ZwangWarning, match=DIFFERENT.format(1, 2)):
        assert zw.classify(peaucellier()).degrees_of_freedom == 1
    a, corner = np.arccos((LONG**2 + 4 * CRANK**2 - SHORT**2) / (4 * LONG * CRANK)), 2 * CRANK
    c, s = LONG * np.cos(a), LONG * np.sin(a)
    end = (LONG**2 - SHORT**2) / corner  # inversion: the distances of A and B from the origin
    to_A, to_B = (np.arctan2(-s, x - c) - a for x in (corner, end))
    assert degrees_of_freedom(peaucellier((a, -a, 0, to_A, to_B, -to_A, -to_B))) == 1
    assert degrees_of_freedom(peaucellier((a, a, 0, to_A, to_B, to_A, to_B))) == 2
    rounded = np.round([a, -a, 0, to_A, to_B, -to_A, -to_B], 1)
    assert degrees_of_freedom(peaucellier(tuple(rounded))) == 1


def test_scissors_without_a_home_have_the_equation_of_lagrange():
    """Arms at +-x, with crossings at heights w sin x and 3 w sin x: M(x) x'' + M' x'^2 / 2 + V' = 0."""
    with pytest.warns(ZwangWarning, match=DIFFERENT.format(1, 2)):
        e = zw.equations(scissors(), ["a"])
    assert degrees_of_freedom(scissors(closed(0.7))) == 1
    x, rate = 0.6, 1.3
    s, c = np.sin(x), np.cos(x)
    M = 4 * INERTIA + 2 * MASS * ARM**2 * (2 * s**2 + 10 * c**2) + SLIDER * (2 * ARM * s) ** 2
    slope = 2 * s * c * (2 * MASS * ARM**2 * (2 - 10) + SLIDER * (2 * ARM) ** 2)
    force = 2 * MASS * 9.81 * ARM * (1 + 3) * c
    names = scissors().coordinate_names
    mass_matrix, right = e.evaluate({**dict(zip(names, closed(x), strict=True)), "a_dot": rate})
    acceleration = -(slope * rate**2 / 2 + force) / M
    np.testing.assert_allclose(np.linalg.solve(mass_matrix, right).ravel(), acceleration, rtol=1e-9)


def test_a_linkage_that_cannot_be_closed_is_told():
    """A bar of 9 m beside two that reach 2 m together."""
    bodies = [arm("x"), arm("y", "x", (9, 0, 0)), arm("z", "y", (1, 0, 0))]
    m = zw.Mechanism("short", bodies, constraints=[zw.Connect("end", ("z", (1, 0, 0)), ("world", (0, 0, 0)))])
    with pytest.warns(ZwangWarning, match="'short' has no configuration near home.*give `home`"):
        zw.classify(m)
