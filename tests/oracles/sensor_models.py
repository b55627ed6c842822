"""A model with sensors of every kind, and random states of it."""

from __future__ import annotations

import mujoco
import numpy as np

MODEL = """
<mujoco>
<option timestep="0.003" cone="{cone}" iterations="300" tolerance="1e-15" ls_tolerance="1e-10"
  jacobian="dense" magnetic="1 2 3" ccd_tolerance="1e-13" ccd_iterations="200"/>
<worldbody>
  <camera name="eye" pos="1 -3 1.5" xyaxes="1 .2 0 0 .3 1" fovy="40" resolution="320 240"/>
  <geom name="floor" type="plane" size="5 5 1"/>
  <geom name="post" type="cylinder" size=".2 .5" pos="2 .1 .4" euler="10 30 0"/>
  <site name="w" pos=".3 0 1.1" euler="10 20 30"/>
  <body name="a" pos="0 0 1" euler="20 0 100">
    <joint name="ja" axis="0 1 0" damping=".1" range="-20 30" limited="true" margin=".2" armature=".03"/>
    <geom name="ga" size=".05" mass="1" pos=".2 0 0"/><site name="sa" pos=".1 .05 0" euler="30 40 0"/>
    <body name="b" pos=".4 0 0"><joint name="jb" type="ball" range="0 40" limited="true"/>
      <geom name="gb" type="box" size=".1 .05 .03" mass=".7" pos=".1 0 .02" euler="0 30 20"/>
      <site name="sb" pos=".1 0 0" euler="10 0 50"/>
      <camera name="hand" pos=".1 0 0" euler="90 10 0" focalpixel="300 320" sensorsize=".01 .01"
        resolution="640 480"/>
      <body name="fix" pos="0 .1 0" euler="0 0 40">
        <geom name="gfix" type="capsule" size=".03 .1" mass=".3"/><site name="sfix" pos=".02 .03 .01"/>
        <body name="c" pos=".3 0 .1">
          <joint name="jc" type="slide" axis="1 0 1" ref=".1" range="-.1 .2" limited="true"/>
          <joint name="jd" axis="0 0 1" stiffness="3"/>
          <geom name="gc" size=".04" mass=".5" pos="0 .03 0"/>
          <site name="sc" pos="0 0 .05" size=".1 .1 .1" type="box"/></body></body></body></body>
  <body name="f" pos=".3 .4 .1"><freejoint name="jf"/>
    <geom name="gf" type="box" size=".1 .07 .04" mass="1.3" pos=".01 .02 0" friction=".7 .02 .003"
      condim="6"/>
    <geom name="ge" type="ellipsoid" size=".05 .03 .04" pos="0 0 .1" mass=".1" condim="4"/>
    <site name="sf" pos=".1 .05 -.03" size=".05" euler="40 0 0"/>
    <site name="pad" pos=".1 .05 -.03" size=".2 .06" type="capsule"/>
    <site name="disc" size=".2 .04" type="cylinder"/>
    <site name="egg" size=".2 .3 .1" type="ellipsoid"/><site name="big" size=".3"/></body>
</worldbody>
<contact><exclude body1="a" body2="b"/><exclude body1="b" body2="c"/><exclude body1="a" body2="c"/>
  <exclude body1="fix" body2="c"/></contact>
<tendon>
  <fixed name="t1" range="-.2 .3" limited="true" margin=".1"><joint joint="ja" coef=".7"/>
    <joint joint="jd" coef="-1.2"/></fixed>
  <spatial name="t2" stiffness="10" damping=".3" frictionloss=".4" limited="true" range=".1 .5">
    <site site="w"/><geom geom="post"/><site site="sb"/><geom geom="gc"/><site site="sf"/>
    <pulley divisor="2"/><site site="sa"/><site site="sf"/></spatial>
</tendon>
<equality>{equalities}</equality>
<actuator>
  <motor name="m1" joint="ja" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
  <position name="m2" joint="jd" kp="20" forcelimited="true" forcerange="-2 2"/>
  <velocity name="m3" tendon="t1" kv="3"/><motor name="m4" tendon="t2" gear="1.5"/>
  <motor name="m5" site="sb" gear="1 2 3 .1 .2 .3"/><motor name="m7" joint="jb" gear="1 2 3"/>
  <general name="m6" joint="jc" dyntype="filter" dynprm=".1" gainprm="5"/>
</actuator>
<sensor>{sensors}</sensor></mujoco>"""

EQUALITIES = """<connect body1="c" body2="f" anchor=".02 .01 0"/>
<weld site1="sa" site2="sf" torquescale=".6"/>
<weld body1="fix" relpose=".1 .2 .3 .9 .1 .3 -.2" anchor=".1 0 0"/>
<tendon tendon1="t2" tendon2="t1" polycoef=".1 .5 .2 0 0"/>
<tendon tendon1="t1" tendon2="t2" polycoef="0 1 .3 0 0"/>
"""

SITES = ("sa", "sb", "sfix", "sc", "sf", "w")
SHAPES = ("floor", "post", "ga", "gb", "gc", "gf", "gfix", "ge")
FRAMES = (("body", "b"), ("xbody", "fix"), ("geom", "gc"), ("site", "sf"), ("camera", "hand"),
          ("body", "world"), ("xbody", "f"))  # fmt: skip
REFERENCES = ("", 'reftype="site" refname="sb"', 'reftype="body" refname="f"',
              'reftype="camera" refname="eye"')  # fmt: skip
CONTACTS = ('geom1="gf"', 'body1="f"', 'body2="f"', 'subtree1="a"', 'subtree2="b" geom1="floor"',
            'site="big"', "", 'body1="world" body2="f"')  # fmt: skip


def mounted_sensors() -> list[str]:
    """Sensors at sites, those of forces included."""
    found = [f'<torque site="{site}"/>' for site in SITES[:-1]]
    for kind in ("accelerometer", "velocimeter", "gyro", "force", "magnetometer"):
        found += [f'<{kind} site="{site}"/>' for site in SITES]
    found += ['<force site="sa" cutoff="2"/>', '<touch site="big" cutoff="1"/>']
    return found + [f'<touch site="{site}"/>' for site in ("sf", "pad", "sc", "big", "disc", "egg")]


def coordinate_sensors() -> list[str]:
    """Sensors of joints, tendons and actuators, and the global ones."""
    found = []
    for target, names, free in (("joint", ("ja", "jc", "jd"), "jd"), ("tendon", ("t1", "t2"), "")):
        for name in names:
            kinds = ("pos", "vel", "actuatorfrc", "limitpos", "limitvel", "limitfrc")
            found += [f'<{target}{kind} {target}="{name}"/>' for kind in kinds[: 3 if name == free else 6]]
    found += [f'<{kind} joint="jb"/>' for kind in ("ballquat", "ballangvel", "jointlimitpos",
                                                   "jointlimitvel", "jointlimitfrc")]  # fmt: skip
    for k in range(1, 8):
        found += [f'<actuator{kind} actuator="m{k}"/>' for kind in ("pos", "vel", "frc")]
    return [*found, "<clock/>", "<e_potential/>", "<e_kinetic/>", '<user dim="4"/>']


def frame_sensors() -> list[str]:
    """Sensors of frames and subtrees."""
    found = []
    for kind, name in FRAMES:
        for reference in REFERENCES:
            quantities = ["pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel"]
            quantities += [] if reference else ["linacc", "angacc"]
            found += [f'<frame{x} objtype="{kind}" objname="{name}" {reference}/>' for x in quantities]
    for body in ("world", "a", "b", "f", "fix"):
        found += [f'<subtree{x} body="{body}"/>' for x in ("com", "linvel", "angmom")]
    return found


def geometry_sensors() -> list[str]:
    """Rays, projections, zones and distances."""
    found = ['<rangefinder site="sa" data="dist dir origin point"/>',
             '<distance geom1="gf" geom2="floor" cutoff="1e-4"/>']  # fmt: skip
    found += [f'<rangefinder site="{site}" cutoff="{x}"/>' for site in ("sa", "sb", "sc") for x in (0.1, 0.4)]
    for site in ("sa", "sb", "sc", "sf", "w"):
        found += [f'<rangefinder site="{site}"/>', f'<camprojection site="{site}" camera="eye"/>',
                  f'<camprojection site="{site}" camera="hand"/>']  # fmt: skip
    for zone in ("sc", "big", "pad", "disc", "egg"):
        found += [f'<insidesite site="{zone}" objtype="geom" objname="{name}"/>' for name in ("gf", "gc")]
    for i, one in enumerate(SHAPES):
        for two in SHAPES[i + 1 :]:
            found += [f'<{kind} geom1="{one}" geom2="{two}" cutoff="{cutoff}"/>'
                      for kind in ("distance", "normal", "fromto") for cutoff in ("10", "0")]  # fmt: skip
    return [
        *found,
        '<distance body1="f" body2="a" cutoff="3"/>',
        '<normal body1="world" body2="f" cutoff="3"/>',
    ]


def contact_sensors(reductions: tuple[str, ...] = ("none", "mindist", "maxforce", "netforce")) -> list[str]:
    """Contact sensors with every reduction and condition."""
    data = 'data="found force torque dist pos normal tangent"'
    found = [
        f'<contact {chosen} {data} reduce="{reduce}" num="3"/>'
        for reduce in reductions
        for chosen in CONTACTS
    ]
    return [*found, '<contact geom1="gf" geom2="floor" data="found"/>']


def model_text(sensors: list[str], cone: str = "pyramidal", equalities: str = "") -> str:
    """The model with these sensors, the friction cone and the equalities."""
    return MODEL.format(sensors="\n".join(sensors), cone=cone, equalities=equalities)


def random_data(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A random state, velocity, control, activation and time, with the sensor data of MuJoCo."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * 0.3, 1)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.normal(size=model.nu)
    data.act[:] = rng.normal(size=model.na)
    data.time = 0.7
    mujoco.mj_forward(model, data)
    return data
