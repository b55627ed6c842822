"""The elements and attributes of URDF; unknown ones are reported, with similar known names."""

from __future__ import annotations

import re

from zwang.errors import UnsupportedError, did_you_mean
from zwang.io.findings import Findings
from zwang.io.xml import Element

NO_EFFECT = "without effect on the motion"
QUATERNION = "quat_xyzw"
QUATERNION_VERSION = (1, 1)  # of URDF, the first in which an origin may have a quaternion
XACRO = "xacro"
POSE = ({"xyz", "rpy", QUATERNION}, set())

# element: (its attributes, its child elements)
VOCABULARY: dict[str, tuple[set[str], set[str]]] = {
    "robot": ({"name", "version"}, {"link", "joint", "material", "transmission", "gazebo"}),
    "link": ({"name", "type"}, {"inertial", "visual", "collision"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "iyy", "izz", "ixy", "ixz", "iyz"}, set()),
    "visual": ({"name"}, {"origin", "geometry", "material"}),
    "collision": ({"name"}, {"origin", "geometry"}),
    "geometry": ({"name"}, {"box", "cylinder", "sphere", "capsule", "mesh"}),
    "box": ({"size"}, set()),
    "cylinder": ({"radius", "length"}, set()),
    "capsule": ({"radius", "length"}, set()),
    "sphere": ({"radius"}, set()),
    "mesh": ({"filename", "scale"}, set()),
    "material": ({"name"}, {"color", "texture"}),
    "color": ({"rgba"}, set()),
    "texture": ({"filename"}, set()),
    "origin": POSE,
    "joint": (
        {"name", "type"},
        {
            "origin",
            "parent",
            "child",
            "axis",
            "limit",
            "dynamics",
            "mimic",
            "safety_controller",
            "calibration",
        },
    ),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"}, set()),
    "dynamics": ({"damping", "friction"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
    "safety_controller": ({"k_position", "k_velocity", "soft_lower_limit", "soft_upper_limit"}, set()),
    "calibration": ({"rising", "falling", "reference_position"}, set()),
}

IGNORED = {"transmission", "gazebo", "safety_controller", "calibration", "texture", "verbose"}
# Extensions of simulators and drivers, which are ignored.
EXTENSIONS = {
    *(
        "contact",
        "self_filter",
        "sensor",
        "self_collision_checking",
        "collision_checking",
        "virtual_joint",
        "passive_joint",
    ),
    *("group", "surface", "kinematic", "gravity", "hardware", "state_interface", "command_interface"),
}
MISPLACED = {("collision", "material"), ("link", "origin")}
EXTENSION_ATTRIBUTES = {
    *(
        "dont_collapse",
        "gear_velocity",
        "command_effort",
        "current",
        "K",
        "D",
        "mu_viscous",
        "mu_coulomb",
        "xmlns",
    ),
    *("stiffness", "spring_stiffness", "spring_reference", "coulomb", "viscous"),
}


def is_without_effect(element: Element) -> bool:
    """Whether the element is an extension, or another one without effect on the motion."""
    return element.name in IGNORED | EXTENSIONS or ":" in element.name


def version_of(robot: Element) -> tuple[int, int]:
    """The version of URDF that a file states; 1.0 if it states none in the form `x.y`."""
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", robot.attributes.get("version", ""), re.ASCII)
    return (int(found[1]), int(found[2])) if found else (1, 0)


def drop_unread_quaternions(robot: Element, findings: Findings) -> None:
    """Drop the quaternions of origins, with a warning, from a file of a version that does not have them."""
    if version_of(robot) >= QUATERNION_VERSION:
        return
    parts = [part for part in robot.children if not is_without_effect(part)]
    for element in (element for part in parts for element in part.walk()):
        if element.name == "origin" and element.attributes.pop(QUATERNION, None) is not None:
            findings.warn(
                element,
                f"{QUATERNION} of {element.title} is ignored, as URDF has it from version 1.1 on: write "
                '<robot version="1.1">, or rpy',
            )


def _xacro_prefixes(root: Element) -> tuple[str, ...]:
    """The beginnings of the names of xacro's elements, such as `xacro:`."""
    declared = {
        name.removeprefix("xmlns:")
        for element in root.walk()
        for name, value in element.attributes.items()
        if name.startswith("xmlns:") and XACRO in value
    }
    return tuple(f"{prefix}:" for prefix in declared | {XACRO})


def check_vocabulary(root: Element, findings: Findings) -> None:
    """Warn of every unknown element and attribute; extensions of simulators are noted as ignored.

    Raises UnsupportedError for an element of xacro, which stands for others, unless it is in an extension.
    """
    stack, xacro = [root], _xacro_prefixes(root)
    while stack:
        element = stack.pop()
        attributes, elements = VOCABULARY[element.name]
        for name in element.attributes:
            if name in EXTENSION_ATTRIBUTES:
                findings.ignore(element, f"attribute {name!r} of <{element.name}>: not an attribute of URDF")
            elif name not in attributes and ":" not in name:
                findings.warn(
                    element, f"unknown attribute {name!r} of {element.title}{_suggestion(name, attributes)}"
                )
        known = []
        for child in element.children:
            if child.name.startswith(xacro):
                raise UnsupportedError(
                    f"{child.location}: this is a xacro file (<{child.name}>); convert it to URDF by xacro "
                    "first"
                )
            if is_without_effect(child) or (element.name, child.name) in MISPLACED:
                findings.ignore(child, f"<{child.name}>: {NO_EFFECT}")
            elif child.name in elements:
                known.append(child)
            elif element.name == "geometry":
                pass  # reported by the reader of the geometry
            elif element.name == "robot" and not _suggestion(child.name, elements):
                findings.ignore(child, f"<{child.name}>: not an element of URDF")
            else:
                findings.warn(
                    child,
                    f"unknown element <{child.name}> in {element.title}{_suggestion(child.name, elements)}",
                )
        stack.extend(reversed(known))


def _suggestion(name: str, known: set[str]) -> str:
    """The end of the message, with similar names; empty if there are none."""
    question = did_you_mean(name, sorted(known))
    return f" is ignored. {question}" if question else ""
