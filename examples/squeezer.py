"""Andrews' squeezing mechanism: seven bars, three loops, one degree of freedom; angles after 0.03 s."""

import numpy as np

import zwang as zw

A, B, Z = (-0.06934, -0.00227, 0), (-0.03635, 0.03273, 0), (0, 0, 1)


def bar(name, mass, inertia, com, position=(0, 0, 0), parent="world"):
    return zw.Body(
        name, zw.Revolute(name, axis=Z), parent, position, mass=mass, com=(*com, 0), inertia=(inertia,) * 3
    )


bars = [
    bar("K1", 0.04325, 2.194e-6, (0.00092, 0)),
    bar("K2", 0.00365, 4.410e-7, (-0.0115, 0), (0.007, 0, 0), "K1"),
    bar("K3", 0.02373, 5.255e-6, (0.01043, -0.01874), B),
    bar("K5", 0.07050, 1.169e-5, (0.02308, 0.00916), A),
    bar("K4", 0.00706, 5.667e-7, (0, -0.00579), (0.04, 0, 0), "K5"),
    bar("K7", 0.05498, 1.912e-5, (-0.00449, -0.01228), A),
    bar("K6", 0.00706, 5.667e-7, (0.00579, 0), (0, -0.04, 0), "K7"),
]
ends = {"K3": (0, -0.035, 0), "K4": (0, -0.02, 0), "K6": (0.02, 0, 0)}
squeezer = zw.Mechanism(
    "squeezer",
    bars,
    gravity=(0, 0, 0),
    constraints=[
        zw.Connect(f"pin of {name}", ("K2", (-0.028, 0, 0)), (name, end)) for name, end in ends.items()
    ],
    forces=[
        zw.PointSpring(("K3", (0.02, -0.018, 0)), ("world", (0.014, 0.072, 0)), 4530.0, length=0.07785),
        zw.Wrench("K1", torque=(0, 0, 0.033)),
    ],
)
start = {
    "K1": -0.0617138900142764,
    "K2": 0,
    "K3": 0.455279819163070,
    "K4": 0.222668390165886,
    "K5": 0.487364979543843,
    "K6": -0.222668390165886,
    "K7": 1.23054744454982,
}
published = {
    "K1": 15.81077119629904,
    "K2": -15.75637105984298,
    "K3": 0.04082224013073101,
    "K4": -0.5347301163226948,
    "K5": 0.5244099658805303,
    "K6": 0.5347301163226948,
    "K7": 1.048080741042263,
}
names = squeezer.coordinate_names
q0, v0 = zw.assemble(squeezer, [start[name] for name in names])
run = zw.simulate(squeezer, q0=q0, v0=v0, duration=0.03, step=1e-5, integrator="rk4")
q, v = run.q.values[0], run.v.values[0]
conserved = [sum(zw.energy(squeezer, q[i], v[i])) - 0.033 * q[i, 0] for i in (0, -1)]
for k, name in enumerate(names):
    print(f"{name}: {q[-1, k]:+.9f} rad, test set {published[name]:+.9f} rad")
print(f"energy minus the torque's work: {conserved[0]:.9f} J, after 0.03 s {conserved[1]:.9f} J")
assert np.allclose(q[-1], [published[name] for name in names], rtol=1e-6) and np.isclose(
    *conserved, rtol=1e-7
)
