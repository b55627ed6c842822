"""A flyball governor with stiff springs and dampers (IFToMM A05): motion of the slider, and
angular momentum.
"""

import numpy as np

import zwang as zw

Y, Z = (0, 1, 0), (0, 0, 1)
rod, cube, ball, thick = 0.3, 3.0, 5.0, 0.01  # kg, kg, kg, m
across, along = rod * (1 + thick**2) / 12, rod * thick**2 / 6
com = (rod * 0.5 + ball) / (rod + ball)
spread = across + rod * (com - 0.5) ** 2 + ball * (1 - com) ** 2
parts = [
    zw.Body("shaft", zw.Revolute("psi", axis=Z), mass=rod, com=(0, 0, 0.5), inertia=(across, across, along)),
    zw.Body("slider", zw.Prismatic("s", axis=Z), "shaft", mass=cube, inertia=(cube * 0.01 / 6,) * 3),
]
springs = []
for side in (1, -1):  # each rod points outwards and rotates downwards
    name = "right" if side == 1 else "left"
    hinge = zw.Revolute(name, axis=(0, side, 0))
    parts.append(zw.Body(name, hinge, "shaft", (side * 0.05, 0, 1), mass=rod + ball, com=(side * com, 0, 0),
                         inertia=(along, spread, spread)))  # fmt: skip
    springs.append(zw.PointSpring(("slider", (side * 0.05, 0, 0)), (name, (side * 0.5, 0, 0)), 8e5, 0.5, 4e4))
governor = zw.Mechanism("governor", parts, gravity=(0, 0, -9.81), forces=springs)

start = [0, 0.5, np.pi / 6, np.pi / 6]
run = zw.simulate(
    governor, q0=start, v0=[2 * np.pi, 0, 0, 0], duration=1, step=1e-4, integrator="rk4", record=1000
)
q, v = run.q.values[0], run.v.values[0]
momentum = [(zw.mass_matrix(governor, a) @ b)[0] for a, b in zip(q, v, strict=True)]
print(f"after 0.5 s: shaft {q[5, 0]:.7f} rad, slider {q[5, 1]:.7f} m; reference 2.8076795 rad, 0.7432494 m")
print(f"angular momentum {momentum[0]:.9f} kg m^2/s, conserved to {np.ptp(momentum):.1e}")
print(f"difference of the rods' angles: {abs(q[:, 2] - q[:, 3]).max():.1e} rad")
assert np.allclose(q[5, :2], [2.8076794883678806, 0.7432494247864465], atol=1e-6)
assert np.ptp(momentum) < 1e-8 and np.allclose(q[:, 2], q[:, 3], atol=1e-9)
