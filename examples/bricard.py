"""Bricard's linkage: six hinged bars along the edges of a cube; the mobility formula says rigid, but the loop
moves.
"""

import numpy as np

import zwang as zw

Z, QUARTER = (0, 0, 1), np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # a rotation by 90 degrees about the bar

bars, parent, at, turn = [], "world", (0, 0, 0), np.eye(3)
for k in range(5):
    hinge = zw.Revolute(f"hinge {k}", axis=Z)
    bars.append(
        zw.Body(f"bar {k}", hinge, parent, at, turn, mass=1, com=(0.5, 0, 0), inertia=(1e-4, 1 / 12, 1 / 12))
    )
    parent, at, turn = f"bar {k}", (1, 0, 0), (QUARTER if k % 2 == 0 else QUARTER.T)
on_axis = np.array(at) + turn @ Z
mechanism = zw.Mechanism(
    "bricard",
    bars,
    gravity=(0, -9.81, 0),
    constraints=[
        zw.Connect("last hinge", (parent, at), ("world", (-1, 0, 0))),
        zw.Connect("its axis", (parent, on_axis), ("world", (-1, -1, 0))),
    ],
)
q0, v0 = zw.assemble(mechanism, np.array([1, -1, 1, -1, 1]) * np.pi / 2, [0.1] * 5)
J = zw.constrained_dynamics(mechanism, q0, v0, np.zeros(5)).rows.J
freedom = 5 - np.linalg.matrix_rank(J, tol=1e-9)
print(f"five joints in the tree, {len(J)} constraint rows, {freedom} degree of freedom")

run = zw.simulate(mechanism, q0=q0, v0=v0, duration=10, step=1e-3, integrator="rk4", record=10)
q, v = run.q.values[0], run.v.values[0]
c = np.cos(q[:, :2])
law = np.abs(
    c[:, 0] + c[:, 1] + c[:, 0] * c[:, 1]
).max()  # Chen, You and Tarnai (2005), for twist angles of 90 degrees
energy = np.array([sum(zw.energy(mechanism, *state)) for state in zip(q, v, strict=True)])
print(f"hinge 1 moves from {np.degrees(q[:, 1].min()):.1f} to {np.degrees(q[:, 1].max()):.1f} degrees")
print(f"closed form cos a + cos b + cos a cos b = 0 satisfied to {law:.1e}, energy to {np.ptp(energy):.1e} J")
assert freedom == 1 and np.ptp(q[:, 1]) > np.radians(239)
assert law < 1e-12 and np.ptp(energy) < 1e-7
