"""The outputs of linear models by name: entries of the state, sensors, positions of frames, and elements of
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zwang.errors import UnknownNameError
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.quantities.sensor_values import sensor_slices

AXES = ("x", "y", "z")


class LinearOutput(NamedTuple):
    """One or several outputs: their names, and what they are.

    states: numbers of entries of the state. sensors: of rows of all sensors. frame, axes: of a position.
    """

    names: tuple[str, ...]
    states: tuple[int, ...] = ()
    sensors: tuple[int, ...] = ()
    frame: str = ""
    axes: tuple[int, ...] = ()


def linear_outputs(m: Mechanism, states: Sequence[str], wanted: Sequence[str]) -> list[LinearOutput]:
    """The outputs of these names. states: the names of all entries of the state. Raises UnknownNameError."""
    known = _known_outputs(m, states)
    for name in wanted:
        if name not in known:
            raise UnknownNameError("output", name, known)
    return [known[name] for name in wanted]


def _known_outputs(m: Mechanism, states: Sequence[str]) -> dict[str, LinearOutput]:
    """All outputs by name. Of equal names a state comes before a sensor, a sensor before a frame, and all of
    these before an element.
    """
    whole = {name: LinearOutput((name,), states=(k,)) for k, name in enumerate(states)}
    elements: dict[str, LinearOutput] = {}
    for name, part in sensor_slices(m.sensors).items():
        own = tuple(f"{name}.{component}".rstrip(".") for component in m.sensor(name).components)
        rows = tuple(range(part.start, part.stop))
        whole.setdefault(name, LinearOutput(own, sensors=rows))
        for element, row in zip(own, rows, strict=True):
            elements.setdefault(element, LinearOutput((element,), sensors=(row,)))
    for name in m.tree.placements:
        own = tuple(f"{name}.{axis}" for axis in AXES)
        whole.setdefault(name, LinearOutput(own, frame=name, axes=(0, 1, 2)))
        for k, element in enumerate(own):
            elements.setdefault(element, LinearOutput((element,), frame=name, axes=(k,)))
    return whole | {name: output for name, output in elements.items() if name not in whole}
