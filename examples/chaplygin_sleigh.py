"""Chaplygin's sleigh (1911): started backwards, it turns around and approaches a straight line, as in the
closed form.
"""

import numpy as np

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
m, J, a = 3.0, 0.9, 0.4  # the centre of mass is at distance a in front of the knife edge
plane = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("theta", axis=Z))
sleigh = zw.Mechanism(
    "sleigh",
    [zw.Body("sleigh", plane, mass=m, com=(a, 0, 0), inertia=(J,) * 3)],
    gravity=(0, 0, 0),
    constraints=[zw.NoSideSlip("knife edge", "sleigh", direction=Y)],
)
forward = zw.PointSpeed("u", "sleigh")
print(zw.equations(sleigh, [forward, "theta"]))
u0, w0 = -1.2, 0.9
run = zw.simulate(sleigh, q0=[0, 0, 0], v0=[u0, 0, w0], duration=10, step=2e-3, integrator="rk4")
t, q, v = run.time.values, run.q.values[0], run.v.values[0]
u = v[:, 0] * np.cos(q[:, 2]) + v[:, 1] * np.sin(q[:, 2])

# u = U tanh(k (t - t0)), w = U sqrt(m / (J + m a^2)) / cosh(k (t - t0))
inertia = J + m * a**2
U = np.sqrt(u0**2 + inertia / m * w0**2)
k = a * m * U / inertia
t0 = -np.arctanh(u0 / U) / k
closed = U * np.tanh(k * (t - t0)), U * np.sqrt(m / inertia) / np.cosh(k * (t - t0))
print(f"forward velocity {u[0]:.4f} m/s initially, {u[-1]:.6f} m/s finally; closed form {U:.6f} m/s")
print(
    f"largest deviation from the closed form: {abs(u - closed[0]).max():.1e} m/s, "
    f"{abs(v[:, 2] - closed[1]).max():.1e} rad/s"
)
energy = (m * u**2 + inertia * v[:, 2] ** 2) / 2
print(f"energy error {np.ptp(energy):.1e} J")
assert (
    np.allclose(u, closed[0], atol=1e-9)
    and np.allclose(v[:, 2], closed[1], atol=1e-9)
    and np.ptp(energy) < 1e-9
)
