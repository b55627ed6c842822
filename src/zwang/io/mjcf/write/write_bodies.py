"""Bodies, joints, sites and geoms of an MJCF file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.io.mjcf.write.mjcf_output import (
    DEFAULT,
    WRAPPED,
    MjcfOutput,
    limit_attributes,
    pose_attributes,
    softness_attributes,
    unless,
    widened,
)
from zwang.io.mjcf.write.write_geoms import geom_nodes
from zwang.io.mjcf.write.write_inertias import inertials
from zwang.io.mjcf.write.write_options import is_actuated
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.bodies import Body
from zwang.mechanism.force_elements import Damper, GravityCompensation, Spring
from zwang.mechanism.joints import Ball, Fixed, Free, MovingJoint
from zwang.mechanism.simple_bodies import simple_bodies

TYPES = {"revolute": "hinge", "prismatic": "slide", "ball": "ball", "free": "free"}


def world_node(out: MjcfOutput) -> XmlElement:
    """The element <worldbody> with all bodies."""
    m = out.mechanism
    writer = _BodyWriter(out)
    nodes = {"world": XmlElement("worldbody")}
    writer.fill(nodes["world"], "world", m.geometry)
    for body in m.bodies:
        nodes[body.name] = writer.body(body)
    for body in m.bodies:
        nodes[body.parent].children.append(nodes[body.name])
    writer.note_stored_numbers()
    return nodes["world"]


class _BodyWriter:
    """The springs, dampers and inertias by joint or body, from which the elements of bodies are made."""

    def __init__(self, out: MjcfOutput):
        self.out = out
        m = out.mechanism
        self.inertials = inertials(m, out.notes)
        self.springs = {f.joint: f for f in m.forces if isinstance(f, Spring)}
        self.dampers = {f.joint: f for f in m.forces if isinstance(f, Damper)}
        self.compensation: dict[str, Any] = {}
        for force in m.forces:
            if isinstance(force, GravityCompensation):
                self.compensation[force.body] = self.compensation.get(force.body, 0) + force.factor
        if self.compensation and not any(x > 0 for x in self.compensation.values()):
            for body in self.compensation:
                out.notes.unsupported(
                    f"the gravity compensation of body {body!r}",
                    "MuJoCo applies a negative factor only if another body has a positive one",
                )
            self.compensation = {}
        self.by_rule = simple_bodies(replace(body, simple=None) for body in m.bodies)
        self.stored: dict[str, list[str]] = {"velocity": [], "effort": []}

    def body(self, body: Body) -> XmlElement:
        joints = body.joints
        free = next((j for j in joints if isinstance(j, Free)), None)
        pose = pose_attributes(body.position, body.orientation)
        if free is not None:
            home = self.out.mechanism.home or self.out.mechanism.neutral
            q = home[self.out.mechanism.joint(free.name).q]
            pose = {"pos": unless(tuple(q[:3]), (0, 0, 0)), "quat": unless(tuple(q[3:]), (1, 0, 0, 0))}
        if body.home_pose is not None and any(tendon.path for tendon in self.out.mechanism.tendons):
            self._note_home_pose(body, body.home_pose)
        not_simple = body.simple is False and body.name in self.by_rule
        node = XmlElement(
            "body",
            {
                "name": self.out.name("body", body.name),
                **pose,
                "gravcomp": self.compensation.get(body.name),
                "mocap": "true" if body.mocap else None,
                "simple": "false" if not_simple else None,
                "sleep": unless(body.sleep, "auto"),
            },
        )
        node.children += [self.joint(joint) for joint in joints]
        if body.name in self.inertials:
            node.children.append(self.inertials[body.name])
        self.fill(node, body.name, body.geometry)
        return node

    def _note_home_pose(self, body: Body, home_pose: Any) -> None:
        """Note a home pose that is not the pose of the body."""
        home, here = (
            np.array([*position, *np.ravel(orientation)], float)
            for position, orientation in (home_pose, (body.position, body.orientation))
        )
        if not np.allclose(home, here, rtol=0, atol=1e-9):
            self.out.notes.unsupported(
                f"the home_pose of body {body.name!r}",
                "MuJoCo computes the lengths and inverse weights of tendons at home with the mocap bodies at "
                "their poses in the file",
            )

    def fill(self, node: XmlElement, body: str, geometry: Any) -> None:
        """Append the geoms and sites of a body."""
        out = self.out
        for index, shape in enumerate(geometry):
            name = out.name("shape", shape.name) if shape.name else out.shape_names.get((body, index))
            geoms = geom_nodes(out, body, shape, name)
            for geom in geoms[:1]:
                geom.attributes.update(out.fluid_attributes.get((body, index), {}))
            node.children += geoms
        node.children += out.geoms.get(body, [])
        # the frame of a wrapping geom is a site as well if other elements refer to it
        wrapped = {name for name, *_ in out.geom_frames if name.endswith(WRAPPED)} - out.site_frames
        for frame in out.mechanism.frames:
            if frame.body == body and frame.name not in wrapped:
                name = out.name("frame", frame.name)
                pose = pose_attributes(frame.position, frame.orientation)
                node.children.append(XmlElement("site", {"name": name, **pose}))
        node.children += out.sites.get(body, [])
        for site in node.children:
            if site.name == "site":
                site.attributes.update(out.site_shapes.get(site.attributes["name"], {}))
        node.children += out.cameras.get(body, [])

    def joint(self, joint: MovingJoint) -> XmlElement:
        """The element <joint>."""
        scalar = joint.nq == 1
        attributes: dict[str, Any] = {
            "name": self.out.name("joint", joint.name),
            "type": TYPES[joint.kind],
            "pos": None if isinstance(joint, Free) else unless(tuple(joint.position), (0, 0, 0)),
            "axis": unless(tuple(joint.axis), (0, 0, 1)) if scalar else None,
            "ref": unless(joint.reference, 0) if scalar else None,
            "armature": unless(joint.armature, 0),
            "frictionloss": unless(joint.friction, 0),
            "actuatorgravcomp": unless(joint.actuator_gravity_compensation, False),
            **softness_attributes(joint.friction_softness, "friction"),
            **self._limits(joint),
            **self._forces(joint),
        }
        if joint.friction and joint.friction_softness is None:
            self.out.notes.unsupported(
                f"joint {joint.name!r}", "MJCF has no hard dry friction", "it has MuJoCo's default softness"
            )
        for kind, value in (("velocity", joint.velocity_limit), ("effort", joint.effort_limit)):
            if value is not None and joint.actuator_range != (-value, value):
                self.stored[kind].append(joint.name)
        return XmlElement("joint", attributes)

    def _limits(self, joint: MovingJoint) -> dict[str, Any]:
        where = f"joint {joint.name!r}"
        ends = joint.limits
        if ends is not None and isinstance(joint, Ball):
            ends = (0, ends[1])
        found = limit_attributes("", ends)
        if ends is not None:
            softness = joint.limit_softness or DEFAULT
            found |= {**softness_attributes(softness, "limit"), "margin": unless(softness.margin, 0)}
            if joint.limit_softness is None:
                self.out.notes.unsupported(
                    where, "MJCF has no hard joint limit", "it has MuJoCo's default softness"
                )
        if joint.actuator_range is None:
            return found
        m = self.out.mechanism
        if joint.nq > 1 and "actuation" in m.options.disabled and not is_actuated(m):
            return found  # the flag leaves out the actuators' share of gravity compensation, too
        if joint.nq > 1:
            self.out.notes.unsupported(
                where, f"a {joint.kind} joint of MJCF has no actuatorfrcrange", "its actuator forces are free"
            )
            return found
        return found | {"actuatorfrclimited": "true", "actuatorfrcrange": widened(joint.actuator_range)}

    def _forces(self, joint: MovingJoint) -> dict[str, Any]:
        """The attributes of the spring and the damper on a joint."""
        found: dict[str, Any] = {}
        if spring := self.springs.get(joint.name):
            found["stiffness"] = spring.stiffness
            if joint.nq == 1:
                found["springref"] = spring.rest
        if damper := self.dampers.get(joint.name):
            higher = damper.higher
            while higher and higher[-1] == 0:
                higher = higher[:-1]
            found["damping"] = (damper.coefficient, *higher)
        return found

    def note_stored_numbers(self) -> None:
        """Notes on what a mechanism stores without effect on the motion, and MJCF does not have."""
        fixed = [
            b.joint.name for b in self.out.mechanism.bodies if isinstance(b.joint, Fixed) and b.joint.name
        ]
        if fixed:
            self.out.notes.ignored("a fixed joint of MJCF has no name", f"joints {_listed(fixed)}")
        for kind, joints in self.stored.items():
            if joints:
                self.out.notes.ignored(f"MJCF stores no {kind} limit", f"joints {_listed(joints)}")


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
