"""The warm start saves iterations and changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw


def ball_on_ground(links: int) -> zw.Mechanism:
    """A ball that slides up and down over the ground, with light links attached, which add that many
    velocities.
    """
    slide = zw.Prismatic("up", axis=(0, 0, 1))
    bodies = [zw.Body("ball", position=(0, 0, 0.1), joint=slide, mass=1.0, geometry=[zw.Sphere(radius=0.1)])]
    for k in range(links):
        joint = zw.Revolute(f"turn {k}", axis=(1, 0, 0))
        bodies.append(
            zw.Body(
                f"link {k}",
                parent=bodies[-1].name,
                joint=joint,
                mass=0.1,
                com=(0, 0, 0.1),
                inertia=(0.01,) * 3,
            )
        )
    return zw.Mechanism("ball on the ground", bodies, geometry=[zw.Plane()], gravity=(0, 0, -9.81))


@pytest.mark.parametrize(("integrator", "links"), [("euler", 0), ("euler", 23), ("rk4", 0)])
def test_a_row_that_becomes_active_again_is_found(integrator, links):
    """Pulled off the ground in one step, pressed onto it in the next: the stored status is wrong and is
    corrected.
    """
    m = ball_on_ground(links)
    fast, control = zw.compile(m), np.zeros((6, m.nv))
    control[0, 0], control[1:, 0] = 100.0, -50.0
    q, v = np.zeros(m.nq), np.zeros(m.nv)
    q[0] = -0.001
    run = fast.rollout(q, v, control, steps=6, step=1e-4, integrator=integrator)
    for k in range(6):
        q, v, _ = fast.step(q, v, control[k], step=1e-4, integrator=integrator)
        np.testing.assert_allclose(run.v[k], v, rtol=1e-11, atol=1e-13)
