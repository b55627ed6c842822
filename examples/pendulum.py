"""The simple pendulum in three ways: with a revolute joint, with a holonomic constraint, and the constraint
force.
"""

import numpy as np
import sympy as sp

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
m, l, g = sp.symbols("m l g", positive=True)
x1, x2 = sp.symbols("x1 x2", real=True)  # x1 points down

# 1. One coordinate, with a revolute joint: m l theta'' = -m g sin(theta)
hinged = zw.Mechanism(
    "hinged", [zw.Body("bob", zw.Revolute("theta", axis=Z), mass=m, com=(l, 0, 0))], gravity=(g, 0, 0)
)
e = zw.equations(hinged)
theta, rate = e.q[0], e.speeds[0]
print("by the joint:      theta'' =", e.accelerations[0])
assert e.accelerations[0] == -g * sp.sin(theta) / l

# 2. Two coordinates, a constraint, and coordinate reduction: B^T M B x2'' + B^T M B_dot x2' = B^T F
slides = (zw.Prismatic("x1", axis=X), zw.Prismatic("x2", axis=Y))
bound = zw.Mechanism("bound", [zw.Body("bob", slides, mass=m)], gravity=(g, 0, 0),
                     constraints=[zw.Holonomic("circle", (x1**2 + x2**2 - l**2) / (2 * l))])  # fmt: skip
f = zw.equations(bound, ["x2"])
circle = {f.q[0]: l * sp.cos(theta), f.q[1]: l * sp.sin(theta), f.speeds[0]: l * rate * sp.cos(theta)}
by_hand = -l * rate**2 * sp.sin(theta) + l * sp.cos(theta) * e.accelerations[0]  # x2'' of l sin(theta)
print("by the reduction:  x2''    =", sp.simplify(f.accelerations[0].subs(circle)))
assert sp.simplify(f.accelerations[0].subs(circle) - by_hand) == 0

# 3. The force along the rod, -m (l theta'^2 + g cos theta): as a multiplier, as a joint reaction, and
# numerically
closed = -m * (l * rate**2 + g * sp.cos(theta))
multiplier = f.multipliers["circle"][0].subs(f.u_dot[0], f.accelerations[0]).subs(circle)
reaction = e.joint_reactions["theta"][0].subs(e.u_dot[0], e.accelerations[0])
print("force of the rod:         ", sp.simplify(multiplier))
assert sp.simplify(multiplier - closed) == 0
assert sp.simplify(reaction[0] * sp.cos(theta) + reaction[1] * sp.sin(theta) - closed) == 0
numbers = {"m": 0.7, "l": 1.3, "g": 9.81}
angle, speed = 0.4, 1.1
q = 1.3 * np.array([np.cos(angle), np.sin(angle)])
v = 1.3 * speed * np.array([-np.sin(angle), np.cos(angle)])
found = zw.constrained_dynamics(bound.subs(numbers), q, v, np.zeros(2)).forces["circle"].item()
expected = float(closed.subs({theta: angle, rate: speed, m: 0.7, l: 1.3, g: 9.81}))
print(f"in numbers:         {found:.12f} N, closed form {expected:.12f} N")
assert np.isclose(found, expected, rtol=1e-12)
