"""A user's script, which is type-checked and not run: public functions have signatures, results have types.

A comment that ignores an error is an error itself where there is none to ignore, so that the three wrong
calls at the end must be detected.
"""

from typing import assert_type

import numpy as np
import xarray as xr

import zwang as zw

pendulum = zw.Mechanism(
    "pendulum",
    bodies=[
        zw.Body(
            "rod",
            joint=zw.Revolute("hinge", axis=np.array([0.0, 1.0, 0.0]), limits=[-2.0, 2.0]),
            mass=1.0,
            com=[0.0, 0.0, -0.5],
            inertia=(0.1, 0.1, 0.001),
            geometry=[zw.Capsule(0.02, 0.5)],
        )
    ],
    forces=[zw.Motor("motor", "hinge")],
)
assert_type(pendulum, zw.Mechanism)
assert_type(zw.load("arm.urdf"), zw.Mechanism)
assert_type(zw.mass_matrix(pendulum, [0.1]), np.ndarray)
assert_type(zw.simulate(pendulum, {"hinge": 0.1}, duration=1.0, step=1e-3), xr.Dataset)
assert_type(zw.compile(pendulum).forward_dynamics([0.1], [0.0], [0.0]), np.ndarray)

zw.simulate(pendulum, {"hinge": 0.1}, duraton=1.0)  # type: ignore[call-arg]  # pyright: ignore
zw.simulat(pendulum)  # type: ignore[attr-defined]  # pyright: ignore
zw.Revolute("hinge", axes=(0, 1, 0))  # type: ignore[call-arg]  # pyright: ignore
