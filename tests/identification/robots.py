"""Robots of example-robot-data without contacts, with chosen joints fixed, and with friction."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import zwang as zw
from zwang.mechanism.mechanism import Mechanism

FILES = {
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
}


def urdf(name: str) -> Path:
    """The URDF file of a robot; the test is skipped where the package is not installed."""
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        files = ()
    found = [Path(str(f.locate())) for f in files if str(f).endswith(f"robots/{FILES[name]}")]
    if sys.platform == "win32" or not found:
        pytest.skip("example-robot-data is not installed")
    return found[0]


@cache
def robot(name: str, base: str = "fixed") -> Mechanism:
    """The robot without forces, constraints and home; Panda without its fingers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = zw.load(urdf(name), base=base, strict=False)
    return with_fixed(m.replace(forces=(), constraints=(), home=None), ["finger"])


def with_fixed(m: Mechanism, parts: Sequence[str]) -> Mechanism:
    """The mechanism with those joints fixed whose names contain one of `parts`."""
    return m.replace(
        bodies=[
            replace(b, joint=zw.Fixed()) if any(part in j.name for part in parts for j in b.joints) else b
            for b in m.bodies
        ]
    )


def with_friction(m: Mechanism, armature: float, damping: float, friction: float) -> Mechanism:
    """The mechanism with the same armature, damping and dry friction at every joint."""
    bodies = [
        replace(b, joint=tuple(replace(j, armature=armature, friction=friction) for j in b.joints))
        if b.joints
        else b
        for b in m.bodies
    ]
    return m.replace(bodies=bodies, forces=[zw.Damper(j.name, damping) for j in m.joints])
