"""A bead slides down a rough helix: Coulomb friction by the whole constraint force; the terminal speed in
closed form.
"""

import numpy as np
import sympy as sp

import zwang as zw

mass, mu, r, h = 0.2, 0.15, 0.3, 0.25  # the wire is (r cos p, r sin p, -h p)
x, y, z, N = sp.symbols("x y z N", real=True)
rates = sp.symbols("x_dot y_dot z_dot", real=True)
speed = sp.sqrt(sum(u**2 for u in rates))
slope = np.hypot(r, h)
# tangential to the cylinder and normal to the wire, with a gradient of length one on the wire
across = h / slope * (x * sp.sin(z / h) + y * sp.cos(z / h))
slides = tuple(zw.Prismatic(n, axis=a) for n, a in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))))
bead = zw.Mechanism(
    "bead",
    [zw.Body("bead", slides, mass=mass)],
    constraints=[
        zw.Holonomic("wire", (sp.sqrt(x**2 + y**2) - r, across)),
        zw.NonIdeal("friction", "wire", {n: -mu * N * u / speed for n, u in zip("xyz", rates, strict=True)}),
    ],
)
start = 0.5  # m/s; at rest, the direction of friction is undefined
v0 = np.array([0, r, -h]) / slope * start
run = zw.simulate(bead, q0=[r, 0, 0], v0=v0, duration=8, step=2e-3, integrator="rk4")
v = np.linalg.norm(run.v.values[0], axis=1)

sine, cosine, curvature = h / slope, r / slope, r / slope**2
terminal = np.sqrt(9.81 / curvature * np.sqrt((sine / mu) ** 2 - cosine**2))
print(f"speed after 8 s {v[-1]:.6f} m/s; terminal speed {terminal:.6f} m/s")
force = zw.joint_reactions(bead, run.q.values[0][-1], run.v.values[0][-1], np.zeros(3))
friction = force.joints["z"].power
normal = mass * np.hypot(curvature * v[-1] ** 2, 9.81 * cosine)
print(f"power of the constraint force {friction:.6f} W, closed form {-mu * normal * v[-1]:.6f} W")
lost = np.ptp([sum(zw.energy(bead, run.q.values[0][i], run.v.values[0][i])) for i in (0, -1)])
P = mu * mass * np.hypot(curvature * v**2, 9.81 * cosine) * v
work = (P[0] + 4 * P[1:-1:2].sum() + 2 * P[2:-1:2].sum() + P[-1]) / 3 * 2e-3  # Simpson's rule
print(f"energy lost {lost:.6f} J, work of friction {work:.6f} J")
assert np.isclose(v[-1], terminal, rtol=1e-6)
assert np.isclose(friction, -mu * normal * v[-1]) and np.isclose(lost, work, rtol=1e-7)
