"""An arm with an elastic joint, a spring between motor and link: equilibrium, natural frequencies, energy
conservation.
"""

import numpy as np
import sympy as sp

import zwang as zw

J_l, J_m, M, g, l, k = sp.symbols("J_l J_m M g l k", positive=True)
Z = (0, 0, 1)
arm = zw.Mechanism(
    "elastic joint",
    [zw.Body("link", zw.Revolute("q1", axis=Z), mass=M, com=(0, -l, 0), inertia=(J_l, J_l, J_l - M * l**2)),
     zw.Body("motor", zw.Revolute("q2", axis=Z), mass=1, inertia=(J_m, J_m, J_m))],
    gravity=(0, -g, 0), forces=[zw.Spring("q1", k, relative_to="q2"), zw.Motor("u", "q2")],
)  # fmt: skip
q1, q2, a1, a2, u = sp.symbols("q1 q2 q1_ddot q2_ddot u")
printed = [J_l * a1 + M * g * l * sp.sin(q1) + k * (q1 - q2), J_m * a2 - k * (q1 - q2) - u]
print(zw.check_equations(arm, printed))
assert zw.check_equations(arm, printed)

numbers = {"J_l": 0.12, "J_m": 0.06, "M": 1.0, "g": 9.81, "l": 0.3, "k": 25.0}
torque = 1.5
link = np.arcsin(torque / (9.81 * 0.3))  # equilibrium: M g l sin(q1) = u, and the spring transmits u
machine = arm.subs(numbers)
acceleration = zw.forward_dynamics(machine, [link, link + torque / 25.0], [0, 0], [0, torque])
print(
    f"equilibrium: link {link:.6f} rad, motor {link + torque / 25.0:.6f} rad; "
    f"accelerations there {abs(acceleration).max():.1e}"
)
K = np.array([[9.81 * 0.3 * np.cos(link) + 25.0, -25.0], [-25.0, 25.0]])
frequencies = np.sqrt(np.linalg.eigvals(np.linalg.solve(np.diag([0.12, 0.06]), K)))
print("natural frequencies [rad/s]:", np.sort(frequencies).round(6))
run = zw.simulate(machine, q0=[0.3, -0.1], v0=[0, 0], duration=2, step=1e-3, integrator="rk4",
                  control={"u": torque})  # fmt: skip
q, v = run.q.values[0], run.v.values[0]
conserved = [sum(zw.energy(machine, q[i], v[i])) - torque * q[i, 1] for i in (0, -1)]
print(f"energy minus the motor's work: {conserved[0]:.9f} J, after 2 s {conserved[1]:.9f} J")
assert abs(acceleration).max() < 1e-12 and np.isclose(*conserved, atol=1e-7)
