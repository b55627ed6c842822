"""A knife edge on an incline: it rotates and moves along a cycloid across the slope, without moving down on
average.
"""

import numpy as np

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)  # x down the slope, y across it
mass, slope, omega = 1.3, 0.4, 1.7
plane = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("phi", axis=Z))
g_slope = 9.81 * np.sin(slope)
skate = zw.Mechanism(
    "skate", [zw.Body("skate", plane, mass=mass, inertia=(0.07,) * 3)], gravity=(g_slope, 0, 0),
    constraints=[zw.NoSideSlip("edge", "skate", direction=Y)],
)  # fmt: skip
print(zw.classify(skate))
run = zw.simulate(skate, q0=[0, 0, 0], v0=[0, 0, omega], duration=4, step=1e-3, integrator="rk4")
t, q, v = run.time.values, run.q.values[0], run.v.values[0]
x = g_slope / (2 * omega**2) * np.sin(omega * t) ** 2
y = g_slope / (2 * omega**2) * (omega * t - np.sin(2 * omega * t) / 2)
force = zw.constrained_dynamics(skate, q[1000], v[1000], np.zeros(3)).forces["edge"].item()
energy = [sum(zw.energy(skate, q[i], v[i])) for i in (0, -1)]
print(
    f"lowest point {q[:, 0].max():.6f} m, closed form {g_slope / (2 * omega**2):.6f} m; "
    f"sideways motion {q[-1, 1]:.6f} m in 4 s"
)
print(f"side force after 1 s {abs(force):.6f} N, closed form {abs(2 * mass * g_slope * np.sin(omega)):.6f} N")
print(
    f"largest deviation from the cycloid {max(abs(q[:, 0] - x).max(), abs(q[:, 1] - y).max()):.1e} m, "
    f"energy error {energy[1] - energy[0]:.1e} J"
)
assert np.allclose(q[:, 0], x, atol=1e-9) and np.allclose(q[:, 1], y, atol=1e-9)
assert np.isclose(abs(force), 2 * mass * g_slope * np.sin(omega)) and np.isclose(*energy, atol=1e-9)
