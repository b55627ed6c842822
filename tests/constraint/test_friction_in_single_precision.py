"""Friction whose size follows a constraint force, in single precision: the motion is that in double
precision, also where the constraint force is zero.
"""

import numpy as np
import pytest
import sympy as sp

import zwang as zw

x, y, x_dot, y_dot, N = sp.symbols("x y x_dot y_dot N")
speed = sp.sqrt(x_dot**2 + y_dot**2)
LAWS = {
    "CoulombFriction": zw.CoulombFriction("rough", 0.3, constraint="hoop", sliding={"x": -y, "y": x}),
    "NonIdeal": zw.NonIdeal("rough", "hoop", {"x": -0.3 * N * x_dot / speed, "y": -0.3 * N * y_dot / speed}),
}


def bead(law):
    """A bead on a rough vertical hoop of radius 1 m."""
    slides = (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0)))
    hoop = zw.Distance("hoop", ("p", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)
    return zw.Mechanism(
        bodies=(zw.Body("p", slides, mass=1.0),), gravity=(0, -9.81, 0), constraints=(hoop, law)
    )


@pytest.mark.parametrize("name", LAWS)
def test_friction_in_single_precision_is_that_in_double_precision(name):
    rng = np.random.default_rng(1)
    angle = np.concatenate([np.pi / 2 * np.arange(4), rng.uniform(-3, 3, 40)])
    rate = rng.normal(size=44) + 2
    if name == "CoulombFriction":
        rate[:20] = 0  # at rest; at the angles 0 and pi the hoop then bears no force
    q = np.stack([np.cos(angle), np.sin(angle)], 1)
    v = np.stack([-np.sin(angle) * rate, np.cos(angle) * rate], 1)
    single, double = (
        zw.compile(bead(LAWS[name]), dtype=dtype).step(q, v, np.zeros((44, 2)), step=1e-3)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single.v, double.v, atol=1e-5)
    np.testing.assert_allclose(single.q, double.q, atol=1e-6)
