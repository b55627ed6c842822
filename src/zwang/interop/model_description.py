"""The model description of an FMU (FMI 3.0): its variables, units and structure, as XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zwang.interop.export_settings import ExportSettings
from zwang.io.unique_names import UniqueNames
from zwang.io.xml_writer import XmlElement, as_xml_text, document
from zwang.recording.dataset import coordinate_units, speed_units
from zwang.simulation.applied_forces import activations

UNITS: dict[str, dict[str, int]] = {
    "rad": {"rad": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "rad/s^2": {"rad": 1, "s": -2},
    "m/s^2": {"m": 1, "s": -2},
    "1/s": {"s": -1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N m": {"kg": 1, "m": 2, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
}
"""The units of variables, by base units; variables of other units have none."""


@dataclass(frozen=True)
class Variable:
    """A variable of an FMU, of the type Float64.

    kind: "time", "state", "derivative", "control", "parameter" or "output". state: of a derivative, the value
    reference of its state. start: the start value; None for calculated variables.
    """

    reference: int
    name: str
    kind: str
    unit: str = ""
    start: float | None = None
    state: int | None = None
    description: str = ""

    @property
    def is_output(self) -> bool:
        """Whether the variable is an output: states are, and other outputs."""
        return self.kind in ("state", "output")


_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "time": {"causality": "independent", "variability": "continuous"},
    "state": {"causality": "output", "variability": "continuous", "initial": "exact"},
    "derivative": {"causality": "local", "variability": "continuous", "initial": "calculated"},
    "control": {"causality": "input", "variability": "continuous"},
    "parameter": {"causality": "parameter", "variability": "tunable"},
    "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
}


def variables_of(settings: ExportSettings, with_derivatives: bool) -> list[Variable]:
    """All variables, in the order of their value references: that of the template `fmi3.c`."""
    m, names = settings.mechanism, UniqueNames()
    states = [*_states(settings)]
    found = [Variable(0, names.new("time"), "time", "s", description="time")]

    def add(kind: str, name: str, unit: str = "", start: Any = None, **more: Any) -> None:
        plain = as_xml_text(name.encode("unicode_escape").decode() if not name.isprintable() else name)
        value = None if start is None else float(start)
        found.append(Variable(len(found), names.new(plain), kind, unit, value, **more))

    for name, unit, start, text in states:
        add("state", name, unit, start, description=text)
    for k, (name, unit, _, _) in enumerate(states):
        rate = f"{unit}/s" if unit and not unit.endswith("/s") else f"{unit}^2" if unit else "1/s"
        add("derivative", f"der({name})", rate, state=1 + k, description="derivative by time")
    units = ["N" if unit == "m/s" else "N m" for unit in speed_units(m)]
    for k, (name, start) in enumerate(zip(settings.controls, settings.initial_control, strict=True)):
        add("control", f"control.{name}", "" if m.inputs else units[k], start, description="control")
    for name, value in settings.initial.params.items():
        add("parameter", f"parameter.{name}", "", value[0], description="symbol of the mechanism")
    for name, unit in _outputs(settings):
        add("output", name, unit)
    return found if with_derivatives else [x for x in found if x.kind != "derivative"]


def _states(settings: ExportSettings) -> Iterator[tuple[str, str, float, str]]:
    """Name, unit, start value and description of each continuous state."""
    m, initial = settings.mechanism, settings.initial
    for name, unit, start in zip(m.coordinate_names, coordinate_units(m), initial.q[0], strict=True):
        yield f"q.{name}", unit if unit in UNITS else "", start, "coordinate"
    for name, unit, start in zip(m.speed_names, speed_units(m), initial.v[0], strict=True):
        yield f"v.{name}", unit, start, "generalised velocity"
    for name, start in zip(activations(m), initial.z[0], strict=True):
        yield f"activation.{name}", "", start, "activation of the actuator"


def _outputs(settings: ExportSettings) -> Iterator[tuple[str, str]]:
    """Name and unit of each output beside the states: sensors, and positions of frames."""
    for sensor in settings.mechanism.sensors:
        for part in sensor.components:
            yield f"sensor.{sensor.name}.{part}".rstrip("."), sensor.quantity.unit
    for frame in settings.frames:
        for axis in "xyz":
            yield f"frame.{frame}.{axis}", "m"


@dataclass(frozen=True)
class FmuKinds:
    """The kinds of simulation that an FMU is for; co-simulation is always one."""

    model_exchange: bool
    directional_derivatives: bool


def model_description(settings: ExportSettings, kinds: FmuKinds, token: str) -> bytes:
    """The content of modelDescription.xml."""
    variables = variables_of(settings, kinds.model_exchange)
    name = as_xml_text(settings.mechanism.name) or settings.name
    root = XmlElement(
        "fmiModelDescription",
        {
            "fmiVersion": "3.0",
            "modelName": name,
            "instantiationToken": token,
            "generationTool": "zwang",
            "variableNamingConvention": "flat",
        },
    )
    shared: dict[str, Any] = {
        "modelIdentifier": settings.name,
        "canGetAndSetFMUState": True,
        "canSerializeFMUState": True,
    }
    if kinds.model_exchange:
        exact = kinds.directional_derivatives
        given = {"providesDirectionalDerivatives": exact, "providesAdjointDerivatives": exact}
        root.add("ModelExchange", **shared, **given)
    root.add("CoSimulation", **shared, fixedInternalStepSize=repr(settings.h))
    root.children += [_units(variables), _log_categories()]
    root.add("DefaultExperiment", startTime="0", stopTime="1", stepSize=repr(settings.h))
    root.children += [XmlElement("ModelVariables", {}, map(_node, variables)), _structure(variables)]
    return document(root)


def _units(variables: list[Variable]) -> XmlElement:
    used = [unit for unit in UNITS if any(x.unit == unit for x in variables)]
    definitions = XmlElement("UnitDefinitions")
    for unit in used:
        definitions.add("Unit", name=unit).add(
            "BaseUnit", **{base: str(n) for base, n in UNITS[unit].items()}
        )
    return definitions


def _log_categories() -> XmlElement:
    categories = XmlElement("LogCategories")
    categories.add("Category", name="logStatusError", description="errors")
    return categories


def _node(x: Variable) -> XmlElement:
    attributes = {"name": x.name, "valueReference": str(x.reference), **_ATTRIBUTES[x.kind]}
    attributes["description"] = x.description or None
    attributes["unit"] = x.unit if x.unit in UNITS else None
    attributes["start"] = None if x.start is None else repr(x.start)
    attributes["derivative"] = None if x.state is None else str(x.state)
    return XmlElement("Float64", attributes)


def _structure(variables: list[Variable]) -> XmlElement:
    structure = XmlElement("ModelStructure")
    for x in variables:
        if x.is_output:
            structure.add("Output", valueReference=str(x.reference))
    for kind, tag in (("derivative", "ContinuousStateDerivative"), (None, "InitialUnknown")):
        for x in variables:
            if x.kind == kind or (kind is None and x.kind in ("derivative", "output")):
                structure.add(tag, valueReference=str(x.reference))
    return structure
