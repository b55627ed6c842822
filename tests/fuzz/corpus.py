"""Base files of mutants: small files with most features of each format, and examples of the repository."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import zwang as zw
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.samples import SAMPLES

ROOT = Path(__file__).parents[2]
LARGEST = 40_000  # bytes of a base file; larger files would only be slower
ENDINGS = {".urdf": "urdf", ".xml": "mjcf", ".json": "json"}

TETRA = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], dtype="<f4")
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
PART = (
    '<mujoco><worldbody><body name="part" pos="0 3 0"><freejoint/><geom size="0.1"/></body>'
    "</worldbody></mujoco>"
)

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry><material name="grey"/></visual>
  </link>
  <link name="upper">
    <inertial><origin xyz="0 0 0.2" rpy="0 0.1 0"/><mass value="2"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0.001" ixz="0" iyz="0"/></inertial>
    <collision name="c"><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry>
    </collision>
    <visual><geometry><mesh filename="tetra.stl" scale="0.1 0.1 0.1"/></geometry></visual>
  </link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="finger_a"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial>
  </link>
  <link name="finger_b"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <origin xyz="0 0 0.1" rpy="0 0 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="10" velocity="2"/>
    <dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
  <axis xyz="0 1 0"/></joint>
  <joint name="a" type="prismatic"><parent link="lower"/><child link="finger_a"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.04" effort="5" velocity="0.1"/></joint>
  <joint name="b" type="prismatic"><parent link="lower"/><child link="finger_b"/><axis xyz="1 0 0"/>
    <limit lower="-0.04" upper="0" effort="5" velocity="0.1"/><mimic joint="a" multiplier="-1" offset="0"/>
    </joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 0.3"/></joint>
</robot>
"""

MJCF = """<mujoco model="everything">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" integrator="implicitfast" cone="elliptic" iterations="50" tolerance="1e-8"
    impratio="2" gravity="0 0 -9.81"/>
  <default><geom friction="0.8 0.01 0.001" solref="0.02 1" solimp="0.9 0.95 0.001 0.5 2"/>
  <joint damping="0.1" armature="0.01"/>
    <default class="soft"><geom solref="-500 -10" condim="4"/></default></default>
  <asset><mesh name="tetra" file="tetra.stl" scale="0.2 0.2 0.2"/><material name="blue" rgba="0 0 1 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <light pos="0 0 3"/>
    <site name="anchor" pos="0 0 2"/>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/>
      <geom name="trunk" type="capsule" fromto="-0.2 0 0 0.2 0 0" size="0.08" mass="3"/>
      <site name="hook" pos="0 0 0.1"/>
      <body name="thigh" pos="0.2 0 0" quat="1 0 0 0">
        <joint name="hip" type="hinge" axis="0 1 0" range="-1 1" stiffness="5" frictionloss="0.1"
          solreflimit="0.02 1"/>
        <geom class="soft" type="box" size="0.05 0.05 0.2" pos="0 0 -0.2"/>
        <body name="shank" pos="0 0 -0.4"><joint name="knee" type="hinge" axis="0 1 0" range="-2 0"/>
          <joint name="twist" type="slide" axis="0 0 1" range="-0.05 0.05"/>
          <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.002"/>
          <geom name="foot" size="0.06" pos="0 0 -0.4"/><site name="toe" pos="0 0 -0.4"/></body></body>
      <body name="head" pos="-0.3 0 0"><joint name="neck" type="ball" range="0 0.5"/>
        <geom type="ellipsoid" size="0.1 0.08 0.06"/><geom type="mesh" mesh="tetra" contype="0"
          conaffinity="0" material="blue"/></body>
    </body>
    <body name="bob" pos="1 0 1" mocap="false"><joint name="swing" type="hinge" axis="0 1 0" pos="0 0 0.5"/>
    <geom size="0.1"/></body>
  </worldbody>
  <tendon><fixed name="belt" range="-1 1"><joint joint="hip" coef="1"/><joint joint="knee" coef="-0.5"/>
  </fixed>
    <spatial name="rope" stiffness="10" springlength="1"><site site="anchor"/><site site="hook"/></spatial>
    </tendon>
  <equality><joint name="gear" joint1="twist" joint2="knee" polycoef="0 0.1 0 0 0"/>
    <connect name="pin" body1="bob" anchor="0 0 0.5" solref="0.01 1"/>
    <tendon tendon1="belt" active="false"/></equality>
  <contact><exclude body1="thigh" body2="shank"/><pair geom1="foot" geom2="floor"
    friction="1 1 0.01 0.001 0.001"/></contact>
  <actuator><motor name="m" joint="hip" gear="20" ctrlrange="-1 1"/><position name="p" joint="knee" kp="10"/>
    <general name="g" tendon="belt" dyntype="filter" dynprm="0.1" gainprm="5"/>
    <muscle name="u" joint="swing" lengthrange="0.1 1"/></actuator>
  <sensor><jointpos joint="hip"/></sensor>
  <keyframe><key name="stand" qpos="0 0 1 1 0 0 0 0 0 0 1 0 0 0 0"/></keyframe>
</mujoco>
"""


class Base(NamedTuple):
    """A base file of mutants; kind: "urdf", "mjcf" or "json"."""

    name: str
    kind: str
    data: bytes


def everything() -> Mechanism:
    """A mechanism with parts of every kind, so that its JSON text contains all of them."""
    mesh = zw.Mesh(vertices=TETRA * 0.25, faces=FACES, name="tetra")
    solid = {"mass": 1, "com": (0, 0, -0.2), "inertia": (0.1, 0.1, 0.1)}
    bodies = [
        zw.Body(
            "arm",
            zw.Revolute("arm", axis=(0, 1, 0), limits=(-1, 1), friction=0.1),
            geometry=(zw.Sphere(0.1, name="s"),),
            **solid,
        ),
        zw.Body(
            "hand", zw.Revolute("hand"), "arm", (0, 0, -0.4), geometry=(mesh, zw.Box(0.1, 0.2, 0.3)), **solid
        ),
        zw.Body(
            "cart",
            zw.Prismatic("cart", axis=(1, 0, 0)),
            geometry=(zw.Cylinder(0.1, 0.2), zw.Ellipsoid(0.1, 0.2, 0.3)),
            **solid,
        ),
        zw.Body(
            "ball", zw.Free("ball"), position=(0, 2, 1), geometry=(zw.Capsule(0.1, 0.2, name="c"),), **solid
        ),
        zw.Body("puck", zw.Planar("puck"), position=(0, 4, 0), **solid),
        zw.Body("nut", zw.Screw("nut", pitch=0.1), position=(0, 6, 0), **solid),
        zw.Body("fork", zw.Universal("fork"), position=(0, 8, 0), **solid),
        zw.Body("rod", zw.Cylindrical("rod"), position=(0, 10, 0), **solid),
        zw.Body("eye", (zw.Ball("eye", limits=(0, 1)),), position=(0, 12, 0), **solid),
    ]
    return zw.Mechanism(
        "everything",
        bodies,
        geometry=(zw.Plane(name="floor", surface=zw.Surface(friction=(0.5, 0.01, 0))),),
        frames=[zw.Frame("tip", "hand", (0, 0, -0.3)), zw.Frame("post", "world", (1, 0, 1))],
        forces=[
            zw.Motor("m", "arm", gear=2, control_range=(-1, 1)),
            zw.Damper("hand", 0.1, (0.01,)),
            zw.Spring("cart", (10, 1), 0.1),
            zw.PointSpring(("hand", (0, 0, 0)), ("world", (1, 0, 0)), 5, 0.5, 0.1),
            zw.Wrench("ball", (0, 0, 1), input="lift"),
            zw.Actuator("g", tendon="rope", activation=("filter", (0.1,)), force_range=(-5, 5)),
            zw.GravityCompensation("puck", 0.5),
            zw.Actuator(
                "u", joint="nut", muscle=zw.Muscle(10, (0.1, 1.0)), activation=("muscle", (0.01, 0.04, 0))
            ),
        ],
        constraints=[
            zw.JointCoupling("coupling", "hand", "arm", (0, 1), zw.Softness()),
            zw.Weld("weld", "fork", "world", softness=zw.Softness((0.05, 1))),
        ],
        tendons=[
            zw.Tendon("rope", path=("tip", "post"), stiffness=1),
            zw.Tendon("belt", {"arm": 1, "cart": 2}, limits=(-1, 1)),
        ],
        contacts=[zw.ContactPair("pair", ("s", "floor")), zw.ContactExclude(("arm", "cart"))],
        keyframes=[zw.Keyframe("start", time=1.0)],
    )


def exact() -> Mechanism:
    """A small mechanism with hard constraints of several kinds, also given by expressions."""
    x, y = zw.scalar.symbol("disc.x"), zw.scalar.symbol("disc.y")
    solid = {"mass": 1, "inertia": (0.1, 0.1, 0.1)}
    return zw.Mechanism(
        "exact",
        [
            zw.Body("disc", zw.Planar("disc"), **solid),
            zw.Body("link", zw.Revolute("link"), com=(0.5, 0, 0), position=(2, 0, 0), **solid),
        ],
        geometry=(
            zw.Plane(name="wall", position=(0, 0, -1), surface=zw.Surface(hard=True, restitution=0.5)),
        ),
        constraints=[
            zw.Holonomic("line", x - 2 * y),
            zw.Pfaffian("rate", {"disc.angle": 1, "link": -0.5}),
            zw.NonIdeal("rub", "line", {"disc.x": -0.1}),
            zw.Distance("rod", ("disc", (0, 0, 0)), ("link", (0, 0, 0)), 2.0, zw.Softness()),
            zw.NoSideSlip("edge", "link", (0, 0, 1)),
        ],
        home=(0, 0, 0, 0.5),
    )


@cache
def bases() -> tuple[Base, ...]:
    """All base files: those of this module, the samples, the examples and tests/badinputs."""
    made = [Base("arm.urdf", "urdf", URDF.encode()), Base("everything.xml", "mjcf", MJCF.encode())]
    made += [Base(f"{m.name}.json", "json", m.to_json().encode()) for m in (everything(), exact())]
    made += [Base(f"{name}.json", "json", make().to_json().encode()) for name, make in SAMPLES.items()]
    return (*made, *_beside())


def _beside() -> Iterator[Base]:
    for folder in (
        ROOT / "examples" / "models",
        ROOT / "tests" / "badinputs" / "urdf",
        ROOT / "tests" / "badinputs" / "mjcf",
    ):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.suffix in ENDINGS and path.is_file() and path.stat().st_size <= LARGEST:
                yield Base(path.name, ENDINGS[path.suffix], path.read_bytes())


def stl(vertices: np.ndarray, faces: list[tuple[int, int, int]]) -> bytes:
    """A binary STL file."""
    triangles = [
        np.concatenate([np.zeros((1, 3)), vertices[list(face)]]).astype("<f4").tobytes() + b"\0\0"
        for face in faces
    ]
    return b"\0" * 80 + struct.pack("<I", len(faces)) + b"".join(triangles)


def stage(folder: Path) -> None:
    """Write the files to which the base files refer."""
    (folder / "tetra.stl").write_bytes(stl(TETRA, FACES))
    (folder / "part.xml").write_text(PART)
