"""A disc that rolls without slip: its three equations, steady turns, and the critical speed of upright
rolling.
"""

import numpy as np
import sympy as sp

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
m, r, A, C, g = sp.symbols("m r A C g", positive=True)
joints = [zw.Prismatic(n, axis=a) for n, a in zip("xyz", (X, Y, Z), strict=True)]
joints += [zw.Revolute("yaw", axis=Z), zw.Revolute("lean", axis=X), zw.Revolute("spin", axis=Y)]
disc = zw.Mechanism("disc", [zw.Body("disc", tuple(joints), mass=m, inertia=(A, C, A))], gravity=(0, 0, -g),
                    constraints=[zw.Rolling("floor", "disc", r, axis=Y)])  # fmt: skip
print(zw.classify(disc))
e = zw.equations(disc, ["yaw", "lean", "spin"])
print(e)
(yaw, lean, spin), theta = e.speeds, e.q[4]
leaning = e.right_hand_side[1].replace(sp.Abs, lambda x: x)  # the lean angle is less than 90 degrees
steady = leaning.subs(lean, 0)
known = (m * r * g * sp.sin(theta) + (C + m * r**2) * (spin + yaw * sp.sin(theta)) * yaw * sp.cos(theta)
         - A * yaw**2 * sp.sin(theta) * sp.cos(theta))  # fmt: skip
print("the steady turn agrees with Neimark and Fufaev:", agrees := sp.simplify(steady - known) == 0)
assert agrees

# Linearised about upright rolling with the spin rate w: A' lean'' = m g r lean + (C + m r^2) w yaw', A yaw' =
# -C w lean
w = sp.Symbol("w", real=True)
upright = {e.q[3]: 0, lean: 0, spin: w}
stiffness = sp.diff(leaning.subs(upright), theta).subs(theta, 0).subs(yaw, 0)
turning = sp.diff(leaning.subs(upright).subs(theta, 0), yaw).subs(yaw, 0)
yaw_of_lean = -C * w / A  # the angular momentum about the vertical diameter: A yaw' + C w lean is conserved
critical = sp.solve(stiffness + turning * yaw_of_lean, w**2)[0]
print("upright rolling is stable for (r w)^2 >", sp.simplify(r**2 * critical))
assert sp.simplify(r**2 * critical - g * r * A * m * r**2 / (C * (C + m * r**2))) == 0

numbers = disc.subs({"m": 2.0, "r": 0.5, "A": 0.125, "C": 0.25, "g": 9.81})
home = [0, 0, 0.5, 0, 0, 0]
for factor in (0.8, 1.2):
    speed = factor * np.sqrt(9.81 * 0.5 / 3)  # of a uniform disc
    q0, v0 = zw.assemble(numbers, home, [speed, 0, 0, 0, 0.01, speed / 0.5])
    run = zw.simulate(numbers, q0=q0, v0=v0, duration=3, step=1e-3, integrator="rk4")
    q, v = run.q.values[0], run.v.values[0]
    energy = [sum(zw.energy(numbers, q[i], v[i])) for i in (0, -1)]
    leaned = np.degrees(np.abs(q[:, 4]).max())
    print(
        f"at {factor} of this speed the lean angle is at most {leaned:.2f} degrees in 3 s; "
        f"energy error {energy[1] - energy[0]:.1e} J"
    )
    assert (leaned < 3) == (factor > 1) and np.isclose(*energy, atol=1e-8)
