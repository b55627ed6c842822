"""A particle with the constraint y' = z x' and the non-ideal force -a |u| u, compared with Udwadia and
Kalaba's equation.
"""

import numpy as np
import sympy as sp

import zwang as zw

a, push = 0.35, np.array([0.4, -0.3, 0.2])
z, *rates = sp.symbols("z x_dot y_dot z_dot", real=True)
speed = sp.sqrt(sum(u**2 for u in rates))
slides = tuple(zw.Prismatic(n, axis=d) for n, d in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))))
drag = {n: -a * speed * u for n, u in zip("xyz", rates, strict=True)}
particle = zw.Mechanism(
    "particle",
    [zw.Body("particle", slides, mass=1.0)],
    gravity=(0, 0, 0),
    forces=[zw.Wrench("particle", force=push)],
    constraints=[zw.Pfaffian("edge", {"y": 1, "x": -z}), zw.NonIdeal("drag", "edge", drag)],
)
q, v = np.array([1.0, 0, 0.5]), np.array([0.8, 0.4, -0.2])
found = zw.constrained_dynamics(particle, q, v, np.zeros(3)).acceleration

A, b = np.array([[-q[2], 1.0, 0]]), np.array([v[2] * v[0]])
C = -a * np.linalg.norm(v) * v
ideal = np.linalg.pinv(A) @ (b - A @ push)
nonideal = (np.eye(3) - np.linalg.pinv(A) @ A) @ C
print("acceleration                 ", found.round(9))
print("Udwadia and Kalaba's equation", (push + ideal + nonideal).round(9))
e = zw.equations(particle, ["x", "z"])
names = ("x", "y", "z", "x_dot", "y_dot", "z_dot")
split = e.split_constraint_forces(dict(zip(names, (*q, *v), strict=True)))
print("ideal part    ", split.ideal[:3].round(9), f"power {split.ideal_power:.1e} W")
print(
    "non-ideal part",
    split.nonideal[:3].round(9),
    f"power {split.nonideal_power:.6f} W, a |u|^3 = {a * np.linalg.norm(v) ** 3:.6f} W",
)
assert np.allclose(found, push + ideal + nonideal) and np.allclose(split.nonideal[:3], nonideal)
assert np.isclose(split.nonideal_power, -a * np.linalg.norm(v) ** 3) and abs(split.ideal_power) < 1e-12

run = zw.simulate(particle, q0=q, v0=v, duration=3, step=2e-3, integrator="rk4")
speeds = run.v.values[0]
power = speeds @ push - a * np.linalg.norm(speeds, axis=1) ** 3
work = (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1]) / 3 * 2e-3  # Simpson's rule
gained = (speeds[-1] @ speeds[-1] - speeds[0] @ speeds[0]) / 2
print(f"energy gained in 3 s {gained:.9f} J, work of the applied and the non-ideal force {work:.9f} J")
assert np.isclose(gained, work, atol=1e-9)
