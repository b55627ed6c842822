"""Actuators of MuJoCo's plugin `mujoco.pid`, which are read without the plugin.

Before MuJoCo compiles the model, each of them is replaced by a general actuator with the same transmission,
ranges and number of states, whose dynamics and gain are user-defined. The parameters of its gain are the
number of the controller and its line, by which it is found in the compiled model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from zwang.errors import DescriptionError
from zwang.io.mjcf.read.model_files import Files
from zwang.io.xml import Element
from zwang.mechanism.controllers import Pid

PLUGIN = "mujoco.pid"
FIELDS = {
    "kp": "proportional", "ki": "integral", "kd": "derivative", "imax": "largest_integral_force",
    "slewmax": "slew_rate",
}  # fmt: skip
"""The fields of a `Pid`, by the keys of the plugin."""
WITH_STATE = ("integrator", "filter", "filterexact")


class PidPlugin(NamedTuple):
    """A controller, and the activation dynamics of its actuator, "none" or one of `WITH_STATE`."""

    pid: Pid
    dynamics: str


PidPlugins = Mapping[tuple[int, int], PidPlugin]


def replaced_pid_plugins(files: Files) -> PidPlugins:
    """Replace the actuators of the plugin in the documents by general ones; their controllers are returned,
    by the parameters of the gain.

    Raises LoadError for a controller with invalid numbers, or with an `actdim` that is not the number of its
    states.
    """
    instances: dict[str, Element] = {}
    for element in files.elements():
        if element.name == "extension":
            for child in (c for c in element.children if _is_pid(c)):
                instances |= {x.attributes.get("name", ""): x for x in child.all("instance")}
            element.children = [child for child in element.children if not _is_pid(child)]
    has_default = any(_sets_activation(document) for document in files.documents)
    found: dict[tuple[int, int], PidPlugin] = {}
    for element in files.elements():
        for child in element.children if element.name == "actuator" else ():
            if child.name == "plugin" and (_is_pid(child) or child.attributes.get("instance") in instances):
                if has_default and "dyntype" not in child.attributes:
                    raise child.error(
                        f"{child.title} may have activation dynamics of a default class; give it a dyntype"
                    )
                key = (len(found), child.line)
                found[key] = _replaced(child, key, instances)
    return found


def _is_pid(element: Element) -> bool:
    return element.attributes.get("plugin") == PLUGIN


def _sets_activation(document: Element) -> bool:
    """Whether a default class gives actuators activation dynamics."""
    classes = [element for element in document.walk() if element.name == "default"]
    settings = [element for default in classes for element in default.children]
    return any({"dyntype", "timeconst"} & element.attributes.keys() for element in settings)


def _replaced(element: Element, key: tuple[int, int], instances: Mapping[str, Element]) -> PidPlugin:
    """The controller of an actuator, which becomes a general one in place."""
    attributes = dict(element.attributes)
    attributes.pop("plugin", None)
    instance = attributes.pop("instance", None)
    if instance is not None and instance not in instances:
        raise element.error(f"{element.title} has the instance {instance!r}, which the file does not define")
    pid = _pid(element if instance is None else instances[instance])
    kind, states = attributes.get("dyntype", "none"), len(pid.states)
    if kind not in ("none", *WITH_STATE):
        raise element.error(
            f"{element.title} has the dyntype {kind!r}; it must be none, {', '.join(WITH_STATE)}"
        )
    expected = states + (kind in WITH_STATE)
    given = attributes.pop("actdim", None)
    if (given or "0") != str(expected) and not (given is None and states == 0):
        raise element.error(
            f"{element.title} has {'no actdim' if given is None else f'the actdim {given}'}; its controller "
            f"and its activation have {expected} states: write actdim={str(expected)!r}"
        )
    attributes |= {"dyntype": "user", "actdim": str(expected)} if expected else {"dyntype": "none"}
    index, line = key
    attributes |= {"gaintype": "user", "gainprm": f"{index} {line}", "biastype": "none"}
    element.name, element.attributes, element.children = "general", attributes, []
    return PidPlugin(pid, kind)


def _pid(element: Element) -> Pid:
    """The controller with the configuration of an element. Raises LoadError."""
    values: dict[str, Any] = {}
    for config in element.all("config"):
        key, text = config.required("key"), config.attributes.get("value", "")
        if key not in FIELDS:
            raise config.error(f"the key of {config.title} is {key!r}; it must be one of {', '.join(FIELDS)}")
        if text.strip():
            values[FIELDS[key]] = config.number("value")
    if not values.get("integral"):
        values.pop("largest_integral_force", None)
    if not all(map(math.isfinite, values.values())):
        raise element.error(f"the configuration of {element.title} has a number that is not finite")
    try:
        return Pid(**values)
    except DescriptionError as error:
        raise element.error(f"{element.title}: {error}") from None
