"""A sleigh with an elastic rotor inside: a runner that does not slip sideways lets the rotor's swing drive it forward."""

import numpy as np

import zwang as zw

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
hull = zw.Body(
    "hull",
    (zw.Prismatic("x", axis=X), zw.Prismatic("y", axis=Y), zw.Revolute("theta", axis=Z)),
    mass=5,
    inertia=(0.4,) * 3,
)
rotor = zw.Body(
    "rotor", zw.Revolute("delta", axis=Z), parent="hull", mass=1.2, com=(0.35, 0, 0), inertia=(0.05,) * 3
)
sleigh = zw.Mechanism("sleigh", [hull, rotor], gravity=(0, 0, 0), forces=[zw.Spring("delta", (1.2, 0, 0.6))],
                      constraints=[zw.NoSideSlip("runner", "hull", direction=Y, point=(-0.25, 0, 0))])  # fmt: skip

print(zw.classify(sleigh))
run = zw.simulate(sleigh, q0=[0.25, 0, 0, 1.0], duration=20, step=1e-3, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
energies = [sum(zw.energy(sleigh, *state)) for state in ((q[0], v[0]), (q[-1], v[-1]))]
print(
    f"moved {q[-1, 0] - q[0, 0]:.4f} m forward in 20 s; energy {energies[0]:.9f} J, then {energies[1]:.9f} J"
)
assert np.isclose(*energies, rtol=1e-7)
