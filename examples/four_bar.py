"""A chain of parallelogram four-bars (IFToMM A02) passes its singular flat positions, where the constraints
lose rank.
"""

import numpy as np

import zwang as zw

Z = (0, 0, 1)


def rod(name, parent="world", position=(0, 0, 0)):
    return zw.Body(
        name, zw.Revolute(name, axis=Z), parent, position, mass=1, com=(0.5, 0, 0), inertia=(1 / 12,) * 3
    )


bars = [rod("crank 0")]
pins = []
for k in (1, 2):
    bars += [rod(f"coupler {k}", f"crank {k - 1}", (1, 0, 0)), rod(f"crank {k}", "world", (k, 0, 0))]
    pins.append(zw.Connect(f"pin {k}", (f"coupler {k}", (1, 0, 0)), (f"crank {k}", (1, 0, 0))))
mechanism = zw.Mechanism("four-bars", bars, gravity=(0, -9.81, 0), constraints=pins)
cranks = np.array(["crank" in name for name in mechanism.coordinate_names])
run = zw.simulate(
    mechanism,
    q0=np.where(cranks, 1, -1) * np.pi / 2,
    v0=np.where(cranks, -1.0, 1.0),
    duration=3,
    step=1e-3,
    integrator="rk4",
)
phi = run.q.values[0][:, 0]
error = [sum(zw.energy(mechanism, run.q.values[0][k], run.v.values[0][k])) for k in (0, -1)]
print(
    f"the first crank at 3 s: ({np.cos(phi[-1]):.6f}, {np.sin(phi[-1]):.6f}); "
    "IFToMM A02: (-0.549340, -0.835599)"
)
print(f"energy error {error[1] - error[0]:.2e} J")
assert np.allclose([np.cos(phi[-1]), np.sin(phi[-1])], [-0.5493397393, -0.8355990970], atol=1e-8)
assert abs(error[1] - error[0]) < 1e-8
