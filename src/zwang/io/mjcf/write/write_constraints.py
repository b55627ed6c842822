"""Equalities, contact pairs and contact exclusions of an MJCF file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zwang.algebra.rotations import to_quaternion
from zwang.io.mjcf.write.mjcf_output import MjcfOutput, softness_attributes, unless
from zwang.io.xml_writer import XmlElement
from zwang.mechanism.constraints import Connect, JointCoupling, Weld
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import mocap_groups
from zwang.mechanism.numbers import IDENTITY
from zwang.mechanism.sensors import ContactSensor, Sensor

PAIR = ContactPair("", ("", ""))
PAIR_NUMBERS = ("condim", "friction", "solref", "solimp", "margin", "gap")


def equality_nodes(out: MjcfOutput) -> list[XmlElement]:
    """The elements of <equality>. A Connect is between sites, which need not coincide by default."""
    found = []
    groups = ((out.mechanism.constraints, True), (out.mechanism.inactive_constraints, False))
    for c, active in ((c, active) for group, active in groups for c in group):
        common = {
            "name": out.name("constraint", c.name) if c.name else None,
            **softness_attributes(c.softness),
            "active": None if active and c.active == 1 else "false",
        }
        found.append(_equality(out, c, common))
    return found


def _equality(out: MjcfOutput, c: Any, common: dict[str, Any]) -> XmlElement:
    match c:
        case Connect():
            sites = {
                f"site{k}": out.site_at(body, point, None, f"{c.name} {end}".strip())
                for k, (body, point), end in ((1, c.a, "a"), (2, c.b, "b"))
            }
            return XmlElement("connect", {**common, **sites})
        case Weld():
            return XmlElement("weld", {**common, **_weld_ends(out, c), "torquescale": c.torque_scale})
    kind = "joint" if isinstance(c, JointCoupling) else "tendon"
    return XmlElement(
        kind,
        {
            **common,
            f"{kind}1": out.name(kind, getattr(c, kind)),
            f"{kind}2": None if c.to is None else out.name(kind, c.to),
            "polycoef": (*c.coefficients, *[0] * (5 - len(c.coefficients))),
        },
    )


def _weld_ends(out: MjcfOutput, c: Weld) -> dict[str, Any]:
    """The attributes of a weld's ends: bodies, or sites on one body, which MJCF does not weld to itself."""
    if c.a != c.b:
        return {
            "body1": out.name("body", c.a),
            "body2": out.name("body", c.b),
            "relpose": (*c.position, *to_quaternion(c.orientation).tolist()),
            "anchor": c.anchor,
        }
    return {
        "site1": out.site_at(c.a, c.position, c.orientation, f"{c.name} a".strip()),
        "site2": out.site_at(c.b, c.anchor, IDENTITY, f"{c.name} b".strip()),
    }


def contact_nodes(out: MjcfOutput, sensors: Iterable[Sensor] = ()) -> list[XmlElement]:
    """The elements of <contact>. sensors: those of the file."""
    found = []
    sensed = any(isinstance(sensor, ContactSensor) for sensor in sensors)
    for contact in out.mechanism.contacts:
        if isinstance(contact, ContactExclude):
            names = (out.name("body", body) for body in contact.bodies)
            found.append(XmlElement("exclude", dict(zip(("body1", "body2"), names, strict=True))))
        elif "" in contact.geometry:
            out.notes.unsupported(f"contact pair {contact.name!r}", "one of its shapes has no name")
        elif sensed and _are_fixed_to_each_other(out.mechanism, contact):
            out.notes.unsupported(
                f"contact pair {contact.name!r}",
                "its shapes are fixed to each other, and contact sensors of MuJoCo find it",
            )
        else:
            found.append(_pair(out, contact))
    return found


def _are_fixed_to_each_other(m: Mechanism, pair: ContactPair) -> bool:
    """Whether the shapes of a pair are on one link, so that the contact moves nothing."""
    bodies = {shape.name: body.name for body in m.bodies for shape in body.geometry}
    a, b = (bodies.get(shape, "world") for shape in pair.geometry)
    mocap = mocap_groups(m.bodies)
    return m.tree.placement(a).link == m.tree.placement(b).link and mocap.get(a) == mocap.get(b)


def _pair(out: MjcfOutput, pair: ContactPair) -> XmlElement:
    names = (out.name("shape", shape) for shape in pair.geometry)
    return XmlElement(
        "pair",
        {
            "name": out.names["pair"].assign(pair.name) if pair.name else None,
            **dict(zip(("geom1", "geom2"), names, strict=True)),
            **{name: unless(getattr(pair, name), getattr(PAIR, name)) for name in PAIR_NUMBERS},
            "solreffriction": pair.solreffriction or None,
        },
    )
