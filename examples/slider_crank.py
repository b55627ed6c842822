"""A slider-crank with a spring and a torque: mobility, joint reactions, and energy conservation."""

import numpy as np

import zwang as zw

X, Z = (1, 0, 0), (0, 0, 1)


def rod(name, length, mass, parent="world", position=(0, 0, 0)):
    thin = mass * length**2 / 12
    joint = zw.Revolute(name, axis=Z)
    return zw.Body(name, joint, parent, position, mass=mass, com=(length / 2, 0, 0), inertia=(thin,) * 3)


torque, stiffness, rest = 1.5, 300.0, 0.7
slider = zw.Body("slider", zw.Prismatic("slide", axis=X), mass=1.5, inertia=(0.01,) * 3)
mechanism = zw.Mechanism(
    "slider-crank",
    [rod("crank", 0.2, 1.2), rod("rod", 0.6, 2.0, "crank", (0.2, 0, 0)), slider],
    gravity=(0, -9.81, 0),
    forces=[zw.Spring("slide", stiffness, rest=rest), zw.Wrench("crank", torque=(0, 0, torque))],
    constraints=[zw.Connect("pin", ("rod", (0.6, 0, 0)), ("slider", (0, 0, 0)))],
)
print(zw.classify(mechanism))
lean = -np.arcsin(0.2 * np.sin(0.5) / 0.6)
q0, v0 = zw.assemble(
    mechanism, [0.5, lean - 0.5, 0.2 * np.cos(0.5) + 0.6 * np.cos(lean)], [6.0, -7.78, -0.75]
)

carried = zw.joint_reactions(mechanism, q0, v0, np.zeros(3))
pin, guide = carried.constraints["pin"]["slider"].force, carried.joints["slide"].force
print(
    f"force on the slider: of the rod ({pin[0]:.4f}, {pin[1]:.4f}) N, "
    f"of the guide and spring ({guide[0]:.4f}, {guide[1]:.4f}) N"
)
balance = pin + guide - [1.5 * carried.acceleration[2], 1.5 * 9.81, 0]
run = zw.simulate(mechanism, q0=q0, v0=v0, duration=2, step=5e-4, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
conserved = [sum(zw.energy(mechanism, q[i], v[i])) - torque * q[i, 0] for i in (0, -1)]
closed = 0.2 * np.cos(q[:, 0]) + np.sqrt(0.36 - 0.04 * np.sin(q[:, 0]) ** 2)
print(f"energy minus the torque's work: {conserved[0]:.9f} J, after 2 s {conserved[1]:.9f} J")
print(f"deviation of the slider from the closed form: {abs(q[:, 2] - closed).max():.1e} m")
assert (
    np.allclose(balance, 0, atol=1e-9)
    and np.isclose(*conserved, atol=1e-7)
    and np.allclose(q[:, 2], closed, atol=1e-12)
)
