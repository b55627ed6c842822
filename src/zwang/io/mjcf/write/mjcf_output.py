"""An MJCF file to be written: its mechanism, the names of its elements, its sites and its notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zwang.algebra.rotations import to_quaternion
from zwang.io.export_notes import ExportNotes
from zwang.io.meshes.mesh_export import MeshExport
from zwang.io.unique_names import UniqueNames
from zwang.io.xml_writer import XmlElement, is_xml_text
from zwang.mechanism.bodies import Frame
from zwang.mechanism.force_elements import Actuator, Motor
from zwang.mechanism.joints import Softness
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.numbers import IDENTITY, Numbers

DEFAULT = Softness()
INVISIBLE = (0, 0, 0, 0)  # colour of a geom that the rays of range sensors do not meet
WRAPPED = " (wrapped)"  # the end of the name that the reader gives to the frame of a wrapping geom


@dataclass
class MjcfOutput:
    """The parts of an MJCF file.

    mechanism: has only elements that MJCF has, see `mjcf_equivalent`. names: by kind of element.
    sites, geoms, cameras: elements by body, sites and geoms in addition to frames and shapes. shape_names: of
    shapes without a name to which other elements refer, by body and index. geom_frames: the geoms around
    which tendons wrap, by frame, radius and kind. site_frames: the frames to whose sites elements refer.
    height_fields: the names of the assets, by heights, extent and base. fluid_attributes: of shapes around
    which a fluid flows as around ellipsoids, by body and index. site_shapes: the attributes type and size of
    sites that are the zones of sensors.
    """

    mechanism: Mechanism
    notes: ExportNotes
    meshes: MeshExport
    names: dict[str, UniqueNames] = field(default_factory=dict)
    sites: dict[str, list[XmlElement]] = field(default_factory=dict)
    geoms: dict[str, list[XmlElement]] = field(default_factory=dict)
    shape_names: dict[tuple[str, int], str] = field(default_factory=dict)
    geom_frames: dict[tuple[str, Any, str], str] = field(default_factory=dict)
    site_frames: set[str] = field(default_factory=set)
    height_fields: dict[Any, str] = field(default_factory=dict)
    fluid_attributes: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    site_shapes: dict[str, dict[str, Any]] = field(default_factory=dict)
    cameras: dict[str, list[XmlElement]] = field(default_factory=dict)
    _shaped: dict[Any, str] = field(default_factory=dict)
    _points: list[tuple[str, Any, Any, str]] = field(default_factory=list)

    @staticmethod
    def of(mechanism: Mechanism, original: Mechanism, notes: ExportNotes, path: Path) -> MjcfOutput:
        """The output for a mechanism, with the names of its parts.

        original: of which the mechanism is the equivalent; it has the sensors and cameras.
        """
        out = MjcfOutput(mechanism, notes, MeshExport(path))
        shapes = [g.name for b in mechanism.bodies for g in b.geometry] + [g.name for g in mechanism.geometry]
        constraints = (*mechanism.constraints, *mechanism.inactive_constraints)
        parts = {
            "body": [b.name for b in mechanism.bodies],
            "joint": [j.name for j in mechanism.joints],
            "frame": [f.name for f in mechanism.frames],
            "shape": [name for name in shapes if name],
            "tendon": [t.name for t in mechanism.tendons],
            "actuator": [f.name for f in mechanism.forces if isinstance(f, Motor | Actuator)],
            "pair": [],
            "constraint": [c.name for c in constraints if c.name],
            "keyframe": [k.name for k in mechanism.keyframes if k.name],
            "sensor": [s.name for s in original.sensors],
            "camera": [c.name for c in original.cameras],
        }
        for kind, names in parts.items():
            table = out.names[kind] = UniqueNames(["world"] if kind == "body" else [])
            for name in sorted(names, key=lambda name: not is_xml_text(name)):
                table.assign(name)
                if not is_xml_text(name):
                    notes.unsupported(
                        f"{kind} {name!r}",
                        "XML cannot contain a character of its name",
                        f"its name is {table[name]!r}",
                    )
        out.names["body"].assign_reserved("world")
        for frame in mechanism.frames:
            out._points.append(
                (frame.body, np.array(frame.position, float), np.array(frame.orientation, float), frame.name)
            )
        return out

    def name(self, kind: str, name: str) -> str:
        """The name in the file of a part of the mechanism."""
        return self.names[kind][name]

    def site(self, frame: str) -> str:
        """The name of the site of a frame, or of one at the origin of a body."""
        if frame in self.names["frame"]:
            self.site_frames.add(frame)
            return self.names["frame"][frame]
        return self.site_at(frame, (0, 0, 0), IDENTITY, f"{frame} (origin)")

    def site_at(self, body: str, position: Any, orientation: Any, name: str) -> str:
        """The name of a site of a body with this pose; it is made unless there is one.

        orientation: None if it has no meaning.
        """
        p = np.array(position, float)
        R = None if orientation is None else np.array(orientation, float)
        for other, at, axes, found in self._points:
            if other == body and (at == p).all() and (R is None or (axes == R).all()):
                self.site_frames.add(found)
                return self.names["frame"][found]
        written = self.names["frame"].assign(self.names["frame"].free(name))
        self._points.append((body, p, np.eye(3) if R is None else R, written))
        node = XmlElement("site", {"name": written, **pose_attributes(p, np.eye(3) if R is None else R)})
        self.sites.setdefault(body, []).append(node)
        return written

    def shaped_site(self, frame: Frame, name: str, shape: dict[str, Any]) -> str:
        """The name of a further site at a frame, with this shape; it is made unless there is one."""
        key = (frame.body, frame.name, str(shape))
        if key not in self._shaped:
            written = self._shaped[key] = self.names["frame"].assign(self.names["frame"].free(name))
            pose = pose_attributes(frame.position, frame.orientation)
            self.sites.setdefault(frame.body, []).append(XmlElement("site", {"name": written, **pose}))
            self.site_shapes[written] = shape
        return self._shaped[key]


def pose_attributes(position: Any, orientation: Any) -> dict[str, Any]:
    """The attributes pos and quat of a pose; those of the identity are omitted."""
    found: dict[str, Any] = {}
    if any(x != 0 for x in position):
        found["pos"] = tuple(position)
    R = np.array(orientation, float)
    if not np.array_equal(R, np.eye(3)):
        found["quat"] = to_quaternion(R).tolist()
    return found


def softness_attributes(softness: Softness | None, ending: str = "") -> dict[str, Any]:
    """The attributes solref and solimp, with this ending, where they are not the defaults."""
    softness = softness or DEFAULT
    return {
        f"solref{ending}": unless(softness.solref, DEFAULT.solref),
        f"solimp{ending}": unless(softness.solimp, DEFAULT.solimp),
    }


def unless(value: Any, default: Any) -> Any:
    """`value`, or None, which omits the attribute, if it is the default."""
    return None if value == default else value


def limit_attributes(name: str, ends: Numbers | None) -> dict[str, Any]:
    """The attributes of a range: whether there is one, and its ends, which MJCF requires to differ."""
    if ends is None or (ends[0] == -np.inf and ends[1] == np.inf):
        return {f"{name}limited": "false"}
    return {f"{name}limited": "true", f"{name}range": widened(ends)}


def widened(ends: Numbers) -> tuple[float, float]:
    """A range whose ends differ: by a rounding error, if they are equal."""
    lower, upper = (float(end) for end in ends)
    return lower, upper if upper > lower else lower + max(abs(lower), 1.0) * 2.0**-52
