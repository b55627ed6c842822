"""Task accelerations of a planar arm by Gauss's principle: the joint accelerations nearest to the
unconstrained ones.
"""

import numpy as np

import zwang as zw

links, parent, at = [], "world", (0, 0, 0)
for k, length in enumerate((0.5, 0.4, 0.3)):
    hinge = zw.Revolute(f"q{k + 1}", axis=(0, 0, 1))
    links.append(
        zw.Body(f"link {k + 1}", hinge, parent, at, mass=1 + k, com=(length / 2, 0, 0), inertia=(0.02,) * 3)
    )
    parent, at = f"link {k + 1}", (length, 0, 0)
arm = zw.Mechanism("3R", links, gravity=(0, -9.81, 0), frames=[zw.Frame("tool", parent, at)])
q, v, tau, desired = [0.4, 0.7, -0.5], [0.3, -0.2, 0.5], [1.0, 0.5, 0.2], [0.5, -0.2]

found = zw.task_acceleration(arm, q, v, tau, "tool", desired, rows=(0, 1))
J = zw.frame_jacobian(arm, q, "tool")[:2]
reached = J @ found.acceleration + zw.frame_jacobian_rate(arm, q, v, "tool")[:2]
print("free accelerations:     ", found.free.round(6))
print("with the task:          ", found.acceleration.round(6), "acceleration of the tool", reached.round(12))
print("force at the tool:      ", found.force.round(6), "N, torques", found.generalised_force.round(6), "N m")
print(f"Gauss's constraint Z:    {found.zwang:.6f}")
assert np.allclose(reached, desired)
assert np.allclose(zw.forward_dynamics(arm, q, v, tau + found.generalised_force), found.acceleration)
# Any other acceleration that fulfils the task has a larger Z: add an acceleration in the null space of J
null_space = np.linalg.svd(J)[2][2]
for step in (-0.1, 0.1):
    other = found.acceleration + step * null_space
    d = other - found.free
    assert d @ zw.mass_matrix(arm, q) @ d / 2 > found.zwang
# A thousand worlds at a time, compiled
rng = np.random.default_rng(0)
many = zw.task_acceleration(arm, q + 0.3 * rng.normal(size=(1000, 3)), v, tau, "tool", desired, rows=(0, 1))
print("largest task residual of a thousand arms:", f"{np.abs(many.residual).max():.1e} m/s^2")
assert np.abs(many.residual).max() < 1e-8
