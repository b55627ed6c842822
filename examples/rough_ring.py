"""A bead on a rough ring: a non-ideal constraint, and the closed form of the bead's speed."""

import numpy as np
import sympy as sp

import zwang as zw

mu, R, v0 = 0.25, 0.5, 3.0
x, y, N, vx, vy = sp.symbols("x y N x_dot y_dot", real=True)
speed = sp.sqrt(vx**2 + vy**2)
bead = zw.Mechanism(
    "bead",
    [zw.Body("bead", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("y", axis=(0, 1, 0))), mass=0.3)],
    gravity=(0, 0, 0),
    constraints=[
        zw.Holonomic("ring", sp.sqrt(x**2 + y**2) - R),
        zw.NonIdeal("friction", "ring", {"x": -mu * N * vx / speed, "y": -mu * N * vy / speed}),
    ],
)
run = zw.simulate(bead, q0=[R, 0], v0=[0, v0], duration=5, step=1e-3, integrator="rk4")
for t in (1, 2, 5):
    v = np.linalg.norm(run.v.values[0][1000 * t])
    print(f"t = {t} s: speed {v:.9f} m/s, closed form {v0 / (1 + mu * v0 * t / R):.9f}")
    assert np.isclose(v, v0 / (1 + mu * v0 * t / R), rtol=1e-6)
