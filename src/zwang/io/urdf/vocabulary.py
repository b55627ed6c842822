"""The elements and attributes of URDF; unknown ones are reported, with similar known names."""

from __future__ import annotations

from zwang.errors import did_you_mean
from zwang.io.findings import Findings
from zwang.io.xml import Element

NO_EFFECT = "without effect on the motion"
POSE = ({"xyz", "rpy"}, set())

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


def check_vocabulary(root: Element, findings: Findings) -> None:
    """Warn of every unknown element and attribute; extensions of simulators are noted as ignored."""
    stack = [root]
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
