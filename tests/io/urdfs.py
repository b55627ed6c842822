"""Small URDF files for tests, and functions that load them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import zwang as zw
from zwang.errors import ZwangWarning
from zwang.mechanism.mechanism import Mechanism

INERTIAL = (
    '<inertial><origin xyz="0 0 -0.25"/><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(
    name: str, parent: str, child: str, kind: str = "continuous", inside: str = '<axis xyz="0 1 0"/>'
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/>{inside}</joint>\n'
    )


def robot(*parts: str) -> str:
    return '<robot name="r">\n' + "".join(parts) + "</robot>\n"


def pendulum(
    arm: str = INERTIAL, inside: str = '<axis xyz="0 1 0"/>', kind: str = "continuous", more: str = ""
) -> str:
    """A base and an arm on the joint `shoulder`; `inside` is the content of the joint element."""
    return robot(link("base"), link("arm", arm), joint("shoulder", "base", "arm", kind, inside), more)


def written(folder: Path, text: str, name: str = "robot.urdf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def loaded(folder: Path, text: str, **settings: Any) -> Mechanism:
    """The mechanism, with warnings ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZwangWarning)
        return zw.load(written(folder, text), **settings)
