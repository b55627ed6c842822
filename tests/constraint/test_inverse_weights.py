"""Inverse weights of bodies, degrees of freedom and tendons, and the R computed from them, against MuJoCo's
compiler.
"""

from collections import Counter

import mujoco
import numpy as np
import pytest

import zwang as zw
from tests.oracles.mujoco_models import RandomTree
from zwang.constraint.inverse_weights import inverse_weights
from zwang.io.mjcf.read.read_mjcf import read_mjcf


def compared_weights(text):
    """Asserts that all inverse weights of a model are MuJoCo's; returns MuJoCo's model."""
    mechanism, model = read_mjcf("tree.xml", text=text), mujoco.MjModel.from_xml_string(text)
    found, scale = inverse_weights(mechanism), max(1e-3, np.abs(model.body_invweight0).max())
    for body, theirs in zip(mechanism.bodies, model.body_invweight0[1:], strict=True):
        np.testing.assert_allclose(
            found.bodies[body.name], theirs, rtol=1e-9, atol=1e-14 * scale, err_msg=body.name
        )
    np.testing.assert_allclose(np.array(found.speeds, float), model.dof_invweight0, rtol=1e-9)
    theirs = [model.tendon_invweight0[model.tendon(name).id] for name in found.tendons]
    np.testing.assert_allclose(np.array(list(found.tendons.values()), float), theirs, rtol=1e-9)
    return model


def test_inverse_weights_of_random_trees_are_mujocos():
    seen = Counter()
    for seed in range(180):
        model = compared_weights(RandomTree(seed).text)
        seen.update(f"joint {kind}" for kind in model.jnt_type.tolist())
        seen.update(f"simple {level}" for level in model.body_simple[1:].tolist())
        moving = model.body_weldid[1:] > 0
        seen["no translation"] += int((model.body_invweight0[1:, 0][moving] < 1e-12).sum())
        seen["no rotation"] += int((model.body_invweight0[1:, 1][moving] < 1e-12).sum())
        seen["tendon"] += model.ntendon
        seen["fixed"] += int((~moving).sum())
    assert len(seen) == 11 and min(seen.values()) > 15, seen


def test_a_massless_body_has_its_weight_where_mujoco_has_it(tmp_path):
    """There the inertial frame is at the body's position in its parent, as of the hand of Meta-World's
    Sawyer; written, it is where the mechanism has it.
    """
    text = """<mujoco><compiler inertiagrouprange="4 5"/><worldbody>
      <body name="wrist" pos="0 0 1"><joint axis="0 1 0"/><geom size=".1" group="4"/>
        <body name="hand" pos=".2 .1 .3" euler="20 30 40"><geom size=".05"/></body></body>
    </worldbody><equality><weld body1="hand" body2="world"/></equality></mujoco>"""
    model = compared_weights(text)
    assert model.body_mass[2] == 0 and np.allclose(model.body_ipos[2], model.body_pos[2])
    moved = zw.Mechanism(
        "moved",
        [
            zw.Body("wrist", zw.Revolute("bend", axis=(0, 1, 0)), mass=1, inertia=(1, 1, 1)),
            zw.Body("hand", parent="wrist", position=(0.2, 0.1, 0.3)),
        ],
    )
    for m in (zw.load("model.xml", text=text), moved):
        zw.write_mjcf(m, tmp_path / "written.xml", strict=False)
        theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml")).body_invweight0[2]
        np.testing.assert_allclose(inverse_weights(m).bodies["hand"], theirs, rtol=1e-12)


OPTION = '<option iterations="500" tolerance="1e-15" ls_tolerance="1e-10" cone="{cone}"/>'

FINGER = """<mujoco>{option}<worldbody>
  <body pos="-.2 0 .4"><joint name="proximal" axis="0 -1 0" range="-110 110" damping="2.5"/>
    <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.17"/>
    <body pos="0 0 -.18"><joint name="distal" axis="0 -1 0" range="-110 110" armature=".01"/>
      <geom type="capsule" size=".028" fromto="0 0 0 0 0 -.16"/></body></body>
  <body name="spinner" pos="0 0 .2"><joint name="hinge" axis="0 -1 0" damping=".5" frictionloss=".1"/>
    <geom type="capsule" fromto=".02 0 0 .02 0 .1" size=".045"/>
    <geom type="capsule" fromto="-.02 0 0 -.02 0 .1" size=".045"/>
    <inertial pos="0 0 0" mass=".8" diaginertia=".002 .003 .001"/></body>
</worldbody></mujoco>"""

CUP = """<mujoco>{option}<worldbody>
  <body name="cup" pos="0 0 .6"><joint name="cx" type="slide" axis="1 0 0" damping="3" range="-.2 .2"/>
    <joint name="cz" type="slide" axis="0 0 1" damping="3"/><site name="s" pos="0 0 -.108"/>
    <geom type="capsule" fromto="-.08 0 0 -.07 0 -.1" size=".01"/>
    <geom type="capsule" fromto=".08 0 0 .07 0 -.1" size=".01"/>
    <geom type="capsule" fromto="-.07 0 -.1 .07 0 -.1" size=".01"/></body>
  <body name="ball" pos="0 0 .53"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
    <geom size=".025" condim="4"/><site name="b"/></body>
</worldbody>
<tendon><spatial name="string" limited="true" range="0 .05" width=".003">
  <site site="b"/><site site="s"/></spatial></tendon></mujoco>"""

PUSHER = """<mujoco>{option}<worldbody><geom type="plane" size="3 3 1" pos="0 0 -.05"/>
  <body pos="0 0 0"><joint axis="0 0 1" range="-90 90" armature=".04"/>
    <geom type="capsule" fromto="0 0 .05 .3 0 .05" size=".05"/>
    <body pos=".3 0 0"><joint axis="0 0 1" armature="1"/>
      <geom type="capsule" fromto="0 0 0 .1 .1 0" size=".06"/></body></body>
  <body pos=".45 -.05 0"><joint type="slide" axis="1 0 0" range="-.01 .1" damping=".5" armature=".6"/>
    <joint type="slide" axis="0 1 0" range="-.1 .01" damping=".5" frictionloss=".2" armature=".6"/>
    <geom type="cylinder" size=".05 .05" density="1" contype="1" conaffinity="0"/></body>
</worldbody></mujoco>"""

AXLE = """<mujoco>{option}<worldbody><geom type="plane" size="3 3 1"/>
  <body pos="0 0 .49"><joint axis="0 1 0" armature=".1"/><geom type="sphere" size=".5" mass="2"/></body>
  <body pos="2 0 .19"><joint type="slide" axis="0 0 1"/><geom type="box" size=".2 .2 .2" mass="1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(
    ("text", "spread"), [(FINGER, 0.7), (CUP, 0.05), (PUSHER, 0.05), (AXLE, 0.02)],
    ids=["finger", "ball in a cup", "pusher", "wheel on an axle"],
)  # fmt: skip
def test_constrained_accelerations_are_mujocos(text, spread, cone):
    text = text.format(option=OPTION.format(cone=cone))
    mechanism, model = read_mjcf("model.xml", text=text), compared_weights(text)
    data, rng, rows = mujoco.MjData(model), np.random.default_rng(2), 0
    for _ in range(12):
        mujoco.mj_resetData(model, data)
        data.qpos[:] += spread * rng.normal(size=model.nq)
        data.qvel[:] = rng.normal(size=model.nv)
        for _ in range(5):  # warm starts from its own solution, until it reaches its tolerance
            mujoco.mj_forward(model, data)
            data.qacc_warmstart[:] = data.qacc
        found = zw.constrained_dynamics(mechanism, data.qpos, data.qvel, np.zeros(model.nv))
        assert len(found.rows) == data.nefc
        if data.nefc:
            R, theirs = np.sort(found.rows.R.astype(float)), np.sort(data.efc_R)
            resolved = theirs > 1e-14  # otherwise R is 1e-9 of the diagonal of J M^-1 J^T
            np.testing.assert_allclose(R[resolved], theirs[resolved], rtol=1e-8)
            A = found.rows.J @ np.linalg.solve(zw.mass_matrix(mechanism, data.qpos), found.rows.J.T)
            assert (R[~resolved] < 1e-8 * np.abs(A).max()).all()
        scale = max(1, np.abs(data.qacc).max())
        np.testing.assert_allclose(found.acceleration, data.qacc, atol=1e-7 * scale)
        rows += data.nefc
    assert rows > 20


def test_the_penetration_of_a_body_on_one_prismatic_joint():
    """The inverse weight of a body with one degree of freedom is that of its mass."""
    choice = zw.Softness((0.03, 0.9), (0.6, 0.9, 0.01, 0.5, 2))
    surface = zw.Surface(condim=1, solref=choice.solref, solimp=choice.solimp)
    weight = zw.Body("weight", joint=zw.Prismatic("z"), mass=3, inertia=(0.1, 0.1, 0.1),
                     geometry=[zw.Sphere(radius=0.1, surface=surface)])  # fmt: skip
    mechanism = zw.Mechanism(bodies=[weight], geometry=[zw.Plane(position=(0, 0, -0.1), surface=surface)])
    expected = zw.softness(choice, mass=3).penetration
    found = zw.constrained_dynamics(mechanism, [-expected], [0], [0])
    assert expected > 1e-4 and abs(found.acceleration[0]) < 1e-9
    run = zw.simulate(mechanism, [-expected / 2], duration=2.0, step=0.002)
    assert run.q.values.reshape(-1)[-1] == pytest.approx(-expected, rel=1e-3)


def test_the_attribute_simple_of_bodies_is_kept_in_json():
    slide = '<joint type="slide" armature="3"/><inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .25"/>'
    text = (
        f'<mujoco><worldbody><body name="a" simple="false">{slide}</body><body name="b">{slide}</body>'
        "</worldbody></mujoco>"
    )
    mechanism = read_mjcf("slides.xml", text=text)
    again = zw.Mechanism.from_json(mechanism.to_json())
    assert again == mechanism and [body.simple for body in again.bodies] == [False, None]
    assert inverse_weights(again).bodies == {"world": (0, 0), "a": (1 / 15, 0), "b": (0.5, 0)}


def test_the_attribute_simple_of_bodies_is_kept_in_mjcf(tmp_path):
    """MuJoCo's rule says that "c" is not simple, as its inertia is given in turned axes; once written, the
    inertia is in the axes of the body.
    """
    slide = '<joint type="slide" axis="1 0 0"/>'
    text = (
        f'<mujoco><worldbody><body name="a" simple="false">{slide}<geom size=".1"/></body>'
        f'<body name="b">{slide}<geom size=".1"/></body>'
        f'<body name="c">{slide}<geom type="cylinder" size=".07 .1" zaxis="0 1 0"/></body>'
        "</worldbody></mujoco>"
    )
    mechanism, path = read_mjcf("slides.xml", text=text), tmp_path / "slides.xml"
    zw.write_mjcf(mechanism, path)
    expected = mujoco.MjModel.from_xml_string(text)
    assert list(expected.body_simple == 2) == [False, False, True, False]
    written = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_array_equal(written.body_simple, expected.body_simple)
    np.testing.assert_allclose(written.body_invweight0, expected.body_invweight0, rtol=1e-14, atol=0)
    assert inverse_weights(zw.load(path)).bodies == inverse_weights(mechanism).bodies


def test_inverse_weights_of_a_mass_matrix_that_is_singular_at_home_are_mujocos(tmp_path, monkeypatch):
    """Z-X-Z angles: the first and the last axis are the same at home."""
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its warning
    compared_weights("""<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia=".15 .15 .1"/>
    <joint name="psi" axis="0 0 1"/><joint name="theta" axis="1 0 0"/><joint name="phi" axis="0 0 1"/>
    </body></worldbody></mujoco>""")
