"""A geared link: motor and link as two bodies with a joint coupling; a published equation has a wrong damping
term.
"""

import numpy as np
import sympy as sp

import zwang as zw

J_m, J_l, M, g, l, r, B_m, B_l = sp.symbols("J_m J_l M g l r B_m B_l", positive=True)
Z = (0, 0, 1)
geared = zw.Mechanism(
    "geared link",
    [zw.Body("link", zw.Revolute("q", axis=Z), mass=M, com=(0, -l, 0), inertia=(J_l, J_l, J_l - M * l**2)),
     zw.Body("rotor", zw.Revolute("motor", axis=Z), mass=1, inertia=(J_m, J_m, J_m))],
    gravity=(0, -g, 0),
    forces=[zw.Motor("tau_m", "motor"), zw.Damper("motor", B_m), zw.Damper("q", B_l)],
    constraints=[zw.JointCoupling("gear", "motor", "q", (0, r))],  # the motor rotates r times as fast
)  # fmt: skip
print(zw.equations(geared, ["q"]))
q, rate, acceleration, tau_m = sp.symbols("q q_dot q_ddot tau_m")
rest = (r**2 * J_m + J_l) * acceleration + M * g * l * sp.sin(q) - r * tau_m
printed = zw.check_equations(geared, [rest + (r * B_m + B_l) * rate], ["q"])
corrected = zw.check_equations(geared, [rest + (r**2 * B_m + B_l) * rate], ["q"])
print("printed, r B_m + B_l:  ", printed)
print("derived, r^2 B_m + B_l:", corrected)
assert not printed and corrected

# Check by the energy balance: the dampers dissipate B_m (r q')^2 + B_l q'^2
numbers = {"J_m": 0.02, "J_l": 0.3, "M": 1.5, "g": 9.81, "l": 0.4, "r": 5.0, "B_m": 0.01, "B_l": 0.1}
machine = geared.subs(numbers)
run = zw.simulate(machine, q0=[1.2, 6.0], v0=[0, 0], duration=2, step=1e-3, integrator="rk4")
v = run.v.values[0]
energy = np.array(
    [sum(zw.energy(machine, a, b)) for a, b in zip(run.q.values[0][::2000], v[::2000], strict=True)]
)
dissipated_power = 0.01 * v[:, 1] ** 2 + 0.1 * v[:, 0] ** 2
P = dissipated_power
dissipated = (P[0] + 4 * P[1:-1:2].sum() + 2 * P[2:-1:2].sum() + P[-1]) / 3 * 1e-3  # Simpson's rule
print(f"energy lost in 2 s: {energy[0] - energy[-1]:.9f} J; dissipated by the dampers: {dissipated:.9f} J")
assert np.isclose(energy[0] - energy[-1], dissipated, rtol=1e-7)
