"""From Newton to Lagrange: both methods give m y'' = f - m g for a point mass that is lifted by a force."""

import sympy as sp

import zwang as zw

m, g = sp.symbols("m g", positive=True)
point = zw.Mechanism(
    "point mass", [zw.Body("mass", zw.Prismatic("y", axis=(0, 1, 0)), mass=m)], gravity=(0, -g, 0),
    forces=[zw.Motor("f", "y")],
)  # fmt: skip
newton, lagrange = (zw.equations(point, method=method) for method in ("newton_euler", "lagrange"))
print(newton)
y, speed, f = lagrange.q[0], lagrange.speeds[0], lagrange.symbols.inputs["f"]
L = lagrange.kinetic_energy - lagrange.potential_energy
print("L =", L)
by_hand = sp.diff(L, speed, 2) * lagrange.u_dot[0] - sp.diff(L, y)  # d/dt dL/dy' - dL/dy
print("d/dt dL/dy' - dL/dy =", by_hand, "= f")
assert newton.mass_matrix == lagrange.mass_matrix and newton.right_hand_side == lagrange.right_hand_side
assert sp.expand(by_hand - f - (lagrange.mass_matrix * lagrange.u_dot - lagrange.right_hand_side)[0]) == 0
assert zw.check_equations(point, [sp.Eq(m * sp.Symbol("y_ddot"), sp.Symbol("f") - m * g)])
