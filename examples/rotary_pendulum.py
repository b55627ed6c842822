"""The rotary pendulum: symbolic equations of motion by four methods, and the power balance that
they satisfy.
"""

import sympy as sp

import zwang as zw

m_r, m_p, L_r, L_p, g = sp.symbols("m_r m_p L_r L_p g", positive=True)
J, K = sp.symbols("J_r1:4", positive=True), sp.symbols("J_p1:4", positive=True)
arm = zw.Body("arm", joint=zw.Revolute("theta", axis=(0, 0, 1)), mass=m_r, com=(L_r / 2, 0, 0), inertia=J)
rod = zw.Body("pendulum", zw.Revolute("alpha", axis=(1, 0, 0)), parent="arm", position=(L_r, 0, 0),
              mass=m_p, com=(0, 0, L_p / 2), inertia=K)  # fmt: skip
furuta = zw.Mechanism("furuta", [arm, rod], gravity=(0, 0, -g), forces=[zw.Motor("tau", joint="theta")])

e = zw.equations(furuta)
print(e)
for method in ("gauss", "newton_euler", "lagrange"):
    assert zw.equations(furuta, method=method).mass_matrix == e.mass_matrix
energy = e.kinetic_energy + e.potential_energy
symbols = sorted((energy.free_symbols | e.right_hand_side.free_symbols), key=str)
point = {s: sp.Rational(3 + k, 7) for k, s in enumerate(symbols)}  # exact numbers
u_dot = e.mass_matrix.subs(point).evalf(30).LUsolve(e.right_hand_side.subs(point).evalf(30))
rates = [
    (sp.diff(energy, q) * v, sp.diff(energy, v) * a) for q, v, a in zip(e.q, e.speeds, u_dot, strict=True)
]
power = sum(term.subs(point).evalf(30) for pair in rates for term in pair)
motor = (e.symbols.inputs["tau"] * e.speeds[0]).subs(point)
print(f"rate of energy {power:.15f} W = motor torque times angular velocity, {float(motor):.15f} W")
assert abs(power - motor) < 1e-20
