"""A bead on a rough rod that rotates at a given rate: r'' = w^2 r - 2 mu w r', symbolically and
numerically.
"""

import numpy as np
import sympy as sp

import zwang as zw

m, w, mu = sp.symbols("m omega mu", positive=True)
r, rate, N = sp.symbols("r r_dot N", real=True)
rod = zw.Body("rod", zw.Revolute("turn", axis=(0, 0, 1)), inertia=(1, 1, 1))
bead = zw.Body("bead", zw.Prismatic("r", axis=(1, 0, 0)), "rod", mass=m)
# at a constant rate, the torque of the drive is r times the force of the rod on the bead
friction = zw.NonIdeal("friction", "drive", {"r": -mu * N / r * sp.sign(rate)})
turning = zw.Mechanism("rod", [rod, bead], gravity=(0, 0, 0),
                       constraints=[zw.Pfaffian("drive", {"turn": 1}, rate=-w), friction])  # fmt: skip
e = zw.equations(turning, ["r"])
torque = e.multipliers["drive"][0]
print("right-hand side:", e.right_hand_side[0])
print("torque of the drive:", torque, " so the force on the bead is", sp.simplify(torque / e.q[1]))
assert sp.expand(torque - 2 * m * w * e.q[1] * e.speeds[0]) == 0

numbers = turning.subs({"m": 0.4, "omega": 2.0, "mu": 0.3})
run = zw.simulate(numbers, q0=[0, 0.2], v0=[2.0, 0.1], duration=2, step=1e-3, integrator="rk4")
t, out, v = run.time.values, run.q.values[0][:, 1], run.v.values[0]
fast, slow = (2.0 * (-0.3 + s * np.sqrt(1 + 0.3**2)) for s in (1, -1))  # roots of s^2 + 2 mu w s = w^2
c = (0.1 - slow * 0.2) / (fast - slow)
closed = c * np.exp(fast * t) + (0.2 - c) * np.exp(slow * t)
print(f"after 2 s r = {out[-1]:.9f} m, closed form {closed[-1]:.9f} m")
drive = 2 * 0.4 * 2.0 * out * v[:, 1] * 2.0  # torque times rate
taken = 0.3 * 2 * 0.4 * 2.0 * v[:, 1] ** 2
power = drive - taken
work = (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1]) / 3 * 1e-3  # Simpson's rule
gained = (
    zw.energy(numbers, run.q.values[0][-1], v[-1]).kinetic
    - zw.energy(numbers, run.q.values[0][0], v[0]).kinetic
)
print(f"energy gained {gained:.9f} J, work of drive and friction {work:.9f} J")
assert np.allclose(out, closed, rtol=1e-9) and np.isclose(gained, work, rtol=1e-7)
