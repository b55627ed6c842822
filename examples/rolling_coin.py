"""A spinning coin rolls and falls over: its contact point after half a second, compared with a published
benchmark.
"""

import numpy as np

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
m, r = 1.0, 0.01
joints = [zw.Prismatic(n, axis=a) for n, a in zip("xyz", (X, Y, Z), strict=True)]
joints += [zw.Revolute("yaw", axis=Z), zw.Revolute("lean", axis=X), zw.Revolute("spin", axis=Y)]
inertia = (m * r**2 / 4, m * r**2 / 2, m * r**2 / 4)
coin = zw.Mechanism("coin", [zw.Body("coin", tuple(joints), mass=m, inertia=inertia)], gravity=(0, 0, -9.81),
                    constraints=[zw.Rolling("table", "coin", r, axis=Y)])  # fmt: skip


def contact(q):
    """The contact point (x, y) [m] of the coin."""
    x, y, _, yaw, lean, _ = q
    return np.array([x - r * np.sin(yaw) * np.sin(lean), y + r * np.cos(yaw) * np.sin(lean)])


yaw, lean, rates = -np.pi / 2, np.radians(-1), [10 * np.pi, 0, 0]  # rotation about the vertical axis
q0 = np.array(
    [r * np.sin(yaw) * np.sin(lean), -r * np.cos(yaw) * np.sin(lean), r * np.cos(lean), yaw, lean, 0]
)
A = zw.constrained_dynamics(coin, q0, np.zeros(6), np.zeros(6)).rows.J
v0 = [
    *np.linalg.solve(A[:, :3], -A[:, 3:] @ rates),
    *rates,
]  # the velocity of the centre follows from rolling
run = zw.simulate(coin, q0=q0, v0=v0, duration=0.5, step=2e-4, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
energy = [sum(zw.energy(coin, q[i], v[i])) for i in (0, -1)]
x = contact(q[-1])[0]
print(
    f"the lean angle is at most {np.degrees(np.abs(q[:, 4]).max()):.1f} degrees; "
    f"{(q[-1, 3] - yaw) / 2 / np.pi:.2f} revolutions about the vertical axis"
)
print(f"contact after 0.5 s: x = {x:.12f} m; Exudyn, extrapolated: 0.00200494702 m")
print(f"energy error {energy[1] - energy[0]:.1e} J")
assert np.isclose(x, 0.00200494702, atol=1e-9) and np.isclose(*energy, atol=1e-9)
