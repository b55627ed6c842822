"""What a mechanism's lists may hold, and whether its states fit it."""

from __future__ import annotations

from typing import Any

from zwang.errors import DescriptionError, UnknownNameError
from zwang.mechanism import constraints as restrictions
from zwang.mechanism import force_elements
from zwang.mechanism import geometry as shapes
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.options import Keyframe, Options
from zwang.mechanism.tendon_elements import Tendon
from zwang.scalar import are_constant

CONSTRAINTS = (
    restrictions.Connect,
    restrictions.Weld,
    restrictions.Distance,
    restrictions.JointCoupling,
    restrictions.TendonCoupling,
    restrictions.NoSideSlip,
    restrictions.Rolling,
    *restrictions.EXPRESSION_CONSTRAINTS,
)
HELD: dict[str, tuple[Any, str]] = {
    "bodies": (Body, "zw.Body"),
    "forces": (force_elements.Force, "zw.Motor, zw.Spring, zw.Damper, zw.Wrench ..."),
    "constraints": (CONSTRAINTS, "zw.Connect, zw.Couple, zw.Rolling ..."),
    "frames": (Frame, "zw.Frame"),
    "geometry": (shapes.Geometry, "zw.Sphere, zw.Box, zw.Mesh ..."),
    "tendons": (Tendon, "zw.Tendon"),
    "contacts": (ContactPair | ContactExclude, "zw.ContactPair or zw.ContactExclude"),
    "keyframes": (Keyframe, "zw.Keyframe"),
}
"""What each of a mechanism's lists may hold, and how to say so."""


def listed(name: str, values: Any, where: str) -> tuple[Any, ...]:
    """`values` as a tuple of the parts that the list `name` holds. Raises DescriptionError for other things."""
    kinds, shown = HELD[name]
    try:
        items = tuple(values)
    except TypeError:
        raise DescriptionError(f"{name} of {where} is {_short(values)}; give a list of {shown}") from None
    for item in items:
        if not isinstance(item, kinds):
            other = next((other for other, (held, _) in HELD.items() if isinstance(item, held)), None)
            hint = f"; a {type(item).__name__} belongs in {other}=" if other else ""
            raise DescriptionError(f"{name} of {where} holds {_short(item)}{hint}; give {shown}")
    return items


def check_contacts(contacts: tuple[Any, ...], bodies: Any, shape_names: Any) -> None:
    """Contact pairs and exclusions speak of shapes and bodies that there are."""
    for contact in contacts:
        pair = isinstance(contact, ContactPair)
        for name in contact.geometry if pair else contact.bodies:
            if name not in (shape_names if pair else bodies):
                raise UnknownNameError(
                    "shape" if pair else "body", name, [n for n in (shape_names if pair else bodies) if n]
                )


def check_keyframes(keyframes: tuple[Keyframe, ...], nq: int, nv: int) -> None:
    """A keyframe's q and v have the mechanism's sizes, or none."""
    for frame in keyframes:
        for name, values, size in (("q", frame.q, nq), ("v", frame.v, nv)):
            if values and len(values) != size:
                raise DescriptionError(
                    f"{name} of keyframe {frame.name!r} has {len(values)} numbers; it must have {size} (n{name}), or none"
                )


def check_quaternions(q: tuple[Any, ...], joints: Any, where: str) -> None:
    """No attitude in a configuration is a zero quaternion."""
    for joint in joints:
        if joint.kind in ("ball", "free"):
            part = q[joint.q.stop - 4 : joint.q.stop]
            if are_constant(*part) and not any(part):
                raise DescriptionError(f"{where}: the quaternion of joint {joint.name!r} is zero")


def check_turning_spring(spring: force_elements.Spring) -> None:
    """On a joint that turns freely, a spring is linear, about home, and against the parent."""
    if spring.rest != 0 or len(spring.stiffness) != 1 or spring.relative_to is not None:
        raise DescriptionError(
            f"the spring on joint {spring.joint!r}, which turns freely, can have one stiffness only, "
            "and neither a rest nor another joint"
        )


def check_settings(options: Any, where: str) -> None:
    """Options are zw.Options."""
    if not isinstance(options, Options):
        raise DescriptionError(f"options of {where} are {_short(options)}; give zw.Options")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
