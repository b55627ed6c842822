"""Imitations of the MuJoCo bindings of other versions and of damaged installations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco

LATER = (
    "nactuator",
    "actuator_ctrladr",
    "actuator_armature",
    "actuator_damping",
    "actuator_dampingpoly",
    "actuator_delay",
    "dof_dampingpoly",
    "geom_adhesion",
    "geom_surfacevel",
    "jnt_springyield",
    "jnt_stiffnesspoly",
    "pair_adhesion",
    "tendon_actfrclimited",
    "tendon_armature",
    "tendon_dampingpoly",
    "tendon_springyield",
    "tendon_stiffnesspoly",
)
"""Fields that MuJoCo 3.3.0 does not have."""


class OldModel:
    """A compiled model without the fields that were added after MuJoCo 3.3.0."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name in LATER:
            raise AttributeError(name)
        return getattr(self.model, name)


OLD_BITS = SimpleNamespace(
    __members__={
        "mjDSBL_CONTACT": 16,
        "mjDSBL_PASSIVE": 32,
        "mjDSBL_GRAVITY": 64,
        "mjDSBL_NATIVECCD": 65536,
        "mjNDISABLE": 17,
    }
)
"""The numbers of MuJoCo 3.3.0, from its header: a name may have had another bit."""
