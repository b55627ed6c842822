"""The joints of a mechanism with their slices of the configuration and of the generalised velocities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zwang.mechanism.bodies import Body
from zwang.mechanism.joints import Joint, MovingJoint

_UNITS = {"angle": "rad", "displacement": "m", "x": "m", "y": "m", "z": "m", "vx": "m", "vy": "m", "vz": "m",
          "wx": "rad", "wy": "rad", "wz": "rad", "first": "rad", "second": "rad"}  # fmt: skip


@dataclass(frozen=True)
class JointIndex:
    """A joint of a mechanism with its body and its slices of q and v."""

    name: str
    kind: str
    body: str
    q: slice
    v: slice
    joint: MovingJoint

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of its coordinates: `elbow`, or `base.qw` where there are several."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.joint.coordinates)

    @property
    def speeds(self) -> tuple[str, ...]:
        """The names of its generalised velocities."""
        return tuple(f"{self.name}.{part}" if part else self.name for part in self.joint.speeds)

    @property
    def coordinate_units(self) -> tuple[str, ...]:
        """The unit of each coordinate: "rad", "m", or "1" for an element of a quaternion."""
        return tuple(self._unit(part) for part in self.joint.coordinates)

    @property
    def displacement_units(self) -> tuple[str, ...]:
        """The unit of each displacement in the tangent space: "rad" or "m"."""
        return tuple(self._unit(part) for part in self.joint.speeds)

    def _unit(self, part: str) -> str:
        if part == "":
            return "m" if self.kind == "prismatic" else "rad"
        return _UNITS.get(part, "1")

    def __repr__(self) -> str:
        return (
            f"{self.name} ({self.kind} of {self.body}, q[{self.q.start}:{self.q.stop}], "
            f"v[{self.v.start}:{self.v.stop}])"
        )


def joint_indices(bodies: Iterable[Body]) -> tuple[JointIndex, ...]:
    """The joints of these bodies that are not fixed, in order, with their slices of q and v."""
    found, iq, iv = [], 0, 0
    for body in bodies:
        for joint in body.joints:
            q, v = slice(iq, iq + joint.nq), slice(iv, iv + joint.nv)
            found.append(JointIndex(joint.name, joint.kind, body.name, q, v, joint))
            iq, iv = q.stop, v.stop
    return tuple(found)


def ambiguous_names(kinds: Mapping[str, type[Joint]]) -> dict[str, str]:
    """The joints with the name of a coordinate or generalised velocity of another joint, with that joint.

    kinds: the classes of all joints, by name. Those of several coordinates name them `JOINT.PART`.
    """
    parts = {
        f"{name}.{part}": name
        for name, kind in kinds.items()
        for part in (*kind.coordinates, *kind.speeds)
        if part
    }
    return {name: parts[name] for name, kind in kinds.items() if "" in kind.coordinates and name in parts}
