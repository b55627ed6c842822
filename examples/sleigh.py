"""A sleigh with an elastically mounted rotor: a knife-edge constraint turns the rotor's oscillation into
forward motion.

The equations are compared with Eqs. 65, 68 and 69 of "projection-based derivation for the moving frame
method", IMECE 2021-72324, and the motion with a Runge-Kutta reference.
"""

import numpy as np
import sympy as sp

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
m_c, m_r, J_c, J_r, a, b, k_1, k_2 = sp.symbols("m_c m_r J_c J_r a b k_1 k_2", positive=True)
plane = (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("theta", axis=Z))
sleigh = zw.Mechanism(
    "sleigh",
    [zw.Body("hull", plane, mass=m_c, inertia=(J_c,) * 3),
     zw.Body("rotor", zw.Revolute("delta", axis=Z), "hull", mass=m_r, com=(a, 0, 0), inertia=(J_r,) * 3)],
    gravity=(0, 0, 0), forces=[zw.Spring("delta", (2 * k_1, 0, 4 * k_2))],
    constraints=[zw.NoSideSlip("knife edge", "hull", direction=Y, point=(-b, 0, 0))],
)  # fmt: skip
print(zw.classify(sleigh))

independent = [zw.PointSpeed("u", "hull", direction=X, point=(-b, 0, 0)), "theta", "delta"]
e = zw.equations(sleigh, independent)
(th, d), (u, thd, dd), acceleration = e.q[2:, 0], e.speeds, e.u_dot
s, c, sd, cd = sp.sin(th), sp.cos(th), sp.sin(d), sp.cos(d)
eq65 = sp.Matrix([[c, -b * s, 0], [s, b * c, 0], [0, 1, 0],
                  [c, -a * sp.sin(d + th) - b * s, -a * sp.sin(d + th)],
                  [s, a * sp.cos(d + th) + b * c, a * sp.cos(d + th)], [0, 1, 1]])  # fmt: skip
assert sp.Matrix([e.B.row(i) for i in (0, 1, 5, 6, 7, 11)]) == eq65
inertia = J_c + J_r + a**2 * m_r + 2 * a * b * m_r * cd + b**2 * (m_c + m_r)
coupled = J_r + a**2 * m_r + a * b * m_r * cd
eq68 = sp.Matrix([[m_c + m_r, -a * m_r * sd, -a * m_r * sd], [-a * m_r * sd, inertia, coupled],
                  [-a * m_r * sd, coupled, J_r + a**2 * m_r]])  # fmt: skip
eq69 = sp.Matrix([
    a * m_r * cd * (dd + thd) ** 2 + b * (m_c + m_r) * thd**2,
    a * b * m_r * sd * (dd**2 + 2 * dd * thd) - a * m_r * u * cd * thd - b * (m_c + m_r) * u * thd,
    -a * b * m_r * sd * thd**2 - a * m_r * u * cd * thd - 2 * k_1 * d - 4 * k_2 * d**3,
])  # fmt: skip
checked = zw.check_equations(sleigh, list(eq68 * acceleration - eq69), independent)
print(checked)
assert checked

numbers = sleigh.subs(
    {"m_c": 5, "J_c": 0.4, "m_r": 1.2, "J_r": 0.05, "a": 0.35, "b": 0.25, "k_1": 0.6, "k_2": 0.15}
)
run = zw.simulate(numbers, q0=[0.25, 0, 0, 1.0], duration=20, step=1e-3, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
energies = [sum(zw.energy(numbers, *state)) for state in ((q[0], v[0]), (q[-1], v[-1]))]
print(
    f"moved {q[-1, 0] - q[0, 0]:.4f} m forward in 20 s; energy {energies[0]:.9f} J, then {energies[1]:.9f} J"
)
print(f"after 1 s theta = {q[1000, 2]:.10f} rad, delta = {q[1000, 3]:.10f} rad")
assert np.isclose(*energies, rtol=1e-7) and np.allclose(
    q[1000, 2:], [0.4492871616225553, -0.8634882017410517], atol=1e-8
)
