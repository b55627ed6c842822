"""The words of URDF: which elements and attributes an element may have; others are named, and near ones guessed."""

from __future__ import annotations

from zwang.errors import did_you_mean
from zwang.io.findings import Findings
from zwang.io.xml import Element

NO_EFFECT = "without effect on the motion"
POSE = ({"xyz", "rpy"}, set())

# element: (its attributes, its elements)
WORDS: dict[str, tuple[set[str], set[str]]] = {
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
# What simulators and drivers add: left out on purpose.
VENDOR = {
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
VENDOR_ATTRIBUTES = {
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


def check_words(root: Element, findings: Findings) -> None:
    """Warn of every element and attribute that is not URDF's; blocks of vendors are noted as ignored."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        attributes, elements = WORDS[element.name]
        for name in element.attributes:
            if name in VENDOR_ATTRIBUTES:
                findings.ignore(element, f"attribute {name!r} of <{element.name}>: is not of URDF")
            elif name not in attributes and ":" not in name:
                findings.warn(
                    element, f"unknown attribute {name!r} of {element.title}{_guess(name, attributes)}"
                )
        known = []
        for child in element.children:
            if child.name in IGNORED | VENDOR or ":" in child.name or (element.name, child.name) in MISPLACED:
                findings.ignore(child, f"<{child.name}>: {NO_EFFECT}")
            elif child.name in elements:
                known.append(child)
            elif element.name == "geometry":
                pass  # its reader says what is wrong
            elif element.name == "robot" and not _guess(child.name, elements):
                findings.ignore(child, f"<{child.name}>: is no element of URDF")
            else:
                findings.warn(
                    child, f"unknown element <{child.name}> in {element.title}{_guess(child.name, elements)}"
                )
        waiting.extend(reversed(known))


def _guess(name: str, known: set[str]) -> str:
    """The end of the sentence: what may have been meant."""
    question = did_you_mean(name, sorted(known))
    return f" is ignored. {question}" if question else ""
