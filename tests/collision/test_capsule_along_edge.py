"""A capsule nearly along an edge of a box: MuJoCo's contacts for every tilt."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from zwang.collision.shapes import PlacedShape
from zwang.collision.sphere_capsule_box import capsule_box

BOX, CAPSULE = np.array([0.146, 0.09, 0.056]), np.array([0.0525, 0.172])


@pytest.mark.parametrize("scale", [10.0, 1.0, 0.1, 0.05])
def test_contacts_are_mujocos(scale):
    box, capsule = BOX * scale, CAPSULE * scale
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><geom type='box' size='{' '.join(map(str, box))}'/><body><freejoint/>"
        f"<geom type='capsule' size='{capsule[0]} {capsule[1]}' mass='1'/></body></worldbody></mujoco>"
    )
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    for tilt in (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.1):
        for _ in range(10):
            angle = rng.uniform(0.2, 1.3)
            at = box * [rng.uniform(-0.7, 0.7), 1, 1] + 0.8 * capsule[0] * np.array(
                [0, np.cos(angle), np.sin(angle)]
            )
            turn = Rotation.from_rotvec([0, *(rng.uniform(-1, 1, 2) * tilt)]) * Rotation.from_euler(
                "y", np.pi / 2
            )
            data.qpos[:] = [*at, *np.roll(turn.as_quat(), 1)]
            mujoco.mj_forward(model, data)
            shapes = [
                PlacedShape(sizes, data.geom_xmat[k].reshape(3, 3), data.geom_xpos[k])
                for sizes, k in ((capsule, 1), (box, 0))
            ]
            found = [point for point in capsule_box(*shapes, 0.0) if point.distance < 0]
            assert len(found) == data.ncon
            distances = sorted(point.distance for point in found)
            np.testing.assert_allclose(distances, sorted(data.contact.dist), rtol=0, atol=1e-10 * scale)
